"""The result of a handoff goes back to its sender, once. A late one is recorded and not applied.

Must not know how it arrives, nor what the sender makes of it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.handoffs import AlreadyReturned, NoReturnExpected, NotAddressee, StaleHandoff
from aof.core.handoffs.audit import Outcome
from aof.core.handoffs.lifecycle import ownership
from aof.core.handoffs.lifecycle.aggregation import aggregated
from aof.core.handoffs.lifecycle.answers import Accept, released
from aof.core.handoffs.lifecycle.command import OnHandoff
from aof.core.handoffs.lifecycle.forwarding import closed, unaccepted
from aof.core.handoffs.lifecycle.payload import addition
from aof.core.handoffs.lifecycle.steps import ended, step
from aof.core.model.commands import Decide, NeedsOf
from aof.core.model.events import Draft
from aof.core.model.handoffs.record import (
    UNANSWERED,
    ContentType,
    ContextUpdates,
    Handoff,
    Return,
    ReturnAudit,
    ReturnedResult,
    ReturnStatus,
)
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.validation import limits

_MOST_LATE: Final = 5
_MOST_NAMED: Final = 10  # variables that were not applied
_OUTCOMES: Final[dict[ReturnStatus, Outcome]] = {
    "success": "success",
    "partial": "partial",
    "failed": "failed",
    "timeout": "failed",
}


class ReturnResult(OnHandoff, frozen=True, kw_only=True):
    """Bring back what came of an accepted handoff. `to_agent` may name the sender that it goes to."""

    operation = "handoff_return"
    status: ReturnStatus
    result: Any = None
    content_type: ContentType | None = None
    to_agent: str | None = None
    variables_changed: dict[str, Any] = {}  # noqa: RUF012 - a struct copies it
    artifacts_produced: tuple[Any, ...] = ()
    tokens_consumed: int | None = None
    notes: str = ""

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """The return and its processing are one commit, so that `completed` stands right after it."""
        refusal = self.not_receiver(records, handoff) or self._other_party(handoff) or self._malformed()
        if refusal:
            return refusal
        brought = self._brought(handoff, now)
        if handoff.state == "accepted":
            return self._processed(records, task, handoff, brought, now)
        return self._too_late(handoff, brought)

    def _processed(self, records: Records, task: Task, handoff: Handoff, brought: Return, now: int) -> Verdict:
        if not handoff.return_protocol.expected:
            return _unexpected(handoff)
        drafts = processed(records, task, handoff, brought, now)
        return drafts if isinstance(drafts, AofError) else Decision(drafts=drafts, agent=self.acting)

    def _too_late(self, handoff: Handoff, brought: Return) -> Verdict:
        """Why it is not applied; what came from an agent that was replaced stays on the record."""
        if handoff.state in UNANSWERED:
            return unaccepted(handoff)
        if handoff.returned is not None:
            return AlreadyReturned(
                f"handoff {handoff.id} was returned at {handoff.returned.audit.completion_time}",
                "look at what became of it",
                Call("handoff_show", {"handoff_id": handoff.id}),
            )
        if not handoff.return_protocol.expected:
            return _unexpected(handoff)
        if handoff.acceptance is None or handoff.acceptance.status == "rejected":
            return closed(handoff)
        stale = StaleHandoff(
            f"handoff {handoff.id} is {handoff.state}: it went on without {handoff.to_agent}",
            "the result was recorded and not applied; the sender can read it on the handoff",
            Call("handoff_show", {"handoff_id": handoff.id}),
            state=handoff.state,
        )
        if len(handoff.late_returns) >= _MOST_LATE:
            return stale
        late = step("handoff.late_return", handoff, **{"return": msgspec.to_builtins(brought)})
        return self.refused(stale, late)

    def _brought(self, handoff: Handoff, now: int) -> Return:
        text = isinstance(self.result, str)
        kind: ContentType = self.content_type or ("text" if text else "json")
        return Return(
            handoff_id=handoff.id,
            from_agent=handoff.to_agent,
            to_agent=handoff.from_agent,
            status=self.status,
            result=None if self.result is None else ReturnedResult(content_type=kind, body=self.result),
            context_updates=ContextUpdates(
                variables_changed=self.variables_changed, artifacts_produced=self.artifacts_produced
            ),
            audit=ReturnAudit(completion_time=iso(now), tokens_consumed=self.tokens_consumed, notes=self.notes),
        )

    def _other_party(self, handoff: Handoff) -> AofError | None:
        if self.to_agent in (None, handoff.from_agent):
            return None
        return NotAddressee(
            f"handoff {handoff.id} is from {handoff.from_agent}, and its result does not go to {self.to_agent}",
            f"leave out who gets it, or name {handoff.from_agent}",
            Call("handoff_show", {"handoff_id": handoff.id}),
        )

    def _malformed(self) -> AofError | None:
        if self.content_type in ("text", "artifact_ref") and not isinstance(self.result, str):
            return InvalidInput(f"a result of the type '{self.content_type}' is a text", "send 'json', or a text")
        if self.tokens_consumed is not None and self.tokens_consumed < 0:
            return InvalidInput("'tokens_consumed' must not be negative", "count them, or leave it out")
        return (
            limits.data("result", self.result)
            or limits.data("variables_changed", self.variables_changed)
            or limits.data("artifacts_produced", self.artifacts_produced)
            or limits.text("notes", self.notes, limits.NOTES)
        )


def processed(
    records: Records, task: Task, handoff: Handoff, brought: Return, now: int
) -> tuple[Draft, ...] | AofError:
    """The return, its closing record, and what follows: context, ownership, and whoever waited for it.

    The record says which of the changes to the context were not applied, and why.
    """
    outcome = _OUTCOMES[brought.status]
    over = msgspec.structs.replace(
        handoff,
        state="failed" if outcome == "failed" else "completed",
        outcome=outcome,
        returned=brought,
    )
    told = step("handoff.returned", handoff, **{"return": msgspec.to_builtins(brought)})
    updates = brought.context_updates
    added = addition(records, task, handoff.to_agent, updates.variables_changed, updates.artifacts_produced, now)
    if isinstance(added, AofError):
        return added
    more: dict[str, Any] = {"group": group} if (group := _group(records, over)) else {}
    unapplied = [f"not applied: {refusal.message}" for refusal in added.refusals[:_MOST_NAMED]]
    if (others := len(added.refusals) - _MOST_NAMED) > 0:
        unapplied.append(f"not applied: {others} more")
    if unapplied:
        more["warnings"] = [*handoff.warnings, *unapplied]
    closing = ended(task, handoff, outcome, now, returned=brought, remarks=unapplied, **more)
    written = {draft.payload["name"] for draft in added.drafts if draft.type == "context.set"}
    informed = _told_to_others(records, over, written)
    return (told, *added.drafts, *closing, *informed, *ownership.given_back(task, handoff), *released(records, over))


def _told_to_others(records: Records, handoff: Handoff, written: set[str]) -> tuple[Draft, ...]:
    """Where a broadcast is coordinated, its other receivers see what this one has changed."""
    assert handoff.returned is not None
    brought = handoff.returned.context_updates.variables_changed
    changed = {name: value for name, value in brought.items() if name in written}
    if not (handoff.coordinate and changed):
        return ()
    group = [one for one in records.handoffs[handoff.task_id] if one.broadcast_group_id == handoff.broadcast_group_id]
    open_ones = (one for one in group if one.id != handoff.id and one.is_open)
    return tuple(step("handoff.informed", one, variables=changed, by=handoff.to_agent) for one in open_ones)


def _group(records: Records, handoff: Handoff) -> dict[str, Any] | None:
    """What the broadcast comes to, where this return decides it."""
    if handoff.broadcast_group_id is None:
        return None
    same = [one for one in records.handoffs[handoff.task_id] if one.broadcast_group_id == handoff.broadcast_group_id]
    if aggregated(same).state != "open":
        return None
    after = aggregated([handoff if one.id == handoff.id else one for one in same])
    told: dict[str, Any] = msgspec.to_builtins(after)
    return told if after.state != "open" else None


def _unexpected(handoff: Handoff) -> NoReturnExpected:
    return NoReturnExpected(
        f"nobody waits for a return of handoff {handoff.id}: it is {handoff.type}",
        "report on the task itself",
        Call("show", {"task_id": handoff.task_id}),
    )


class AnswerHandoff(OnHandoff, frozen=True, kw_only=True):
    """A person's answer: acceptance and return in one commit."""

    operation = "handoff_answer"
    text: str
    status: ReturnStatus = "success"

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What an acceptance needs."""
        return self._accept().needs(known, needs)

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """Whoever may accept may answer."""
        if problem := limits.text("text", self.text, limits.NOTES, required=True):
            return problem
        accepted: Verdict = Decision()
        if handoff.state in UNANSWERED:
            accepted = self._accept().judge_one(records, task, handoff, now, decide)
        if isinstance(accepted, AofError):
            return accepted
        brought = ReturnResult(
            actor=self.actor,
            agent=self.agent,
            task_id=self.task_id,
            handoff_id=self.handoff_id,
            status=self.status,
            result=self.text,
        )
        held = handoff if handoff.state not in UNANSWERED else msgspec.structs.replace(handoff, state="accepted")
        returned = brought.judge_one(records, task, held, now, decide)
        if isinstance(returned, AofError) or returned.refusal is not None:
            return returned
        return Decision(drafts=(*accepted.drafts, *returned.drafts), agent=self.acting)

    def _accept(self) -> Accept:
        return Accept(actor=self.actor, agent=self.agent, task_id=self.task_id, handoff_id=self.handoff_id)
