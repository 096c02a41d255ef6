"""One run: fresh folders on one disk, every subject in its turn, one list of parts. Must not know who shows them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from aof.bench import commits, histories, machine, processes, report, rounds, sizes
from aof.bench.report import Part, TableRow
from aof.bench.rounds import Series, Subject
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
        return {"machine": self.machine, "rows": [{"part": part.title} | row.as_json() for part, row in self._rows()]}

    def _rows(self) -> Iterator[tuple[Part, TableRow]]:
        return ((part, row) for part in self.parts for row in part.rows)


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
    header = machine.describe(folder)
    if not machine.is_disk(folder):
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
    machine.spread_out(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _on_disk() -> Path:
    places = [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd()]
    usable = [place for place in places if place.is_dir() and os.access(place, os.W_OK)]
    return next((place for place in usable if machine.is_disk(place)), usable[0])
