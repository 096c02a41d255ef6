"""A handoff that nobody has answered in time is recorded, once. Must not know how long that is."""

from __future__ import annotations

from aof.core.handoffs.audit import AUDIT
from aof.core.handoffs.lifecycle.steps import audited
from aof.core.model.commands import Decide, NeedsOf, OwnRule
from aof.core.model.events import Draft
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.task import Task
from aof.core.tasks import graph
from aof.core.validation.limits import REASON, text

EVENT = "handoff.unanswered"


def is_said(task: Task, handoff_id: str) -> bool:
    """Whether it is recorded already that this handoff of the task has no answer."""
    return bool(task.metadata.get("handoffUnanswered") == handoff_id)


class SayUnanswered(OwnRule, frozen=True, kw_only=True):
    """Say that a handoff of the task waits for its answer for too long."""

    handoff_id: str
    reason: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The child, and what was asked of it."""
        own = frozenset({self.task_id})
        return Needs(write=own, handoffs=own)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Leave alone what was answered in the meantime, or said already."""
        task = records.look(self.task_id)
        if task is None:
            return graph.missing(self.task_id)
        last = records.handoffs[task.id][-1] if records.handoffs[task.id] else None
        waits = last is not None and last.id == self.handoff_id and last.state == "requested"
        if last is None or not waits or is_said(task, last.id):
            return Decision()
        payload = {
            "handoffId": last.id,
            "parentTaskId": last.parent_task_id,
            "fromAgent": last.from_agent,
            "toAgent": last.to_agent,
            "reason": self.reason,
            AUDIT: audited("timeout", task, last, reason=self.reason),
        }
        unsaid = text("reason", self.reason, REASON, required=True)
        return unsaid or Decision(drafts=(Draft(type=EVENT, task_id=task.id, payload=payload),))
