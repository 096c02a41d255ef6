"""What time does to a handoff: delivered again, reminded of, timed out; and how it is ended before its end.

Which moment is the right one is the scheduler's to say. Must not know clocks or settings.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof.core.handoffs.lifecycle import checks, ownership, targets
from aof.core.handoffs.lifecycle.answers import released, turned_down
from aof.core.handoffs.lifecycle.command import OnHandoff, load_of
from aof.core.handoffs.lifecycle.forwarding import climbed, closed, to_person
from aof.core.handoffs.lifecycle.steps import audited, ended, rejected, step
from aof.core.model.commands import DeadLetter, Decide, NeedsOf
from aof.core.model.events import Draft
from aof.core.model.handoffs.record import MAX_RESENDS, UNANSWERED, Handoff
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.task import Task
from aof.core.validation import limits

UNAVAILABLE = "unavailable"
_replace = msgspec.structs.replace


class Deliver(OnHandoff, frozen=True, kw_only=True):
    """A queued handoff reaches its receiver, who is not at its limit any more."""

    operation = "handoff_deliver"

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Nothing happens while the receiver is still busy."""
        agent = checks.listed(records.policy, handoff.to_agent)
        if handoff.state != "queued" or checks.is_full(records.policy.org, agent, load_of(records)):
            return Decision()
        return Decision(drafts=(step("handoff.delivered", handoff),))


class Resend(OnHandoff, frozen=True, kw_only=True):
    """Send it to the same agent again."""

    operation = "handoff_resend"
    reason: str | None = None

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """At most three times; after that only another agent or a person helps."""
        problem = self.not_sender(records, handoff) or limits.text("reason", self.reason, limits.REASON)
        if problem:
            return problem
        if not handoff.is_open or handoff.resends >= MAX_RESENDS:
            return closed(handoff)
        return Decision(drafts=(resent(handoff, self.reason),), agent=self.acting)


def resent(handoff: Handoff, reason: str | None) -> Draft:
    """The handoff goes to the same agent again."""
    payload: dict[str, Any] = {"attempt": handoff.resends + 1} | ({"reason": reason} if reason else {})
    return step("handoff.resent", handoff, **payload)


class Remind(OnHandoff, frozen=True, kw_only=True):
    """Tell the receiver once that a return is overdue."""

    operation = "handoff_remind"

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """A handoff that is over, or was reminded of, is left alone."""
        owed = handoff.state == "accepted" and handoff.return_protocol.expected
        if not owed or handoff.reminded_at is not None:
            return Decision()
        return Decision(drafts=(step("handoff.reminded", handoff, toAgent=handoff.to_agent),))


class TimeOutHandoff(OnHandoff, frozen=True, kw_only=True):
    """The time for an answer, or for the return, is over. `state` is the one that the timer ran in."""

    operation = "handoff_timeout"
    state: str
    reason: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """Also the tasks that wait for a subtask which fails by this."""
        base = super().needs(known, needs)
        more = needs(DeadLetter(actor=self.actor, task_id=self.task_id, reason=self.reason), known)
        write = base.write | more.write
        read = (base.read | more.read) - write
        return _replace(base, write=write, read=read, dependents=more.dependents, above=base.above | more.above)

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """What was answered or returned in the meantime is left alone."""
        if handoff.state != self.state or not handoff.is_open:
            return Decision()
        told = audited("timeout", task, handoff, reason=self.reason)
        first = step("handoff.timeout", handoff, told, reason=self.reason)
        if handoff.state in UNANSWERED:
            return Decision(drafts=(first, *self._unanswered(records, task, handoff, now)))
        return Decision(drafts=(first, *self._unreturned(records, task, handoff, now)))

    def _unanswered(self, records: Records, task: Task, handoff: Handoff, now: int) -> tuple[Draft, ...]:
        """Rejected for it, and on to another agent; what is critical goes up at once."""
        if task.priority == "critical" and handoff.type != "broadcast":
            over = _replace(handoff, state="rejected")
            notify = targets.orchestrator(records.policy, handoff)
            turned = rejected(task, handoff, UNAVAILABLE, now, notify=notify)
            return (turned, *climbed(records, task, over, self.reason, now))
        return turned_down(records, task, handoff, UNAVAILABLE, now)

    def _unreturned(self, records: Records, task: Task, handoff: Handoff, now: int) -> tuple[Draft, ...]:
        """The policy of the handoff; a retry that is used up becomes an escalation."""
        policy = handoff.return_protocol.on_timeout
        if policy == "retry" and handoff.resends < MAX_RESENDS:
            return (resent(handoff, self.reason),)
        if policy == "fail" or handoff.type == "broadcast":
            lost = ownership.given_up(records, task, handoff, self.reason, now)
            return (*lost, *failed(records, task, handoff, self.reason, now))
        return climbed(records, task, handoff, self.reason, now)


class FailHandoff(OnHandoff, frozen=True, kw_only=True):
    """End it as failed; a person is asked to step in."""

    operation = "handoff_fail"
    reason: str

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """What is over stays as it ended."""
        if not handoff.is_open:
            return closed(handoff)
        return Decision(drafts=failed(records, task, handoff, self.reason, now))


def failed(records: Records, task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """The handoff has failed; of a broadcast only this member has, and the others may do."""
    over = _replace(handoff, state="failed", outcome="failed")
    notify = targets.orchestrator(records.policy, handoff)
    first = ended(task, handoff, "failed", now, reason=reason, notify=notify)
    if handoff.type == "broadcast":
        return (*first, *released(records, over))
    return (*first, *to_person(records, task, over, reason, now))


class Withdraw(OnHandoff, frozen=True, kw_only=True):
    """The sender takes it back; nobody else is asked."""

    operation = "handoff_withdraw"
    reason: str

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Before an answer it counts as rejected, afterwards as failed."""
        problem = self.not_sender(records, handoff) or limits.text("reason", self.reason, limits.REASON, required=True)
        if problem:
            return problem
        if not handoff.is_open:
            return closed(handoff)
        reason = f"withdrawn: {self.reason}"
        over = _replace(handoff, state="failed", outcome="failed")
        if handoff.state in UNANSWERED:
            drafts: tuple[Draft, ...] = (rejected(task, handoff, reason, now, by=self.acting),)
        else:
            drafts = ended(task, handoff, "failed", now, reason=reason)
        return Decision(drafts=(*drafts, *released(records, over)), agent=self.acting)
