"""One run: fresh folders on one disk, every subject in its turn, one list of parts. Must not know who shows them.

The header says where the figures come from: without the disk, the processors and the load they mean nothing.
"""

from __future__ import annotations

import array
import fcntl
import multiprocessing
import os
import platform
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from aof import __version__
from aof.bench import commits, histories, processes, report, rounds, sizes
from aof.bench.report import Part
from aof.bench.rounds import Series, Subject
from aof.store.files.disk import file_system
from aof.support.printable import Say

_ENOUGH = 50  # commits: with fewer it is a quick run


class BenchPlan(NamedTuple):
    """How much is measured."""

    rounds: int = 9
    seconds: float = 1.0
    sizes: tuple[int, ...] = sizes.SIZES
    commits: int = 100
    calls: int = 15

    @staticmethod
    def quick() -> BenchPlan:
        """A few seconds, to see that it works; no figures to quote."""
        return BenchPlan(rounds=2, seconds=0.15, sizes=(200,), commits=5, calls=2)


class BenchRun(NamedTuple):
    """What was found where."""

    machine: dict[str, str]
    parts: list[Part]

    def as_json(self) -> dict[str, object]:
        """Everything that the table shows, unrounded."""
        rows = [{"part": part.title} | row.as_json() for part in self.parts for row in part.rows]
        return {"machine": self.machine, "rows": rows}


def measure(
    plan: BenchPlan,
    folder: Path,
    *,
    say: Say,
    others: Sequence[Subject] = (),
    compared: Callable[[dict[str, Series]], Part] | None = None,
    parser: sizes.Parser | None = None,
) -> BenchRun:
    """Measure everything below a folder; `others` take turns with ours, `parser` with building the index."""
    header = describe(folder)
    if not is_disk(folder):
        header["WARNING"] = "this is not a disk, a flush does nothing here: name a folder on one with --dir"
    place = folder / "log"
    place.mkdir()
    log_bytes = commits.bytes_per_commit(place)
    found = rounds.in_turns(report.entries(others), folder, rounds=plan.rounds, seconds=plan.seconds, say=say)
    parts = [report.limits(found), report.lifecycles(found, log_bytes)]
    parts.append(report.written(found, commits.measure_documents(folder / "documents", entries=plan.commits, say=say)))
    if compared is not None:
        parts.append(compared(found))
    measured = [sizes.measure(folder, tasks, commits=plan.commits, say=say, parser=parser) for tasks in plan.sizes]
    parts += [report.size(one) for one in measured]
    if measured:
        calls = processes.measure_startup({one.tasks: one.root for one in measured}, rounds=plan.calls, say=say)
        parts.append(report.calls(calls, plan.sizes))
        parts.append(report.audited(histories.measure_audits(folder, quick=plan.commits < _ENOUGH, say=say)))
        parts.append(report.merged(histories.measure_merges(quick=plan.commits < _ENOUGH, say=say)))
        parts.append(report.served(processes.measure_service(folder, quick=plan.commits < _ENOUGH, say=say)))
    return BenchRun(header, [part for part in parts if part.rows])


@contextmanager
def scratch(given: str | None) -> Iterator[Path]:
    """A fresh folder that is removed afterwards: where it is wanted, else on the first disk that is meant for it."""
    above = Path(given).absolute() if given else _on_disk()
    above.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="aof-bench-", dir=above))
    spread_out(folder)
    try:
        yield folder
    finally:
        for child in multiprocessing.active_children():  # after Ctrl-C they may still write there
            child.kill()
            child.join()
        shutil.rmtree(folder, ignore_errors=True)


def _on_disk() -> Path:
    places = [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd()]
    usable = [place for place in places if place.is_dir() and os.access(place, os.W_OK)]
    return next((place for place in usable if is_disk(place)), usable[0])


_NO_DISK = frozenset({"tmpfs", "ramfs", "devtmpfs"})
_GET_FLAGS, _SET_FLAGS, _TOP_OF_TREES = 0x80086601, 0x40086602, 0x00020000  # from linux/fs.h; the flag is chattr's T


def is_disk(folder: Path) -> bool:
    """False for a file system in memory, where a flush does nothing."""
    return file_system(str(folder))[0] not in _NO_DISK


def has_journal(device: str) -> bool:
    """False only for an ext4 that surely has none."""
    name = Path(device).name
    return not Path("/proc/fs/ext4", name).exists() or any(Path("/proc/fs/jbd2").glob(f"{name}-*"))


def spread_out(folder: Path) -> None:
    """Let each folder made in this one begin in a part of the disk of its own, where the system can (ext4).

    Without a journal, ext4 takes up no inode that was freed within the last minutes, and steps over each of them, one
    by one, for every new file. What another run or another process has deleted nearby would make each new file cost
    up to a millisecond; so it should not lie nearby. What a subject deletes itself still counts.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            flags = array.array("l", [0])
            fcntl.ioctl(fd, _GET_FLAGS, flags)
            flags[0] |= _TOP_OF_TREES
            fcntl.ioctl(fd, _SET_FLAGS, flags)
    finally:
        os.close(fd)


def describe(folder: Path) -> dict[str, str]:
    """One line each, for the header and for the JSON."""
    kind, device = file_system(str(folder))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "folder": str(folder),
        "file system": f"{kind} on {device}" + ("" if has_journal(device) else ", without a journal"),
        "machine": f"{platform.system()} {platform.release()}, {os.cpu_count()} x {_processor()}, load {load}",
        "python": f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        "aof": __version__,
    }


def _processor() -> str:
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
