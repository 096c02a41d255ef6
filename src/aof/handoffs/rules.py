"""What all commands about handoffs share: who may speak, who can take one, who owns the task, and the events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec

from aof.errors import (
    AofError,
    AtCapacity,
    BudgetTooSmall,
    Call,
    HandoffNotFound,
    InvalidTransition,
    NotAddressee,
)
from aof.handoffs.access import unlocked
from aof.handoffs.audit import Outcome, audited
from aof.handoffs.model import MAX_LEVEL, CapabilityMatch, Checks, Handoff, Return, Validation
from aof.kernel.commands import Claim, Decide, Decision, Needs, NeedsOf, OwnRule, Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.model import FINISHED, Policy, iso, status_allows
from aof.org import authorization
from aof.org import chart as org_chart
from aof.org import routing as org_routing
from aof.org.model import HUMAN, Agent, OrgChart
from aof.org.rights import entry_of, is_person
from aof.tasks import graph
from aof.tasks.model import Task
from aof.tasks.rules import close_run, dead_lettered, failure, to_blocked, transition
from aof.workflows.model import leases

_DETAIL = 500  # characters of a refusal that the log keeps
HANDED_OVER = "handed_over"
_OF_THE_EVENT = ("id", "timestamp", "rev")  # known when it is in the log
_OF_THE_MESSAGE = ("request", "depth", "sent_at")  # the event of an AOF/1 request has them beside the record


class HandoffCommand(OwnRule, frozen=True, kw_only=True):
    """A command about handoffs of one task."""

    operation: ClassVar[str] = ""

    def judge(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        """What the command does, or why it is refused."""
        raise NotImplementedError

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The task, its handoffs, the tasks above it, of which the topmost keeps the context, and everybody's load.

        The load decides whom to ask first. It is read without the locks of the agents, for it is looked at again under
        the lock when an agent accepts.
        """
        own = frozenset({self.task_id})
        chain = (self.task_id, *known.above.get(self.task_id, ()))
        waiting = frozenset(
            one.waiting_task_id for one in known.handoffs.get(self.task_id, ()) if one.waiting_task_id is not None
        )
        write = own | frozenset(chain[1:2]) | frozenset(chain[-1:]) | waiting
        chart = known.policy.org
        counted = () if chart is None else (org_routing.counted_agents(chart, agent) for agent in chart.agents)
        agents = frozenset[str]().union(*counted)
        return Needs(write=write, read=frozenset(chain) - write, handoffs=own, above=own, agents=agents)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """A refusal is an event too: whoever asks later finds out who tried what."""
        task = records.find(self.task_id)
        verdict = graph.missing(self.task_id) if task is None else self.judge(records, task, now, decide)
        return self.refused(verdict) if isinstance(verdict, AofError) else verdict

    def refused(self, refusal: AofError, *drafts: Draft) -> Decision:
        """The refusal, and what is recorded of it."""
        about = {"handoffId": name} if (name := getattr(self, "handoff_id", None)) is not None else {}
        call = refused_call(self.operation, self.task_id, self.acting, refusal, run=self.run, **about)
        return Decision(drafts=(*drafts, call), refusal=refusal)


def refused_call(
    operation: str, task_id: str, agent: str, refusal: AofError, run: str | None = None, **about: str
) -> Draft:
    """What is recorded of a call that was refused."""
    payload: dict[str, Any] = {"operation": operation, "agent": agent, "code": refusal.code}
    payload |= {"detail": refusal.message[:_DETAIL], **about}
    return Draft(type="handoff.refused", task_id=task_id, run_id=run, payload=payload)


class OnHandoff(HandoffCommand, frozen=True, kw_only=True):
    """A command about one handoff that there is."""

    handoff_id: str

    def judge(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        """Find the handoff, then ask the rule."""
        handoff = next((one for one in records.handoffs[task.id] if one.id == self.handoff_id), None)
        if handoff is None:
            what = f"there is no handoff {self.handoff_id[:80]!r}"
            return HandoffNotFound(what, "list what there is", Call("handoff_list", {}))
        return self.judge_one(records, task, handoff, now, decide)

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """What the command does to the handoff."""
        raise NotImplementedError

    def not_receiver(self, records: Records, handoff: Handoff) -> AofError | None:
        """Why the acting agent may not speak for the receiver; maintainers may, and any person for `human`."""
        policy, agent = records.policy, self.acting
        known = agent not in policy.only_said  # else the name is a maintainer's, and nobody has proven it
        if agent in policy.maintainers or (known and agent == handoff.to_agent):
            return None
        if handoff.to_agent == HUMAN and known and _is_human(records, agent):
            return None
        whom = "a person" if handoff.to_agent == HUMAN else handoff.to_agent
        return NotAddressee(
            f"handoff {handoff.id} is addressed to {whom}, not to {agent}",
            f"only {whom} may answer it, or a maintainer",
            Call("handoff_show", {"handoff_id": handoff.id}),
            agent=agent,
            addressee=handoff.to_agent,
        )

    def not_sender(self, records: Records, handoff: Handoff) -> AofError | None:
        """Why the acting agent may not speak for the sender."""
        policy, agent = records.policy, self.acting
        if agent in policy.maintainers or (agent == handoff.from_agent and agent not in policy.only_said):
            return None
        return NotAddressee(
            f"handoff {handoff.id} is from {handoff.from_agent}, not from {self.acting}",
            f"only {handoff.from_agent} may do that, or a maintainer",
            Call("handoff_show", {"handoff_id": handoff.id}),
            agent=self.acting,
        )

    def speaker(self, handoff: Handoff) -> str | None:
        """The one that answers, where that is another than the receiver."""
        return self.acting if self.acting != handoff.to_agent else None


def finished_refusal(task: Task) -> InvalidTransition | None:
    """The refusal to hand over a finished task."""
    if task.status not in FINISHED:
        return None
    return InvalidTransition(
        f"{task.id} is {task.status}; only an unfinished task can be handed to somebody",
        "retry it first, or create another one",
        Call("retry", {"task_id": task.id, "reason": "…"}),
        status=task.status,
    )


def _is_human(records: Records, name: str) -> bool:
    chart, maintainers = records.policy.org, records.policy.maintainers
    if chart is None:
        return not records.policy.has_maintainers or name in maintainers
    listed = chart.by_id.get(name)
    return is_person(chart, name, maintainers) or (listed is not None and listed.runner.kind == "human")


def load_of(records: Records) -> dict[str, int]:
    """How many tasks each agent holds whose load is counted."""
    return {agent: len(held) for agent, held in records.held.items()}


def listed_agent(policy: Policy, name: str) -> Agent | None:
    """What the chart says of an agent; None where it says nothing, so that nothing is checked."""
    chart = policy.org
    if chart is None or not chart.declared or name not in chart.by_id:
        return None
    return entry_of(chart, name, policy.maintainers)


def capability_match(agent: Agent | None, validation: Validation) -> tuple[CapabilityMatch, tuple[str, ...]]:
    """How far the agent has what is required, and what it lacks."""
    wanted = validation.wanted
    if agent is None or not wanted:
        return "full", ()
    missing = org_routing.lacking(agent.skills, wanted)
    if not missing:
        return "full", ()
    return ("none" if len(missing) == len(wanted) else "partial"), missing


def is_full(records: Records, name: str) -> bool:
    """Whether the agent is at its limit, or its team is."""
    chart, agent = records.policy.org, listed_agent(records.policy, name)
    if chart is None or agent is None:
        return False
    return org_routing.capacity_refusal(chart, agent, load_of(records)) is not None


def check_receiver(records: Records, handoff: Handoff, now: int) -> Checks:
    """The capabilities of the receiver, and its load against its limit, as the record keeps them."""
    agent = listed_agent(records.policy, handoff.to_agent)
    matched, missing = capability_match(agent, handoff.validation)
    limit = agent.concurrency if agent is not None else None
    held = load_of(records).get(handoff.to_agent) if limit is not None else None
    return Checks(capability=matched, missing=missing, load=held, limit=limit, at=iso(now))


def autonomy_refusal(policy: Policy, handoff: Handoff, name: str) -> BudgetTooSmall | None:
    """The refusal of an agent whose autonomy does not suffice for the handoff; None when it does."""
    level, risk = handoff.validation.autonomy_budget, handoff.audit.risk_level
    return org_routing.may_take(policy.org, name, level=level, risk=risk)


def could_take(records: Records, handoff: Handoff, name: str) -> bool:
    """Whether the agent could take the handoff now, whatever it says itself."""
    agent = listed_agent(records.policy, name)
    return agent is None or (
        agent.active
        and autonomy_refusal(records.policy, handoff, name) is None
        and capability_match(agent, handoff.validation)[0] != "none"
        and not is_full(records, name)
    )


def unknown_target(policy: Policy, *names: str) -> AofError | None:
    """The refusal of the first name that the chart does not list and that is no person's either."""
    chart = policy.org
    if chart is None or not chart.declared:
        return None
    strangers = (one for one in names if one != HUMAN and not is_person(chart, one, policy.maintainers))
    return next((refusal for one in strangers if (refusal := authorization.unknown_names(chart, {"agent": one}))), None)


def orchestrator(policy: Policy, handoff: Handoff) -> str:
    """Who decides where the work goes: the orchestrator of the sender's team, else its lead, else the sender itself."""
    chart = policy.org
    sender = chart.by_id.get(handoff.from_agent) if chart is not None else None
    team = chart.teams_by_id.get(sender.team or "") if chart is not None and sender is not None else None
    return (team.orchestrator or team.lead or handoff.from_agent) if team is not None else handoff.from_agent


def alternatives(records: Records, handoff: Handoff) -> tuple[str, ...]:
    """The agents that could take the handoff instead, the least busy first; those at their limit come last.

    They have all that is required. Where nothing is, they share a role or a capability with the first target.
    """
    chart, load = records.policy.org, load_of(records)
    if chart is None or not chart.declared:
        return ()
    asked = {handoff.from_agent, handoff.to_agent, *handoff.tried}
    able = [agent.id for agent in chart.agents if agent.id not in asked and _able(chart, handoff, agent.id)]
    busy = {name: org_routing.capacity_refusal(chart, chart.by_id[name], load) is not None for name in able}
    return tuple(sorted(able, key=lambda name: (busy[name], load.get(name, 0))))


def _able(chart: OrgChart, handoff: Handoff, name: str) -> bool:
    agent, wanted = chart.by_id[name], handoff.validation.wanted
    if not agent.active or agent.runner.kind == HUMAN or not _trusted(agent, handoff):
        return False
    if wanted:
        return not org_routing.lacking(chart.skills[name], wanted)
    first = (*handoff.tried, handoff.to_agent)[0]
    kinds = chart.roles_of.get(first, frozenset()) | set(chart.skills.get(first, ()))
    return not kinds or bool(kinds & (chart.roles_of[name] | set(chart.skills[name])))


def next_level(policy: Policy, origin: str, handoff: Handoff, taken: tuple[str, ...]) -> str:
    """The agent to escalate to: the next one of the chain from the handoff's origin, a person at its end."""
    chart = policy.org
    if chart is None or not chart.declared or handoff.level >= MAX_LEVEL:
        return HUMAN
    chain = [one for one in org_chart.escalation_chain(chart, origin) if one == HUMAN or one not in taken]
    return next((one for one in chain if one == HUMAN or _trusted(chart.by_id[one], handoff)), HUMAN)


def _trusted(agent: Agent, handoff: Handoff) -> bool:
    level, risk = handoff.validation.autonomy_budget, handoff.audit.risk_level
    return org_routing.too_little(agent, level=level, risk=risk) is None


def in_chain(policy: Policy, origin: str, suggested: str) -> bool:
    """Whether a suggested target is one that the origin may escalate to: without a chain, anybody is."""
    chart = policy.org
    if chart is None or not chart.declared:
        return True
    chain = org_chart.escalation_chain(chart, origin)
    return suggested == HUMAN or suggested in chain or chain in ((), (HUMAN,))


def runs_task(task: Task | None, agent: str) -> bool:
    """Whether the agent runs the task, or a hop of it."""
    return task is not None and any(lease.agent == agent for lease in leases(task))


def made_to_wait(task: Task, handoff: Handoff, now: int) -> tuple[Draft, ...]:
    """The events that end the sender's run and block its task until the return; a group blocks it as one.

    When the return comes, the block is recognised by the ID in its reason.
    """
    if handoff.broadcast_group_id is not None:
        reason = f"waits for the returns of broadcast {handoff.waiting_for}"
    else:
        reason = f"waits for the return of handoff {handoff.waiting_for} from {handoff.to_agent}"
    closed = close_run(task, now, status="released", code="waits_for_handoff", message=reason)
    return (*closed, to_blocked(task, now, kind="waiting_input", reason=reason, by=handoff.from_agent))


def blocked(task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """The events that block the task, where its status allows that."""
    if not status_allows(task.status, "blocked"):
        return ()
    closed = close_run(task, now, status="cancelled", code="blocked", message=reason)
    return (*closed, to_blocked(task, now, kind="blocked", reason=reason, by=handoff.to_agent))


def subtask_failed(records: Records, task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """The events that fail a delegated subtask whose result did not come; none for the sender's own task."""
    subtask = handoff.type == "delegation" and task.parent_id is not None and not runs_task(task, handoff.from_agent)
    if not subtask or task.gated or not status_allows(task.status, "deadletter"):
        return ()
    what: dict[str, Any] = {"code": "handoff_timeout", "message": reason, "cause": "timed_out"}
    closed = close_run(task, now, status="failed", **what)
    return (*closed, *dead_lettered(records, task, now, reason=reason, error=failure(task, now, **what)))


def sender_resumed(records: Records, handoff: Handoff) -> tuple[Draft, ...]:
    """The events that make the sender's blocked task ready again; none where it is blocked for another reason."""
    if handoff.waiting_task_id is None or handoff.waiting_for is None:
        return ()
    task = records.find(handoff.waiting_task_id)
    if task is None or task.blocked is None or handoff.waiting_for not in task.blocked.reason:
        return ()
    changed = owner_changed(task, routing=_routed(task, handoff.from_agent))
    return (*changed, transition(task, "ready", reason=f"handoff {handoff.id} is over"))


def owner_changed(task: Task, *, owner: str | None = None, routing: dict[str, Any] | None = None) -> tuple[Draft, ...]:
    """The event that gives the task another owner or another agent; none where nothing changes."""
    changes: dict[str, Any] = {}
    if owner is not None and owner != task.owner:
        changes["owner"] = owner
    if routing is not None and routing != msgspec.to_builtins(task.routing):
        changes["routing"] = routing
    if not changes:
        return ()
    payload = {"changes": changes, "fields": sorted(changes)}
    return (Draft(type="task.updated", task_id=task.id, payload=payload),)


def _routed(task: Task, agent: str) -> dict[str, Any]:
    """The routing with this agent; where the task is in no one's hands but a person's, it names nobody."""
    kept = {name: value for name, value in msgspec.to_builtins(task.routing).items() if name != "agent"}
    return kept if agent == HUMAN else kept | {"agent": agent}


def ownership_taken(  # noqa: PLR0917 - all that a claim needs
    records: Records, task: Task, handoff: Handoff, now: int, decide: Decide, claim: Claim | None
) -> Verdict:
    """What acceptance does to the task, by the handoff's type; without a claim it waits to be begun."""
    receiver = handoff.to_agent
    if handoff.type == "escalation":
        return Decision(drafts=owner_changed(task, owner=receiver))
    if handoff.type == "delegation" and not runs_task(task, handoff.from_agent) and not task.gated:
        return Decision(drafts=owner_changed(task, routing=_routed(task, receiver)))
    if handoff.type == "sequential":
        return _moved(records, task, receiver, now, decide, claim)
    return Decision()


def _moved(  # noqa: PLR0917 - as above
    records: Records, task: Task, receiver: str, now: int, decide: Decide, claim: Claim | None
) -> Verdict:
    """Responsibility moves whole: owner, routing, and the lease under a new epoch where the task can be run."""
    if task.gated or task.status in ("blocked", "backlog", *FINISHED) or receiver == HUMAN:
        return Decision(
            drafts=owner_changed(task, owner=receiver, routing=None if task.gated else _routed(task, receiver))
        )
    drafts = (*owner_changed(task, owner=receiver, routing=_routed(task, receiver)),)
    if task.status != "ready":
        closed = close_run(task, now, status="released", code=HANDED_OVER)
        drafts = (*closed, *drafts, transition(task, "ready", reason="handed over"))
    if claim is None:
        return Decision(drafts=drafts)
    routing = msgspec.structs.replace(task.routing, agent=receiver)
    free = msgspec.structs.replace(task, status="ready", lease=None, routing=routing, owner=receiver, handoffs=())
    loaded = msgspec.structs.replace(records, tasks=records.tasks | {task.id: free})
    verdict = decide(loaded, claim, now)
    if isinstance(verdict, AtCapacity):
        return verdict
    if isinstance(verdict, AofError):  # it is the receiver's, and runs as soon as whatever it waits for is there
        return Decision(drafts=drafts)
    return msgspec.structs.replace(verdict, drafts=(*drafts, *verdict.drafts))


def step(kind: str, handoff: Handoff, record: dict[str, Any] | None = None, /, **payload: Any) -> Draft:
    """An event about a handoff; with the audit record of the step, where it is one."""
    whole = {"handoffId": handoff.id, **payload} | ({"audit": record} if record is not None else {})
    return Draft(type=kind, task_id=handoff.task_id, payload=whole)


def record_of(handoff: Handoff) -> dict[str, Any]:
    """The record as the event that begins it carries it."""
    whole: dict[str, Any] = msgspec.to_builtins(handoff)
    return {name: value for name, value in whole.items() if name not in (*_OF_THE_EVENT, *_OF_THE_MESSAGE)}


def initiated(task: Task, handoff: Handoff) -> Draft:
    """A handoff is on its way to its receiver."""
    return step("handoff.initiated", handoff, audited("initiated", task, handoff), handoff=record_of(handoff))


def rejected(
    task: Task,
    handoff: Handoff,
    reason: str,
    now: int,
    *,
    notify: str | None = None,
    by: str | None = None,
    checks: Checks | None = None,
) -> Draft:
    """The receiver does not take it, or cannot; `notify` is who should hear of it."""
    answer = {"status": "rejected", "reason": reason} | ({"by": by} if by is not None else {})
    record = audited("rejected", task, handoff, reason=reason, resolved=now)
    more: dict[str, Any] = {"checks": msgspec.to_builtins(checks)} if checks is not None else {}
    more |= {"reason": reason} | ({"notify": notify} if notify is not None else {})
    return step("handoff.rejected", handoff, record, acceptance=answer, **more)


def capability_gap(handoff: Handoff, missing: tuple[str, ...]) -> Draft:
    """The event that notes required capabilities which the receiver lacks; the handoff goes on."""
    message = f"{handoff.to_agent} lacks {', '.join(missing)}"
    return step("handoff.warning", handoff, code="capability_gap", message=message, missing=list(missing))


def ended(
    task: Task,
    handoff: Handoff,
    outcome: Outcome,
    now: int,
    *,
    reason: str | None = None,
    returned: Return | None = None,
    remarks: Iterable[str] = (),
    **payload: Any,
) -> tuple[Draft, ...]:
    """The handoff is over: its closing record, and that everything it held is free.

    The receiver's file locks end with it; where the task has passed to the receiver, they are its run's.
    """
    good = outcome != "failed"
    tokens = returned.audit.tokens_consumed if returned is not None else None
    notes = "; ".join(filter(None, [returned.audit.notes if returned is not None else "", *remarks])) or None
    record = audited(
        "completed" if good else "failed",
        task,
        handoff,
        reason=reason,
        resolved=now,
        tokens=tokens,
        outcome=outcome,
        notes=notes,
    )
    if reason is not None:
        payload["closed_reason"] = reason
    closing = step(f"handoff.{'completed' if good else 'failed'}", handoff, record, outcome=outcome, **payload)
    locks = tuple(lock for lock in task.locks if lock.agent == handoff.to_agent and handoff.type != "sequential")
    runs = dict.fromkeys(lock.run_id for lock in locks)
    freed = (unlocked(task, tuple(lock for lock in locks if lock.run_id == run), "handoff_over") for run in runs)
    return (closing, *freed, step("handoff.released", handoff))
