"""Operations about handoffs. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from aof.app.handoffs.handoff_results import StartedHandoff
from aof.app.operations.results import Result
from aof.app.operations.rows.fields import Cursor, ExpectedRev, Reason, Run
from aof.app.operations.spec import OBJECTS, TEXTS_OR_OBJECTS, Cli, Extra, Family, Operation, Params, Spelling, param
from aof.core.handoffs.lifecycle.aggregation import Group
from aof.core.model.handoffs.history import TransferMode
from aof.core.model.handoffs.record import Aggregation, ContentType, Handoff, HandoffType, OnTimeout, ReturnStatus
from aof.core.model.org_chart import Risk

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
    run: Run = UNSET
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
    cursor: Cursor = UNSET


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
