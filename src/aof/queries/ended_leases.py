"""Leases that have ended by the last sign of life, too, and that nobody has recovered. Must not recover anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from aof.kernel.model import iso, run_place
from aof.runs import model as runs_model
from aof.runs.model import lease_end
from aof.supervision.rules import Attention, AttentionQuery
from aof.tasks.model import Lease, Task
from aof.workflows.model import held_leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import Environment


class EndedLease(NamedTuple):
    """A lease whose time is over: what the inbox says of it, its task, and when it ended, in UTC milliseconds."""

    need: Attention
    task: Task
    lease: Lease
    end: int

    @property
    def what(self) -> str:
        """How the task stands, as it reads after `is`."""
        hop = f" at {self.need.item}" if self.need.item else ""
        return f"held by {self.lease.agent}{hop}, whose lease ended at {iso(self.end)}"


def ended_leases(environment: Environment) -> Iterator[EndedLease]:
    """Every such lease of a task, or of a hop, in the order of the inbox."""
    store, now = environment.store, environment.clock.now()
    found = store.attention(AttentionQuery(before=iso(now), kinds=("lease",))).found
    if not found:
        return
    places = {one: run_place(one.task_id, one.item or None) for one in found}
    beats = store.heartbeats(places.values())
    tasks = {task.id: task for task in store.records({one.task_id for one in found})}
    boot = environment.clock.boot()
    for one, place in places.items():
        task = tasks.get(one.task_id)
        held = dict(held_leases(task)).get(place) if task is not None else None
        if task is None or held is None:
            continue
        end = lease_end(held, runs_model.present_heartbeat(beats.get(place), now, boot))
        if end <= now:
            yield EndedLease(one, task, held, end)
