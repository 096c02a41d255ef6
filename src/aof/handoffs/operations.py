"""Operations about handoffs: begin, answer, return, pass on, look up.

Must not know which store or surface is in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Self, get_args

import msgspec
from msgspec import UNSET, UnsetType

from aof.errors import AmbiguousId, AofError, Call, HandoffNotFound
from aof.handoffs import answers, initiation, model
from aof.handoffs.answers import Group
from aof.handoffs.model import Aggregation, ContentType, Handoff, HandoffType, OnTimeout, ReturnStatus, TransferMode
from aof.handoffs.payload import HandoffProposal
from aof.handoffs.steps import refused_call
from aof.kernel import limits as kernel_limits
from aof.kernel.declarations import (
    OBJECTS,
    TEXTS_OR_OBJECTS,
    Cli,
    Cursor,
    ExpectedRev,
    Extra,
    Family,
    Operation,
    Params,
    Reason,
    Run,
    Spelling,
    param,
)
from aof.kernel.dispatcher import struct_from
from aof.kernel.model import is_task_id
from aof.kernel.results import Result, without_secret
from aof.messages import service as messages_service
from aof.org.model import HUMAN, Risk
from aof.queries import read_models
from aof.store import port
from aof.store.lists import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.handoffs.steps import OnHandoff
    from aof.kernel.context import Environment
    from aof.kernel.dispatcher import Dispatcher
    from aof.kernel.unit_of_work import Done
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


_FAMILY = Family(
    verb="handoff",
    help="hand work over, answer a handoff, or see what became of one",
    example="aof handoff new --type delegation --from ada --to bob --task 001 --reason 'needs a test' --timeout 30m",
    place="the handoff's ID or its beginning (with group: the broadcast's; with chain: a task)",
)
HandoffId = Annotated[str, param("handoff ID, or the beginning of it", Spelling(place="ID"))]
Agent = Annotated[str, param("who acts: the addressee, or the sender where that is asked for")] | UnsetType
Estimate = (
    Annotated[
        str, param("when it will be done, as 2026-02-21T12:00:00Z", Spelling(option="--estimate", metavar="TIME"))
    ]
    | UnsetType
)


class HandoffNewParams(Params, frozen=True, kw_only=True):
    """A handoff as its sender wants it."""

    type: Annotated[HandoffType, param("how control passes")]
    task_id: Annotated[str, param("task that is handed over", Spelling(option="--task", metavar="ID", target="task"))]
    reason: Reason
    from_agent: Annotated[str, param("sender", Spelling(option="--from", metavar="A"))] | UnsetType = UNSET
    to: Annotated[
        list[str], param("receiver; several for a broadcast", Spelling(metavar="B", note="(with commas)"))
    ] = []  # noqa: RUF012 - a struct copies it
    rationale: Annotated[str, param("why this decision was made; an escalation needs it")] | UnsetType = UNSET
    risk: Annotated[Risk, param("how risky the work is")] | UnsetType = UNSET
    timeout: (
        Annotated[
            str,
            param(
                "how long to wait for the result, as 30m; a number counts seconds; "
                "default of a delegation: handoff.defaultTimeout in aof.toml",
                Spelling(metavar="S"),
            ),
        ]
        | UnsetType
    ) = UNSET
    on_timeout: Annotated[OnTimeout, param("what happens when no result comes in time")] | UnsetType = UNSET
    capabilities: (
        Annotated[
            list[Any],
            param(
                "required capability, as NAME or NAME:0.8 for a least proficiency",
                Spelling(option="--capability", metavar="C"),
                says=TEXTS_OR_OBJECTS,
            ),
        ]
        | UnsetType
    ) = UNSET
    autonomy_budget: (
        Annotated[int, param("autonomy level that the work needs", Spelling(option="--level"), ge=0, le=3)] | UnsetType
    ) = UNSET
    aggregation: Annotated[Aggregation, param("when a broadcast has succeeded")] | UnsetType = UNSET
    no_return: Annotated[list[str], param("receiver of a broadcast that owes no return")] | UnsetType = UNSET
    wait: Annotated[bool, param("hold the sender's own task until the return")] | UnsetType = UNSET
    segment_complete: Annotated[bool, param("the sender's part of the task is complete")] | UnsetType = UNSET
    history: (
        Annotated[list[Any], param("message of the conversation so far", Spelling(metavar="JSON"), says=OBJECTS)]
        | UnsetType
    ) = UNSET
    transfer_mode: Annotated[TransferMode, param("how much of the conversation goes along")] | UnsetType = UNSET
    max_messages: Annotated[int, param("at most so many messages", ge=0)] | UnsetType = UNSET
    include: (
        Annotated[
            dict[str, bool],
            param(
                "kind of messages: system_messages, tool_calls, tool_results, agent_reasoning",
                Spelling(metavar="K=JSON"),
            ),
        ]
        | UnsetType
    ) = UNSET
    summary: Annotated[str, param("summary of the conversation")] | UnsetType = UNSET
    coordinate: Annotated[bool, param("receivers of a broadcast see what the others bring back")] | UnsetType = UNSET
    variables: (
        Annotated[dict[str, Any], param("context variable", Spelling(option="--var", metavar="K=JSON"))] | UnsetType
    ) = UNSET
    artifacts: (
        Annotated[
            list[Any],
            param("reference to an artifact", Spelling(option="--artifact", metavar="JSON"), says=TEXTS_OR_OBJECTS),
        ]
        | UnsetType
    ) = UNSET
    budget: Annotated[float, param("how much the work may use")] | UnsetType = UNSET
    deadline: (
        Annotated[str, param("when it must be done, as 2026-02-21T12:00:00Z", Spelling(metavar="TIME"))] | UnsetType
    ) = UNSET
    run: Run | UnsetType = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET


class HandoffParams(Params, frozen=True, kw_only=True):
    """Which handoff."""

    handoff_id: HandoffId


class HandoffAcceptParams(HandoffParams, frozen=True, kw_only=True):
    """Who takes it, and until when."""

    agent: Agent = UNSET
    reason: Reason | UnsetType = UNSET
    estimated_completion: Estimate = UNSET


class HandoffReasonParams(HandoffParams, frozen=True, kw_only=True):
    """Who turns it down, and why."""

    reason: Reason
    agent: Agent = UNSET


class HandoffDeferParams(HandoffReasonParams, frozen=True, kw_only=True):
    """Who puts it off, why, and until when."""

    estimated_completion: Estimate = UNSET


class HandoffReturnParams(HandoffParams, frozen=True, kw_only=True):
    """What came of it."""

    status: Annotated[ReturnStatus, param("how the work ended")]
    agent: Agent = UNSET
    result: Annotated[Any, param("result: text, or any JSON", Spelling(metavar="JSON"))] | UnsetType = UNSET
    content_type: Annotated[ContentType, param("what the result is")] | UnsetType = UNSET
    to_agent: Annotated[str, param("sender that it goes to", Spelling(option="--to", target="to"))] | UnsetType = UNSET
    variables_changed: (
        Annotated[
            dict[str, Any],
            param("changed context variable", Spelling(option="--var", metavar="K=JSON", target="variables")),
        ]
        | UnsetType
    ) = UNSET
    artifacts_produced: (
        Annotated[
            list[Any],
            param(
                "artifact that was made",
                Spelling(option="--artifact", metavar="JSON", target="artifacts"),
                says=TEXTS_OR_OBJECTS,
            ),
        ]
        | UnsetType
    ) = UNSET
    tokens_consumed: Annotated[int, param("tokens that it took", Spelling(option="--tokens"), ge=0)] | UnsetType = UNSET
    notes: Annotated[str, param("remarks for the sender")] | UnsetType = UNSET


class HandoffAnswerParams(HandoffParams, frozen=True, kw_only=True):
    """A person's answer."""

    text: Annotated[str, param("the answer", Spelling(stdin=True))]
    status: Annotated[ReturnStatus, param("how the work ended")] | UnsetType = UNSET
    agent: Agent = UNSET


class HandoffEscalateParams(HandoffParams, frozen=True, kw_only=True):
    """Why it goes further up."""

    rationale: Annotated[str, param("one's own assessment of the matter")]
    to_agent: Annotated[str, param("suggested target", Spelling(option="--to", target="to"))] | UnsetType = UNSET
    agent: Agent = UNSET


class HandoffRerouteParams(HandoffReasonParams, frozen=True, kw_only=True):
    """Why another agent is asked, and which."""

    to_agent: (
        Annotated[str, param("agent to ask instead; else routing chooses", Spelling(option="--to", target="to"))]
        | UnsetType
    ) = UNSET


class HandoffResendParams(HandoffParams, frozen=True, kw_only=True):
    """Why it is sent again."""

    reason: Reason | UnsetType = UNSET
    agent: Agent = UNSET


class HandoffFilterParams(Params, frozen=True, kw_only=True):
    """Which handoffs."""

    task: Annotated[str, param("only of this task, as child or as parent", Spelling(metavar="ID"))] | UnsetType = UNSET
    from_agent: Annotated[str, param("only from this agent", Spelling(option="--from", metavar="A"))] | UnsetType = (
        UNSET
    )
    to_agent: (
        Annotated[str, param("only to this agent", Spelling(option="--to", metavar="A", target="to"))] | UnsetType
    ) = UNSET
    state: Annotated[str, param("only in this state; `open` for all that are not over")] | UnsetType = UNSET
    limit: Annotated[int, param("at most this many", ge=0)] | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET


class HandoffGroupParams(Params, frozen=True, kw_only=True):
    """Which broadcast."""

    group_id: Annotated[
        str, param("broadcast group, or one of its handoffs", Spelling(place="GROUP", target="handoff_id"))
    ]


class HandoffChainParams(Params, frozen=True, kw_only=True):
    """Whose handoffs."""

    task_id: Annotated[str, param("task ID or a unique part of it", Spelling(place="TASK", target="handoff_id"))]


class HandoffList(Result, frozen=True, kw_only=True):
    """Handoffs, oldest first, how many match in all, and the cursor of the next page where there is one."""

    total: int
    handoffs: tuple[Handoff, ...]
    next_cursor: str | UnsetType = UNSET


def _accept(fabric: Any, values: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = fabric.handoff_accept(**values).flat()
    return flat


def _list(fabric: Any, values: dict[str, Any]) -> HandoffList:
    found = fabric.handoff_list(**values)
    return HandoffList(total=found.total, handoffs=tuple(found), next_cursor=found.next_cursor or UNSET)


_NO_WAIT = Extra(option="--no-wait", help="go on without waiting for the answer to an escalation")


def _cli(example: str, *extra: Extra) -> Cli:
    return Cli(section="team", order=30, example=example, family=_FAMILY, extra=extra)


def _row(
    name: str,
    parameters: type[Params],
    told: str,
    example: str,
    *,
    result: Any = Handoff,
    effect: Any = "write",
    acts: str | None = "agent",
    ask: Any = None,
    extra: tuple[Extra, ...] = (),
    worker: bool = False,
    shows: tuple[str, ...] = (),
    sample: tuple[tuple[str, object], ...] = (),
) -> Operation:
    return Operation(
        name=name,
        parameters=parameters,
        result=result,
        help=told,
        effect=effect,
        tool=f"aof_{name}",
        verb=name.replace("_", " ", 1),
        cli=_cli(example, *extra),
        tier="handoff",
        worker=worker,
        acts=acts,
        tool_shows=shows,
        example=sample,
        ask=ask,
    )


ROWS: tuple[Operation, ...] = (
    _row(
        "handoff_new",
        HandoffNewParams,
        "Hand a task over, once the receiver accepts: for good, for a result, to several at once, or up the chain.",
        "aof handoff new --type delegation --from ada --to bob --task 001 --reason 'needs a test' --timeout 30m",
        result=StartedHandoff,
        acts="from_agent",
        extra=(_NO_WAIT,),
        shows=(
            *("type", "task_id", "to", "reason", "rationale", "timeout", "on_timeout", "aggregation", "wait"),
            *("summary", "variables", "run", "actor"),
        ),
        sample=(("type", "delegation"), ("to", ("bob",)), ("reason", "needs a test"), ("timeout", "30m")),
    ),
    _row(
        "handoff_accept",
        HandoffAcceptParams,
        "Take a handoff on; a task that passes to the receiver begins its run.",
        "aof handoff accept 3f2a --agent bob",
        result=dict[str, Any],
        ask=_accept,
        worker=True,
        shows=("handoff_id", "agent", "actor"),
    ),
    _row(
        "handoff_reject",
        HandoffReasonParams,
        "Turn a handoff down; another agent is asked, or a person.",
        "aof handoff reject 3f2a --agent bob --reason 'no time'",
    ),
    _row(
        "handoff_defer",
        HandoffDeferParams,
        "Acknowledge a handoff and put the answer off.",
        "aof handoff defer 3f2a --agent bob --reason 'after lunch'",
    ),
    _row(
        "handoff_return",
        HandoffReturnParams,
        "Bring back the result of an accepted handoff.",
        "aof handoff return 3f2a --agent bob --status success --result '\"done\"'",
        worker=True,
        shows=("handoff_id", "status", "result", "artifacts_produced", "notes", "agent", "actor"),
        sample=(("result", "12 tests pass"),),
    ),
    _row(
        "handoff_answer",
        HandoffAnswerParams,
        "Answer a handoff as a person: take it on and answer in one step.",
        "aof handoff answer 3f2a --text 'use the old format'",
    ),
    _row(
        "handoff_escalate",
        HandoffEscalateParams,
        "Pass an escalation on to the next level, with an assessment.",
        "aof handoff escalate 3f2a --agent bob --rationale 'touches billing'",
    ),
    _row(
        "handoff_reroute",
        HandoffRerouteParams,
        "Send an unanswered handoff to another agent; the orchestrator decides.",
        "aof handoff reroute 3f2a --agent orc --to cem --reason 'bob is away'",
    ),
    _row(
        "handoff_withdraw",
        HandoffReasonParams,
        "Take back a handoff that is not over.",
        "aof handoff withdraw 3f2a --agent ada --reason 'not needed any more'",
    ),
    _row(
        "handoff_resend",
        HandoffResendParams,
        "Send a handoff to the same agent again.",
        "aof handoff resend 3f2a --agent ada",
    ),
    _row("handoff_show", HandoffParams, "One handoff.", "aof handoff show 3f2a", effect="read", acts=None),
    _row(
        "handoff_list",
        HandoffFilterParams,
        "Handoffs of a task, from or to an agent.",
        "aof handoff list --to swe-qa",
        result=HandoffList,
        effect="read",
        acts=None,
        ask=_list,
        worker=True,
    ),
    _row(
        "handoff_group",
        HandoffGroupParams,
        "What the returns of a broadcast come to.",
        "aof handoff group 3f2a",
        result=Group,
        effect="read",
        acts=None,
    ),
    _row(
        "handoff_chain",
        HandoffChainParams,
        "The handoffs of a task as a sequence diagram in Mermaid.",
        "aof handoff chain 001",
        result=dict[str, Any],
        effect="read",
        acts=None,
    ),
)


class HandoffService:
    """Control, context and responsibility passing from one agent to another."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def handoff_new(
        self,
        *,
        type: str,  # noqa: A002 - the name of the field
        task_id: str,
        reason: str,
        from_agent: str | None = None,
        to: Sequence[str] = (),
        rationale: str = "",
        risk: str = "low",
        timeout: float | str | None = None,
        on_timeout: str = "retry",
        capabilities: Sequence[Any] = (),
        autonomy_budget: int | None = None,
        aggregation: str | None = None,
        no_return: Sequence[str] = (),
        wait: bool | None = None,
        segment_complete: bool = False,
        history: Sequence[Any] = (),
        transfer_mode: str | None = None,
        max_messages: int | None = None,
        include: dict[str, bool] | None = None,
        summary: str | None = None,
        variables: dict[str, Any] | None = None,
        artifacts: Sequence[Any] = (),
        coordinate: bool = False,
        budget: float | None = None,
        deadline: str | None = None,
        run: str | None = None,
        actor: str | None = None,
    ) -> StartedHandoff:
        """Hand a task over: `sequential`, `delegation`, `broadcast` or `escalation`, from one agent to another."""
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
            "transfer": _known(
                transfer_mode=transfer_mode, max_messages=max_messages, include=include, summary=summary
            ),
            "coordinate": coordinate,
            "variables": variables or {},
            "artifacts": list(artifacts),
            "budget": budget,
            "deadline": deadline,
        }
        with self._refusals_recorded(initiation.Initiate.operation, task_id, from_agent or actor):
            _choose(proposal | {"transfer_mode": transfer_mode})
            self._environment.lookup.resolve(task_id)
        asked = struct_from(HandoffProposal, proposal)
        done = self._on_task(initiation.Initiate, task_id, run=run, actor=actor, agent=from_agent, proposal=asked)
        begun = [event.payload["handoffId"] for event in done.events if event.type == "handoff.initiated"]
        records = {one.id: one for one in self._records(done)}
        first = [records[name] for name in begun if records[name].forwarded_from is None] or [records[begun[0]]]
        return _started(first, self._unseen(first))

    def _unseen(self, begun: Sequence[Handoff]) -> list[str]:
        """A warning of receivers that have to answer by themselves and have done nothing here so far."""
        chart, seen = self._environment.chart.readable(), self._environment.store.last_seen()
        listed = chart.by_id if chart is not None else {}
        hosted = {name for name, one in listed.items() if one.runner.kind != "pull"}
        asked = dict.fromkeys(one.to_agent for one in begun if one.state in model.UNANSWERED)
        unseen = [name for name in asked if name not in seen and name not in hosted and name != HUMAN]
        has = "has" if len(unseen) == 1 else "have"
        return [f"{', '.join(unseen)} {has} not been seen yet, and {has} to accept"] if unseen else []

    def handoff_accept(
        self,
        handoff_id: str,
        *,
        agent: str | None = None,
        reason: str | None = None,
        estimated_completion: str | None = None,
        actor: str | None = None,
    ) -> TakenHandoff:
        """Take a handoff on. Where the task itself passes to the receiver, this begins its run."""
        given = {"reason": reason, "estimated_completion": estimated_completion}
        handoff, done = self._on_handoff(answers.Accept, handoff_id, agent=agent, actor=actor, **given)
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

    def handoff_reject(
        self, handoff_id: str, reason: str, *, agent: str | None = None, actor: str | None = None
    ) -> Handoff:
        """Turn a handoff down; the work goes to another agent, or to a person."""
        return self._on_handoff(answers.RejectHandoff, handoff_id, agent=agent, actor=actor, reason=reason)[0]

    def handoff_defer(
        self,
        handoff_id: str,
        reason: str,
        *,
        agent: str | None = None,
        estimated_completion: str | None = None,
        actor: str | None = None,
    ) -> Handoff:
        """Acknowledge a handoff and put the answer off."""
        given = {"reason": reason, "estimated_completion": estimated_completion}
        return self._on_handoff(answers.Defer, handoff_id, agent=agent, actor=actor, **given)[0]

    def handoff_return(
        self,
        handoff_id: str,
        *,
        status: str,
        agent: str | None = None,
        result: Any = None,
        content_type: str | None = None,
        to_agent: str | None = None,
        variables_changed: dict[str, Any] | None = None,
        artifacts_produced: Sequence[Any] = (),
        tokens_consumed: int | None = None,
        notes: str = "",
        actor: str | None = None,
    ) -> Handoff:
        """Bring back what came of an accepted handoff: `success`, `partial`, `failed` or `timeout`."""
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
        return self._on_handoff(answers.ReturnResult, handoff_id, agent=agent, actor=actor, **given)[0]

    def handoff_answer(
        self,
        handoff_id: str,
        text: str,
        *,
        status: str = "success",
        agent: str | None = None,
        actor: str | None = None,
    ) -> Handoff:
        """Answer a handoff as a person: take it on and bring back the answer in one step."""
        given = {"text": text, "status": status}
        return self._on_handoff(answers.AnswerHandoff, handoff_id, agent=agent, actor=actor, **given)[0]

    def handoff_escalate(
        self,
        handoff_id: str,
        rationale: str,
        *,
        to_agent: str | None = None,
        agent: str | None = None,
        actor: str | None = None,
    ) -> Handoff:
        """Pass an escalation on to the next level, with one's own assessment. Answers with the new handoff."""
        given = {"rationale": rationale, "to_agent": to_agent}
        old = self._on_handoff(initiation.Escalate, handoff_id, agent=agent, actor=actor, **given)[0]
        return self.handoff_show(old.forwarded_to or old.id)

    def handoff_reroute(
        self,
        handoff_id: str,
        reason: str,
        *,
        to_agent: str | None = None,
        agent: str | None = None,
        actor: str | None = None,
    ) -> Handoff:
        """Send an unanswered handoff to another agent; without a name, routing chooses. Answers with the new one."""
        given = {"reason": reason, "to_agent": to_agent}
        old = self._on_handoff(initiation.Reroute, handoff_id, agent=agent, actor=actor, **given)[0]
        return self.handoff_show(old.forwarded_to or old.id)

    def handoff_withdraw(
        self, handoff_id: str, reason: str, *, agent: str | None = None, actor: str | None = None
    ) -> Handoff:
        """Take back a handoff that is not over; nobody else is asked."""
        return self._on_handoff(answers.Withdraw, handoff_id, agent=agent, actor=actor, reason=reason)[0]

    def handoff_resend(
        self, handoff_id: str, reason: str | None = None, *, agent: str | None = None, actor: str | None = None
    ) -> Handoff:
        """Send a handoff to the same agent again, at most three times."""
        return self._on_handoff(answers.Resend, handoff_id, agent=agent, actor=actor, reason=reason)[0]

    def handoff_show(self, handoff_id: str) -> Handoff:
        """One handoff, by its ID or the beginning of it."""
        return HandoffLookup(self._environment.store).get(handoff_id)

    def handoff_list(
        self,
        *,
        task: str | None = None,
        from_agent: str | None = None,
        to_agent: str | None = None,
        state: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Handoffs:
        """The handoffs, oldest first: of one task (as child or as parent), from or to one agent, in one state.

        The state `open` stands for every one that something is still to come of.
        """
        task_id = self._environment.lookup.resolve(task) if task is not None else None
        found = tuple(
            handoff
            for handoff in self._environment.store.handoffs()
            if task_id in (None, handoff.task_id, handoff.parent_task_id)
            and from_agent in (None, handoff.from_agent)
            and to_agent in (None, handoff.to_agent)
            and (state in (None, handoff.state) or (state == "open" and handoff.is_open))
        )
        page, following = read_models.paged("handoff_list", found, _place, limit=limit, cursor=cursor)
        return Handoffs(page, total=len(found), next_cursor=following)

    def handoff_inbox(self, agent: str) -> tuple[Handoff, ...]:
        """The open handoffs that are addressed to an agent, oldest first; a person's are those to `human`, too."""
        store = self._environment.store
        handed = store.find(Query(open_handoffs=True)).tasks
        person = agent in self._environment.policy.maintainers
        names = (agent, HUMAN) if person else (agent,)
        return tuple(one for one in store.handoffs(handed) if one.is_open and one.to_agent in names)

    def handoff_group(self, group_id: str) -> Group:
        """What the returns of a broadcast come to; any of its handoffs stands for it too."""
        every = self._environment.store.handoffs()
        part = group_id.strip().lower()
        found = [one for one in every if (one.broadcast_group_id or "").startswith(part) and one.broadcast_group_id]
        if not part or len({one.broadcast_group_id for one in found}) != 1:
            member = self.handoff_show(group_id)
            found = [one for one in every if one.broadcast_group_id == member.broadcast_group_id]
            if member.broadcast_group_id is None:
                raise missing_handoff(group_id)
        return answers.aggregated(found)

    def handoff_chain(self, task_id: str) -> dict[str, Any]:
        """All handoffs of a task and of those below it, as a sequence diagram in Mermaid."""
        full = self._environment.lookup.resolve(task_id)
        return drawn(full, self.handoff_list(task=full))

    @contextmanager
    def _refusals_recorded(self, operation: str, task_id: str, agent: str | None) -> Iterator[None]:
        """Record why there is no command at all; what a command refuses, it records itself."""
        try:
            yield
        except AofError as refusal:
            here, actor = self._environment, self._dispatcher.actor
            draft = refused_call(operation, task_id if is_task_id(task_id) else "", agent or actor, refusal)
            messages_service.record_remark(here.store, here.clock, draft, actor)
            raise

    def _on_task(self, kind: type[initiation.Initiate], task_id: str, /, **given: Any) -> Done:
        done = self._dispatcher.on_task(kind, task_id, **given)
        if done.decision.refusal is not None:
            raise done.decision.refusal
        return done

    def _on_handoff(self, kind: type[OnHandoff], handoff_id: str, /, **given: Any) -> tuple[Handoff, Done]:
        """Carry out a command about a handoff that there is, and tell how it stands afterwards."""
        known = HandoffLookup(self._environment.store).get(handoff_id)
        command = self._dispatcher.command(kind, {"task_id": known.task_id, "handoff_id": known.id, **given})
        done = self._dispatcher.dispatch(command)
        if done.decision.refusal is not None:
            raise done.decision.refusal
        return self.handoff_show(known.id), done

    def _records(self, done: Done) -> tuple[Handoff, ...]:
        assert done.task is not None
        return self._environment.store.handoffs((done.task,))


def _choose(given: dict[str, Any]) -> None:
    """Refuse a word that is none of those to choose from."""
    kinds = {"type": model.HandoffType, "on_timeout": model.OnTimeout, "aggregation": model.Aggregation}
    kinds |= {"risk": Risk, "transfer_mode": TransferMode}
    for name, kind in kinds.items():
        if isinstance(given[name], str) and (problem := kernel_limits.choice(name, given[name], get_args(kind))):
            raise problem


def _known(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _duration(given: float | str | None) -> str | None:
    """A duration as the record has it; a plain number counts seconds."""
    plain = isinstance(given, int | float) or (isinstance(given, str) and given.replace(".", "", 1).isdigit())
    return f"{given}s" if plain else None if given is None else str(given)


def _started(begun: list[Handoff], also: Sequence[str]) -> StartedHandoff:
    first = begun[0]
    warnings = (*(warning for one in begun for warning in one.warnings), *also)
    group = first.broadcast_group_id
    return StartedHandoff(
        handoff_id=first.id,
        state=first.state,
        task_id=first.task_id,
        to_agent=first.to_agent,
        forwarded_to=first.forwarded_to or msgspec.UNSET,
        broadcast_group_id=group or msgspec.UNSET,
        handoff_ids=tuple(one.id for one in begun) if group else msgspec.UNSET,
        warnings=warnings or msgspec.UNSET,
    )


def _place(handoff: Handoff) -> tuple[str, ...]:
    """The place of a handoff in the order of their beginnings."""
    return handoff.timestamp, handoff.task_id, f"{handoff.number:06d}", handoff.id


_SHOWN = 10


class HandoffLookup:
    """Looks handoffs up in one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, part: str) -> Handoff:
        """The handoff that an ID or its beginning stands for, as the log has it now."""
        known = self._known(part.strip().upper() if part.strip()[:3].upper() == "HO-" else part.strip().lower())
        with self._store.unit(port.Scope(read=frozenset({known.task_id}))) as unit:
            found = next((one for one in unit.handoffs(known.task_id) if one.id == known.id), None)
        if found is None:
            raise missing_handoff(part)
        return found

    def _known(self, given: str) -> Handoff:
        if not (model.is_handoff_id(given) or model.is_part(given)):
            raise missing_handoff(given)
        found = self._store.find_handoffs(given) or self._unwritten(given)
        if not found:
            raise missing_handoff(given)
        if len(found) > 1:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            shown = ", ".join(one.id for one in found[:_SHOWN]) + more
            raise AmbiguousId(f"{given!r} stands for {len(found)} handoffs: {shown}", "use more of the ID")
        return found[0]

    def _unwritten(self, given: str) -> tuple[Handoff, ...]:
        """Open handoffs whose files are not there, for a writer died before it wrote them: the log knows them."""
        handed = self._store.find(Query(open_handoffs=True)).tasks
        meant = [task for task in handed if any(one.id.startswith(given) for one in task.handoffs)]
        return tuple(one for one in self._store.handoffs(meant) if one.id.startswith(given))


def missing_handoff(part: str) -> HandoffNotFound:
    """The error for what no handoff has as its ID."""
    return HandoffNotFound(f"there is no handoff {part[:80]!r}", "list what there is", Call("handoff_list", {}))


_TEXT = 80
_ENTITIES = {"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "&": "#amp;", "%": "#37;", "\\": "#92;"}
_ANSWERS = {"accepted": "-->>", "rejected": "--x", "deferred": "-->>"}


def drawn(task_id: str, handoffs: Sequence[Handoff]) -> dict[str, Any]:
    """The diagram, and the handoffs that it shows."""
    return {"taskId": task_id, "handoffs": [one.id for one in handoffs], "text": mermaid(handoffs)}


def mermaid(handoffs: Sequence[Handoff]) -> str:
    """A diagram of who handed what to whom, and what came back."""
    names = {agent: f"A{number}" for number, agent in enumerate(_agents(handoffs))}
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


def _agents(handoffs: Iterable[Handoff]) -> Iterable[str]:
    return dict.fromkeys(agent for one in handoffs for agent in (one.from_agent, one.to_agent))


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
