"""Runs a subject in several processes for a short while, and several subjects in turns. Must not know what they do.

A disk that others use as well is fast in one second and slow in the next. So a figure is the median of many short
rounds, a ratio is the median of the ratios within each round, and every second round goes the other way about.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from threading import BrokenBarrierError
from typing import NamedTuple

_CONTEXT = multiprocessing.get_context("fork")
_WARM_UP = 12  # operations at most that nobody counts: caches fill, libraries load
_PATIENCE = 120.0

Operation = Callable[[], object]
Opened = Callable[[Path, int], AbstractContextManager[Operation]]


class Subject(NamedTuple):
    """Something to measure: `prepare` makes a folder ready, `opened` gives process number n its operation."""

    name: str
    commits: int
    prepare: Callable[[Path], object]
    opened: Opened


class RoundEntry(NamedTuple):
    """A subject and how many processes run it at once."""

    subject: Subject
    processes: int

    @property
    def label(self) -> str:
        """How results are found again."""
        return f"{self.subject.name} x{self.processes}"


class Sample(NamedTuple):
    """One short run: operations a second, and microseconds of CPU (user and system) for each commit."""

    rate: float
    commits: float
    user: float
    system: float


class _Counted(NamedTuple):
    operations: int
    seconds: float
    user: float
    system: float


class Series(NamedTuple):
    """The samples of one entry, in the order of the rounds."""

    samples: tuple[Sample, ...]

    def rates(self) -> list[float]:
        """Operations a second, by round."""
        return [sample.rate for sample in self.samples]

    def commits(self) -> list[float]:
        """Commits a second, by round."""
        return [sample.commits for sample in self.samples]

    def user(self) -> list[float]:
        """Microseconds of user CPU a commit, by round."""
        return [sample.user for sample in self.samples]

    def system(self) -> list[float]:
        """Microseconds of system CPU a commit, by round."""
        return [sample.system for sample in self.samples]

    def cpu(self) -> list[float]:
        """Microseconds of CPU a commit, by round."""
        return [sample.user + sample.system for sample in self.samples]


class Figure(NamedTuple):
    """A median with its smallest and greatest value."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Figure:
        """The figure of these values."""
        return Figure(median(values), min(values), max(values))

    @staticmethod
    def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Figure:
        """Ours over theirs, round by round."""
        return Figure.of([one / other for one, other in zip(ours, theirs, strict=True)])


def in_turns(
    entries: Sequence[RoundEntry], folder: Path, *, rounds: int, seconds: float, say: Callable[[str], object]
) -> dict[str, Series]:
    """Measure each entry once a round, always in a fresh folder; the results by label."""
    samples: dict[str, list[Sample]] = {entry.label: [] for entry in entries}
    for number in range(rounds):
        for entry in entries if number % 2 == 0 else reversed(entries):
            say(f"round {number + 1}/{rounds}: {entry.label}")
            place = folder / f"{number}-{entry.label.replace(' ', '-')}"
            place.mkdir(parents=True)
            samples[entry.label].append(run(entry, place, seconds))
    return {label: Series(tuple(found)) for label, found in samples.items()}


def run(entry: RoundEntry, folder: Path, seconds: float) -> Sample:
    """Run a subject in its processes for so many seconds."""
    entry.subject.prepare(folder)
    together = _CONTEXT.Barrier(entry.processes)
    pipes: list[Connection] = []
    children = []
    for number in range(entry.processes):
        ours, theirs = _CONTEXT.Pipe(duplex=False)
        child = _CONTEXT.Process(
            target=_work, args=(entry.subject, folder, number, seconds, together, theirs), daemon=True
        )
        child.start()
        theirs.close()
        pipes.append(ours)
        children.append(child)
    counted: list[_Counted] = []
    reasons: list[str] = []
    for pipe, child in zip(pipes, children, strict=True):
        found, why = _heard(pipe, child, seconds)
        if found is None:
            reasons.append(str(why))
        else:
            counted.append(found)
    if reasons:  # those that only waited for one that failed have nothing to tell
        own = [why for why in reasons if BrokenBarrierError.__name__ not in why]
        raise RuntimeError(f"{entry.label} failed:\n{(own or reasons)[0]}")
    commits = sum(one.operations for one in counted) * entry.subject.commits
    rate = sum(one.operations / one.seconds for one in counted)
    return Sample(
        rate=rate,
        commits=rate * entry.subject.commits,
        user=sum(one.user for one in counted) / commits * 1e6,
        system=sum(one.system for one in counted) / commits * 1e6,
    )


def _heard(pipe: Connection, child: BaseProcess, seconds: float) -> tuple[_Counted | None, str | None]:
    """What a process counted, or why it could not."""
    try:
        told: tuple[_Counted | None, str | None] = (
            pipe.recv() if pipe.poll(_PATIENCE + seconds) else (None, "it did not answer in time")
        )
    except EOFError:
        child.join(_PATIENCE)
        return None, f"it ended without a word, with exit code {child.exitcode}"
    child.join(_PATIENCE)
    return told


def _work(  # noqa: PLR0917 - a process takes its arguments by place
    subject: Subject, folder: Path, number: int, seconds: float, together: Barrier, answer: Connection
) -> None:
    """What each process does; it sends what it counted, or why it could not."""
    try:
        with subject.opened(folder, number) as operation:
            enough = time.perf_counter() + seconds
            for done in range(_WARM_UP):
                if done and time.perf_counter() > enough:
                    break
                operation()
            together.wait(_PATIENCE)
            found = _count(operation, seconds)
            together.wait(_PATIENCE)  # nobody closes anything while another one still counts
        answer.send((found, None))
    except Exception:  # noqa: BLE001 - whatever it is, the parent tells it
        together.abort()
        answer.send((None, traceback.format_exc()))


def _count(operation: Operation, seconds: float) -> _Counted:
    used = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    deadline = begin + seconds
    operations = 0
    while (now := time.perf_counter()) < deadline or not operations:
        operation()
        operations += 1
    now = time.perf_counter()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return _Counted(operations, now - begin, after.ru_utime - used.ru_utime, after.ru_stime - used.ru_stime)
