"""A handoff goes on to another agent: rerouted to an alternative, or escalated to the next level or to a person.

Each agent that is asked has a record of its own, so that each has one final answer; the old record names the new one.
Must not know why, beyond the reason that is recorded.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.handoffs import EscalationDepth, HandoffClosed, NotAccepted
from aof.core.handoffs.lifecycle import checks, targets
from aof.core.handoffs.lifecycle.command import OnHandoff, load_of
from aof.core.handoffs.lifecycle.steps import audited, initiated, rejected, step, warned
from aof.core.model.commands import Decide
from aof.core.model.events import Draft
from aof.core.model.handoffs.ids import uuid4
from aof.core.model.handoffs.record import (
    MAX_LEVEL,
    MAX_REROUTES,
    UNANSWERED,
    Assessment,
    Handoff,
    RoutingChoice,
)
from aof.core.model.org_chart import HUMAN
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.validation import limits

_replace = msgspec.structs.replace


def successor(records: Records, task: Task, handoff: Handoff, to_agent: str, reason: str, **more: Any) -> Handoff:
    """The same handoff for another agent: equal payload, a record of its own."""
    chosen = RoutingChoice(suggested=handoff.to_agent, decided=to_agent, reason=reason)
    number = max(one.number for one in (*records.handoffs[task.id], handoff)) + 1
    return _replace(
        handoff,
        id=uuid4(records.entropy, number),
        to_agent=to_agent,
        state="requested",
        number=number,
        routing=chosen,
        checks=None,
        warnings=(),
        forwarded_from=handoff.id,
        forwarded_to=None,
        tried=(*handoff.tried, handoff.to_agent),
        resends=0,
        resent_at=None,
        reminded_at=None,
        timeouts=0,
        timed_out_at=None,
        acceptance=None,
        returned=None,
        late_returns=(),
        outcome=None,
        closed_at=None,
        closed_reason=None,
        **more,
    )


def started(records: Records, task: Task, handoff: Handoff, now: int) -> tuple[Draft, ...]:
    """The events that begin a record whose receiver has been chosen; a gap in its capabilities is logged."""
    found = checks.check(records.policy, handoff.to_agent, handoff.validation, load_of(records), now)
    agent = checks.listed(records.policy, handoff.to_agent)
    full = checks.is_full(records.policy.org, agent, load_of(records))
    warnings = _gap(handoff, found.missing)
    known = _replace(handoff, checks=found, warnings=warnings, state="queued" if full else "requested")
    gaps = tuple(warned(known, warning, found.missing) for warning in warnings)
    return (initiated(task, known), *gaps)


def _gap(handoff: Handoff, missing: tuple[str, ...]) -> tuple[str, ...]:
    return (f"{handoff.to_agent} lacks {', '.join(missing)}",) if missing else ()


def passed_on(records: Records, task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """A receiver did not take it: to an alternative, at most three times, and then to a person.

    A broadcast asks those that were named, and counts without the others.
    """
    if handoff.type == "broadcast" or handoff.to_agent == HUMAN:
        return ()
    if handoff.type == "escalation":
        return climbed(records, task, handoff, reason, now)
    candidates = targets.alternatives(records.policy, handoff, load_of(records))
    if not candidates or handoff.reroutes >= MAX_REROUTES:
        why = "every reroute was used" if handoff.reroutes >= MAX_REROUTES else "no other agent can take it"
        return to_person(records, task, handoff, f"{reason}; {why}", now)
    return rerouted(records, task, handoff, candidates[0], reason, now)


def rerouted(  # noqa: PLR0917 - who, whereto and why
    records: Records, task: Task, handoff: Handoff, target: str, reason: str, now: int
) -> tuple[Draft, ...]:
    """The same payload goes to an agent that was chosen."""
    chosen = successor(records, task, handoff, target, reason, reroutes=handoff.reroutes + 1)
    moved = step("handoff.rerouted", handoff, forwarded_to=chosen.id, toAgent=chosen.to_agent, reason=reason)
    return (moved, *started(records, task, chosen, now))


def to_person(records: Records, task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """The handoff goes to a person: whoever of them takes it first."""
    return _climb(records, task, handoff, HUMAN, reason, now)


def climbed(records: Records, task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """The handoff goes to the next agent of the escalation chain, or to a person at its end."""
    asked = (*handoff.tried, handoff.to_agent)
    target = targets.next_level(records.policy, handoff.from_agent, handoff, (handoff.from_agent, *asked))
    return _climb(records, task, handoff, target, reason, now)


def _climb(  # noqa: PLR0917 - who, whereto and why
    records: Records, task: Task, handoff: Handoff, target: str, reason: str, now: int
) -> tuple[Draft, ...]:
    level = min(handoff.level + 1, MAX_LEVEL) if handoff.type == "escalation" else handoff.level
    chosen = successor(records, task, handoff, target, reason, level=level)
    told = audited("escalated", task, handoff, reason=reason, notes=f"to {target}")
    gone = step("handoff.escalated", handoff, told, forwarded_to=chosen.id, toAgent=target, reason=reason)
    return (gone, *started(records, task, chosen, now))


class Reroute(OnHandoff, frozen=True, kw_only=True):
    """Send an unanswered handoff to another agent: the orchestrator's decision, the sender's or a maintainer's."""

    operation = "handoff_reroute"
    reason: str
    to_agent: str | None = None

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """The first receiver's record ends as rejected, and the next one gets the same payload."""
        orchestrates = self.acting == targets.orchestrator(records.policy, handoff)
        problem = (None if orchestrates else self.not_sender(records, handoff)) or limits.text(
            "reason", self.reason, limits.REASON, required=True
        )
        if problem or (problem := self._unfit(records, handoff)):
            return problem
        if handoff.state not in UNANSWERED:
            return closed(handoff)
        over = _replace(handoff, state="rejected")
        turned = rejected(task, handoff, self.reason, now, by=self.acting)
        if self.to_agent is None:
            return Decision(drafts=(turned, *passed_on(records, task, over, self.reason, now)), agent=self.acting)
        moved = rerouted(records, task, over, self.to_agent, self.reason, now)
        return Decision(drafts=(turned, *moved), agent=self.acting)

    def _unfit(self, records: Records, handoff: Handoff) -> AofError | None:
        """Why the agent that is named cannot be asked."""
        if self.to_agent is None:
            return None
        if self.to_agent in (handoff.to_agent, handoff.from_agent, *handoff.tried):
            return InvalidInput(f"{self.to_agent} has been asked, or asks itself", "name another agent, or none")
        unknown = limits.name("to_agent", self.to_agent) or targets.unknown(records.policy, self.to_agent)
        return unknown or checks.too_little(records.policy, self.to_agent, handoff.validation, handoff.audit)


class Escalate(OnHandoff, frozen=True, kw_only=True):
    """The receiver of an escalation passes it on to the next level, with its own assessment."""

    operation = "handoff_escalate"
    rationale: str
    to_agent: str | None = None

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """One level up, as long as there is one."""
        if problem := self.not_receiver(records, handoff) or self._impossible(handoff):
            return problem
        said = Assessment(level=handoff.level, agent=self.acting, assessment=self.rationale, at=iso(now))
        asked = (handoff.from_agent, *handoff.tried, handoff.to_agent)
        target = targets.next_level(
            records.policy, handoff.from_agent, _replace(handoff, level=handoff.level + 1), asked
        )
        target = self._suggested(records, handoff, target)
        kept = _replace(handoff, assessments=(*handoff.assessments, said))
        chosen = successor(records, task, kept, target, self.rationale, level=handoff.level + 1)
        told = audited(
            "escalated", task, handoff, rationale=self.rationale, notes=f"level {handoff.level}: to {target}"
        )
        payload = {"assessment": {"level": handoff.level, "agent": self.acting, "assessment": self.rationale}}
        gone = step("handoff.escalated", handoff, told, forwarded_to=chosen.id, toAgent=target, **payload)
        return Decision(drafts=(gone, *started(records, task, chosen, now)))

    def _impossible(self, handoff: Handoff) -> AofError | None:
        if problem := limits.text("rationale", self.rationale, limits.NOTES, required=True):
            return problem
        if handoff.type != "escalation":
            return InvalidInput(
                f"handoff {handoff.id} is {handoff.type}, and only an escalation goes further up",
                "escalate the matter yourself",
                Call(
                    "handoff_new", {"type": "escalation", "task_id": handoff.task_id, "reason": "…", "rationale": "…"}
                ),
            )
        if not handoff.is_open:
            return closed(handoff)
        if handoff.state != "accepted":
            return unaccepted(handoff)
        return too_high(handoff) if handoff.level >= MAX_LEVEL or handoff.to_agent == HUMAN else None

    def _suggested(self, records: Records, handoff: Handoff, target: str) -> str:
        """A suggested target counts where it is in the chain; the last level is a person's."""
        if self.to_agent is None or handoff.level + 1 >= MAX_LEVEL:
            return target
        chart = records.policy.org
        free = chart is None or not chart.declared
        return self.to_agent if free or targets.in_chain(records.policy, handoff.from_agent, self.to_agent) else target


def closed(handoff: Handoff) -> HandoffClosed:
    """The refusal of an answer to what has one."""
    return HandoffClosed(
        f"handoff {handoff.id} is {handoff.state} already",
        "look at what became of it",
        Call("handoff_show", {"handoff_id": handoff.id}),
        state=handoff.state,
    )


def unaccepted(handoff: Handoff) -> NotAccepted:
    """The refusal of work under a handoff that nobody has accepted."""
    return NotAccepted(
        f"handoff {handoff.id} is {handoff.state}: nobody has accepted it",
        "accept it first",
        Call("handoff_accept", {"handoff_id": handoff.id, "agent": handoff.to_agent}),
        state=handoff.state,
    )


def too_high(handoff: Handoff) -> EscalationDepth:
    """The refusal of a fourth level."""
    return EscalationDepth(
        f"{handoff.task_id} has been escalated {handoff.level} times, and {handoff.to_agent} has it: "
        f"{MAX_LEVEL} is the most",
        "answer it, or let a person do so",
        Call("handoff_answer", {"handoff_id": handoff.id, "text": "…"}),
        level=handoff.level,
    )
