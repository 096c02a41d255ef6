"""From measurements to rows, with the requirement beside each. Must not measure anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aof.bench import audits, documents, fabric, merges, raw, service
from aof.bench.rounds import Figure, RoundEntry, Series, Subject
from aof.bench.sizes import SIZES, SMALL, SizeFigures
from aof.bench.startup import AFTER, BARE, HELP, VERBS, Calls
from aof.bench.table import Need, Part, TableRow, seconds

ONE, MANY = 1, 8
_ONE_PROCESS = Need(0.35, aim=0.5)
_MANY_PROCESSES = Need(0.33, aim=0.5)
_DOCUMENTS = Need(0.25)
AHEAD = Need(1.0)
_GROWTH = Need(1.3, at_most=True)
_REBUILD = Need(0.2, at_most=True)
_WHOLE = Need(1.0, at_most=True)
_FIRST_STEP = 0.25  # seconds
_AUDIT = Need(3, at_most=True)
_MERGE = Need(3, at_most=True)
_LINEAR = Need(1.5, at_most=True)
_CALL = Need(6, aim=4, at_most=True)
_CALL_GROWTH = Need(1.5, at_most=True)
_JUDGED = 10_000  # tasks in the directory in which calls are held against a bare Python

Measurements = Mapping[str, Series]


def entries(others: Sequence[Subject] = ()) -> list[RoundEntry]:
    """What runs in turns: each of ours next to the limit that it is held against."""
    return [
        RoundEntry(raw.SMALL_FILE, ONE),
        RoundEntry(raw.OUTSIDE, ONE),
        RoundEntry(fabric.LIFECYCLE, ONE),
        *(RoundEntry(queue, ONE) for queue in others),
        RoundEntry(documents.ENTRIES, ONE),
        RoundEntry(documents.MAIL, ONE),
        RoundEntry(raw.INSIDE, MANY),
        *(RoundEntry(queue, MANY) for queue in others),
        RoundEntry(fabric.LIFECYCLE, MANY),
        RoundEntry(documents.ENTRIES, MANY),
        RoundEntry(documents.MAIL, MANY),
        RoundEntry(raw.OUTSIDE, MANY),
    ]


def limits(found: Measurements) -> Part:
    """The bare disk."""
    files = of(found, raw.SMALL_FILE, ONE).rates()
    rows = [
        TableRow("append and flush, 1 process", Figure.of(of(found, raw.OUTSIDE, ONE).rates()), "/s"),
        *(
            TableRow(f"{MANY} processes, flushed {where} the lock", Figure.of(of(found, subject, MANY).rates()), "/s")
            for where, subject in (("inside", raw.INSIDE), ("outside", raw.OUTSIDE))
        ),
        _time("a small file made whole, not flushed", Figure.of([1 / rate for rate in files])),
    ]
    return Part("The disk: a line of 900 bytes appended to one file, and fdatasync", tuple(rows))


def lifecycles(found: Measurements, log_bytes: float) -> Part:
    """AOF beside the bare disk."""
    rows: list[TableRow] = []
    for processes, need in ((ONE, _ONE_PROCESS), (MANY, _MANY_PROCESSES)):
        ours, limit = of(found, fabric.LIFECYCLE, processes), of(found, raw.OUTSIDE, processes)
        name = processes_text(processes)
        rows += [
            TableRow(f"lifecycles, {name}", Figure.of(ours.rates()), "/s"),
            TableRow(
                f"commits, {name}",
                Figure.of(ours.commits()),
                "/s",
                Figure.ratio(ours.commits(), limit.rates()),
                f"the disk, {name}" + (", outside" if processes > 1 else ""),
                need,
            ),
            TableRow(f"CPU a commit, {name}: user", Figure.of(ours.user()), "µs"),
            TableRow(f"CPU a commit, {name}: system", Figure.of(ours.system()), "µs"),
        ]
    one, many = of(found, fabric.LIFECYCLE, ONE), of(found, fabric.LIFECYCLE, MANY)
    rows.append(
        TableRow(
            f"{MANY} processes beside 1", None, "", Figure.ratio(many.rates(), one.rates()), "AOF, 1 process", AHEAD
        )
    )
    rows.append(TableRow("log a commit", Figure(log_bytes, log_bytes, log_bytes), "bytes"))
    return Part("AOF: create, claim, complete; three durable commits and their files", tuple(rows))


def written(found: Measurements, lengths: documents.Measured) -> Part:
    """Documents beside tasks, and a long file beside a short one."""
    rows: list[TableRow] = []
    for processes in (ONE, MANY):
        tasks, name = of(found, fabric.LIFECYCLE, processes), processes_text(processes)
        for what, subject in (("entries", documents.ENTRIES), ("steps of mail", documents.MAIL)):
            ours = of(found, subject, processes)
            ratio = Figure.ratio(ours.commits(), tasks.commits())
            against = f"task commits, {name}"
            rows.append(TableRow(f"{what}, {name}", Figure.of(ours.commits()), "/s", ratio, against, _DOCUMENTS))
    long = _time(f"an entry in a WORKLOG of {documents.LINES:,} lines", lengths.large)
    rows += [
        _time("an entry in a new WORKLOG", lengths.small),
        TableRow(long.name, long.figure, long.unit, lengths.ratio, "the same in a new one", _GROWTH),
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
        row = _time(f"{name}, durable", growth.large)
        need = _GROWTH if name == "lifecycle" else None
        rows.append(TableRow(row.name, row.figure, row.unit, ratio, f"the same at {SMALL} tasks", need))
    row = _time("rebuild of the index", found.rebuilt)
    if found.rebuilt_to_parser is not None:
        need = _REBUILD if found.tasks >= SIZES[0] else None  # below, it is nearly all in making an empty database
        row = TableRow(row.name, row.figure, row.unit, found.rebuilt_to_parser, "a YAML parser alone, CPU", need)
    rows.append(row)
    return Part(f"Size: {found.tasks:,} tasks in one directory (written in {found.generated:.0f} s)", tuple(rows))


def calls(found: Calls, tasks: Sequence[int]) -> Part:
    """The command line beside a bare Python, and a large directory beside a small one."""
    rows = [
        _time(BARE, Figure.of(found.bare)),
        _call(HELP, Figure.of(found.help), Figure.ratio(found.help, found.bare)),
    ]
    few, judged = min(tasks), max((size for size in tasks if size <= _JUDGED), default=min(tasks))
    for verb in VERBS:
        need = _CALL if judged == _JUDGED and verb != AFTER else None
        name = f"{verb}, {judged:,} tasks"
        rows.append(_call(name, Figure.of(found.verbs[verb, judged]), found.ratio(verb, judged), need))
    for size in (size for size in tasks if size > few):
        for verb in VERBS:
            need = _CALL_GROWTH if size == SIZES[-1] and few == SIZES[0] and verb != AFTER else None
            row = _time(f"{verb}, {size:,} tasks", Figure.of(found.verbs[verb, size]))
            ratio = found.growth(verb, size, few)
            rows.append(TableRow(row.name, row.figure, row.unit, ratio, f"the same at {few:,} tasks", need))
    return Part("The command line: one call, from its start to its end", tuple(rows))


def audited(found: audits.AuditsMeasured) -> Part:
    """Audit records by each key, among many and among few."""
    rows = []
    for key in audits.KEYS:
        row = _time(f"audit by {key}, {found.many:,} records", found.figure(key))
        beside = f"the same among {found.few:,}"
        rows.append(TableRow(row.name, row.figure, row.unit, found.ratio(key), beside, _AUDIT))
    return Part("Audit: ten records of one handoff, task, sender or receiver", tuple(rows))


def merged(found: merges.MergesMeasured) -> Part:
    """Two histories that come together."""
    row = _time(f"merge, 2 lanes x {found.commits:,} commits, CPU", Figure.of(found.merges))
    rows = (
        TableRow(row.name, row.figure, row.unit, found.ratio, "replaying the same commits", _MERGE),
        TableRow("that ratio", ratio=found.growth, against="the same for a tenth of the commits", need=_LINEAR),
    )
    return Part("Merge: two clones that both worked", rows)


def served(found: service.ServiceFigures) -> Part:
    """The scheduler and the service."""
    started = Figure(*(value / _FIRST_STEP for value in found.started))
    idle = Figure(*[found.idle * 100] * 3)
    ticks, acting = _time("tick, dry, all explained", found.large), _time("tick, as the service does it", found.acting)
    first = _time("from ready to the agent's first step", found.started)
    rows = (
        TableRow(ticks.name, ticks.figure, ticks.unit, found.grown, "the same at 100 tasks", Need(20, at_most=True)),
        acting,
        TableRow(first.name, first.figure, first.unit, started, "250 ms", _WHOLE),
        TableRow("idle, CPU of one core", idle, "%", idle, "1 % of a core", _WHOLE),
    )
    return Part(f"Service: aof up on {found.tasks:,} tasks", rows)


def _call(name: str, figure: Figure, ratio: Figure, need: Need | None = None) -> TableRow:
    row = _time(name, figure)
    return TableRow(row.name, row.figure, row.unit, ratio, BARE, need)


def of(found: Measurements, subject: Subject, processes: int) -> Series:
    """What was found of a subject."""
    return found[RoundEntry(subject, processes).label]


def processes_text(count: int) -> str:
    """So many processes, in words."""
    return "1 process" if count == 1 else f"{count} processes"


def _time(name: str, figure: Figure) -> TableRow:
    shown, unit = seconds(figure)
    return TableRow(name, shown, unit)
