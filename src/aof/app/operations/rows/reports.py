"""Parameters of what workers report about a run. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, get_args

from msgspec import UNSET, UnsetType

from aof.app.operations.rows.fields import (
    BY_KEY,
    Blockers,
    ExpectedRev,
    Hop,
    IdempotencyKey,
    LeaseTime,
    Object,
    OpenChildren,
    Reason,
    Run,
)
from aof.app.operations.spec import Spelling, TaskParams, one_of, param
from aof.core.model.kinds import Cause, Delivery, Outcome, Status

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)  # what the schema says; the service understands other words, too

_BODY = ("--brief", "--description")


class WorkerParams(TaskParams, frozen=True, kw_only=True):
    """A worker's write to a task."""

    run: Run = UNSET
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
    allow_open_children: OpenChildren = UNSET
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
    hop: Hop = UNSET


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
