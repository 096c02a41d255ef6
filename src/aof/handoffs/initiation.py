"""How a handoff begins and goes on to another agent; and decisions that are too risky for the agent who made them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from aof.errors import (
    AofError,
    BudgetTooSmall,
    Call,
    EscalationDepth,
    HandoffClosed,
    HandoffOpen,
    InvalidInput,
    NotAccepted,
    NotAllowed,
    NotLeaseHolder,
    SegmentOpen,
)
from aof.handoffs import steps
from aof.handoffs.context import RecordedDecision, SharedContext, context_of, oversize
from aof.handoffs.guards import OnContext, Place
from aof.handoffs.model import (
    MAX_LEVEL,
    MAX_REROUTES,
    UNANSWERED,
    Assessment,
    Handoff,
    HandoffContext,
    Rationale,
    ReturnProtocol,
    RoutingChoice,
    Validation,
    uuid4,
)
from aof.handoffs.payload import (
    KINDS,
    URGENCY,
    HandoffProposal,
    assembled_payload,
    malformed_proposal,
    required_of_receiver,
)
from aof.handoffs.steps import (
    HandoffCommand,
    OnHandoff,
    audited,
    finished_refusal,
    initiated,
    load_of,
    rejected,
    step,
    warned,
)
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Decide, Decision, Needs, NeedsOf, Records, ReportProgress, Verdict
from aof.kernel.model import Draft, iso
from aof.org import rights
from aof.org.model import HUMAN, Risk
from aof.org.rights import is_person
from aof.org.routing import RISKS, may_take
from aof.runs import authentication
from aof.runs.leases import authorize
from aof.tasks import graph
from aof.tasks.model import Task
from aof.workflows.model import leases

_initiation_replace = msgspec.structs.replace
_COMPLETE = 100


class Initiate(HandoffCommand, frozen=True, kw_only=True):
    """Hand a task over, or a part of the work on it. The acting agent is the sender.

    `detected` says that the fabric itself has found the reason, and hands over for the sender.
    """

    operation = "handoff_new"
    proposal: HandoffProposal
    detected: bool = False

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """Also the file locks of the whole tree, and the last sign of life of a run whose part is marked complete."""
        task = known.tasks.get(self.task_id)
        places = frozenset(task.run_places if task is not None and self.proposal.segment_complete else ())
        top = (self.task_id, *known.above.get(self.task_id, ()))[-1]
        base = super().needs(known, needs)
        return _initiation_replace(base, heartbeats=places, file_locks=True, trees=frozenset({top}))

    def judge(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        """Everything is checked before anything is sent."""
        asked = self.proposal
        refusal = (
            malformed_proposal(asked, self.acting, task.id)
            or finished_refusal(task)
            or graph.being_cancelled(task)
            or steps.unknown_target(records.policy, self.acting, *asked.to)
            or self._not_its_own(records, task)
            or self._open_already(task)
        )
        if refusal:
            return refusal
        marked = self._segment(records, task, now, decide)
        if isinstance(marked, AofError):
            return marked
        sent = self._sent(records, task, now)
        return sent if isinstance(sent, AofError) else Decision(drafts=(*marked, *sent), agent=self.acting)

    def _sent(self, records: Records, task: Task, now: int) -> tuple[Draft, ...] | AofError:
        held = next((one for one in records.handoffs[task.id] if self._passes_on(one)), None)
        level = held.level + 1 if held is not None else 1
        if held is not None and (level > MAX_LEVEL or held.to_agent == HUMAN):
            return too_high(held)
        waiting = self._waiting(records, task)
        drafts: list[Draft] = []
        for handoff in self._records(records, task, level, now, waiting):
            routed = self._routed(records, self._going_on(handoff, held, now))
            if isinstance(routed, AofError):
                return routed
            carried = assembled_payload(records, task, self.proposal, (self.acting, routed.to_agent), now)
            if isinstance(carried, AofError):
                return carried
            if not drafts:  # the same for every receiver
                drafts += carried.drafts
            told = msgspec.to_builtins(carried.history)
            told.pop("messages", None)
            whole = _initiation_replace(
                routed, context=carried.context, subtask=told.pop("subtask", None), history=told
            )
            drafts += self._opened(records, task, whole, held, now)
            if waiting is not None and whole.number == len(records.handoffs[task.id]) + 1:
                drafts += steps.made_to_wait(waiting, whole, now)
        return tuple(drafts)

    def _going_on(self, handoff: Handoff, held: Handoff | None, now: int) -> Handoff:
        """An escalation that its receiver takes further up stays the matter of the agent that began it."""
        if held is None:
            return handoff
        said = Assessment(level=held.level, agent=self.acting, assessment=self.proposal.rationale, at=iso(now))
        return _initiation_replace(
            handoff,
            from_agent=held.from_agent,
            forwarded_from=held.id,
            tried=(*held.tried, held.to_agent),
            assessments=(*held.assessments, said),
            waiting_task_id=held.waiting_task_id,
            waiting_for=held.waiting_for,
        )

    def _passes_on(self, one: Handoff) -> bool:
        """Whether the sender has this escalation itself, and takes it further up."""
        return self.proposal.type == "escalation" == one.type and one.to_agent == self.acting and one.is_open

    def _opened(
        self, records: Records, task: Task, handoff: Handoff, held: Handoff | None, now: int
    ) -> Iterator[Draft]:
        """The events that send one handoff, and what follows when its receiver cannot take it."""
        if held is not None:
            yield from self._taken_further(task, held, handoff)
        found = steps.check_agent(records.policy, handoff.to_agent, handoff.validation, load_of(records), now)
        agent = steps.listed_agent(records.policy, handoff.to_agent)
        full = steps.is_full(records.policy.org, agent, load_of(records))
        others = steps.alternatives(records.policy, handoff, load_of(records)) if full else ()
        free = any(not steps.unable(records.policy, handoff, one, load_of(records)) for one in others)
        why = "capability_mismatch" if found.capability == "none" else "at_capacity" if full and free else None
        if why is None or handoff.type in ("broadcast", "escalation"):
            yield from started(records, task, handoff, now)
        else:
            yield initiated(task, _initiation_replace(handoff, checks=found))
            told = f"{why}: lacks {', '.join(found.missing)}" if why == "capability_mismatch" else why
            notify = steps.orchestrator(records.policy, handoff)
            yield rejected(task, handoff, told, now, notify=notify, checks=found)
            yield from passed_on(records, task, _initiation_replace(handoff, state="rejected"), told, now)
        if handoff.type == "escalation":
            rationale = self.proposal.rationale
            said = audited("escalated", task, handoff, rationale=rationale, notes=f"to {handoff.to_agent}")
            yield step("handoff.escalated", handoff, said, toAgent=handoff.to_agent)

    def _taken_further(self, task: Task, held: Handoff, handoff: Handoff) -> Iterator[Draft]:
        if held.state != "accepted":
            told = audited("accepted", task, held)
            yield step("handoff.accepted", held, told, acceptance={"status": "accepted"})
        said = {"level": held.level, "agent": self.acting, "assessment": self.proposal.rationale}
        told = audited("escalated", task, held, rationale=self.proposal.rationale, notes=f"level {held.level}")
        yield step("handoff.escalated", held, told, forwarded_to=handoff.id, toAgent=handoff.to_agent, assessment=said)

    def _records(self, records: Records, task: Task, level: int, now: int, waiting: Task | None) -> Iterator[Handoff]:
        """One record for each receiver, with the same payload."""
        asked, kind = self.proposal, KINDS[self.proposal.type]
        usual = f"{records.policy.scheduling.handoff_ms}ms" if kind.timeout else None
        count = len(records.handoffs[task.id])
        group = uuid4(records.entropy, 0) if kind.several else None
        escalates = asked.type == "escalation"
        first = Assessment(level=0, agent=self.acting, assessment=asked.rationale, at=iso(now))
        for number, target in enumerate(asked.to or (HUMAN,), count + 1):
            own = uuid4(records.entropy, number)
            yield Handoff(
                id=own,
                timestamp=iso(now),
                from_agent=self.acting,
                to_agent=target,
                type=asked.type,
                reason=asked.reason,
                context=HandoffContext(task_id=task.id),
                validation=Validation(
                    required_capabilities=required_of_receiver(asked.capabilities),
                    autonomy_budget=asked.autonomy_budget,
                ),
                return_protocol=ReturnProtocol(
                    expected=kind.returns and target not in asked.no_return,
                    timeout=(asked.timeout or usual) if kind.returns else None,
                    on_timeout=asked.on_timeout,
                ),
                audit=Rationale(decision_rationale=asked.rationale, risk_level=asked.risk),
                state="requested",
                rev=0,
                number=number,
                trigger=asked.trigger or ("escalation" if escalates else "explicit_request"),
                parent_task_id=task.parent_id,
                broadcast_group_id=group,
                aggregation=(asked.aggregation or "all") if kind.several else None,
                level=level if escalates else 0,
                coordinate=asked.coordinate and kind.several,
                urgency=URGENCY[task.priority] if escalates else None,
                assessments=(first,) if escalates else (),
                waiting_task_id=waiting.id if waiting is not None else None,
                waiting_for=(group or own) if waiting is not None else None,
                owner_before=task.owner,
            )

    def _waiting(self, records: Records, task: Task) -> Task | None:
        """The sender's task that is held until the return, where that is wanted."""
        asked = self.proposal
        wanted = asked.wait if asked.wait is not None else KINDS[asked.type].waits
        found = steps.waiting_task(records, task, self.acting, asked.type) if wanted else None
        return None if found is None or found.gated else found

    def _routed(self, records: Records, handoff: Handoff) -> Handoff | AofError:
        """The handoff with the target that the orchestrator decides on; what was suggested stays on the record."""
        policy, suggested = records.policy, handoff.to_agent
        decided, why = suggested, ""
        if handoff.type == "escalation":
            decided, why = self._climbs(records, handoff)
        elif (agent := steps.listed_agent(policy, suggested)) is not None and not agent.active:
            others = steps.alternatives(policy, handoff, load_of(records))
            decided, why = (others[0] if others else HUMAN), f"{suggested} is not active"
        if decided == suggested and (short := steps.too_little(policy, decided, handoff.validation, handoff.audit)):
            return short
        if decided == suggested:
            return handoff
        named = suggested if self.proposal.to else None
        choice = RoutingChoice(suggested=named, decided=decided, reason=why)
        return _initiation_replace(handoff, to_agent=decided, routing=choice)

    def _climbs(self, records: Records, handoff: Handoff) -> tuple[str, str]:
        policy, suggested = records.policy, handoff.to_agent
        chart = policy.org
        if handoff.level >= MAX_LEVEL:
            return HUMAN, "the last level is a person"
        if chart is None or not chart.declared:
            return suggested, ""
        given = bool(self.proposal.to)
        if given and self.detected:
            return suggested, ""
        if given and steps.in_chain(policy, handoff.from_agent, suggested) and suggested not in handoff.tried:
            return suggested, ""
        asked = (handoff.from_agent, *handoff.tried)
        return steps.next_level(policy, handoff.from_agent, handoff, asked), "the escalation chain decides"

    def _not_its_own(self, records: Records, task: Task) -> AofError | None:
        """Only the holder hands over what somebody holds; else the agent whose task it, or the one above it, is."""
        agent, chart = self.acting, records.policy.org
        if self.detected:
            return None
        holders = [lease.agent for lease in leases(task)]
        if holders and agent not in holders and not self._has_it(task):
            return NotLeaseHolder(
                f"{task.id} is held by {', '.join(holders)}, not by {agent}",
                f"only {holders[0]} may hand it over",
                Call("show", {"task_id": task.id}),
                holder=holders[0],
            )
        if task.lease is not None and task.lease.agent == agent:
            known = authorize(task, self)
            return known if isinstance(known, AofError) else None
        if chart is None or not chart.declared or is_person(chart, agent, records.policy.maintainers):
            return None
        above = records.look(task.parent_id) if task.parent_id is not None else None
        own = (
            rights.owns(task, agent)
            or authentication.ran_work(task, agent)
            or (above is not None and rights.owns(above, agent))
        )
        leads = rights.kind_of(chart, agent, records.policy.maintainers) in ("lead", "maintainer")
        if own or leads or self._has_it(task):
            return None
        return NotAllowed(
            f"{task.id} is not {agent}'s to hand over",
            "leave it to its holder, its maker, a lead or a maintainer",
            Call("show", {"task_id": task.id}),
            agent=agent,
        )

    def _has_it(self, task: Task) -> bool:
        """Whether the sender works under a handoff of this task itself, or has been asked to."""
        return any(one.to_agent == self.acting for one in task.handoffs)

    def _open_already(self, task: Task) -> HandoffOpen | None:
        """The refusal of the same again, or of a second transfer while one is under way."""
        asked = self.proposal
        for one in task.handoffs:
            if one.type != asked.type or one.by_message:
                continue
            if (asked.type == "sequential" and not task.gated) or (
                one.from_agent == self.acting and one.to_agent in asked.to
            ):
                return HandoffOpen(
                    f"{one.type} handoff {one.id} of {task.id} to {one.to_agent} is {one.state}",
                    "wait for its end, or withdraw it",
                    Call("handoff_withdraw", {"handoff_id": one.id, "reason": "…"}),
                    handoff_id=one.id,
                )
        return None

    def _segment(self, records: Records, task: Task, now: int, decide: Decide) -> tuple[Draft, ...] | AofError:
        """Whoever passes a task on has finished its own part, or says so with the handoff."""
        if self.detected or self.proposal.type != "sequential" or not steps.runs_task(task, self.acting):
            return ()
        if task.gated:
            return SegmentOpen(
                f"{self.acting} still holds a hop of {task.id}",
                "complete the hop first",
                Call("complete", {"task_id": task.id, "summary": "…"}),
            )
        if task.progress.get("percent") == _COMPLETE:
            return ()
        if not self.proposal.segment_complete:
            return SegmentOpen(
                f"{self.acting} has not marked its part of {task.id} as complete",
                "report 100 percent first, or say with the handoff that the segment is complete",
                Call("progress", {"task_id": task.id, "percent": _COMPLETE}),
            )
        mark = ReportProgress(
            actor=self.actor, agent=self.agent, run=self.run, proof=self.proof, task_id=task.id, percent=_COMPLETE
        )
        verdict = decide(records, mark, now)
        return verdict if isinstance(verdict, AofError) else verdict.drafts


_forwarding_replace = msgspec.structs.replace


def successor(records: Records, task: Task, handoff: Handoff, to_agent: str, reason: str, **more: Any) -> Handoff:
    """The same handoff for another agent: equal payload, a record of its own."""
    chosen = RoutingChoice(suggested=handoff.to_agent, decided=to_agent, reason=reason)
    number = max(one.number for one in (*records.handoffs[task.id], handoff)) + 1
    return _forwarding_replace(
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
    found = steps.check_agent(records.policy, handoff.to_agent, handoff.validation, load_of(records), now)
    agent = steps.listed_agent(records.policy, handoff.to_agent)
    full = steps.is_full(records.policy.org, agent, load_of(records))
    warnings = _gap(handoff, found.missing)
    known = _forwarding_replace(handoff, checks=found, warnings=warnings, state="queued" if full else "requested")
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
    candidates = steps.alternatives(records.policy, handoff, load_of(records))
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
    target = steps.next_level(records.policy, handoff.from_agent, handoff, (handoff.from_agent, *asked))
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
        orchestrates = self.acting == steps.orchestrator(records.policy, handoff)
        problem = (None if orchestrates else self.not_sender(records, handoff)) or kernel_limits.text(
            "reason", self.reason, kernel_limits.REASON, required=True
        )
        if problem or (problem := self._unfit(records, handoff)):
            return problem
        if handoff.state not in UNANSWERED:
            return closed(handoff)
        over = _forwarding_replace(handoff, state="rejected")
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
        unknown = kernel_limits.name("to_agent", self.to_agent) or steps.unknown_target(records.policy, self.to_agent)
        return unknown or steps.too_little(records.policy, self.to_agent, handoff.validation, handoff.audit)


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
        target = steps.next_level(
            records.policy, handoff.from_agent, _forwarding_replace(handoff, level=handoff.level + 1), asked
        )
        target = self._suggested(records, handoff, target)
        kept = _forwarding_replace(handoff, assessments=(*handoff.assessments, said))
        chosen = successor(records, task, kept, target, self.rationale, level=handoff.level + 1)
        told = audited(
            "escalated", task, handoff, rationale=self.rationale, notes=f"level {handoff.level}: to {target}"
        )
        payload = {"assessment": {"level": handoff.level, "agent": self.acting, "assessment": self.rationale}}
        gone = step("handoff.escalated", handoff, told, forwarded_to=chosen.id, toAgent=target, **payload)
        return Decision(drafts=(gone, *started(records, task, chosen, now)))

    def _impossible(self, handoff: Handoff) -> AofError | None:
        if problem := kernel_limits.text("rationale", self.rationale, kernel_limits.NOTES, required=True):
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
        return self.to_agent if free or steps.in_chain(records.policy, handoff.from_agent, self.to_agent) else target


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
        if problem := kernel_limits.text("description", self.description, kernel_limits.PROGRESS, required=True):
            return problem
        if self.risk is not None and (problem := kernel_limits.choice("risk", self.risk, RISKS)):
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
        if decision_made(context, self.description, at.by.agent) is not None:
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


def decision_made(context: SharedContext, description: str, agent: str) -> RecordedDecision | None:
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
