"""Markdown as people write it, line by line, and text by others inside of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from aof.kernel import findings
from aof.kernel.limits import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.findings import DocumentFinding

Kind = Literal["text", "code", "comment"]

_FENCE_LINE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)\Z")
# Lines come without blanks at their end, so that no pattern has two ways to match them: a line may be of any length.
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?\Z")
_BOLD: Final = re.compile(r"\*\*([^*]+?)(?::\*\*|\*\*[ \t]*:)[ \t]*(.*)\Z")
_PLAIN: Final = re.compile(r"([A-Z][^:|*`<>\[\]]{0,63}):(?:[ \t]+(.*))?\Z")
_DELIMITER: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?\Z")
_CONFLICT: Final = re.compile(r"(<{7}|={7}|>{7}|\|{7})( .*)?\Z")
_CELL: Final = re.compile(r"\\[\\|<]|<br */?>|\|")
_COMMENT, _COMMENT_END = "<!--", "-->"


class Line(msgspec.Struct, frozen=True):
    """One line without its end. Lines within code and comments are no structure."""

    number: int
    text: str
    kind: Kind = "text"


def ending(text: str) -> str:
    """The line ending of a text: that of its first line."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def unix(text: str) -> str:
    """The text with plain line feeds."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def with_ending(text: str, end: str) -> str:
    """A text with plain line feeds, with the line ending of the file that it goes to."""
    return text if end == "\n" else text.replace("\n", end)


def split_lines(text: str) -> list[str]:
    """The lines with their ends; joined again they are the text. Only a line feed ends a line."""
    lines = text.split("\n")
    last = lines.pop()
    ended = [f"{line}\n" for line in lines]
    return [*ended, last] if last else ended


def scan(text: str) -> list[Line]:
    """The lines of a text, each with what it is. A fence or a comment that is never closed hides nothing."""
    bare = [line.rstrip("\r\n") for line in split_lines(text)]
    kinds: list[Kind] = ["text"] * len(bare)
    place = 0
    while place < len(bare):
        kind, end = _hidden(bare, place)
        if kind != "text":
            kinds[place:end] = [kind] * (end - place)
        place = end
    return [Line(number, line, kind) for number, (line, kind) in enumerate(zip(bare, kinds, strict=True), 1)]


def _hidden(lines: Sequence[str], place: int) -> tuple[Kind, int]:
    """What begins at a line, and where it ends."""
    line = lines[place]
    if opened := opens_code(line):
        for end in range(place + 1, len(lines)):
            if closes_code(lines[end], opened):
                return "code", end + 1
    elif line.lstrip().startswith(_COMMENT):
        inside = line.lstrip()[len(_COMMENT) :]
        if _COMMENT_END in inside:
            return ("comment" if not inside.partition(_COMMENT_END)[2].strip() else "text"), place + 1
        for end in range(place + 1, len(lines)):
            if _COMMENT_END in lines[end]:
                return "comment", end + 1
    return "text", place + 1


def opens_code(line: str) -> str | None:
    """The fence that a line opens."""
    mark = _FENCE_LINE.match(line)
    return None if mark is None or (mark[1][0] == "`" and "`" in mark[2]) else mark[1]


def closes_code(line: str, opened: str) -> bool:
    """Whether a line closes code that was opened by that fence."""
    mark = _FENCE_LINE.match(line)
    return mark is not None and mark[1].startswith(opened) and not mark[2].strip()


def code_blocks(lines: Sequence[str]) -> dict[int, int]:
    """Where each fenced block begins and the place behind it. A fence that is never closed begins none.

    What was looked for in vain is not looked for again, so that many open fences cost no more than one.
    """
    fences = [(place, mark[1]) for place, line in enumerate(lines) if (mark := _FENCE_LINE.match(line)) is not None]
    found: dict[int, int] = {}
    hopeless: dict[str, int] = {}
    behind = 0
    for step, (place, fence) in enumerate(fences):
        kind = fence[0]
        tried = kind in hopeless and len(fence) >= hopeless[kind]
        if place < behind or tried or opens_code(lines[place]) is None:
            continue
        later = (fences[one][0] for one in range(step + 1, len(fences)))
        end = next((one for one in later if closes_code(lines[one], fence)), None)
        if end is None:
            hopeless[kind] = len(fence)
        else:
            behind = found[place] = end + 1
    return found


def outside_code(lines: Sequence[str]) -> Iterator[int]:
    """The places of the lines that are in no fenced block."""
    blocks, place = code_blocks(lines), 0
    while place < len(lines):
        if place in blocks:
            place = blocks[place]
        else:
            yield place
            place += 1


def unclosed(lines: Iterable[Line]) -> Iterator[int]:
    """The numbers of lines that open code or a comment that is never closed."""
    for line in lines:
        opens = opens_code(line.text) or (line.text.lstrip().startswith(_COMMENT) and _COMMENT_END not in line.text)
        if line.kind == "text" and opens:
            yield line.number


def conflict_marks(lines: Iterable[Line]) -> Iterator[int]:
    """The numbers of lines that a failed merge has left."""
    marked = [line for line in lines if _CONFLICT.match(line.text)]
    if any(line.text.startswith(("<<<<<<<", ">>>>>>>")) for line in marked):
        yield from (line.number for line in marked)


def damage(text: str) -> Iterator[DocumentFinding]:
    """What keeps a text from being read as it was meant: something never closed, and marks of a failed merge."""
    lines = scan(text)
    for number in unclosed(lines):
        detail = "a fenced block or a comment that is never closed"
        yield findings.DocumentFinding(number, "unclosed", detail, "warning")
    for number in conflict_marks(lines):
        yield findings.DocumentFinding(number, "conflict_mark", "a mark that a failed merge has left")


def heading(line: str) -> tuple[int, str] | None:
    """The level and the text of a heading."""
    found = _HEADING.match(line.rstrip())
    if found is None:
        return None
    text = found[2] or ""
    closed = text.rstrip("#")
    return len(found[1]), closed.rstrip() if closed != text and (not closed or closed[-1] in " \t") else text


def headings(lines: Sequence[Line], deepest: int) -> list[tuple[int, int, str]]:
    """The place, level and text of every heading down to a level."""
    found = ((place, heading(line.text)) for place, line in enumerate(lines) if line.kind == "text")
    return [(place, *one) for place, one in found if one is not None and one[0] <= deepest]


def bold_field(line: str) -> tuple[str, str] | None:
    """Key and value of a line such as `**Status:** unread`."""
    found = _BOLD.match(line.rstrip())
    return None if found is None else (found[1].strip(), found[2])


def plain_field(line: str) -> tuple[str, str] | None:
    """Key and value of a line such as `Status: In progress`."""
    found = _PLAIN.match(line.rstrip())
    return None if found is None else (found[1].strip(), found[2] or "")


class MarkdownRow(msgspec.Struct, frozen=True):
    """One row of a table, as its cells read."""

    number: int
    cells: tuple[str, ...]


class Table(msgspec.Struct, frozen=True):
    """A table: its header, its rows, and the numbers of its first line and of the line behind it."""

    header: tuple[str, ...]
    rows: tuple[MarkdownRow, ...]
    begin: int
    end: int

    def uneven(self) -> Iterator[MarkdownRow]:
        """The rows that do not have as many cells as the header."""
        return (row for row in self.rows if len(row.cells) != len(self.header))


def tables(lines: Sequence[Line]) -> Iterator[Table]:
    """The tables among some lines: a header, a line of dashes, and the rows that follow."""
    place = 0
    while place + 1 < len(lines):
        if not (_is_row(lines[place]) and is_delimiter(lines[place + 1])):
            place += 1
            continue
        end = place + 2
        while end < len(lines) and _is_row(lines[end]):
            end += 1
        rows = tuple(MarkdownRow(line.number, cells(line.text)) for line in lines[place + 2 : end])
        yield Table(cells(lines[place].text), rows, lines[place].number, lines[place].number + end - place)
        place = end


def _is_row(line: Line) -> bool:
    return line.kind == "text" and line.text.lstrip().startswith("|")


def is_delimiter(line: Line) -> bool:
    """Whether the line stands between a table's header and its rows."""
    return line.kind == "text" and "|" in line.text and _DELIMITER.match(line.text.strip()) is not None


def cells(line: str) -> tuple[str, ...]:
    """The cells of a row, as they read: a pipe after a backslash is a pipe, and `<br>` is a line break."""
    inner = line.strip().removeprefix("|")
    found, start, part = [], 0, ""
    for mark in _CELL.finditer(inner):
        part += inner[start : mark.start()]
        start = mark.end()
        if mark.group() == "|":
            found.append(part.strip())
            part = ""
        else:
            part += "\n" if mark.group().startswith("<") else mark.group()[1]
    part += inner[start:]
    return (*found, part.strip()) if part.strip() else tuple(found)


def row(values: Iterable[str]) -> str:
    """A row with these cells, whatever they hold."""
    plain = (unix(value).strip().replace("\\", "\\\\").replace("|", "\\|") for value in values)
    return "| " + " | ".join(value.replace("<br", "\\<br").replace("\n", "<br>") for value in plain) + " |"


def table(header: Sequence[str], rows: Iterable[Iterable[str]] = ()) -> list[str]:
    """The lines of a table."""
    return [row(header), "|" + " --- |" * len(header), *map(row, rows)]


# Headings, rules and underlines of headings, HTML (but no address), and fences that are escaped already.
_STRUCTURE: Final = (
    r"#{1,6}(?:[ \t]|\Z)|(?:=+|-{2,})[ \t]*\Z|(?:[-*_][ \t]*){3,}\Z|<(?!https?:|mailto:|!--)(?=[A-Za-z/!?])"
    r"|<{7}(?: |\Z)|>{7}(?: |\Z)|\|{7}(?: |\Z)"
)
_BEGINS: Final = re.compile(rf"( {{0,3}})(\\*)(?={_STRUCTURE})")
_ESCAPED_FENCE: Final = re.compile(r"( {0,3})(\\+)(?=`{3}|~{3})")
_FENCE: Final = re.compile(r"( {0,3})(\\*)(?=`{3}|~{3})")
_ESCAPING_COMMENT: Final = re.compile(r"(?<!\\)(\\*)<!--")


def plain_text(text: str) -> str:
    """The text as documents hold it: plain line feeds, nothing hidden, no blank lines around it."""
    return visible(unix(text)).lstrip("\n").rstrip()


def contained(text: str, reserved: str | None = None) -> str:
    """The text with no line that begins a structure. `reserved` are further beginnings of lines, as a pattern."""
    return _each(plain_text(text), reserved, escape=True)


def original(text: str, reserved: str | None = None) -> str:
    """What `contained` was made from."""
    return _each(unix(text), reserved, escape=False)


def inline(text: str) -> str:
    """A text within a line of ours: on one line, and nothing in it hides what follows."""
    return _with_comments_escaped(visible(" ".join(unix(text).split())))


def inline_original(text: str) -> str:
    """What `inline` was made from."""
    return _ESCAPING_COMMENT.sub(lambda found: f"{found[1][1:]}<!--", text)


def _each(text: str, reserved: str | None, *, escape: bool) -> str:
    """Change every line outside of code; a fence that is never closed is no fence, and is escaped itself."""
    lines = text.split("\n")
    own = None if reserved is None else re.compile(rf"( *)(?={reserved})")
    for place in outside_code(lines):
        line = lines[place]
        for pattern in (_BEGINS, _FENCE if not escape or opens_code(line) else _ESCAPED_FENCE):
            found = pattern.match(line)
            if found is not None and escape:
                line = f"{line[: found.end()]}\\{line[found.end() :]}"
            elif found is not None and found[2]:
                line = line[: found.end() - 1] + line[found.end() :]
        if "<!--" in line:  # a comment may begin anywhere in a line
            line = _with_comments_escaped(line) if escape else inline_original(line)
        if own is not None and (found := own.match(line)) is not None:
            line = f" {line}" if escape else line[1:] if found[1] else line
        lines[place] = line
    return "\n".join(lines)


def _with_comments_escaped(line: str) -> str:
    return _ESCAPING_COMMENT.sub(r"\1\\<!--", line)
