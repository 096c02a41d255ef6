"""Operations on runs: reports, reviews, and the questions of running agents. Must not know any surface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, get_args

from msgspec import UNSET, UnsetType

from aof.errors import AofError, Call, InvalidInput, NoQuestion
from aof.kernel import commands
from aof.kernel import results as kernel_results
from aof.kernel.declarations import (
    BY_KEY,
    FILLED,
    Blockers,
    ChangeParams,
    Cli,
    ExpectedRev,
    Hop,
    IdempotencyKey,
    LeaseTime,
    NeededBlockers,
    Object,
    OpenChildren,
    Operation,
    Reason,
    Run,
    Spelling,
    StandIn,
    TaskParams,
    one_of,
    param,
)
from aof.kernel.dispatcher import require_task
from aof.kernel.kinds import Cause, Delivery, Outcome, Status
from aof.kernel.results import Answered, AskedQuestion, Moved
from aof.runs.leases import BEATS_PER_LEASE
from aof.workflows.model import leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import Environment
    from aof.kernel.dispatcher import Dispatcher
    from aof.tasks.model import Question, Task


OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)  # what the schema says; the service understands other words, too

_BODY = ("--brief", "--description")


class WorkerParams(TaskParams, frozen=True, kw_only=True):
    """A worker's write to a task."""

    run: Run | UnsetType = UNSET
    agent: Annotated[str, param("agent that acts")] | UnsetType = UNSET


class ReportParams(WorkerParams, frozen=True, kw_only=True):
    """A worker's write that changes the task."""

    key: IdempotencyKey | UnsetType = UNSET
    expect_rev: ExpectedRev | UnsetType = UNSET


class HeartbeatParams(WorkerParams, frozen=True, kw_only=True):
    """A sign of life."""

    ttl: LeaseTime | UnsetType = UNSET


class ReleaseParams(ReportParams, frozen=True, kw_only=True):
    """Why the task is given back, and whether it can be claimed again at once."""

    reason: Reason | UnsetType = UNSET
    wait_for_children: Annotated[bool, param("let nobody claim it before the tasks below it end")] | UnsetType = UNSET


class ProgressParams(ReportParams, frozen=True, kw_only=True):
    """How far the run is."""

    text: Annotated[str, param("what was achieved", Spelling(place="[TEXT]", also=("--text",)))] | UnsetType = UNSET
    percent: Annotated[float, param("from 0 to 100", ge=0, le=100)] | UnsetType = UNSET
    phase: Annotated[str, param("such as planning, working, verifying")] | UnsetType = UNSET
    note: Annotated[str, param("more detail", Spelling(metavar="T"))] | UnsetType = UNSET
    blockers: Blockers | UnsetType = UNSET
    facts: Annotated[Object, param("fact to record", Spelling(option="--fact", metavar=BY_KEY))] | UnsetType = UNSET


class UpdateParams(ReportParams, frozen=True, kw_only=True):
    """A note, a new body, a new status, or none of them."""

    note: (
        Annotated[str, param("added to the work log", Spelling(place="[TEXT]", also=("--text", "--note")))] | UnsetType
    ) = UNSET
    body: (
        Annotated[str, param("replaces the body, as Markdown", Spelling(metavar="T", stdin=True, also=_BODY))]
        | UnsetType
    ) = UNSET
    status: Annotated[Status, param("new status")] | UnsetType = UNSET
    wait_for_children: Annotated[bool, param("with status ready: until the tasks below it end")] | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET


class CompleteParams(ReportParams, frozen=True, kw_only=True):
    """The outcome of a run."""

    summary: (
        Annotated[str, param("what was done, for the work log", Spelling(place="[TEXT]", also=("--text", "--summary")))]
        | UnsetType
    ) = UNSET
    outcome: (
        Annotated[
            str,
            param(
                "default: complete",
                Spelling(note="(else needs_review or blocked)"),
                says=one_of(OUTCOMES),
            ),
        ]
        | UnsetType
    ) = UNSET
    blockers: (
        Annotated[
            list[str],
            param("what is in the way, with needs_review or blocked", Spelling(option="--blocker", metavar="T")),
        ]
        | UnsetType
    ) = UNSET
    caller_role: Annotated[str, param("your role in the workflow", Spelling(option="--role"))] | UnsetType = UNSET
    summary_ref: Annotated[str, param("file that holds the summary", Spelling(metavar="PATH"))] | UnsetType = UNSET
    deliverables: (
        Annotated[list[str], param("file that was produced", Spelling(option="--deliverable", metavar="PATH"))]
        | UnsetType
    ) = UNSET
    allow_open_children: OpenChildren | UnsetType = UNSET
    withdraw_questions: Annotated[bool, param("though your question is open")] | UnsetType = UNSET
    tests: (
        Annotated[
            dict[str, int],
            param("number of tests: total, passed or failed", Spelling(option="--test", metavar="K=N")),
        ]
        | UnsetType
    ) = UNSET
    notes: Annotated[str, param("notes for the next worker", Spelling(metavar="T", stdin=True))] | UnsetType = UNSET
    acceptance: (
        Annotated[
            list[str | Object],
            param("acceptance criterion that was met", Spelling(metavar="A", note="(text or a JSON object)")),
        ]
        | UnsetType
    ) = UNSET
    hop: Hop | UnsetType = UNSET


class DeliverParams(ReportParams, frozen=True, kw_only=True):
    """Where the output is, and where it should go."""

    state: Annotated[Delivery, param("how far it is (default: delivered)")] | UnsetType = UNSET
    target: Annotated[str, param("who receives it: a task, a channel, a peer", Spelling(option="--to"))] | UnsetType = (
        UNSET
    )
    reason: Reason | UnsetType = UNSET


class FailParams(ReportParams, frozen=True, kw_only=True):
    """What went wrong."""

    code: Annotated[str, param("short name of what went wrong")] | UnsetType = UNSET
    message: (
        Annotated[
            str,
            param("what went wrong", Spelling(option="--reason", metavar="T", also=("--message", "--text", "--error"))),
        ]
        | UnsetType
    ) = UNSET
    cause: Annotated[Cause, param("how the run ended")] | UnsetType = UNSET
    retryable: (
        Annotated[bool, param("whether to try again", Spelling(option="--no-retry", help="do not try again"))]
        | UnsetType
    ) = UNSET


class ApproveParams(ChangeParams, frozen=True, kw_only=True):
    """Why the work is accepted."""

    reason: Reason | UnsetType = UNSET
    hop: Hop | UnsetType = UNSET
    allow_open_children: OpenChildren | UnsetType = UNSET


class RejectParams(ChangeParams, frozen=True, kw_only=True):
    """Why the work is sent back."""

    blockers: NeededBlockers
    hop: Hop | UnsetType = UNSET


REVIEW_ROWS: tuple[Operation, ...] = (
    Operation(
        name="approve",
        parameters=ApproveParams,
        result=Moved,
        help="Accept what is in review.",
        effect="write",
        tool="aof_task_approve",
        stand_in=StandIn(operation="complete", keeps=("task_id",)),
        verb="approve",
        cli=Cli(section="review", order=10, example="aof approve 001"),
        needs="lead",
    ),
    Operation(
        name="reject",
        parameters=RejectParams,
        result=Moved,
        help="Send what is in review back.",
        effect="write",
        tool="aof_task_reject",
        stand_in=StandIn(operation="update", keeps=("task_id",), adds=(("status", "ready"), ("reason", "…"))),
        verb="reject",
        cli=Cli(section="review", order=20, example='aof reject 001 --reason "no tests"'),
        needs="lead",
    ),
)


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


QUESTION_ROWS: tuple[Operation, ...] = (
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


_LOOK_AGAIN = 30.0  # seconds: the longest that a wait goes without a sign of life
_LEFT = "the run has ended; the answer makes the task ready again, and a new claim goes on with it"


class QuestionService:
    """Asks people on behalf of agents, and passes their answers on."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def ask(
        self,
        task_id: str,
        text: str | None = None,
        *,
        choices: Sequence[str] = (),
        question: str | None = None,
        wait: float = 0.0,
        leave: bool = False,
        run: str | None = None,
        agent: str | None = None,
        key: str | None = None,
    ) -> AskedQuestion:
        """Ask a person about the task that you run, and `wait` so many seconds for the answer.

        The lease is renewed meanwhile. With `question` instead of a text, ask after the answer to an earlier question.
        With `leave` the run ends; the answer makes the task ready, and the next run is told.
        """
        if (text is None) == (question is None):
            raise InvalidInput(
                "give either a text to ask, or the question whose answer you wait for",
                "ask something",
                Call("ask", {"task_id": task_id, "text": "…"}),
            )
        if not wait >= 0 or (wait and leave):
            raise InvalidInput(
                "'leave' ends the run, so it cannot wait" if leave else f"waiting for {wait} seconds is not possible",
                "give a number of seconds from 0 up, without 'leave'",
                Call("ask", {"task_id": task_id, "text": "…", "wait": 60}),
            )
        who = {"run": run, "agent": agent}
        if text is None:
            asked = self._renewed(task_id, str(question), who)
        else:
            done = self._dispatcher.on_task(
                commands.Ask, task_id, **who, key=key, text=text, choices=tuple(choices), leave=leave
            )
            task = require_task(done)
            asked = _asked(task, _by_text(task, text))
        return self._patiently(asked, who, wait) if wait else asked

    def _patiently(self, asked: AskedQuestion, who: dict[str, str | None], wait: float) -> AskedQuestion:
        """Wait for the answer; each poll is a heartbeat, and raises an error once the run has ended."""
        store, clock = self._environment.store, self._environment.clock
        deadline = clock.monotonic() + wait
        beat = clock.monotonic() + beat_interval(self._environment.lookup.get(asked.task_id))
        while not asked.answered:
            seen = store.head()
            left = min(deadline, beat) - clock.monotonic()
            if left > 0 and store.wait(seen, left):
                task = self._environment.lookup.get(asked.task_id)
                asked = _asked(task, _by_id(task, asked.question))
                continue
            if clock.monotonic() >= deadline:
                break
            asked = self._renewed(asked.task_id, asked.question, who)
            beat = clock.monotonic() + beat_interval(self._environment.lookup.get(asked.task_id))
        return asked

    def _renewed(self, task_id: str, question: str, who: dict[str, str | None]) -> AskedQuestion:
        """The question as it is now; polling is a heartbeat of the run that waits."""
        done = self._dispatcher.on_task(commands.RecordHeartbeat, task_id, **who)
        task = require_task(done)
        return _asked(task, _by_id(task, question))

    def answer(
        self,
        task_id: str,
        text: str,
        *,
        question: str | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Answered:
        """Answer an agent's question, once; a task that it blocked is ready again."""
        done = self._dispatcher.on_task(
            commands.AnswerQuestion, task_id, actor=actor, key=key, text=text, question=question
        )
        task = require_task(done)
        named = next((event.payload for event in done.events if event.type == "task.question.answered"), None)
        known = _by_id(task, named["question"]) if named is not None else _last_answered(task, question)
        suggested = {one.strip().casefold() for one in known.choices}
        return kernel_results.Answered(
            task_id=task.id,
            status=task.status,
            question=known.id,
            asked_by=known.by,
            none_of=known.choices if suggested and text.strip().casefold() not in suggested else None,
        )


def beat_interval(task: Task) -> float:
    """Seconds between two signs of life."""
    shortest = min((lease.ttl_ms for lease in leases(task)), default=0) / 1000 / BEATS_PER_LEASE
    return min(shortest or _LOOK_AGAIN, _LOOK_AGAIN)


def _by_id(task: Task, question: str) -> Question:
    found = next((one for one in task.questions if one.id == question), None)
    if found is None:
        raise _unknown(task, question)
    return found


def _by_text(task: Task, text: str) -> Question:
    """The question that was just asked: the last one with the same text."""
    said = text.strip()
    found = next((one for one in reversed(task.questions) if one.text == said), None)
    if found is None:  # a request with a key that was made long ago
        raise _unknown(task, said)
    return found


def _last_answered(task: Task, question: str | None) -> Question:
    """The question of a request that is repeated."""
    if question is not None:
        return _by_id(task, question)
    found = next((one for one in reversed(task.questions) if one.answer is not None), None)
    if found is None:
        raise _unknown(task, "")
    return found


def _unknown(task: Task, question: str) -> AofError:
    return NoQuestion(
        f"{task.id} has no question {question[:40]!r}", "see what was asked", Call("show", {"task_id": task.id})
    )


def _asked(task: Task, question: Question) -> AskedQuestion:
    given = question.answer
    left = all(lease.run_id != question.run_id for lease in leases(task))
    open_now = (
        _LEFT if left else f"not answered yet: call again with question {question.id} and wait, or go on meanwhile"
    )
    return kernel_results.AskedQuestion(
        task_id=task.id,
        status=task.status,
        question=question.id,
        answered=given is not None,
        answer=kernel_results.GivenAnswer(text=given.text, by=given.by, at=given.at) if given is not None else None,
        note=open_now if given is None else None,
    )
