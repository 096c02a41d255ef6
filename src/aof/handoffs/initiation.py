"""How a handoff begins, and how it goes on to another agent: rerouted, escalated, or left to a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from aof.errors import (
    AofError,
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
from aof.handoffs import rules
from aof.handoffs.audit import audited
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
from aof.handoffs.rules import HandoffCommand, OnHandoff, step
from aof.kernel import limits
from aof.kernel.commands import Decide, Decision, Needs, NeedsOf, Records, ReportProgress, Verdict
from aof.kernel.events import Draft
from aof.kernel.model import iso
from aof.org import rights
from aof.org.model import HUMAN
from aof.org.rights import is_person
from aof.runs import authentication
from aof.runs.leases import authorize
from aof.tasks import graph
from aof.tasks.model import Task
from aof.workflows.model import leases

_COMPLETE = 100  # percent
_replace = msgspec.structs.replace


class Initiate(HandoffCommand, frozen=True, kw_only=True):
    """Hand a task over, or a part of the work on it. The acting agent is the sender.

    `detected` says that the fabric itself has found the reason, and hands over for the sender.
    """

    operation = "handoff_new"
    proposal: HandoffProposal
    detected: bool = False

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What every handoff needs, the file locks of the tree, and the heartbeat of a run whose part is complete."""
        task = known.tasks.get(self.task_id)
        places = frozenset(task.run_places if task is not None and self.proposal.segment_complete else ())
        top = (self.task_id, *known.above.get(self.task_id, ()))[-1]
        base = super().needs(known, needs)
        return _replace(base, heartbeats=places, file_locks=True, trees=frozenset({top}))

    def judge(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        """Everything is checked before anything is sent."""
        asked = self.proposal
        refusal = (
            malformed_proposal(asked, self.acting, task.id)
            or rules.finished_refusal(task)
            or graph.being_cancelled(task)
            or rules.unknown_target(records.policy, self.acting, *asked.to)
            or self._not_its_own(records, task)
            or self._open_already(task)
        )
        if refusal:
            return refusal
        marked = self._part_completed(records, task, now, decide)
        if isinstance(marked, AofError):
            return marked
        sent = self._sent(records, task, now)
        return sent if isinstance(sent, AofError) else Decision(drafts=(*marked, *sent), agent=self.acting)

    def _sent(self, records: Records, task: Task, now: int) -> tuple[Draft, ...] | AofError:
        """The events of one handoff to each receiver, with the same payload."""
        held: Handoff | None = None
        if self.proposal.type == "escalation":  # the sender has one itself, and takes it further up
            own = (one for one in records.handoffs[task.id] if one.type == "escalation" and one.is_open)
            held = next((one for one in own if one.to_agent == self.acting), None)
        level = held.level + 1 if held is not None else 1
        if held is not None and (level > MAX_LEVEL or held.to_agent == HUMAN):
            return depth_refusal(held)
        waiting = self._waiting(records, task)
        drafts: list[Draft] = []
        for proposed in self._proposed(records, task, level, now, waiting):
            handoff = self._routed(records, proposed if held is None else self._continuing(proposed, held, now))
            if isinstance(handoff, AofError):
                return handoff
            payload = assembled_payload(records, task, self.proposal, (self.acting, handoff.to_agent), now)
            if isinstance(payload, AofError):
                return payload
            context, carried, shared = payload
            if not drafts:  # the same for every receiver
                drafts += shared
            history = msgspec.to_builtins(carried)
            history.pop("messages", None)
            subtask = history.pop("subtask", None)
            handoff = _replace(handoff, context=context, subtask=subtask, history=history)
            drafts += self._opened(records, task, handoff, held, now)
            if waiting is not None and handoff.number == len(records.handoffs[task.id]) + 1:
                drafts += rules.made_to_wait(waiting, handoff, now)
        return tuple(drafts)

    def _continuing(self, handoff: Handoff, held: Handoff, now: int) -> Handoff:
        """An escalation that its receiver takes further up stays the matter of the agent that began it."""
        own = Assessment(level=held.level, agent=self.acting, assessment=self.proposal.rationale, at=iso(now))
        return _replace(
            handoff,
            from_agent=held.from_agent,
            forwarded_from=held.id,
            tried=(*held.tried, held.to_agent),
            assessments=(*held.assessments, own),
            waiting_task_id=held.waiting_task_id,
            waiting_for=held.waiting_for,
        )

    def _opened(
        self, records: Records, task: Task, handoff: Handoff, held: Handoff | None, now: int
    ) -> Iterator[Draft]:
        """The events that send one handoff, and what follows when its receiver cannot take it."""
        rationale = self.proposal.rationale
        if held is not None:
            if held.state != "accepted":
                record = audited("accepted", task, held)
                yield step("handoff.accepted", held, record, acceptance={"status": "accepted"})
            own = {"level": held.level, "agent": self.acting, "assessment": rationale}
            record = audited("escalated", task, held, rationale=rationale, notes=f"level {held.level}")
            yield step(
                "handoff.escalated", held, record, forwarded_to=handoff.id, toAgent=handoff.to_agent, assessment=own
            )
        checks = rules.check_receiver(records, handoff, now)
        full = rules.is_full(records, handoff.to_agent)
        free = full and any(rules.could_take(records, handoff, one) for one in rules.alternatives(records, handoff))
        why = "capability_mismatch" if checks.capability == "none" else "at_capacity" if free else None
        if why is None or handoff.type in ("broadcast", "escalation"):
            yield from started(records, task, handoff, now)
        else:
            yield rules.initiated(task, _replace(handoff, checks=checks))
            reason = f"{why}: lacks {', '.join(checks.missing)}" if why == "capability_mismatch" else why
            notify = rules.orchestrator(records.policy, handoff)
            yield rules.rejected(task, handoff, reason, now, notify=notify, checks=checks)
            yield from passed_on(records, task, _replace(handoff, state="rejected"), reason, now)
        if handoff.type == "escalation":
            record = audited("escalated", task, handoff, rationale=rationale, notes=f"to {handoff.to_agent}")
            yield step("handoff.escalated", handoff, record, toAgent=handoff.to_agent)

    def _proposed(self, records: Records, task: Task, level: int, now: int, waiting: Task | None) -> Iterator[Handoff]:
        """One record for each receiver that the sender names."""
        asked, kind = self.proposal, KINDS[self.proposal.type]
        usual = f"{records.policy.scheduling.handoff_ms}ms" if kind.timeout else None
        group = uuid4(records.entropy, 0) if kind.several else None
        escalates = asked.type == "escalation"
        first = Assessment(level=0, agent=self.acting, assessment=asked.rationale, at=iso(now))
        for number, target in enumerate(asked.to or (HUMAN,), len(records.handoffs[task.id]) + 1):
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
        if not (asked.wait if asked.wait is not None else KINDS[asked.type].waits):
            return None
        above = records.find(task.parent_id) if task.parent_id is not None else None
        if asked.type == "delegation" and above is not None and rules.runs_task(above, self.acting):
            found = above  # that of a subtask is the one above
        elif rules.runs_task(task, self.acting):
            found = task
        else:
            return None
        return None if found.gated else found

    def _routed(self, records: Records, handoff: Handoff) -> Handoff | AofError:
        """The handoff with the target that the orchestrator decides on; what was suggested stays on the record."""
        policy, suggested = records.policy, handoff.to_agent
        decided, why = suggested, ""
        if handoff.type == "escalation":
            decided, why = self._next_in_chain(records, handoff)
        elif (agent := rules.listed_agent(policy, suggested)) is not None and not agent.active:
            others = rules.alternatives(records, handoff)
            decided, why = (others[0] if others else HUMAN), f"{suggested} is not active"
        if decided == suggested:
            return rules.autonomy_refusal(policy, handoff, decided) or handoff
        choice = RoutingChoice(suggested=suggested if self.proposal.to else None, decided=decided, reason=why)
        return _replace(handoff, to_agent=decided, routing=choice)

    def _next_in_chain(self, records: Records, handoff: Handoff) -> tuple[str, str]:
        """Whom the escalation goes to, and why where that is another than the sender suggests."""
        policy, suggested = records.policy, handoff.to_agent
        chart = policy.org
        if handoff.level >= MAX_LEVEL:
            return HUMAN, "the last level is a person"
        if chart is None or not chart.declared:
            return suggested, ""
        in_chain = rules.in_chain(policy, handoff.from_agent, suggested) and suggested not in handoff.tried
        if self.proposal.to and (self.detected or in_chain):
            return suggested, ""
        asked = (handoff.from_agent, *handoff.tried)
        return rules.next_level(policy, handoff.from_agent, handoff, asked), "the escalation chain decides"

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
        above = records.find(task.parent_id) if task.parent_id is not None else None
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

    def _part_completed(self, records: Records, task: Task, now: int, decide: Decide) -> tuple[Draft, ...] | AofError:
        """Whoever passes a task on has finished its own part, or says so with the handoff."""
        if self.detected or self.proposal.type != "sequential" or not rules.runs_task(task, self.acting):
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


def successor(records: Records, task: Task, handoff: Handoff, to_agent: str, reason: str, **more: Any) -> Handoff:
    """The same handoff for another agent: equal payload, a record of its own."""
    number = max(one.number for one in (*records.handoffs[task.id], handoff)) + 1
    return _replace(
        handoff,
        id=uuid4(records.entropy, number),
        to_agent=to_agent,
        state="requested",
        number=number,
        routing=RoutingChoice(suggested=handoff.to_agent, decided=to_agent, reason=reason),
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
    checks, full = rules.check_receiver(records, handoff, now), rules.is_full(records, handoff.to_agent)
    warnings = (f"{handoff.to_agent} lacks {', '.join(checks.missing)}",) if checks.missing else ()
    known = _replace(handoff, checks=checks, warnings=warnings, state="queued" if full else "requested")
    return (rules.initiated(task, known), *((rules.capability_gap(known, checks.missing),) if checks.missing else ()))


def passed_on(records: Records, task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """The events after a receiver did not take a handoff: to an alternative, at most three times, then to a person.

    A broadcast asks those that were named, and counts without the others.
    """
    if handoff.type == "broadcast" or handoff.to_agent == HUMAN:
        return ()
    if handoff.type == "escalation":
        return escalated_further(records, task, handoff, reason, now)
    candidates = rules.alternatives(records, handoff)
    if not candidates or handoff.reroutes >= MAX_REROUTES:
        why = "every reroute was used" if handoff.reroutes >= MAX_REROUTES else "no other agent can take it"
        return escalated_to(records, task, handoff, HUMAN, f"{reason}; {why}", now)
    return rerouted(records, task, handoff, candidates[0], reason, now)


def rerouted(  # noqa: PLR0917 - who, whereto and why
    records: Records, task: Task, handoff: Handoff, target: str, reason: str, now: int
) -> tuple[Draft, ...]:
    """The events that send the same payload to another agent."""
    chosen = successor(records, task, handoff, target, reason, reroutes=handoff.reroutes + 1)
    moved = step("handoff.rerouted", handoff, forwarded_to=chosen.id, toAgent=chosen.to_agent, reason=reason)
    return (moved, *started(records, task, chosen, now))


def escalated_further(records: Records, task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """The events that pass a handoff to the next agent of the escalation chain, or to a person at its end."""
    asked = (handoff.from_agent, *handoff.tried, handoff.to_agent)
    target = rules.next_level(records.policy, handoff.from_agent, handoff, asked)
    return escalated_to(records, task, handoff, target, reason, now)


def escalated_to(  # noqa: PLR0917 - who, whereto and why
    records: Records, task: Task, handoff: Handoff, target: str, reason: str, now: int
) -> tuple[Draft, ...]:
    """The events that pass a handoff to an agent of the escalation chain, or to people: whoever accepts first."""
    level = min(handoff.level + 1, MAX_LEVEL) if handoff.type == "escalation" else handoff.level
    chosen = successor(records, task, handoff, target, reason, level=level)
    record = audited("escalated", task, handoff, reason=reason, notes=f"to {target}")
    passed = step("handoff.escalated", handoff, record, forwarded_to=chosen.id, toAgent=target, reason=reason)
    return (passed, *started(records, task, chosen, now))


class Reroute(OnHandoff, frozen=True, kw_only=True):
    """Send an unanswered handoff to another agent: the orchestrator's decision, the sender's or a maintainer's."""

    operation = "handoff_reroute"
    reason: str
    to_agent: str | None = None

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """The first receiver's record ends as rejected, and the next one gets the same payload."""
        orchestrates = self.acting == rules.orchestrator(records.policy, handoff)
        problem = (
            (None if orchestrates else self.not_sender(records, handoff))
            or limits.text("reason", self.reason, limits.REASON, required=True)
            or self._unfit(records, handoff)
        )
        if problem:
            return problem
        if handoff.state not in UNANSWERED:
            return closed_refusal(handoff)
        over = _replace(handoff, state="rejected")
        turned_down = rules.rejected(task, handoff, self.reason, now, by=self.acting)
        if self.to_agent is None:
            moved = passed_on(records, task, over, self.reason, now)
        else:
            moved = rerouted(records, task, over, self.to_agent, self.reason, now)
        return Decision(drafts=(turned_down, *moved), agent=self.acting)

    def _unfit(self, records: Records, handoff: Handoff) -> AofError | None:
        """Why the agent that is named cannot be asked."""
        target = self.to_agent
        if target is None:
            return None
        if target in (handoff.to_agent, handoff.from_agent, *handoff.tried):
            return InvalidInput(f"{target} has been asked, or asks itself", "name another agent, or none")
        return (
            limits.name("to_agent", target)
            or rules.unknown_target(records.policy, target)
            or rules.autonomy_refusal(records.policy, handoff, target)
        )


class Escalate(OnHandoff, frozen=True, kw_only=True):
    """The receiver of an escalation passes it on to the next level, with its own assessment."""

    operation = "handoff_escalate"
    rationale: str
    to_agent: str | None = None

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """One level up, as long as there is one. A suggested target counts where it is in the chain."""
        if problem := self.not_receiver(records, handoff) or self._impossible(handoff):
            return problem
        policy, origin, level = records.policy, handoff.from_agent, handoff.level + 1
        asked = (origin, *handoff.tried, handoff.to_agent)
        target = rules.next_level(policy, origin, _replace(handoff, level=level), asked)
        if self.to_agent is not None and level < MAX_LEVEL and rules.in_chain(policy, origin, self.to_agent):
            target = self.to_agent
        own = {"level": handoff.level, "agent": self.acting, "assessment": self.rationale}
        kept = _replace(handoff, assessments=(*handoff.assessments, Assessment(**own, at=iso(now))))  # type: ignore[arg-type]
        chosen = successor(records, task, kept, target, self.rationale, level=level)
        notes = f"level {handoff.level}: to {target}"
        record = audited("escalated", task, handoff, rationale=self.rationale, notes=notes)
        passed = step("handoff.escalated", handoff, record, forwarded_to=chosen.id, toAgent=target, assessment=own)
        return Decision(drafts=(passed, *started(records, task, chosen, now)))

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
            return closed_refusal(handoff)
        if handoff.state != "accepted":
            return not_accepted_refusal(handoff)
        return depth_refusal(handoff) if handoff.level >= MAX_LEVEL or handoff.to_agent == HUMAN else None


def closed_refusal(handoff: Handoff) -> HandoffClosed:
    """The refusal to answer a handoff that has its final answer."""
    return HandoffClosed(
        f"handoff {handoff.id} is {handoff.state} already",
        "look at what became of it",
        Call("handoff_show", {"handoff_id": handoff.id}),
        state=handoff.state,
    )


def not_accepted_refusal(handoff: Handoff) -> NotAccepted:
    """The refusal of work under a handoff that nobody has accepted."""
    return NotAccepted(
        f"handoff {handoff.id} is {handoff.state}: nobody has accepted it",
        "accept it first",
        Call("handoff_accept", {"handoff_id": handoff.id, "agent": handoff.to_agent}),
        state=handoff.state,
    )


def depth_refusal(handoff: Handoff) -> EscalationDepth:
    """The refusal to escalate further than the third level."""
    return EscalationDepth(
        f"{handoff.task_id} has been escalated {handoff.level} times, and {handoff.to_agent} has it: "
        f"{MAX_LEVEL} is the most",
        "answer it, or let a person do so",
        Call("handoff_answer", {"handoff_id": handoff.id, "text": "…"}),
        level=handoff.level,
    )
