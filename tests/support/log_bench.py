"""A log in a directory of its own, without any store around it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aof.kernel.events import Event
from aof.store.files.locks import Locks
from aof.store.files.log import chain
from aof.store.files.log.reader import Reader
from aof.store.files.log.writer import Log
from aof.store.files.paths import DIRECTORIES, Paths
from tests.support.clock import ManualClock
from tests.support.disks import Step, SteppingDisk

MONDAY, TUESDAY, FRIDAY = "2026-03-02", "2026-03-03", "2026-03-06"
TASK = "TASK-2026-03-02-001"


class FailingOnce(SteppingDisk):
    """Notes every step, and fails the next one of a kind."""

    def __init__(self, number: int = errno.EIO) -> None:
        super().__init__()
        self.number = number
        self.fails = ""
        self.taken: list[Step] = []

    @property
    def flushes(self) -> int:
        """How often it was asked to flush."""
        return [step.name for step in self.taken].count("flush")

    def step(self, step: Step, act: Callable[[], int]) -> int:
        """Fail if this is the step."""
        self.taken.append(step)
        steps = [one.name for one in self.taken[:-1] if "/locks/" not in one.path]
        after = f"{step.name} after {steps[-1]}" if steps else ""
        if self.fails and self.fails in {step.name, after}:
            self.fails = ""
            raise OSError(self.number, os.strerror(self.number), step.path)
        return act()


class Bench:
    """A log in a directory of its own, without any store around it."""

    def __init__(self, root: Path) -> None:
        for name in ("", *DIRECTORIES):
            (root / name).mkdir(exist_ok=True)
        self.root = root
        self.paths = Paths(str(root))
        self.locks = Locks(self.paths.locks, ManualClock(), 5.0)
        self.disk = FailingOnce()
        self.log = Log(self.paths, self.locks, self.disk, durable=True)
        self.reader = Reader(self.paths, durable=True, flush=self.disk.flush)

    def append(self, day: str = MONDAY, *texts: str) -> None:
        """One commit with an event for each text."""
        self.log.append(day, commit_of(*(texts or ("a fact",))))

    def file(self, day: str = MONDAY) -> Path:
        return self.root / "events" / f"{day}.jsonl"

    def texts(self, after: int = 0) -> list[str]:
        return [event.payload["text"] for event in self.reader.events(after)]

    def torn(self) -> list[Path]:
        return sorted((self.root / "events/torn").iterdir())

    def close(self) -> None:
        self.log.close()
        self.locks.close()


def commit_of(*texts: str) -> Callable[[int, str], tuple[bytes, int, str]]:
    """A builder for one commit."""

    def build(last: int, previous: str) -> tuple[bytes, int, str]:
        data = b""
        for place, text in enumerate(texts, 1):
            last += 1
            event = Event(
                seq=last,
                type="test",
                timestamp="2026-03-02T09:00:00.000Z",
                actor="me",
                task_id=TASK,
                payload={"text": text},
                commit=(place, len(texts)),
            )
            line, previous = chain.seal(event, previous)
            data += line
        return data, last, previous

    return build


def another(bench: Bench) -> Bench:
    """The same log as another process sees it."""
    return Bench(bench.root)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A new log."""
    made = Bench(tmp_path / "data")
    yield made
    made.close()
