"""The receiver's answer: accept, reject or defer. One final answer for each record. Must not know how it arrives."""

from __future__ import annotations

import msgspec

from aof.core.errors.base import AofError
from aof.core.handoffs.lifecycle import checks, ownership, targets
from aof.core.handoffs.lifecycle.aggregation import aggregated
from aof.core.handoffs.lifecycle.command import OnHandoff, load_of, over
from aof.core.handoffs.lifecycle.forwarding import closed, passed_on
from aof.core.handoffs.lifecycle.proposal import bad_moment
from aof.core.handoffs.lifecycle.steps import audited, ended, rejected, step, warned
from aof.core.model.commands import Decide, NeedsOf
from aof.core.model.events import Draft
from aof.core.model.handoffs.record import UNANSWERED, Handoff
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.task import Task
from aof.core.org import capacity
from aof.core.validation import limits

_replace = msgspec.structs.replace


class Accept(OnHandoff, frozen=True, kw_only=True):
    """Take it on. A run that this begins has the secret with this digest; without `begin` others begin it.

    With `keep` that run outlives the session.
    """

    operation = "handoff_accept"
    reason: str | None = None
    estimated_completion: str | None = None
    secret_digest: str | None = None
    keep: bool = False
    begin: bool = True

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """Also what a claim would read, and the locks under which the receiver's load is counted."""
        base = super().needs(known, needs)
        task, chart = known.tasks.get(self.task_id), known.policy.org
        handoff = next((one for one in known.handoffs.get(self.task_id, ()) if one.id == self.handoff_id), None)
        if task is None or handoff is None:
            return base
        read = frozenset(task.depends_on) - base.write
        resources = frozenset({task.resource} if task.resource else ())
        names = frozenset(f"resource:{one}" for one in resources)
        agent = checks.listed(known.policy, handoff.to_agent)
        if chart is not None and agent is not None:
            names |= capacity.locks(chart, agent)
        children = frozenset({task.id} if task.waits_for_children else ())
        below = frozenset(one for task_id in children for one in known.children.get(task_id, ()))
        return _replace(
            base, read=base.read | read | (below - base.write), names=names, resources=resources, children=children
        )

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """Capability, capacity and autonomy are checked here, whatever the receiver says."""
        if problem := self._impossible(records, handoff):
            return problem
        if handoff.state == "accepted":
            return Decision()
        if handoff.state not in UNANSWERED:
            return closed(handoff)
        if refusal := (None if handoff.outlives(task.status) else over(task)) or self._unable(records, handoff):
            return refusal
        claim = None
        if self.begin:
            claim = ownership.claiming(task, handoff.to_agent, self.secret_digest, keep=self.keep)
        taken = ownership.taken(records, task, handoff, now, decide, claim)
        if isinstance(taken, AofError):
            return taken
        drafts = (*self._accepted(records, task, handoff, now), *taken.drafts)
        if not handoff.return_protocol.expected:
            drafts += ended(task, handoff, "success", now)
        return _replace(taken, drafts=drafts, agent=self.acting)

    def _impossible(self, records: Records, handoff: Handoff) -> AofError | None:
        return (
            self.not_receiver(records, handoff)
            or limits.text("reason", self.reason, limits.REASON)
            or bad_moment("estimated_completion", self.estimated_completion)
        )

    def _unable(self, records: Records, handoff: Handoff) -> AofError | None:
        chart, agent = records.policy.org, checks.listed(records.policy, handoff.to_agent)
        if chart is None or agent is None:
            return None
        matched, missing = checks.match(agent, handoff.validation)
        if matched == "none":
            return checks.no_capability(handoff, agent.id, missing)
        short = checks.too_little(records.policy, agent.id, handoff.validation, handoff.audit)
        return short or (capacity.at_capacity(chart, agent, load_of(records)) if self.begin else None)

    def _accepted(self, records: Records, task: Task, handoff: Handoff, now: int) -> tuple[Draft, ...]:
        answer = {
            "status": "accepted",
            "reason": self.reason,
            "estimated_completion": self.estimated_completion,
            "by": self.speaker(handoff),
        }
        found = checks.check(records.policy, handoff.to_agent, handoff.validation, load_of(records), now)
        warnings = tuple(f"{handoff.to_agent} lacks {one}" for one in found.missing)
        gap = ", ".join(found.missing)
        told = audited("accepted", task, handoff, notes=f"lacks {gap}" if gap else None)
        accepted = step(
            "handoff.accepted",
            handoff,
            told,
            acceptance={name: value for name, value in answer.items() if value is not None},
            checks=msgspec.to_builtins(found),
            **({"warnings": list(warnings)} if warnings else {}),
        )
        logged = (warned(handoff, f"{handoff.to_agent} lacks {gap}", found.missing),) if gap else ()
        return (accepted, *logged)


class RejectHandoff(OnHandoff, frozen=True, kw_only=True):
    """Turn it down; another agent is asked, or a person."""

    operation = "handoff_reject"
    reason: str

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """A rejection is final for this record; the work goes on elsewhere in the same commit."""
        if problem := _bad_answer(self, records, handoff, self.reason):
            return problem
        if handoff.state not in UNANSWERED:
            return closed(handoff)
        return Decision(
            drafts=turned_down(records, task, handoff, self.reason, now, by=self.speaker(handoff)), agent=self.acting
        )


def turned_down(
    records: Records, task: Task, handoff: Handoff, reason: str, now: int, *, by: str | None = None
) -> tuple[Draft, ...]:
    """The rejection, and where the work goes from here; a broadcast may be decided by it."""
    closed_one = _replace(handoff, state="rejected")
    notify = targets.orchestrator(records.policy, handoff)
    first = rejected(task, handoff, reason, now, notify=notify, by=by)
    if handoff.request is not None:  # an AOF/1 rejection blocks the child, and nobody else is asked
        return (first, *ownership.blocked(task, handoff, reason, now))
    following = passed_on(records, task, closed_one, reason, now)
    return (first, *following, *(() if following else released(records, closed_one)))


def released(records: Records, handoff: Handoff) -> tuple[Draft, ...]:
    """The sender goes on once nothing more can come: of a single handoff, or of the whole group."""
    if handoff.broadcast_group_id is None:
        return ownership.woken(records, handoff)
    members = [
        handoff if one.id == handoff.id else one
        for one in records.handoffs[handoff.task_id]
        if one.broadcast_group_id == handoff.broadcast_group_id
    ]
    return ownership.woken(records, handoff) if aggregated(members).state != "open" else ()


class Defer(OnHandoff, frozen=True, kw_only=True):
    """Acknowledge it and put the answer off. It stays open, and nobody works under it."""

    operation = "handoff_defer"
    reason: str
    estimated_completion: str | None = None

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Counts as acknowledged: the audit says `accepted` with the status `deferred`."""
        problem = _bad_answer(self, records, handoff, self.reason)
        if problem := problem or bad_moment("estimated_completion", self.estimated_completion):
            return problem
        if handoff.state not in UNANSWERED:
            return closed(handoff)
        answer = {
            "status": "deferred",
            "reason": self.reason,
            "estimated_completion": self.estimated_completion,
            "by": self.speaker(handoff),
        }
        told = audited("accepted", task, handoff, reason=self.reason, status="deferred")
        given = {name: value for name, value in answer.items() if value is not None}
        return Decision(drafts=(step("handoff.deferred", handoff, told, acceptance=given),), agent=self.acting)


def _bad_answer(command: OnHandoff, records: Records, handoff: Handoff, reason: str) -> AofError | None:
    refusal = command.not_receiver(records, handoff)
    return refusal or limits.text("reason", reason, limits.REASON, required=True)
