"""Operations about handoffs and their audit records: begin, answer, return, pass on, look up.

Must not know which store or surface is in use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Annotated, Any, Self, get_args

import msgspec
from msgspec import UNSET, UnsetType

from aof.errors import (
    AmbiguousId,
    AofError,
    Call,
    HandoffNotFound,
    InvalidInput,
    LogDamaged,
    StorageFailed,
    Unavailable,
)
from aof.handoffs import answers, delegation, initiation, model
from aof.handoffs.answers import Group
from aof.handoffs.audit import SHORTEST_MS, AuditRecord, kept_until
from aof.handoffs.model import Aggregation, ContentType, Handoff, HandoffType, OnTimeout, ReturnStatus, by_age
from aof.handoffs.payload import HandoffProposal, TransferMode
from aof.handoffs.rules import refused_call
from aof.kernel import limits as kernel_limits
from aof.kernel.declarations import IN_PYTHON, OBJECTS, TEXTS_OR_OBJECTS, Cursor, ExpectedRev, Reason, Run, param
from aof.kernel.dispatcher import struct_from
from aof.kernel.model import day, is_task_id
from aof.kernel.operation import Extra, Family, Spelling, method, operation
from aof.kernel.results import Result, without_secret
from aof.messages import service as messages_service
from aof.org.model import HUMAN, Risk
from aof.queries import read_models
from aof.store import port
from aof.store.directory import AuditProblem, AuditQuery, Expired
from aof.store.lists import DictAnswer, Query
from aof.store.port import Scope, Store
from aof.tasks.model import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.api.fabric import Fabric
    from aof.handoffs.rules import OnHandoff
    from aof.kernel.context import CallContext, Environment
    from aof.kernel.unit_of_work import Done
    from aof.store.directory import Expires
    from aof.store.port import Store


class StartedHandoff(Result, frozen=True, kw_only=True):
    """A handoff that is on its way: `state` is where it stands, `forwardedTo` the record that took its place at once.

    A broadcast has one handoff for each receiver, and one ID for all of them.
    """

    handoff_id: str
    state: str
    task_id: str
    to_agent: str
    forwarded_to: str | UnsetType = UNSET
    broadcast_group_id: str | UnsetType = UNSET
    handoff_ids: tuple[str, ...] | UnsetType = UNSET
    warnings: tuple[str, ...] | UnsetType = UNSET


class TakenHandoff(Result, frozen=True, kw_only=True):
    """A handoff that was accepted, and the run that this began: the secret proves it, and can be read only here."""

    handoff: Handoff
    run_id: str | UnsetType = UNSET
    epoch: int | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    secret: str | UnsetType = UNSET

    __repr__ = without_secret

    def flat(self) -> dict[str, Any]:
        """The handoff with the run beside its own keys, as other surfaces show it."""
        run = {name: value for name, value in msgspec.to_builtins(self).items() if name != "handoff"}
        shown: dict[str, Any] = msgspec.to_builtins(self.handoff)
        return shown | run


class Handoffs(tuple[Handoff, ...]):  # noqa: SLOT001 - a tuple of any length has none
    """A page of handoffs, which knows how many match in all and where the next page begins."""

    total: int
    next_cursor: str | None

    def __new__(cls, page: tuple[Handoff, ...], *, total: int, next_cursor: str | None) -> Self:
        """The page."""
        made = super().__new__(cls, page)
        made.total, made.next_cursor = total, next_cursor
        return made

    def as_list(self) -> HandoffList:
        """The page as other surfaces show it."""
        return HandoffList(total=self.total, handoffs=tuple(self), next_cursor=self.next_cursor or UNSET)

    def to_dict(self) -> dict[str, Any]:
        """The page as plain data."""
        return self.as_list().to_dict()


class HandoffChain(DictAnswer):
    """The handoffs of a task, and the diagram that shows them."""

    __slots__ = ()

    @property
    def task_id(self) -> str:
        """The task's ID."""
        return str(self["taskId"])

    @property
    def handoffs(self) -> list[str]:
        """The IDs of the handoffs."""
        handoffs: list[str] = self["handoffs"]
        return handoffs

    @property
    def text(self) -> str:
        """The sequence diagram in Mermaid."""
        return str(self["text"])


Agent = Annotated[str, param("who acts: the addressee, or the sender where that is asked for")]
Estimate = Annotated[
    str, param("when it will be done, as 2026-02-21T12:00:00Z", Spelling(option="--estimate", metavar="TIME"))
]


class HandoffList(Result, frozen=True, kw_only=True):
    """Handoffs, oldest first, how many match in all, and the cursor of the next page where there is one."""

    total: int
    handoffs: tuple[Handoff, ...]
    next_cursor: str | UnsetType = UNSET


def _accept(fabric: Fabric, values: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = fabric.handoff_accept(**values).flat()
    return flat


def _list(fabric: Fabric, values: dict[str, Any]) -> HandoffList:
    return fabric.handoff_list(**values).as_list()


_FAMILY = Family(
    verb="handoff",
    help="hand work over, answer a handoff, or see what became of one",
    example="aof handoff new --type delegation --from ada --to bob --task 001 --reason 'needs a test' --timeout 30m",
    place="the handoff's ID or its beginning (with group: the broadcast's; with chain: a task)",
    section="team",
    order=30,
)
_handoff = partial(operation, family=_FAMILY, tier="handoff")
_answer = partial(_handoff, effect="write", acts="agent")
HandoffId = Annotated[str, param("handoff ID, or the beginning of it", Spelling(place="ID"))]
_NO_WAIT = Extra(option="--no-wait", help="go on without waiting for the answer to an escalation")


@_handoff(
    effect="write",
    example="aof handoff new --type delegation --from ada --to bob --task 001 --reason 'needs a test' --timeout 30m",
    extra=(_NO_WAIT,),
    acts="from_agent",
    tool_shows=(
        *("type", "task_id", "to", "reason", "rationale", "timeout", "on_timeout", "aggregation", "wait"),
        *("summary", "variables", "run", "actor"),
    ),
    tool_example=(("type", "delegation"), ("to", ("bob",)), ("reason", "needs a test"), ("timeout", "30m")),
    shows_defaults=("to",),
)
def handoff_new(
    context: CallContext,
    *,
    type: Annotated[HandoffType, param("how control passes")],  # noqa: A002 - the name of the field
    task_id: Annotated[str, param("task that is handed over", Spelling(option="--task", metavar="ID", target="task"))],
    reason: Reason,
    from_agent: Annotated[str, param("sender", Spelling(option="--from", metavar="A"))] | None = None,
    to: Annotated[
        Sequence[str], param("receiver; several for a broadcast", Spelling(metavar="B", note="(with commas)"))
    ] = (),
    rationale: Annotated[str, param("why this decision was made; an escalation needs it")] = "",
    risk: Annotated[Risk, param("how risky the work is")] = "low",
    timeout: Annotated[
        str,
        param(
            "how long to wait for the result, as 30m; a number counts seconds; "
            "default of a delegation: handoff.defaultTimeout in aof.toml",
            Spelling(metavar="S"),
        ),
    ]
    | Annotated[float, IN_PYTHON]
    | None = None,
    on_timeout: Annotated[OnTimeout, param("what happens when no result comes in time")] = "retry",
    capabilities: Annotated[
        Sequence[Any],
        param(
            "required capability, as NAME or NAME:0.8 for a least proficiency",
            Spelling(option="--capability", metavar="C"),
            says=TEXTS_OR_OBJECTS,
        ),
    ] = (),
    autonomy_budget: Annotated[int, param("autonomy level that the work needs", Spelling(option="--level"), ge=0, le=3)]
    | None = None,
    aggregation: Annotated[Aggregation, param("when a broadcast has succeeded")] | None = None,
    no_return: Annotated[Sequence[str], param("receiver of a broadcast that owes no return")] = (),
    wait: Annotated[bool, param("hold the sender's own task until the return")] | None = None,
    segment_complete: Annotated[bool, param("the sender's part of the task is complete")] = False,
    history: Annotated[
        Sequence[Any], param("message of the conversation so far", Spelling(metavar="JSON"), says=OBJECTS)
    ] = (),
    transfer_mode: Annotated[TransferMode, param("how much of the conversation goes along")] | None = None,
    max_messages: Annotated[int, param("at most so many messages", ge=0)] | None = None,
    include: Annotated[
        dict[str, bool],
        param(
            "kind of messages: system_messages, tool_calls, tool_results, agent_reasoning",
            Spelling(metavar="K=JSON"),
        ),
    ]
    | None = None,
    summary: Annotated[str, param("summary of the conversation")] | None = None,
    coordinate: Annotated[bool, param("receivers of a broadcast see what the others bring back")] = False,
    variables: Annotated[dict[str, Any], param("context variable", Spelling(option="--var", metavar="K=JSON"))]
    | None = None,
    artifacts: Annotated[
        Sequence[Any],
        param("reference to an artifact", Spelling(option="--artifact", metavar="JSON"), says=TEXTS_OR_OBJECTS),
    ] = (),
    budget: Annotated[float, param("how much the work may use")] | None = None,
    deadline: Annotated[str, param("when it must be done, as 2026-02-21T12:00:00Z", Spelling(metavar="TIME"))]
    | None = None,
    run: Run | None = None,
    actor: str | None = None,
    expect_rev: ExpectedRev | None = None,
) -> StartedHandoff:
    """Hand a task over, once the receiver accepts: for good, for a result, to several at once, or up the chain."""
    transfer = {"transfer_mode": transfer_mode, "max_messages": max_messages, "include": include, "summary": summary}
    proposal = {
        "type": type,
        "to": list(to),
        "reason": reason,
        "rationale": rationale,
        "risk": risk,
        "timeout": _duration(timeout),
        "on_timeout": on_timeout,
        "capabilities": list(capabilities),
        "autonomy_budget": autonomy_budget,
        "aggregation": aggregation,
        "no_return": list(no_return),
        "wait": wait,
        "segment_complete": segment_complete,
        "history": list(history),
        "transfer": {name: value for name, value in transfer.items() if value is not None},
        "coordinate": coordinate,
        "variables": variables or {},
        "artifacts": list(artifacts),
        "budget": budget,
        "deadline": deadline,
    }
    with _refusals_recorded(context, initiation.Initiate.operation, task_id, from_agent or actor):
        _choose(proposal | {"transfer_mode": transfer_mode})
        context.environment.lookup.resolve(task_id)
    asked = struct_from(HandoffProposal, proposal)
    # Who has done something here, or has a host that answers; asked before the commit, for failing must not hide it.
    chart = context.environment.chart.readable()
    hosted = {one.id for one in chart.agents if one.runner.kind != "pull"} if chart is not None else set()
    known = hosted | {HUMAN, *context.environment.store.last_seen()}
    done = context.dispatcher.on_task(
        initiation.Initiate, task_id, run=run, actor=actor, agent=from_agent, proposal=asked, expect_rev=expect_rev
    )
    begun = [event.payload["handoffId"] for event in done.events if event.type == "handoff.initiated"]
    assert done.task is not None
    records = {one.id: one for one in context.environment.store.handoffs((done.task,))}
    made = [records[name] for name in begun if records[name].forwarded_from is None] or [records[begun[0]]]
    first, group = made[0], made[0].broadcast_group_id
    warnings = (*(warning for one in made for warning in one.warnings), *_unseen(made, known))
    return StartedHandoff(
        handoff_id=first.id,
        state=first.state,
        task_id=first.task_id,
        to_agent=first.to_agent,
        forwarded_to=first.forwarded_to or msgspec.UNSET,
        broadcast_group_id=group or msgspec.UNSET,
        handoff_ids=tuple(one.id for one in made) if group else msgspec.UNSET,
        warnings=warnings or msgspec.UNSET,
    )


def _unseen(begun: Sequence[Handoff], known: Collection[str]) -> list[str]:
    """A warning of receivers that have to answer by themselves and have done nothing here so far."""
    asked = dict.fromkeys(one.to_agent for one in begun if one.state in model.UNANSWERED)
    unseen = [name for name in asked if name not in known]
    has = "has" if len(unseen) == 1 else "have"
    return [f"{', '.join(unseen)} {has} not been seen yet, and {has} to accept"] if unseen else []


@_answer(
    example="aof handoff accept 3f2a --agent bob",
    worker=True,
    tool_shows=("handoff_id", "agent", "actor"),
    over_wire=_accept,
)
def handoff_accept(
    context: CallContext,
    handoff_id: HandoffId,
    *,
    agent: Agent | None = None,
    reason: Reason | None = None,
    estimated_completion: Estimate | None = None,
    actor: str | None = None,
) -> TakenHandoff:
    """Take a handoff on; a task that passes to the receiver begins its run."""
    given = {"reason": reason, "estimated_completion": estimated_completion}
    handoff, done = _on_handoff(context, answers.Accept, handoff_id, agent=agent, actor=actor, **given)
    begun = next((event for event in done.events if event.type == "task.attempt.started"), None)
    if begun is None:
        return TakenHandoff(handoff=handoff)
    return TakenHandoff(
        handoff=handoff,
        run_id=str(begun.run_id),
        epoch=begun.payload["epoch"],
        expires_at=begun.payload["expiresAt"],
        secret=done.secret if done.secret is not None else msgspec.UNSET,
    )


@_answer(example="aof handoff reject 3f2a --agent bob --reason 'no time'")
def handoff_reject(
    context: CallContext, handoff_id: HandoffId, reason: Reason, *, agent: Agent | None = None, actor: str | None = None
) -> Handoff:
    """Turn a handoff down; another agent is asked, or a person."""
    return _on_handoff(context, answers.RejectHandoff, handoff_id, agent=agent, actor=actor, reason=reason)[0]


@_answer(example="aof handoff defer 3f2a --agent bob --reason 'after lunch'")
def handoff_defer(
    context: CallContext,
    handoff_id: HandoffId,
    reason: Reason,
    *,
    agent: Agent | None = None,
    estimated_completion: Estimate | None = None,
    actor: str | None = None,
) -> Handoff:
    """Acknowledge a handoff and put the answer off."""
    given = {"reason": reason, "estimated_completion": estimated_completion}
    return _on_handoff(context, answers.Defer, handoff_id, agent=agent, actor=actor, **given)[0]


@_answer(
    example="aof handoff return 3f2a --agent bob --status success --result '\"done\"'",
    worker=True,
    tool_shows=("handoff_id", "status", "result", "artifacts_produced", "notes", "agent", "actor"),
    tool_example=(("result", "12 tests pass"),),
)
def handoff_return(
    context: CallContext,
    handoff_id: HandoffId,
    *,
    status: Annotated[ReturnStatus, param("how the work ended")],
    agent: Agent | None = None,
    result: Annotated[Any, param("result: text, or any JSON", Spelling(metavar="JSON"))] | None = None,
    content_type: Annotated[ContentType, param("what the result is")] | None = None,
    to_agent: Annotated[str, param("sender that it goes to", Spelling(option="--to", target="to"))] | None = None,
    variables_changed: Annotated[
        dict[str, Any],
        param("changed context variable", Spelling(option="--var", metavar="K=JSON", target="variables")),
    ]
    | None = None,
    artifacts_produced: Annotated[
        Sequence[Any],
        param(
            "artifact that was made",
            Spelling(option="--artifact", metavar="JSON", target="artifacts"),
            says=TEXTS_OR_OBJECTS,
        ),
    ] = (),
    tokens_consumed: Annotated[int, param("tokens that it took", Spelling(option="--tokens"), ge=0)] | None = None,
    notes: Annotated[str, param("remarks for the sender")] = "",
    actor: str | None = None,
) -> Handoff:
    """Bring back the result of an accepted handoff."""
    given = {
        "status": status,
        "result": result,
        "content_type": content_type,
        "to_agent": to_agent,
        "variables_changed": variables_changed or {},
        "artifacts_produced": list(artifacts_produced),
        "tokens_consumed": tokens_consumed,
        "notes": notes,
    }
    return _on_handoff(context, answers.ReturnResult, handoff_id, agent=agent, actor=actor, **given)[0]


@_answer(example="aof handoff answer 3f2a --text 'use the old format'")
def handoff_answer(
    context: CallContext,
    handoff_id: HandoffId,
    text: Annotated[str, param("the answer", Spelling(stdin=True))],
    *,
    status: Annotated[ReturnStatus, param("how the work ended")] = "success",
    agent: Agent | None = None,
    actor: str | None = None,
) -> Handoff:
    """Answer a handoff as a person: take it on and answer in one step."""
    given = {"text": text, "status": status}
    return _on_handoff(context, answers.AnswerHandoff, handoff_id, agent=agent, actor=actor, **given)[0]


@_answer(example="aof handoff escalate 3f2a --agent bob --rationale 'touches billing'")
def handoff_escalate(
    context: CallContext,
    handoff_id: HandoffId,
    rationale: Annotated[str, param("one's own assessment of the matter")],
    *,
    to_agent: Annotated[str, param("suggested target", Spelling(option="--to", target="to"))] | None = None,
    agent: Agent | None = None,
    actor: str | None = None,
) -> Handoff:
    """Pass an escalation on to the next level, with an assessment.

    Answers with the new handoff.
    """
    given = {"rationale": rationale, "to_agent": to_agent}
    old = _on_handoff(context, initiation.Escalate, handoff_id, agent=agent, actor=actor, **given)[0]
    return handoff_show(context, old.forwarded_to or old.id)


@_answer(example="aof handoff reroute 3f2a --agent orc --to cem --reason 'bob is away'")
def handoff_reroute(
    context: CallContext,
    handoff_id: HandoffId,
    reason: Reason,
    *,
    agent: Agent | None = None,
    to_agent: Annotated[str, param("agent to ask instead; else routing chooses", Spelling(option="--to", target="to"))]
    | None = None,
    actor: str | None = None,
) -> Handoff:
    """Send an unanswered handoff to another agent; the orchestrator decides.

    Without a name, routing chooses. Answers with the new handoff.
    """
    given = {"reason": reason, "to_agent": to_agent}
    old = _on_handoff(context, initiation.Reroute, handoff_id, agent=agent, actor=actor, **given)[0]
    return handoff_show(context, old.forwarded_to or old.id)


@_answer(example="aof handoff withdraw 3f2a --agent ada --reason 'not needed any more'")
def handoff_withdraw(
    context: CallContext, handoff_id: HandoffId, reason: Reason, *, agent: Agent | None = None, actor: str | None = None
) -> Handoff:
    """Take back a handoff that is not over."""
    return _on_handoff(context, answers.Withdraw, handoff_id, agent=agent, actor=actor, reason=reason)[0]


@_answer(example="aof handoff resend 3f2a --agent ada")
def handoff_resend(
    context: CallContext,
    handoff_id: HandoffId,
    reason: Reason | None = None,
    *,
    agent: Agent | None = None,
    actor: str | None = None,
) -> Handoff:
    """Send a handoff to the same agent again."""
    return _on_handoff(context, answers.Resend, handoff_id, agent=agent, actor=actor, reason=reason)[0]


@_handoff(effect="read", example="aof handoff show 3f2a")
def handoff_show(context: CallContext, handoff_id: HandoffId) -> Handoff:
    """One handoff."""
    return found_handoff(context.environment.store, handoff_id)


@_handoff(effect="read", example="aof handoff list --to swe-qa", worker=True, over_wire=_list)
def handoff_list(
    context: CallContext,
    *,
    task: Annotated[str, param("only of this task, as child or as parent", Spelling(metavar="ID"))] | None = None,
    from_agent: Annotated[str, param("only from this agent", Spelling(option="--from", metavar="A"))] | None = None,
    to_agent: Annotated[str, param("only to this agent", Spelling(option="--to", metavar="A", target="to"))]
    | None = None,
    state: Annotated[str, param("only in this state; `open` for all that are not over")] | None = None,
    limit: Annotated[int, param("at most this many", ge=0)] | None = None,
    cursor: Cursor | None = None,
) -> Handoffs:
    """Handoffs of a task, from or to an agent.

    The state `open` stands for every one that something is still to come of.
    """
    task_id = context.environment.lookup.resolve(task) if task is not None else None
    found = tuple(
        handoff
        for handoff in context.environment.store.handoffs()
        if task_id in (None, handoff.task_id, handoff.parent_task_id)
        and from_agent in (None, handoff.from_agent)
        and to_agent in (None, handoff.to_agent)
        and (state in (None, handoff.state) or (state == "open" and handoff.is_open))
    )
    page, following = read_models.paged("handoff_list", found, _place, limit=limit, cursor=cursor)
    return Handoffs(page, total=len(found), next_cursor=following)


@method
def handoff_inbox(context: CallContext, agent: str) -> tuple[Handoff, ...]:
    """The open handoffs that are addressed to an agent, oldest first; a person's are those to `human`, too."""
    store = context.environment.store
    handed = store.find(Query(open_handoffs=True)).tasks
    person = agent in context.environment.policy.maintainers
    names = (agent, HUMAN) if person else (agent,)
    return tuple(one for one in store.handoffs(handed) if one.is_open and one.to_agent in names)


@_handoff(effect="read", example="aof handoff group 3f2a")
def handoff_group(
    context: CallContext,
    group_id: Annotated[
        str, param("broadcast group, or one of its handoffs", Spelling(place="GROUP", target="handoff_id"))
    ],
) -> Group:
    """What the returns of a broadcast come to.

    Any of its handoffs stands for it too.
    """
    every = context.environment.store.handoffs()
    part = group_id.strip().lower()
    found = [one for one in every if (one.broadcast_group_id or "").startswith(part) and one.broadcast_group_id]
    if not part or len({one.broadcast_group_id for one in found}) != 1:
        member = handoff_show(context, group_id)
        found = [one for one in every if one.broadcast_group_id == member.broadcast_group_id]
        if member.broadcast_group_id is None:
            raise missing_handoff(group_id)
    return answers.aggregated(found)


@_handoff(effect="read", example="aof handoff chain 001")
def handoff_chain(
    context: CallContext,
    task_id: Annotated[str, param("task ID or a unique part of it", Spelling(place="TASK", target="handoff_id"))],
) -> HandoffChain:
    """The handoffs of a task as a sequence diagram in Mermaid."""
    full = context.environment.lookup.resolve(task_id)
    handoffs = handoff_list(context, task=full)
    return HandoffChain({"taskId": full, "handoffs": [one.id for one in handoffs], "text": mermaid(handoffs)})


@contextmanager
def _refusals_recorded(context: CallContext, operation: str, task_id: str, agent: str | None) -> Iterator[None]:
    """Record why there is no command at all; what a command refuses, it records itself."""
    try:
        yield
    except AofError as refusal:
        here, actor = context.environment, context.actor
        draft = refused_call(operation, task_id if is_task_id(task_id) else "", agent or actor, refusal)
        messages_service.record_remark(here.store, here.clock, draft, actor)
        raise


def _on_handoff(context: CallContext, kind: type[OnHandoff], handoff_id: str, /, **given: Any) -> tuple[Handoff, Done]:
    """Carry out a command about a handoff that there is, and tell how it stands afterwards."""
    known = found_handoff(context.environment.store, handoff_id)
    command = context.dispatcher.command(kind, {"task_id": known.task_id, "handoff_id": known.id, **given})
    done = context.dispatch(command)
    if done.decision.refusal is not None:
        raise done.decision.refusal
    return handoff_show(context, known.id), done


def _choose(given: dict[str, Any]) -> None:
    """Refuse a word that is none of those to choose from."""
    kinds = {"type": model.HandoffType, "on_timeout": model.OnTimeout, "aggregation": model.Aggregation}
    kinds |= {"risk": Risk, "transfer_mode": TransferMode}
    for name, kind in kinds.items():
        if isinstance(given[name], str) and (problem := kernel_limits.choice(name, given[name], get_args(kind))):
            raise problem


def _duration(given: float | str | None) -> str | None:
    """A duration as the record has it; a plain number counts seconds."""
    plain = isinstance(given, int | float) or (isinstance(given, str) and given.replace(".", "", 1).isdigit())
    return f"{given}s" if plain else None if given is None else str(given)


def _place(handoff: Handoff) -> tuple[str, ...]:
    """The place of a handoff in the order of their beginnings."""
    return handoff.timestamp, handoff.task_id, f"{handoff.number:06d}", handoff.id


_SHOWN = 10


def found_handoff(store: Store, part: str) -> Handoff:
    """The handoff that an ID or its beginning stands for, as the log has it now."""
    given = part.strip().upper() if part.strip()[:3].upper() == "HO-" else part.strip().lower()
    if not (model.is_handoff_id(given) or model.is_part(given)):
        raise missing_handoff(given)
    every = store.find_handoffs(given)
    if not every:  # a writer died before it wrote the files of open handoffs: the log knows them
        handed = store.find(Query(open_handoffs=True)).tasks
        meant = [task for task in handed if any(one.id.startswith(given) for one in task.handoffs)]
        every = tuple(one for one in store.handoffs(meant) if one.id.startswith(given))
    if not every:
        raise missing_handoff(given)
    if len(every) > 1:
        more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
        shown = ", ".join(one.id for one in every[:_SHOWN]) + more
        raise AmbiguousId(f"{given!r} stands for {len(every)} handoffs: {shown}", "use more of the ID")
    known = every[0]
    with store.unit(port.Scope(read=frozenset({known.task_id}))) as unit:
        found = next((one for one in unit.handoffs(known.task_id) if one.id == known.id), None)
    if found is None:
        raise missing_handoff(part)
    return found


def missing_handoff(part: str) -> HandoffNotFound:
    """The error for what no handoff has as its ID."""
    return HandoffNotFound(f"there is no handoff {part[:80]!r}", "list what there is", Call("handoff_list", {}))


_TEXT = 80
_ENTITIES = {"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "&": "#amp;", "%": "#37;", "\\": "#92;"}
_ANSWERS = {"accepted": "-->>", "rejected": "--x", "deferred": "-->>"}


def mermaid(handoffs: Sequence[Handoff]) -> str:
    """A diagram of who handed what to whom, and what came back."""
    agents = dict.fromkeys(agent for one in handoffs for agent in (one.from_agent, one.to_agent))
    names = {agent: f"A{number}" for number, agent in enumerate(agents)}
    lines = ["sequenceDiagram"]
    lines += [f"    participant {name} as {escaped_mermaid(agent)}" for agent, name in names.items()]
    for one in handoffs:
        lines += [f"    {line}" for line in _lines(one, names[one.from_agent], names[one.to_agent])]
    return "\n".join(lines) + "\n"


def escaped_mermaid(text: str) -> str:
    """Text that Mermaid shows as it is: one line, with what means something to it spelled as entities."""
    shown = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    short = shown if len(shown) <= _TEXT else f"{shown[: _TEXT - 1]}…"
    return "".join(_ENTITIES.get(one, one) for one in short)


def _lines(one: Handoff, sender: str, receiver: str) -> Iterable[str]:
    yield f"{sender}->>{receiver}: {one.type} {one.id[:8]}: {escaped_mermaid(one.reason)}"
    answer = one.acceptance
    if answer is not None:
        why = f": {escaped_mermaid(answer.reason)}" if answer.reason else ""
        yield f"{receiver}{_ANSWERS[answer.status]}{sender}: {answer.status}{why}"
    if one.forwarded_to is not None:
        yield f"Note over {receiver}: goes on as {one.forwarded_to[:8]}"
    if one.returned is not None:
        yield f"{receiver}-->>{sender}: return {one.returned.status}"
    elif one.state == "failed":
        yield f"{receiver}--x{sender}: failed{f': {escaped_mermaid(one.closed_reason)}' if one.closed_reason else ''}"


MOST_RECORDS = 10_000


class AuditRecords(Result, frozen=True, kw_only=True):
    """Records in the order of the log; where `more` follow, ask again after the last one's `seq`."""

    records: tuple[AuditRecord, ...]
    more: bool = False
    next_cursor: str | UnsetType = UNSET


class AuditVerified(Result, frozen=True, kw_only=True):
    """Whether every record is what was written: how many were compared, and what is wrong."""

    ok: bool
    checked: int
    problems: tuple[AuditProblem, ...] = ()


class AuditPruned(Result, frozen=True, kw_only=True):
    """From which files how many records were removed, or would be."""

    dry_run: bool
    removed: tuple[Expired, ...] = ()


_AUDIT_FAMILY = Family(
    verb="audit",
    help="audit records of handoffs: find, verify or prune them",
    default="list",
    example="aof audit --task 001",
    section="team",
    order=40,
)
_audit = partial(operation, family=_AUDIT_FAMILY, tier="handoff")


@_audit(effect="read", verb="audit list", example="aof audit --task 001")
def audit(
    context: CallContext,
    *,
    handoff: Annotated[str, param("only of this handoff", Spelling(metavar="H"))] | None = None,
    task: Annotated[str, param("only of this task", Spelling(metavar="ID"))] | None = None,
    from_agent: Annotated[str, param("only from this agent", Spelling(option="--from", metavar="A"))] | None = None,
    to_agent: Annotated[str, param("only to this agent", Spelling(option="--to", metavar="A"))] | None = None,
    after: Annotated[int, param("only records of events with a greater number", Spelling(metavar="SEQ"), ge=0)] = 0,
    limit: Annotated[int, param("at most this many (10,000 at a time)", ge=0)] | None = None,
    cursor: Cursor | None = None,
) -> AuditRecords:
    """Audit records of a handoff, of a task, from or to an agent."""
    if after < 0 or (limit is not None and limit < 0):
        raise InvalidInput("'after' and 'limit' must not be negative", "leave them out, or give 0 or more")
    if cursor is not None:
        after = max(after, read_models.number_in("audit", cursor))
    here = context.environment
    most = MOST_RECORDS if limit is None else min(limit, MOST_RECORDS)
    query = AuditQuery(
        handoff_id=handoff,
        task_id=here.lookup.resolve(task) if task is not None else None,
        from_agent=from_agent,
        to_agent=to_agent,
        after=after,
        limit=most + 1,
    )
    found = here.store.audited(query)
    _follow(context)
    page, more = found[:most], len(found) > most
    following = read_models.place_in("audit", str(page[-1].seq)) if more and page else UNSET
    return AuditRecords(records=page, more=more, next_cursor=following)


@_audit(effect="read", example="aof audit verify")
def audit_verify(context: CallContext) -> AuditVerified:
    """Find audit records that were changed, removed or reordered."""
    here = context.environment
    files = here.store.audit_files(here.policy.project)
    if files is None:
        return AuditVerified(ok=True, checked=len(here.store.audited(AuditQuery())))
    found = files.verify(Retention(here).expires())
    return AuditVerified(ok=not found.problems, checked=found.checked, problems=found.problems)


@_audit(effect="destructive", example="aof audit prune --dry-run")
def audit_prune(
    context: CallContext, *, dry_run: Annotated[bool, param("only show what would be removed")] = False
) -> AuditPruned:
    """Remove audit records past their retention from the files; the log keeps them."""
    retention = Retention(context.environment)
    if dry_run:
        return AuditPruned(dry_run=True, removed=retention.expired())
    _follow(context)
    return AuditPruned(dry_run=False, removed=retention.prune())


def _follow(context: CallContext) -> None:
    """Let the files catch up: looking must not need space or the right to write."""
    here = context.environment
    files = here.store.audit_files(here.policy.project)
    if files is not None:
        with suppress(OSError, StorageFailed):
            files.follow()


class HandoffCache:
    """Reads handoffs of tasks for the scheduler, and again only after a task has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, tuple[Handoff, ...]]] = {}

    def messages(self, tasks: Iterable[Task]) -> tuple[Handoff, ...]:
        """The requests by message that have no answer and of which nothing was said yet, in the tasks' order."""
        handed = [task for task in tasks if any(link.kind == "handoff" for link in task.links)]
        last = ((task, self._all(task)[-1:]) for task in handed)
        return tuple(
            one
            for task, (*found,) in last
            for one in found
            if one.request is not None and one.state == "requested" and not delegation.recorded_unanswered(task, one.id)
        )

    def open(self, tasks: Iterable[Task]) -> tuple[tuple[Task, Handoff], ...]:
        """The engine's open handoffs of these tasks; one by message is over with its task."""
        found = ((task, one) for task in tasks for one in self._all(task) if one.is_open)
        return tuple((task, one) for task, one in found if one.request is None)

    def triggered(self, tasks: Iterable[Task]) -> frozenset[tuple[str, str, str]]:
        """The task, trigger and reason of every handoff that these tasks ever had."""
        handed = (task for task in tasks if any(link.kind == "handoff" for link in task.links))
        return frozenset((task.id, one.trigger, one.reason) for task in handed for one in self._all(task))

    def forget(self, tasks: Iterable[Task]) -> None:
        """Drop all but these tasks from the cache."""
        kept = {task.id for task in tasks}
        self._known = {name: known for name, known in self._known.items() if name in kept}

    def _all(self, task: Task) -> tuple[Handoff, ...]:
        known = self._known.get(task.id)
        if known is not None and known[0] == task.rev:
            return known[1]
        try:
            return self._read(task)
        except Unavailable:  # somebody keeps writing it: what lies there is for now, and is not remembered
            return self._store.handoffs((task,))

    def _read(self, task: Task) -> tuple[Handoff, ...]:
        """Under the task's lock, because the log tells of a step before the handoff's file does."""
        with self._store.unit(Scope(read=frozenset({task.id}))) as unit:
            current, found = unit.task(task.id), tuple(sorted(unit.handoffs(task.id), key=by_age))
        self._known[task.id] = (current.rev if current is not None else task.rev, found)
        return found


class Retention:
    """Applies the times of retention to the files of one data directory."""

    def __init__(self, environment: Environment) -> None:
        self._store = environment.store
        self._clock = environment.clock
        self._files = environment.store.audit_files(environment.policy.project)

    def expired(self) -> tuple[Expired, ...]:
        """What could be removed now."""
        return self._files.expired(self._before(), self.expires()) if self._files is not None else ()

    def prune(self) -> tuple[Expired, ...]:
        """Remove it."""
        return self._files.prune(self._before(), self.expires()) if self._files is not None else ()

    def expires(self) -> Expires:
        """Tells of records whether their time is over now; one of an unknown task is kept, and all by a broken log."""
        now = self._clock.now()

        def judged(records: tuple[AuditRecord, ...]) -> tuple[bool, ...]:
            try:
                found = self._store.records({record.context_snapshot.task_id for record in records}) if records else ()
            except LogDamaged:
                found = ()
            tasks = {task.id: task for task in found}
            ends = (kept_until(record, tasks.get(record.context_snapshot.task_id)) for record in records)
            return tuple(end is not None and end <= now for end in ends)

        return judged

    def _before(self) -> str:
        """No record of a later day can be past its time."""
        return day(self._clock.now() - SHORTEST_MS + 1)
