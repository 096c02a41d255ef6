"""What a person sees: tables that fit.

Colours only on a terminal, times as people say them, text cut to its width.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from aof.support.printable import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO


_CONTINUED = "\n    "  # nothing in a message can look like a line of ours
_COLOURS = {
    "ready": "36",
    "waiting": "2",
    "in-progress": "33",
    "review": "35",
    "blocked": "31",
    "done": "32",
    "cancelled": "2",
    "deadletter": "31;1",
    "backlog": "2",
    "critical": "31;1",
    "high": "33",
    "low": "2",
    "bold": "1",
    "dim": "2",
    "error": "31;1",
    "good": "32",
}
_MARK = f"\x1b{os.urandom(8).hex()}:"
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"))
_NARROWEST, _ENOUGH, _COMFORTABLE, _WIDEST = 12, 20, 40, 20
_ID, _YEAR = "TASK-", len("TASK-2026-")


class Guarded:
    """A text stream that lets no control character through, but line breaks and tabs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, cleaned."""
        return self.trusted(clean(text, lines=True))

    def writelines(self, lines: Iterable[str]) -> None:
        """The same for several."""
        for line in lines:
            self.write(line)

    def trusted(self, text: str) -> int:
        """Write what was cleaned already, with control sequences of our own."""
        try:
            return self._stream.write(text)
        except UnicodeEncodeError:  # a terminal that lacks a letter is no reason to fail
            encoding = self._stream.encoding or "ascii"
            return self._stream.write(text.encode(encoding, "replace").decode(encoding))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def trusted(out: TextIO, text: str) -> None:
    """Write to a stream that may be guarded or not."""
    getattr(out, "trusted", out.write)(text)


def guard() -> tuple[TextIO, TextIO]:
    """Put the guard in front of both streams; tells which they were, for `unguard`."""
    before = sys.stdout, sys.stderr
    for name, stream in zip(("stdout", "stderr"), before, strict=True):
        if not isinstance(stream, Guarded):
            setattr(sys, name, Guarded(stream))
    return before


def unguard(before: tuple[TextIO, TextIO]) -> None:
    """Put the streams back, for whoever called the command as a function."""
    sys.stdout, sys.stderr = before


def complain(message: str, hint: str = "") -> None:
    """Say on standard error what is wrong, and what helps."""
    sys.stderr.write(f"aof: {_continued(message)}\n")
    if hint:
        sys.stderr.write(f"  → {_continued(hint)}\n")


def _continued(text: str) -> str:
    return text.replace("\n", _CONTINUED)


class Screen:
    """Standard output for a person."""

    def __init__(self, out: TextIO | None = None, *, compact: bool = False) -> None:
        self._out = out or sys.stdout
        if hasattr(self._out, "reconfigure"):
            self._out.reconfigure(errors="replace")  # a terminal that lacks a letter is no reason to fail
        terminal = self._out.isatty()
        self.colours = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.width, self.height = _size() if terminal else (0, 0)
        self.compact = compact

    def line(self, text: str = "") -> None:
        """One line, whatever is in the text."""
        self._put(text, lines=False)

    def block(self, text: str) -> None:
        """Text of several lines."""
        self._put(text, lines=True)

    def _put(self, text: str, *, lines: bool) -> None:
        first, *painted = text.split(_MARK)
        said = [clean(first, lines=lines)]
        for part in painted:
            code, _, rest = part.partition("m")
            said.append(f"\x1b[{code}m{clean(rest, lines=lines)}")
        trusted(self._out, "".join(said) + "\n")

    def paint(self, text: str, colour: str) -> str:
        """Text in the colour of a status, a priority or a role, where there are colours."""
        code = _COLOURS.get(colour) if self.colours else None
        return f"{_MARK}{code}m{text}{_MARK}0m" if code and text else text

    def say(self, *parts: str | tuple[str, str], cut_off: bool = True) -> None:
        """One line of parts, each plain or with its colour; on a terminal it ends where the line does."""
        left = self.width if cut_off and self.width else None
        said: list[str] = []
        for part in parts:
            text, colour = (part, "") if isinstance(part, str) else part
            text = clean(text)
            shown = text if left is None else cut(text, left)
            said.append(self.paint(shown, colour))
            if left is not None:
                left -= width(shown)
                if shown != text:
                    break
        self.line("".join(said).rstrip())

    def finding(self, place: str, severity: str, detail: str, code: str, fix: str = "") -> None:
        """What a check has found, where, and what helps."""
        painted = self.paint(severity, "error" if severity == "error" else "high")
        self.line(f"{place}: {painted}: {detail} [{code}]")
        if fix:
            self.line(f"  → {fix}")

    def table(
        self,
        head: tuple[str, ...],
        body: Sequence[tuple[str, ...]],
        *,
        colour_by: tuple[int, ...] = (),
        hide: tuple[int, ...] = (),
        whole: bool = False,
        none: str = "",
    ) -> None:
        """Columns as wide as needed. On a terminal the last one is cut where the line ends; `whole`: it goes on below.

        `none` is what is said in place of an empty table.

        Where that leaves little of it, columns that `hide` names and that say the same in every row are left out. Where
        it leaves too little, IDs lose their year, and then those columns go whatever they say.
        """
        if none and not body:
            self.line(none)
            return
        rows = [tuple(map(clean, row)) for row in body]
        if self.compact:
            for row in rows:
                self.line(" ".join(cell for cell in row if cell != "-"))
            return
        if self.width and self._room(self._widths(head, rows)) < _ENOUGH:
            rows = _without_year(rows)
        widths = self._widths(head, rows)
        kept = self._kept(rows, widths, hide)
        if self.width:
            widths[-1] = max(min(widths[-1], self._room([widths[one] for one in kept])), _NARROWEST)
        self.line(self.paint("  ".join(pad(head[place], widths[place]) for place in kept).rstrip(), "dim"))
        for row in rows:
            told = wrap(row[-1], widths[-1]) if whole and self.width else [cut(row[-1], widths[-1])]
            cells = []
            for place in kept[:-1]:
                padded = pad(cut(row[place], widths[place]), widths[place])
                cells.append(self.paint(padded, row[place]) if place in colour_by else padded)
            self.line("  ".join([*cells, told[0]]).rstrip())
            for more in told[1:]:
                self.line(" " * (sum(widths[place] + 2 for place in kept[:-1])) + more)

    def _widths(self, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[int]:
        """How wide columns are; on a terminal those in the middle only up to a bound."""
        widths = [max(map(width, column)) for column in zip(head, *rows, strict=True)]
        if self.width:
            widths[1:-1] = [min(one, _WIDEST) for one in widths[1:-1]]
        return widths

    def _room(self, widths: list[int]) -> int:
        """What is left for the last of these columns."""
        return self.width - sum(one + 2 for one in widths[:-1])

    def _kept(self, rows: list[tuple[str, ...]], widths: list[int], hide: tuple[int, ...]) -> list[int]:
        """The columns that are shown: those that say the same in every row go first, and then the others."""
        kept = list(range(len(widths)))
        repeated = [place for place in hide if len({row[place] for row in rows}) == 1]
        for enough, places in ((_COMFORTABLE, repeated), (_ENOUGH, hide)) if self.width else ():
            for place in places:
                if place in kept and self._room([widths[one] for one in kept]) < min(widths[-1], enough):
                    kept.remove(place)
        return kept


def _without_year(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Rows that begin with IDs of one year say only the rest of them: it still names the task."""
    years = {row[0][:_YEAR] for row in rows}
    return [(row[0][_YEAR:], *row[1:]) for row in rows] if len(years) == 1 and min(years).startswith(_ID) else rows


def _size() -> tuple[int, int]:
    """Columns and lines of the terminal; the environment may say otherwise."""
    try:
        found = tuple(os.get_terminal_size(sys.stdout.fileno()))
    except (OSError, ValueError):
        found = (0, 0)
    columns, lines = (_number(os.environ.get(name, "")) for name in ("COLUMNS", "LINES"))
    return columns or found[0] or 80, lines or found[1] or 24


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def ago(then: int, now: int) -> str:
    """How long ago, or how long until."""
    distance = abs(now - then)
    for size, unit in _UNITS:
        if distance >= size:
            text = f"{distance // size}{unit}"
            return f"{text} ago" if then <= now else f"in {text}"
    return "just now" if then <= now else "now"


_CUT = "…"
_WIDE, _JOINER, _AS_PICTURE = "WF", "\u200d", "\ufe0f"
_NO_WIDTH = ("Mn", "Me", "Cf")


def width(text: str) -> int:
    """How many columns the text takes."""
    return len(text) if text.isascii() else sum(columns for _, columns in _clusters(text))


def cut(text: str, room: int) -> str:
    """As much of the text as fits; an ellipsis says that there was more."""
    if width(text) <= room:
        return text
    kept: list[str] = []
    left = room - 1
    for cluster, columns in _clusters(text):
        left -= columns
        if left < 0:
            break
        kept.append(cluster)
    return "".join(kept).rstrip() + _CUT if room > 0 else ""


def pad(text: str, room: int) -> str:
    """The text with spaces behind it up to so many columns."""
    return text + " " * (room - width(text))


def wrap(text: str, room: int) -> list[str]:
    """The text in lines of so many columns at most, broken between words; only what is too long is broken itself."""
    lines = [""]
    for word in text.split():
        if lines[-1] and width(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
            continue
        pieces = [""]
        for cluster, _columns in _clusters(word):
            if pieces[-1] and width(pieces[-1] + cluster) > room:
                pieces.append("")
            pieces[-1] += cluster
        lines = [*lines, *pieces] if lines[-1] else pieces
    return lines


def _clusters(text: str) -> list[tuple[str, int]]:
    """What cannot be cut apart, and how many columns each takes: a character with all that joins or marks it."""
    import unicodedata

    found: list[tuple[str, int]] = []
    joined = False
    for one in text:
        if found and (joined or one in (_JOINER, _AS_PICTURE) or unicodedata.category(one) in _NO_WIDTH):
            before, columns = found[-1]
            found[-1] = (before + one, 2 if one == _AS_PICTURE else columns)
        else:
            found.append((one, 2 if unicodedata.east_asian_width(one) in _WIDE else 1))
        joined = one == _JOINER
    return found
