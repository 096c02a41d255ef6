"""What follows when commits of several clones have come together, and no author could have known.

Workflows whose hops went on in several clones settle. Nothing waits in vain: a task whose dependency was given up
elsewhere is blocked, and one whose dependency was finished after all is free again. No work goes on below a task that
was cancelled elsewhere, until a person says so. Must not know how commits were merged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aof.core.engine.merge.commits.lanes import Span
from aof.core.engine.merge.replay import Replay, SpanFacts
from aof.core.model.events import Draft
from aof.core.model.ids import OURSELVES
from aof.core.model.lifecycle import FAILED
from aof.core.model.records import Records
from aof.core.model.task import Task
from aof.core.model.times import millis
from aof.core.tasks import dependencies
from aof.core.tasks.attempts import close_run
from aof.core.tasks.transitions import to_blocked, transition
from aof.core.workflows.transaction import Walk, next_step, state_of, status_of

_WAITING: Final = ("backlog", "ready")
_HELD: Final = (*_WAITING, "in-progress")


class Consequences:
    """One pass over the touched tasks, in the order of their IDs."""

    def __init__(self, span: Span, facts: SpanFacts, replay: Replay, stamp: str) -> None:
        self._span = span
        self._census = facts.census
        self._notes = facts.notes
        self._replay = replay
        self._stamp = stamp
        self._now = millis(stamp)
        self._keys = {facts.names.of(key): key for key in facts.census.touching}
        self._ids = sorted(self._keys)

    def follow(self, workflows: Iterable[str]) -> None:
        """Everything that follows; `workflows` are the tasks whose hops several clones worked on."""
        for task_id in sorted(workflows):
            self._settle(self._replay.tasks[task_id])
        for task_id in self._ids:
            self._free(self._replay.tasks[task_id])
        for task_id in self._ids:
            self._block(self._replay.tasks[task_id])
        for task_id in self._ids:
            self._hold(self._replay.tasks[task_id])
        self._warn_of_resources()

    def _add(self, drafts: tuple[Draft, ...]) -> None:
        self._replay.add(drafts, self._stamp)

    def _settle(self, task: Task) -> None:
        if not task.gated or task.cancel is not None or task.archived or task.status in ("cancelled", "backlog"):
            return
        if task.blocked is not None and (task.blocked.kind == "paused" or task.blocked.dependency is not None):
            return
        records = Records(
            tasks={edge: self._replay.tasks.get(edge) for edge in task.depends_on}, dependents={task.id: ()}
        )
        walk = Walk(records, task, self._now)
        if next_step(walk.workflow, task) is None and status_of(state_of(walk.workflow)) == task.status:
            return
        decision = walk.finish("hops of several clones came together")
        self._notes.say(task.id, "hops were worked on in several clones; what follows from them has been done")
        self._add(decision.drafts)

    def _free(self, task: Task) -> None:
        """The dependency that blocked the task in one clone has not been given up after all."""
        if task.blocked is None or task.blocked.dependency is None:
            return
        blocker = self._replay.tasks.get(task.blocked.dependency)
        if blocker is None or blocker.id not in self._keys or blocker.status in FAILED:
            return
        reason = f"dependency {blocker.id} is {blocker.status}"
        self._notes.say(task.id, f"no longer blocked: {reason}")
        self._add((transition(task, task.blocked.was, reason=reason),))

    def _block(self, task: Task) -> None:
        """A dependency was given up where nobody knew of this task."""
        if task.status not in _WAITING or task.cancel is not None:
            return
        for edge in task.depends_on:
            dead = self._replay.tasks.get(edge)
            if dead is not None and dead.status in FAILED and self._unknown(task.id, edge):
                words = f"blocked: its dependency {edge} is {dead.status} in another clone"
                self._notes.hold(task.id, edge, words)
                self._add((dependencies.held_by(task, dead, self._now),))
                return

    def _hold(self, task: Task) -> None:
        """The parent was cancelled where nobody knew of this child."""
        parent = self._replay.tasks.get(task.parent_id or "")
        if parent is None or parent.status != "cancelled" or task.status not in _HELD or task.archived:
            return
        if not self._unknown(task.id, parent.id):
            return
        reason = f"its parent {parent.id} was cancelled in another clone"
        self._notes.hold(task.id, parent.id, f"held: {reason}")
        ended = close_run(task, self._now, status="released", code="parent_cancelled", message=reason)
        self._add((*ended, to_blocked(task, self._now, kind="blocked", reason=reason, by=OURSELVES)))

    def _unknown(self, task_id: str, other: str) -> bool:
        """Whether nobody who touched the task had seen that the other one ended."""
        deaths = self._census.deaths.get(self._keys.get(other, other), ())
        if other not in self._keys:
            return False
        last = {original.place.lane: original.place for original in self._census.touching[self._keys[task_id]]}
        return not any(
            place == death.place or self._span.saw(place, death.place) for place in last.values() for death in deaths
        )

    def _warn_of_resources(self) -> None:
        holders: dict[str, list[str]] = {}
        for task_id in self._ids:
            task = self._replay.tasks[task_id]
            if task.status == "in-progress" and task.resource is not None:
                holders.setdefault(task.resource, []).append(task_id)
        for resource, ids in sorted(holders.items()):
            if len(ids) > 1:
                self._notes.general.append(f"resource {resource} is in use by several tasks: {', '.join(ids)}")
                for task_id in ids:
                    others = ", ".join(one for one in ids if one != task_id)
                    self._notes.say(task_id, f"resource {resource} was claimed in another clone too, by {others}")
