"""Operations about questions of running agents. Must not know any surface."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from aof.app.operations.results import Answered, AskedQuestion
from aof.app.operations.rows.fields import ChangeParams
from aof.app.operations.rows.reports import ReportParams
from aof.app.operations.spec import FILLED, Cli, Operation, Spelling, StandIn, param

QuestionId = Annotated[
    str, param("question to answer, such as Q1; needed where several are open", Spelling(metavar="Q"))
]


class AskParams(ReportParams, frozen=True, kw_only=True):
    """What to ask a person, and how long to wait for the answer."""

    text: (
        Annotated[str, param("what to ask", Spelling(place="[TEXT]", stdin=True, also=("--text",)), says=FILLED)]
        | UnsetType
    ) = UNSET
    choices: Annotated[list[str], param("suggested answer", Spelling(option="--choice", metavar="T"))] | UnsetType = (
        UNSET
    )
    question: (
        Annotated[
            str,
            param("instead of a text: question that was asked before, to wait for its answer", Spelling(metavar="Q")),
        ]
        | UnsetType
    ) = UNSET
    wait: (
        Annotated[float, param("seconds to wait for the answer", Spelling(metavar="S", seconds=True), ge=0, le=86_400)]
        | UnsetType
    ) = UNSET
    leave: Annotated[bool, param("end the run; the answer makes the task ready again")] | UnsetType = UNSET


class AnswerParams(ChangeParams, frozen=True, kw_only=True):
    """What to answer, and to which question."""

    text: Annotated[str, param("answer", Spelling(place="TEXT", stdin=True, also=("--text",)))]
    question: QuestionId | UnsetType = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="ask",
        parameters=AskParams,
        result=AskedQuestion,
        help="Ask a person about the task that you run, and wait for the answer.",
        effect="append",
        tool="aof_ask",
        verb="ask",
        cli=Cli(
            section="work",
            order=35,
            summary="ask a person about the task that you run",
            example='aof ask 001 "Which region?" --choice eu --choice us --wait 10m',
        ),
        tier="worker",
        acts="agent",
        tool_shows=("task_id", "text", "choices", "question", "wait", "leave", "run", "actor"),
        example=(("text", "Which region?"), ("choices", ("eu", "us"))),
        stand_in=StandIn(operation="update", keeps=("task_id", "run"), adds=(("status", "blocked"), ("reason", "…"))),
    ),
    Operation(
        name="answer",
        parameters=AnswerParams,
        result=Answered,
        help="Answer an agent's question.",
        effect="write",
        tool="aof_answer",
        verb="answer",
        cli=Cli(section="review", order=5, example='aof answer 001 "eu" --question Q1'),
    ),
)
