"""What long histories cost: bringing two of them together, and reading a few of many audit records."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from aof.api.fabric import Fabric
from aof.bench import commits as bench_commits
from aof.handoffs import audit
from aof.handoffs.model import Handoff, HandoffContext, Rationale, ReturnProtocol, Validation
from aof.kernel.events import Draft, Event
from aof.kernel.model import task_id
from aof.merge.history import merge
from aof.merge.model import GENESIS, Commit, Lane
from aof.service.bootstrap import open_fabric
from aof.store.files.log import chain
from aof.store.fold import fold
from aof.store.port import Scope
from aof.support.printable import Say
from aof.support.typed import prepare_type
from aof.tasks.model import Task
from aof.testing import FakeClock, memory_fabric

MERGED_COMMITS = 10_000
_FEW = 300
_MERGES_ROUNDS = 5
_STEPS = 3  # commits of a lifecycle


class MergesMeasured(NamedTuple):
    """Seconds of CPU for replaying and for merging all commits, and how much longer merging takes for a tenth."""

    commits: int
    replays: list[float]
    merges: list[float]
    tenths: list[float]


def measure_merges(*, quick: bool, say: Say) -> MergesMeasured:
    """Replay and merge in turns."""
    commits = _FEW if quick else MERGED_COMMITS
    say(f"two lanes of {commits:,} commits: merging them")
    large, small = _lanes(commits), _lanes(commits // 10)
    found = MergesMeasured(commits, [], [], [])
    for _ in range(2 if quick else _MERGES_ROUNDS):
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


FEW, MANY = 1_000, 100_000
KEYS = ("handoff", "task", "from", "to")
_EACH = 10  # records of one handoff
_AT_ONCE = 500
_AUDITS_ROUNDS = 40


class AuditsMeasured(NamedTuple):
    """Seconds for an answer by each key, among few records and among many."""

    few: int
    many: int
    times: dict[tuple[str, int], list[float]]


def measure_audits(folder: Path, *, quick: bool, say: Say) -> AuditsMeasured:
    """Write both directories, and ask them in turns."""
    few, many = (FEW // 10, FEW) if quick else (FEW, MANY)
    roots: dict[int, str] = {}
    for records in (few, many):
        say(f"{records:,} audit records: writing them")
        roots[records] = _written(folder / f"audit-{records}", records)
    say("audit records: questions")
    times: dict[tuple[str, int], list[float]] = {}
    with open_fabric(roots[few], actor="bench") as here, open_fabric(roots[many], actor="bench") as there:
        fabrics = ((few, here), (many, there))
        questions = {records: _questions(fabric) for records, fabric in fabrics}
        for number in range(_AUDITS_ROUNDS if not quick else 2):
            for records, fabric in fabrics if number % 2 == 0 else fabrics[::-1]:
                for key, given in questions[records].items():
                    begin = time.perf_counter()
                    found = fabric.audit(**given).records
                    times.setdefault((key, records), []).append(time.perf_counter() - begin)
                    assert len(found) == _EACH
    return AuditsMeasured(few, many, times)


def _questions(fabric: Fabric) -> dict[str, dict[str, Any]]:
    """A question by each key, whose answer lies in the middle; asked once, so that everything is in place."""
    records = fabric.audit().records
    one = records[len(records) // 2]
    first = fabric.list(limit=1).tasks[0].id
    given = ({"handoff": one.handoff_id}, {"task": first}, {"from_agent": one.from_agent}, {"to_agent": one.to_agent})
    return dict(zip(KEYS, given, strict=True))


def _written(folder: Path, records: int) -> str:
    folder.mkdir(parents=True)
    root = bench_commits.prepare_fabric(folder, "relaxed")
    with open_fabric(root, actor="bench") as fabric:
        carrier = fabric.get(bench_commits.create(fabric))
        drafts = _drafts(carrier, records)
        while some := [draft for draft, _ in zip(drafts, range(_AT_ONCE), strict=False)]:
            with fabric.store.unit(Scope(write=frozenset({carrier.id}))) as unit:
                unit.commit(tuple(some), actor="bench", agent=None, now=time.time_ns() // 1_000_000)
        fabric.audit(limit=1)
    return root


def _handoff(task_id: str, number: int) -> Handoff:
    return Handoff(
        id=f"handoff-{number}",
        timestamp="2026-01-01T00:00:00.000Z",
        from_agent=f"sender-{number}",
        to_agent=f"receiver-{number}",
        type="delegation",
        reason="measured",
        context=HandoffContext(task_id=task_id),
        validation=Validation(),
        return_protocol=ReturnProtocol(expected=True),
        audit=Rationale(),
        state="requested",
        rev=0,
        number=1,
        trigger="explicit_request",
    )


def _drafts(carrier: Task, records: int) -> Iterator[Draft]:
    """Remarks that are audit records: of handoffs of ten records each, between two agents each, of a task each."""
    for number in range(records):
        handoff = number // _EACH
        task = msgspec.structs.replace(carrier, id=f"{carrier.id}{handoff}" if handoff else carrier.id)
        record = audit.audited("initiated", task, _handoff(task.id, handoff))
        payload = {"handoffId": f"handoff-{handoff}", audit.AUDIT: record}
        yield Draft(type="task.warning", task_id=carrier.id, payload=payload)
