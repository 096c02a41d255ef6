"""From measurements to a table: every figure with its spread, the requirement beside it, and whether it is met.

Must not measure anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from aof.bench import commits, histories
from aof.bench import processes as bench_processes
from aof.bench.processes import AFTER, BARE, CREATE, HELP, VERBS, Calls
from aof.bench.rounds import Figure, RoundEntry, Series, Subject
from aof.bench.sizes import SIZES, SMALL, SizeFigures
from aof.bench.straight_line import STRAIGHT_LINE

ONE, MANY = 1, 8


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


_CPU = Need(1.85, aim=1.3, at_most=True)
_THREADS = Need(1.2, aim=2)
_DOCUMENTS = Need(0.25)
_MAIL = Need(0.4)
AHEAD = Need(1.0)
QUEUE = Need(0.6, aim=1)
_GROWTH = Need(1.3, at_most=True)
_REBUILD = Need(0.2, at_most=True)
_WHOLE = Need(1.0, at_most=True)
_FIRST_STEP = 0.25  # seconds
_AUDIT = Need(3, at_most=True)
_MERGE = Need(3, at_most=True)
_LINEAR = Need(1.5, at_most=True)
_LONG = Need(1.1, aim=1, at_most=True)
_QUESTION = Need(2.8, aim=2.4, at_most=True)
_CHANGE = Need(3.3, at_most=True)
_CALL_GROWTH = Need(1.5, at_most=True)
_JUDGED = 10_000  # tasks in the directory in which calls are held against a bare Python

Measurements = Mapping[str, Series]


def entries(others: Sequence[Subject] = ()) -> list[RoundEntry]:
    """What is measured in turns: each of our subjects next to the limit that it is compared with."""
    return [
        RoundEntry(commits.SMALL_FILE, ONE),
        RoundEntry(commits.OUTSIDE, ONE),
        RoundEntry(STRAIGHT_LINE, ONE),
        RoundEntry(commits.LIFECYCLE, ONE),
        RoundEntry(commits.IN_THREADS, ONE),
        *(RoundEntry(queue, ONE) for queue in others),
        RoundEntry(commits.ENTRIES, ONE),
        RoundEntry(commits.MAIL, ONE),
        RoundEntry(commits.INSIDE, MANY),
        *(RoundEntry(queue, MANY) for queue in others),
        RoundEntry(commits.RELAXED, MANY),
        RoundEntry(commits.LIFECYCLE, MANY),
        RoundEntry(STRAIGHT_LINE, MANY),
        RoundEntry(commits.ENTRIES, MANY),
        RoundEntry(commits.MAIL, MANY),
        RoundEntry(commits.OUTSIDE, MANY),
    ]


def limits(found: Measurements) -> Part:
    """The bare disk."""
    files = of(found, commits.SMALL_FILE, ONE).rates()
    rows = [
        TableRow("append and flush, 1 process", Figure.of(of(found, commits.OUTSIDE, ONE).rates()), "/s"),
        *(
            TableRow(f"{MANY} processes, flushed {where} the lock", Figure.of(of(found, subject, MANY).rates()), "/s")
            for where, subject in (("inside", commits.INSIDE), ("outside", commits.OUTSIDE))
        ),
        _time("a small file made whole, not flushed", Figure.of([1 / rate for rate in files])),
    ]
    return Part("The disk: a line of 900 bytes appended to one file, and fdatasync", tuple(rows))


def lifecycles(found: Measurements, log_bytes: float) -> Part:
    """AOF beside the bare disk, and beside the same commits without rules."""
    rows: list[TableRow] = []
    for processes, need in ((ONE, None), (MANY, _CPU)):
        ours, limit = of(found, commits.LIFECYCLE, processes), of(found, commits.OUTSIDE, processes)
        bound = of(found, STRAIGHT_LINE, processes)
        name = processes_text(processes)
        rows += [
            TableRow(f"lifecycles, {name}", Figure.of(ours.rates()), "/s"),
            TableRow(
                f"commits, {name}",
                Figure.of(ours.commits()),
                "/s",
                Figure.ratio(ours.commits(), limit.rates()),
                f"the disk, {name}" + (", outside" if processes > 1 else ""),
            ),
            TableRow(f"CPU a commit, {name}: user", Figure.of(ours.user()), "µs"),
            TableRow(f"CPU a commit, {name}: system", Figure.of(ours.system()), "µs"),
            TableRow(f"straight-line CPU a commit, {name}", Figure.of(bound.cpu()), "µs"),
            TableRow(
                f"CPU a commit, {name}",
                Figure.of(ours.cpu()),
                "µs",
                Figure.ratio(ours.cpu(), bound.cpu()),
                f"straight line, {name}",
                need,
            ),
        ]
    one, many = of(found, commits.LIFECYCLE, ONE), of(found, commits.LIFECYCLE, MANY)
    threads = Figure.ratio(of(found, commits.IN_THREADS, ONE).commits(), one.commits())
    rows += [
        TableRow(
            f"{MANY} processes beside 1", None, "", Figure.ratio(many.rates(), one.rates()), "AOF, 1 process", AHEAD
        ),
        TableRow(f"{commits.THREADS} threads beside 1", None, "", threads, "AOF, 1 process", _THREADS),
    ]
    rows.append(TableRow("log a commit", Figure(log_bytes, log_bytes, log_bytes), "bytes"))
    return Part("AOF: create, claim, complete; three durable commits and their files", tuple(rows))


def written(found: Measurements, lengths: commits.DocumentsMeasured) -> Part:
    """Rows about documents beside tasks, and a long file beside a short one."""
    rows: list[TableRow] = []
    for processes in (ONE, MANY):
        tasks, name = of(found, commits.LIFECYCLE, processes), processes_text(processes)
        mail = _MAIL if processes == MANY else _DOCUMENTS
        for what, subject, need in (("entries", commits.ENTRIES, _DOCUMENTS), ("steps of mail", commits.MAIL, mail)):
            ours = of(found, subject, processes)
            ratio = Figure.ratio(ours.commits(), tasks.commits())
            against = f"task commits, {name}"
            rows.append(TableRow(f"{what}, {name}", Figure.of(ours.commits()), "/s", ratio, against, need))
    long = _time(f"an entry in a WORKLOG of {commits.LINES:,} lines", lengths.large)
    rows += [
        _time("an entry in a new WORKLOG", lengths.small),
        TableRow(long.name, long.figure, long.unit, lengths.ratio, "the same in a new one", _LONG),
    ]
    return Part("Documents: a commit and its line in WORKLOG.md, or its step in MAILBOX.md", tuple(rows))


def size(found: SizeFigures) -> Part:
    """One size of directory."""
    rows = [
        _time("open", found.opened),
        _time("first ready(limit=20), index built", Figure(*[found.first_ready] * 3)),
        _time("ready(limit=20)", found.ready),
        _time("list(limit=20)", found.listed),
        _time("claim of whatever comes next", found.claimed_next),
    ]
    for name, growth in found.growth.items():
        ratio = Figure(*[growth.ratio] * 3)
        need = _GROWTH if name == "lifecycle" else None
        rows.append(_time(f"{name}, durable", growth.large, ratio, f"the same at {SMALL} tasks", need))
    row = _time("rebuild of the index", found.rebuilt)
    if found.rebuilt_to_parser is not None:
        need = _REBUILD if found.tasks >= SIZES[0] else None  # below, it is nearly all in making an empty database
        row = _time(row.name, found.rebuilt, found.rebuilt_to_parser, "a YAML parser alone, CPU", need)
    rows.append(row)
    return Part(f"Size: {found.tasks:,} tasks in one directory (written in {found.generated:.0f} s)", tuple(rows))


def calls(found: Calls, tasks: Sequence[int]) -> Part:
    """The command line beside a bare Python, and a large directory beside a small one, by CPU."""
    rows = [
        _time(BARE, Figure.of(found.bare)),
        _time(HELP, Figure.of(found.help), Figure.ratio(found.help, found.bare), BARE),
    ]
    few, judged = min(tasks), max((size for size in tasks if size <= _JUDGED), default=min(tasks))
    for verb in VERBS:
        need = None if judged != _JUDGED or verb == AFTER else _CHANGE if verb == CREATE else _QUESTION
        ratio = Figure.ratio(found.verbs[verb, judged], found.bare)
        rows.append(_time(f"{verb}, {judged:,} tasks", Figure.of(found.verbs[verb, judged]), ratio, BARE, need))
    for size in (size for size in tasks if size > few):
        for verb in VERBS:
            need = _CALL_GROWTH if size == SIZES[-1] and few == SIZES[0] and verb != AFTER else None
            ratio = Figure.ratio(found.verbs[verb, size], found.verbs[verb, few])
            shown = Figure.of(found.verbs[verb, size])
            rows.append(_time(f"{verb}, {size:,} tasks", shown, ratio, f"the same at {few:,} tasks", need))
    return Part("The command line: one call, CPU from its start to its end", tuple(rows))


def audited(found: histories.AuditsMeasured) -> Part:
    """Rows about audit records by each key, among few and among many."""
    rows = []
    for key in histories.KEYS:
        many = found.times[key, found.many]
        ratio, beside = Figure.ratio(many, found.times[key, found.few]), f"the same among {found.few:,}"
        rows.append(_time(f"audit by {key}, {found.many:,} records", Figure.of(many), ratio, beside, _AUDIT))
    return Part("Audit: ten records of one handoff, task, sender or receiver", tuple(rows))


def merged(found: histories.MergesMeasured) -> Part:
    """Rows about merging two histories."""
    name, ratio = f"merge, 2 lanes x {found.commits:,} commits, CPU", Figure.ratio(found.merges, found.replays)
    ratios = [merged / replayed for merged, replayed in zip(found.merges, found.replays, strict=True)]
    growth = Figure.ratio(ratios, found.tenths)  # what is linear stays the same
    rows = (
        _time(name, Figure.of(found.merges), ratio, "replaying the same commits", _MERGE),
        TableRow("that ratio", ratio=growth, against="the same for a tenth of the commits", need=_LINEAR),
    )
    return Part("Merge: two clones that both worked", rows)


def served(found: bench_processes.ServiceFigures) -> Part:
    """Rows about the scheduler and the service."""
    started = Figure(*(value / _FIRST_STEP for value in found.started))
    idle = Figure(*[found.idle * 100] * 3)
    rows = (
        _time("tick, dry, all explained", found.large, found.grown, "the same at 100 tasks", Need(20, at_most=True)),
        _time("tick, as the service does it", found.acting),
        _time("from ready to the agent's first step", found.started, started, "250 ms", _WHOLE),
        TableRow("idle, CPU of one core", idle, "%", idle, "1 % of a core", _WHOLE),
    )
    return Part(f"Service: aof up on {found.tasks:,} tasks", rows)


def of(found: Measurements, subject: Subject, processes: int) -> Series:
    """The result for a subject."""
    return found[RoundEntry(subject, processes).label]


def processes_text(count: int) -> str:
    """So many processes, in words."""
    return "1 process" if count == 1 else f"{count} processes"


def _time(
    name: str, figure: Figure, ratio: Figure | None = None, against: str = "", need: Need | None = None
) -> TableRow:
    shown, unit = seconds_text(figure)
    return TableRow(name, shown, unit, ratio, against, need)


_HEADINGS = ("", "median", "spread", "ratio", "spread", "against", "required", "")
_RIGHT = (1, 3)


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
            f"{number_text(figure.value)} {self.unit}" if figure else "",
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


def number_text(value: float) -> str:
    """Three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def seconds_text(figure: Figure) -> tuple[Figure, str]:
    """The same in a unit that reads well."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if figure.value * factor >= 1 or unit == "µs":
            return Figure(*(value * factor for value in figure)), unit
    raise AssertionError(figure)


def render_table(machine: dict[str, str], parts: Sequence[Part]) -> str:
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
    return f"{figure.low:.2f}..{figure.high:.2f}" if ratio else f"{number_text(figure.low)}..{number_text(figure.high)}"
