"""The table: every figure with its spread, what it is held against, what is required, and whether that is met.

Must not measure anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from aof.bench.rounds import Figure

_HEADINGS = ("", "median", "spread", "ratio", "spread", "against", "required", "")
_RIGHT = (1, 3)


class Need(NamedTuple):
    """What a ratio must reach, or stay below where it is a cost; `aim` is what we would like."""

    limit: float
    aim: float | None = None
    at_most: bool = False

    def __str__(self) -> str:
        sign = "≤" if self.at_most else "≥"
        return f"{sign} {self.limit:g}" + (f" (aim {self.aim:g})" if self.aim is not None else "")

    def verdict(self, ratio: float) -> str:
        """`met` also says when the aim is not."""
        if self._reached(ratio, self.limit):
            if self.aim is None or self._reached(ratio, self.aim):
                return "met"
            return "met, above the aim" if self.at_most else "met, below the aim"
        return "MISSED"

    def _reached(self, ratio: float, limit: float) -> bool:
        return ratio <= limit if self.at_most else ratio >= limit


@dataclass(frozen=True)
class TableRow:
    """One line: a figure, or a ratio, or both."""

    name: str
    figure: Figure | None = None
    unit: str = ""
    ratio: Figure | None = None
    against: str = ""
    need: Need | None = None

    @property
    def verdict(self) -> str:
        """Empty where nothing is required."""
        return self.need.verdict(self.ratio.value) if self.need is not None and self.ratio is not None else ""

    def as_json(self) -> dict[str, Any]:
        """Everything that the table shows, unrounded."""
        plain = asdict(self)
        for key in ("figure", "ratio"):
            value: Figure | None = getattr(self, key)
            plain[key] = value._asdict() if value is not None else None
        plain["need"] = str(self.need) if self.need is not None else None
        return plain | {"verdict": self.verdict}

    def cells(self) -> tuple[str, ...]:
        """As the table shows it."""
        figure, ratio = self.figure, self.ratio
        return (
            self.name,
            f"{number(figure.value)} {self.unit}" if figure else "",
            _spread(figure),
            f"{ratio.value:.2f}" if ratio else "",
            _spread(ratio, ratio=True),
            self.against,
            str(self.need) if self.need else "",
            self.verdict,
        )


@dataclass(frozen=True)
class Part:
    """Rows under one heading."""

    title: str
    rows: tuple[TableRow, ...]


def number(value: float) -> str:
    """Three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def seconds(figure: Figure) -> tuple[Figure, str]:
    """The same in a unit that reads well."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if figure.value * factor >= 1 or unit == "µs":
            return Figure(*(value * factor for value in figure)), unit
    raise AssertionError(figure)


def render(machine: dict[str, str], parts: Sequence[Part]) -> str:
    """The whole text."""
    lines = [f"{name + ':':<15}{value}" for name, value in machine.items()]
    grid = [row.cells() for part in parts for row in part.rows]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *grid, strict=True)]
    lines += ["", _line(_HEADINGS, widths), "─" * (sum(widths) + 2 * (len(widths) - 1))]
    for part in parts:
        lines += [part.title, *(_line(row.cells(), widths) for row in part.rows), ""]
    missed = [row.name for part in parts for row in part.rows if row.verdict == "MISSED"]
    judged = sum(1 for part in parts for row in part.rows if row.verdict)
    lines.append(
        f"{judged - len(missed)} of {judged} requirements met" + (f"; missed: {'; '.join(missed)}" if missed else "")
    )
    return "\n".join(lines)


def _line(cells: Iterable[str], widths: Sequence[int]) -> str:
    placed = [
        text.rjust(width) if place in _RIGHT else text.ljust(width)
        for place, (text, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(placed).rstrip()


def _spread(figure: Figure | None, *, ratio: bool = False) -> str:
    if figure is None or figure.low == figure.high:
        return ""
    return f"{figure.low:.2f}..{figure.high:.2f}" if ratio else f"{number(figure.low)}..{number(figure.high)}"
