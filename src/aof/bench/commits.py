"""Durable commits: AOF's own lifecycle and documents, beside the limit that the disk sets."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from aof.api.fabric import Fabric
from aof.bench.rounds import Figure, Operation, Subject
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.support.printable import Say

_RAW_LINE = b"x" * 899 + b"\n"  # about what one AOF commit of the smallest kind appends


def _prepare(folder: Path) -> None:
    (folder / "log").touch()
    (folder / "lock").touch()


@contextmanager
def _files(folder: Path) -> Iterator[tuple[int, int]]:
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND)
    lock = os.open(folder / "lock", os.O_RDWR)
    try:
        yield log, lock
    finally:
        os.close(log)
        os.close(lock)


@contextmanager
def _inside(folder: Path, _number: int) -> Iterator[Operation]:
    with _files(folder) as (log, lock):

        def append() -> None:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.write(log, _RAW_LINE)
            os.fdatasync(log)
            fcntl.flock(lock, fcntl.LOCK_UN)

        yield append


@contextmanager
def _outside(folder: Path, _number: int) -> Iterator[Operation]:
    with _files(folder) as (log, lock):

        def append() -> None:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.write(log, _RAW_LINE)
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.fdatasync(log)

        yield append


@contextmanager
def _small_file(folder: Path, number: int) -> Iterator[Operation]:
    (folder / f"{number}").mkdir()
    count = 0

    def write() -> None:
        nonlocal count
        count += 1
        temporary = f"{folder}/{number}.tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(fd, _RAW_LINE)
        os.close(fd)
        os.rename(temporary, f"{folder}/{number}/{count}")

    yield write


INSIDE = Subject("raw, flushed inside the lock", 1, _prepare, _inside)
OUTSIDE = Subject("raw, flushed outside the lock", 1, _prepare, _outside)
SMALL_FILE = Subject("a small file", 1, _prepare, _small_file)


COMMITS = 3
TITLE = "Compare the two parsers"
BRIEF = "Read both, time both on the same files, and say which one to keep and why. " * 3
SUMMARY = "The second one: it is twice as fast, and refuses what it does not know."


def prepare_fabric(folder: Path, durability: str = "full") -> str:
    """A new data directory."""
    root, _ = init_data_dir(folder / "data")
    set_durability(root, durability)
    return root


def set_durability(root: str, durability: str) -> None:
    """Change how the data directory is opened from now on."""
    storage = "" if durability == "full" else f'\n[storage]\ndurability = "{durability}"\n'
    Path(root, "aof.toml").write_text(f"schemaVersion = 1\n{storage}", encoding="utf-8")


def create(fabric: Fabric) -> str:
    """The first commit."""
    return fabric.create(TITLE, brief=BRIEF, review=False).task_id


def claim(fabric: Fabric, task_id: str) -> str:
    """The second commit."""
    return fabric.claim(task_id, agent="bench").task_id


def complete(fabric: Fabric, task_id: str) -> str:
    """The third commit."""
    return fabric.complete(task_id, agent="bench", summary=SUMMARY).task_id


def lifecycle(fabric: Fabric) -> None:
    """All three."""
    complete(fabric, claim(fabric, create(fabric)))


@contextmanager
def _fabric_opened(folder: Path, number: int) -> Iterator[Operation]:
    with open_fabric(folder / "data", actor=f"bench-{number}") as fabric:
        yield lambda: lifecycle(fabric)


@contextmanager
def _threads_opened(folder: Path, number: int) -> Iterator[Operation]:
    with open_fabric(folder / "data", actor=f"bench-{number}") as fabric, ThreadPoolExecutor(THREADS) as pool:

        def many() -> None:
            for done in [pool.submit(lifecycle, fabric) for _ in range(_AT_ONCE)]:
                done.result()

        yield many


THREADS = 8
_AT_ONCE = 4 * THREADS  # lifecycles: the last ones, for which some threads wait, weigh little
LIFECYCLE = Subject("AOF", COMMITS, prepare_fabric, _fabric_opened)
RELAXED = Subject("AOF, relaxed", COMMITS, lambda folder: prepare_fabric(folder, "relaxed"), _fabric_opened)
IN_THREADS = Subject(f"AOF, {THREADS} threads", COMMITS * _AT_ONCE, prepare_fabric, _threads_opened)


def bytes_per_commit(folder: Path) -> float:
    """How much of the log one commit of a lifecycle takes."""
    root = prepare_fabric(folder, "relaxed")
    count = 20
    with open_fabric(root, actor="bench") as fabric:
        for _ in range(count):
            lifecycle(fabric)
    return sum(path.stat().st_size for path in Path(root, "events").glob("*.jsonl")) / (count * COMMITS)


LINES = 20_000
_DOCUMENTS_LINE = "14:32 — bench: one of many lines that a team has written (done; Tests run: none).\n\n"


def post(fabric: Fabric, number: int = 0) -> None:
    """One entry: a commit, and a line at the end of the file."""
    fabric.worklog_add("handoff.posted", agent="bench", subject="parser ready", quick=True, next_owner=f"next-{number}")


@contextmanager
def _documents_opened(folder: Path, number: int) -> Iterator[Operation]:
    with open_fabric(folder / "data", actor=f"bench-{number}") as fabric:
        yield lambda: post(fabric, number)


@contextmanager
def _mailing(folder: Path, number: int) -> Iterator[Operation]:
    me = f"bench-{number}"
    with open_fabric(folder / "data", actor=me) as fabric:

        def mailed() -> None:
            sent = fabric.mail_send(me, "parser ready", body="See the log.").message_id
            fabric.mail_ack(sent, reason="read")
            fabric.mail_close(sent, disposition="resolved", reason="done")

        yield mailed


ENTRIES = Subject("WORKLOG", 1, prepare_fabric, _documents_opened)
MAIL = Subject("MAILBOX", 3, prepare_fabric, _mailing)  # sent, acknowledged, closed


class DocumentsMeasured(NamedTuple):
    """Seconds for an entry in a new file and in a long one, and their ratio, round by round."""

    small: Figure
    large: Figure
    ratio: Figure


def measure_documents(folder: Path, *, entries: int, say: Say) -> DocumentsMeasured:
    """Post to both files in turns."""
    say(f"posting to a WORKLOG of {LINES:,} lines")
    places = [_prepared(folder / name, lines) for name, lines in (("short", 0), ("long", LINES))]
    times: list[list[float]] = [[], []]
    with open_fabric(places[0], actor="bench") as small, open_fabric(places[1], actor="bench") as large:
        for number in range(entries):
            for place, fabric in enumerate((small, large)):
                began = time.perf_counter()
                post(fabric, number)
                times[place].append(time.perf_counter() - began)
    halves = [[median(part[start::5]) for start in range(min(5, entries))] for part in times]
    return DocumentsMeasured(Figure.of(halves[0]), Figure.of(halves[1]), Figure.ratio(halves[1], halves[0]))


def _prepared(folder: Path, lines: int) -> str:
    folder.mkdir(parents=True)
    root = prepare_fabric(folder)
    with open_fabric(root, actor="bench") as fabric:
        post(fabric)
        with Path(root, "WORKLOG.md").open("a", encoding="utf-8") as file:
            file.write(f"\n{_DOCUMENTS_LINE * (lines // 2)}")
        post(fabric)  # from here on the file is as AOF left it
    return root
