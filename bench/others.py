"""The nearest equivalent of a lifecycle in two queues on SQLite, each with a commit flushed as often as AOF's.

Beside them PyYAML, which parses what the index is built from.

huey: enqueue (create), dequeue (claim), execute, which stores the result (complete). `fsync=True` is SQLite's
`synchronous = FULL`. All processes share one queue, so one may run what another has put in. Without it, which is its
default, nothing is flushed: that is beside AOF with `durability = "relaxed"`.

persist-queue: put (create), get (claim), ack (complete) of `SQLiteAckQueue`, which leaves `synchronous` at SQLite's
default, FULL. It does not keep processes from getting the same item, so each has a table of its own in the one file.

Both do less than AOF: no file that a person can read or change, no history, no lease that ends, no attempts, no
dependencies, no check of who may complete what. An item is a row that is overwritten or deleted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from aof.bench.commits import BRIEF, COMMITS, LIFECYCLE, RELAXED, SUMMARY, TITLE
from aof.bench.report import MANY, ONE, QUEUE, Measurements, Part, TableRow, of, processes_text
from aof.bench.rounds import Figure, Operation, Subject
from aof.bench.sizes import Parser

_BUSY = 60  # seconds to wait for SQLite's lock


@contextmanager
def _huey(folder: Path, _number: int, *, flushed: bool = True) -> Iterator[Operation]:
    from huey import SqliteHuey  # noqa: PLC0415 - only if it is there

    queue = SqliteHuey("bench", filename=str(folder / "huey.db"), fsync=flushed, timeout=_BUSY)

    @queue.task()  # type: ignore[untyped-decorator]  # huey has no types
    def work(title: str, brief: str) -> str:
        return SUMMARY if title and brief else ""

    def lifecycle() -> None:
        work(TITLE, BRIEF)
        task = queue.dequeue()
        assert task is not None
        assert queue.execute(task) == SUMMARY

    try:
        yield lifecycle
    finally:
        queue.storage.close()


def _prepare_huey(folder: Path) -> None:
    with _huey(folder, 0):
        pass


@contextmanager
def _persist_queue(folder: Path, number: int) -> Iterator[Operation]:
    from persistqueue import SQLiteAckQueue  # noqa: PLC0415 - only if it is there

    queue = SQLiteAckQueue(str(folder), name=f"p{number}", timeout=_BUSY)

    def lifecycle() -> None:
        queue.put({"title": TITLE, "brief": BRIEF})
        item = queue.get(block=False)
        assert item is not None
        assert queue.ack(item) is not None

    try:
        yield lifecycle
    finally:
        queue.close()


def _prepare_persist_queue(folder: Path) -> None:
    with _persist_queue(folder, 0):
        pass


HUEY = Subject("huey", COMMITS, _prepare_huey, _huey)
HUEY_UNFLUSHED = Subject("huey, not flushed", COMMITS, _prepare_huey, partial(_huey, flushed=False))
PERSIST_QUEUE = Subject("persist-queue", COMMITS, _prepare_persist_queue, _persist_queue)


def installed() -> list[Subject]:
    """Those that can be measured here: `pip install 'aof-fabric[bench]'` brings both."""
    known = ((HUEY, "huey"), (HUEY_UNFLUSHED, "huey"), (PERSIST_QUEUE, "persistqueue"))
    return [subject for subject, module in known if find_spec(module)]


def compared(found: Measurements) -> Part:
    """AOF beside queues that do less."""
    rows: list[TableRow] = []
    for queue in installed():
        for processes in (ONE, MANY):
            if queue is HUEY_UNFLUSHED and processes == ONE:
                continue
            subject = RELAXED if queue is HUEY_UNFLUSHED else LIFECYCLE
            theirs, ours = of(found, queue, processes), of(found, subject, processes)
            need = QUEUE if queue is HUEY and processes == MANY else None
            name = processes_text(processes)
            rows += [
                TableRow(f"{queue.name}, {name}", Figure.of(theirs.rates()), "/s"),
                TableRow(
                    f"{subject.name}, {name}",
                    Figure.of(ours.rates()),
                    "/s",
                    Figure.ratio(ours.rates(), theirs.rates()),
                    queue.name,
                    need,
                ),
            ]
    return Part(
        "Others: the nearest to a lifecycle, each as durable as AOF beside it, without files or history", tuple(rows)
    )


def yaml_parser() -> Parser | None:
    """PyYAML's C parser, which building the index is held against; None where PyYAML was built without it."""
    try:
        from yaml import CSafeLoader, load  # noqa: PLC0415 - only if it is there
    except ImportError:
        return None

    def parse(fronts: Sequence[bytes]) -> float:
        begin = time.process_time()
        for front in fronts:
            load(front, Loader=CSafeLoader)
        return time.process_time() - begin

    return parse


def versions() -> list[str]:
    """What was compared with, as the table's head says it."""
    return [f"{name} {_version(name)}" for name in ("huey", "persist-queue", "PyYAML")]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"
