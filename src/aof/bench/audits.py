"""What the number of audit records costs whoever asks for a few of them: by handoff, task, sender and receiver.

The records are written by the real store, many in one commit, which nobody measures. Every answer has ten records,
however many there are; the questions to the small and to the large directory alternate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from aof.app.fabric import Fabric
from aof.bench import fabric as lifecycle
from aof.bench.rounds import Figure
from aof.core.handoffs import audit
from aof.core.model.events import Draft
from aof.core.model.task import Task
from aof.entrypoints.bootstrap import open_fabric
from aof.ports.progress import Say
from aof.ports.store import Scope

FEW, MANY = 1_000, 100_000
KEYS = ("handoff", "task", "from", "to")
_EACH = 10  # records of one handoff
_AT_ONCE = 500
_ROUNDS = 40


class AuditsMeasured(NamedTuple):
    """Seconds for an answer by each key, among few records and among many."""

    few: int
    many: int
    times: dict[tuple[str, int], list[float]]

    def figure(self, key: str) -> Figure:
        """Among many."""
        return Figure.of(self.times[key, self.many])

    def ratio(self, key: str) -> Figure:
        """Many beside few."""
        return Figure.ratio(self.times[key, self.many], self.times[key, self.few])


def measure(folder: Path, *, quick: bool, say: Say) -> AuditsMeasured:
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
        for number in range(_ROUNDS if not quick else 2):
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
    root = lifecycle.prepare(folder, "relaxed")
    with open_fabric(root, actor="bench") as fabric:
        carrier = fabric.get(lifecycle.create(fabric))
        drafts = _drafts(carrier, records)
        while some := [draft for draft, _ in zip(drafts, range(_AT_ONCE), strict=False)]:
            with fabric.store.unit(Scope(write=frozenset({carrier.id}))) as unit:
                unit.commit(tuple(some), actor="bench", agent=None, now=time.time_ns() // 1_000_000)
        fabric.audit(limit=1)
    return root


def _drafts(carrier: Task, records: int) -> Iterator[Draft]:
    """Remarks that are audit records: of handoffs of ten records each, between two agents each, of a task each."""
    for number in range(records):
        handoff = number // _EACH
        task = msgspec.structs.replace(carrier, id=f"{carrier.id}{handoff}" if handoff else carrier.id)
        told = audit.record(
            "initiated",
            from_agent=f"sender-{handoff}",
            to_agent=f"receiver-{handoff}",
            handoff_type="delegation",
            reason="measured",
            task=task,
            variables={},
            artifact_count=0,
        )
        payload = {"handoffId": f"handoff-{handoff}", audit.AUDIT: told}
        yield Draft(type="task.warning", task_id=carrier.id, payload=payload)
