"""Decisions of a workflow: who made them, and what becomes of one that is too risky for its agent.

Such a decision has no effect. It becomes an escalation with the decision as its rationale, and is recorded once that
has come back with success and the agent decides the same again. Must not know how an escalation finds its target.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from aof.core.errors.base import Call
from aof.core.errors.guards import BudgetTooSmall
from aof.core.handoffs.context import oversize
from aof.core.handoffs.lifecycle.initiation import Initiate
from aof.core.handoffs.lifecycle.proposal import HandoffProposal
from aof.core.handoffs.shared_context import OnContext, Place
from aof.core.model.commands import NeedsOf
from aof.core.model.events import Draft
from aof.core.model.handoffs.context import RecordedDecision, SharedContext, context_of
from aof.core.model.handoffs.record import Handoff
from aof.core.model.org_chart import Risk
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.times import iso
from aof.core.org.autonomy import RISKS, may_take
from aof.core.validation import limits

_REASON = "a decision above the agent's risk"


class RecordDecision(OnContext, frozen=True, kw_only=True):
    """Record a decision that an agent of the workflow has made. Of a risk above its own it is escalated instead."""

    description: str
    risk: str | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """With a risk, also what an escalation needs."""
        base = super().needs(known, needs)
        if self._risk is None:
            return base
        return _both(base, self._escalation(self.acting, self._risk).needs(known, needs))

    def written(self, records: Records, at: Place, now: int) -> Verdict:
        """One more decision, under the next number; or the escalation that it becomes."""
        if problem := limits.text("description", self.description, limits.PROGRESS, required=True):
            return problem
        if self.risk is not None and (problem := limits.choice("risk", self.risk, RISKS)):
            return problem
        if self._risk is not None:
            refusal = may_take(records.policy.org, at.by.agent, level=None, risk=self._risk)
            if refusal is not None and (verdict := self._escalated(records, at, self._risk, refusal, now)) is not None:
                return verdict
        return self._recorded(at, now)

    @property
    def _risk(self) -> Risk | None:
        return next((risk for risk in RISKS if risk == self.risk), None)

    def _recorded(self, at: Place, now: int) -> Verdict:
        context = context_of(at.top)
        if decided(context, self.description, at.by.agent) is not None:
            return Decision(agent=at.by.agent)
        made = RecordedDecision(
            decision_id=f"D-{len(context.decisions) + 1}",
            description=self.description.strip(),
            made_by=at.by.agent,
            timestamp=iso(now),
            task_id=at.task.id,
        )
        after = msgspec.structs.replace(context, decisions=(*context.decisions, made))
        payload = msgspec.to_builtins(made)
        del payload["timestamp"]  # the event says when
        drafts = (Draft(type="context.decided", task_id=at.top.id, payload=payload),)
        return oversize(at.top, after) or Decision(drafts=drafts, agent=at.by.agent)

    def _escalated(self, records: Records, at: Place, risk: Risk, refusal: BudgetTooSmall, now: int) -> Verdict | None:
        """The escalation of this very decision: begun, under way or turned down; None once it is approved."""
        last = escalation_of(records.handoffs[at.task.id], self.description, at.by.agent, risk)
        if last is None:
            return self._escalation(at.by.agent, risk).decide(records, now, _never)
        if last.is_open:
            return Decision(agent=at.by.agent)
        if last.outcome == "success":
            return None
        return BudgetTooSmall(
            f"{refusal.message}; the escalation {last.id} did not approve it",
            "decide something else, or leave it to an agent with a larger budget",
            Call("handoff_show", {"handoff_id": last.id}),
            handoff_id=last.id,
        )

    def _escalation(self, agent: str, risk: Risk) -> Initiate:
        whole = {name: getattr(self, name) for name in Initiate.__struct_fields__ if hasattr(self, name)}
        text = self.description.strip()
        proposal = HandoffProposal(type="escalation", reason=_REASON, rationale=text, risk=risk, trigger="escalation")
        return Initiate(**whole | {"agent": agent}, proposal=proposal)


def decided(context: SharedContext, description: str, agent: str) -> RecordedDecision | None:
    """The decision that the agent has made in these words: said again, it is still the same one."""
    same = (agent, description.strip())
    return next((one for one in context.decisions if (one.made_by, one.description) == same), None)


def escalation_of(handoffs: Iterable[Handoff], description: str, agent: str, risk: str | None) -> Handoff | None:
    """The last escalation of this very decision; where it went further up, the record that it has come to."""
    found = [
        one
        for one in handoffs
        if (one.type, one.from_agent, one.forwarded_to) == ("escalation", agent, None)
        and (one.audit.decision_rationale, one.audit.risk_level) == (description.strip(), risk)
    ]
    return found[-1] if found else None


def _never(_records: Records, _command: object, _now: int) -> Verdict:
    """An escalation marks no part of the task as complete, and so carries out no other command."""
    raise NotImplementedError


def _both(one: Needs, other: Needs) -> Needs:
    """What either needs; what one of them writes is written."""
    parts = {name: getattr(one, name) | getattr(other, name) for name in Needs.__struct_fields__}
    return Needs(**parts | {"read": parts["read"] - parts["write"]})
