"""What a person sees: tables that fit, colours only on a terminal, times as people say them."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

_COLOURS = {
    "ready": "36",
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
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"))
_NARROWEST = 12


class Screen:
    """Standard output for a person."""

    def __init__(self, out: TextIO | None = None, *, compact: bool = False) -> None:
        self._out = out or sys.stdout
        terminal = self._out.isatty()
        self.colours = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.width = _columns() if terminal else 0
        self.compact = compact

    def line(self, text: str = "") -> None:
        """One line."""
        self._out.write(text + "\n")

    def paint(self, text: str, colour: str) -> str:
        """Text in the colour of a status, a priority or a role, where there are colours."""
        code = _COLOURS.get(colour) if self.colours else None
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text

    def table(self, head: tuple[str, ...], body: Sequence[tuple[str, ...]], *, colour_by: tuple[int, ...] = ()) -> None:
        """Columns as wide as needed; the last one is cut where the terminal ends."""
        if self.compact:
            for row in body:
                self.line(" ".join(cell for cell in row if cell != "-"))
            return
        columns = list(zip(head, *body, strict=True))
        widths = [max(len(cell) for cell in column) for column in columns]
        if self.width:
            widths[-1] = max(min(widths[-1], self.width - sum(widths[:-1]) - 2 * (len(widths) - 1)), _NARROWEST)
        self.line(
            self.paint("  ".join(cell.ljust(width) for cell, width in zip(head, widths, strict=True)).rstrip(), "dim")
        )
        for row in body:
            cells = []
            for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
                cut = cell if len(cell) <= width else cell[: width - 1] + "…"
                padded = cut if place == len(row) - 1 else cut.ljust(width)
                cells.append(self.paint(padded, cell) if place in colour_by else padded)
            self.line("  ".join(cells).rstrip())


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size().columns
    except (OSError, ValueError):
        return 80


def ago(then: int, now: int) -> str:
    """How long ago, or how long until."""
    distance = abs(now - then)
    for size, unit in _UNITS:
        if distance >= size:
            text = f"{distance // size}{unit}"
            return f"{text} ago" if then <= now else f"in {text}"
    return "just now" if then <= now else "now"
