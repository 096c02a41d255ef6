"""How a handoff begins: the payload is put together, the target is checked and chosen, then it is sent.

Must not know how it is answered.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from aof.core.errors.base import AofError, Call
from aof.core.errors.handoffs import HandoffOpen, SegmentOpen
from aof.core.errors.org import NotAllowed
from aof.core.errors.runs import NotLeaseHolder
from aof.core.handoffs.lifecycle import checks, ownership, targets
from aof.core.handoffs.lifecycle.command import HandoffCommand, load_of, over
from aof.core.handoffs.lifecycle.forwarding import passed_on, started, too_high
from aof.core.handoffs.lifecycle.kinds import KINDS, URGENCY
from aof.core.handoffs.lifecycle.payload import assembled
from aof.core.handoffs.lifecycle.proposal import HandoffProposal, malformed, required
from aof.core.handoffs.lifecycle.steps import audited, initiated, rejected, step
from aof.core.model.commands import Decide, NeedsOf, ReportProgress
from aof.core.model.events import Draft
from aof.core.model.handoffs.ids import uuid4
from aof.core.model.handoffs.record import (
    MAX_LEVEL,
    Assessment,
    Handoff,
    HandoffContext,
    Rationale,
    ReturnProtocol,
    RoutingChoice,
    Validation,
)
from aof.core.model.org_chart import HUMAN
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.model.workflow import leases
from aof.core.org import rights
from aof.core.org.rights import is_person
from aof.core.runs.lease import authorize
from aof.core.tasks import authorship, graph

_replace = msgspec.structs.replace
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
        return _replace(base, heartbeats=places, file_locks=True, trees=frozenset({top}))

    def judge(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        """Everything is checked before anything is sent."""
        asked = self.proposal
        refusal = (
            malformed(asked, self.acting, task.id)
            or over(task)
            or graph.being_cancelled(task)
            or targets.unknown(records.policy, self.acting, *asked.to)
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
            carried = assembled(records, task, self.proposal, (self.acting, routed.to_agent), now)
            if isinstance(carried, AofError):
                return carried
            if not drafts:  # the same for every receiver
                drafts += carried.drafts
            told = msgspec.to_builtins(carried.history)
            told.pop("messages", None)
            whole = _replace(routed, context=carried.context, subtask=told.pop("subtask", None), history=told)
            drafts += self._opened(records, task, whole, held, now)
            if waiting is not None and whole.number == len(records.handoffs[task.id]) + 1:
                drafts += ownership.made_to_wait(waiting, whole, now)
        return tuple(drafts)

    def _going_on(self, handoff: Handoff, held: Handoff | None, now: int) -> Handoff:
        """An escalation that its receiver takes further up stays the matter of the agent that began it."""
        if held is None:
            return handoff
        said = Assessment(level=held.level, agent=self.acting, assessment=self.proposal.rationale, at=iso(now))
        return _replace(
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
        found = checks.check(records.policy, handoff.to_agent, handoff.validation, load_of(records), now)
        agent = checks.listed(records.policy, handoff.to_agent)
        full = checks.is_full(records.policy.org, agent, load_of(records))
        others = targets.alternatives(records.policy, handoff, load_of(records)) if full else ()
        free = any(not checks.unable(records.policy, handoff, one, load_of(records)) for one in others)
        why = "capability_mismatch" if found.capability == "none" else "at_capacity" if full and free else None
        if why is None or handoff.type in ("broadcast", "escalation"):
            yield from started(records, task, handoff, now)
        else:
            yield initiated(task, _replace(handoff, checks=found))
            told = f"{why}: lacks {', '.join(found.missing)}" if why == "capability_mismatch" else why
            notify = targets.orchestrator(records.policy, handoff)
            yield rejected(task, handoff, told, now, notify=notify, checks=found)
            yield from passed_on(records, task, _replace(handoff, state="rejected"), told, now)
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
                    required_capabilities=required(asked.capabilities), autonomy_budget=asked.autonomy_budget
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
        found = ownership.waiting_task(records, task, self.acting, asked.type) if wanted else None
        return None if found is None or found.gated else found

    def _routed(self, records: Records, handoff: Handoff) -> Handoff | AofError:
        """The handoff with the target that the orchestrator decides on; what was suggested stays on the record."""
        policy, suggested = records.policy, handoff.to_agent
        decided, why = suggested, ""
        if handoff.type == "escalation":
            decided, why = self._climbs(records, handoff)
        elif (agent := checks.listed(policy, suggested)) is not None and not agent.active:
            others = targets.alternatives(policy, handoff, load_of(records))
            decided, why = (others[0] if others else HUMAN), f"{suggested} is not active"
        if decided == suggested and (short := checks.too_little(policy, decided, handoff.validation, handoff.audit)):
            return short
        if decided == suggested:
            return handoff
        named = suggested if self.proposal.to else None
        choice = RoutingChoice(suggested=named, decided=decided, reason=why)
        return _replace(handoff, to_agent=decided, routing=choice)

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
        if given and targets.in_chain(policy, handoff.from_agent, suggested) and suggested not in handoff.tried:
            return suggested, ""
        asked = (handoff.from_agent, *handoff.tried)
        return targets.next_level(policy, handoff.from_agent, handoff, asked), "the escalation chain decides"

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
            rights.owns(task, agent) or authorship.did(task, agent) or (above is not None and rights.owns(above, agent))
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
        if self.detected or self.proposal.type != "sequential" or not ownership.holds(task, self.acting):
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
