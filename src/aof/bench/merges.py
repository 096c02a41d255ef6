"""What bringing two histories together costs, beside replaying their commits: both in CPU, for both are computing.

Each of two lanes has as many commits, three for each task from its creation to its end, and numbers of its own, as
clones have. Both begin at one commit. Reading and writing files is not measured here.
"""

from __future__ import annotations

import gc
import time
from typing import NamedTuple

import msgspec

from aof._support.typed import prepare_type
from aof.bench.rounds import Figure
from aof.core.engine.merge.history import merge
from aof.core.engine.merge.model import GENESIS, Commit, Lane
from aof.core.model.events import Event
from aof.core.model.ids import task_id
from aof.ports.progress import Say
from aof.stores.base.fold import fold
from aof.stores.filesystem.log import chain
from aof.testing import FakeClock, memory_fabric

COMMITS = 10_000
_FEW = 300
_ROUNDS = 5
_STEPS = 3  # commits of a lifecycle


class MergesMeasured(NamedTuple):
    """Seconds of CPU for replaying and for merging all commits, and how much longer merging takes for a tenth."""

    commits: int
    replays: list[float]
    merges: list[float]
    tenths: list[float]

    @property
    def ratio(self) -> Figure:
        """Merging beside replaying."""
        return Figure.ratio(self.merges, self.replays)

    @property
    def growth(self) -> Figure:
        """The ratio for all commits beside the ratio for a tenth of them: what is linear stays the same."""
        ratios = [merged / replayed for merged, replayed in zip(self.merges, self.replays, strict=True)]
        return Figure.ratio(ratios, self.tenths)


def measure(*, quick: bool, say: Say) -> MergesMeasured:
    """Replay and merge in turns."""
    commits = _FEW if quick else COMMITS
    say(f"two lanes of {commits:,} commits: merging them")
    large, small = _lanes(commits), _lanes(commits // 10)
    found = MergesMeasured(commits, [], [], [])
    for _ in range(2 if quick else _ROUNDS):
        found.replays.append(_cpu_of_replay(large))
        found.merges.append(_cpu_of_merge(large))
        found.tenths.append(_cpu_of_merge(small) / _cpu_of_replay(small))
    return found


def _cpu_of_replay(lanes: list[Lane]) -> float:
    gc.collect()
    begin = time.process_time()
    for lane in lanes:
        fold(event for commit in lane.commits for event in commit.events)
    return time.process_time() - begin


def _cpu_of_merge(lanes: list[Lane]) -> float:
    gc.collect()
    begin = time.process_time()
    merged = merge(lanes, [lane.commits[-1].key for lane in lanes])
    assert merged.commits
    return time.process_time() - begin


def _lanes(commits: int) -> list[Lane]:
    """Both begin at the root, which is a fork as any other."""
    written = _lifecycle()
    return [_lane(name, first, commits, written) for name, first in (("", 1), ("bench", 417_001))]


def _lifecycle() -> list[list[Event]]:
    """The commits of one task, as a real fabric writes them."""
    fabric = memory_fabric(actor="bench", clock=FakeClock())
    task = fabric.create("measured", review=False).task_id
    run = fabric.claim(task, agent="worker").run_id
    fabric.complete(task, run=run, summary="done")
    commits: dict[int, list[Event]] = {}
    for event in fabric.store.events():
        commits.setdefault(event.begins, []).append(event)
    return list(commits.values())


def _lane(name: str, first: int, commits: int, written: list[list[Event]]) -> Lane:
    texts = [msgspec.json.encode(commit).decode() for commit in written]
    known = written[0][0].task_id
    day = known[5:15]
    digest, seq = GENESIS, 0
    found: list[Commit] = []
    for number in range(commits):
        fresh = task_id(day, first + number // _STEPS)
        text = texts[number % _STEPS].replace(known[5:], fresh[5:])
        sealed: list[Event] = []
        for event in msgspec.json.decode(text, type=prepare_type(list[Event])):
            seq += 1
            whole = msgspec.structs.replace(event, seq=seq, hash="")
            _, digest = chain.seal(whole, digest)
            sealed.append(msgspec.structs.replace(whole, hash=digest))
        found.append(Commit(tuple(sealed)))
    return Lane(name, GENESIS, found)
