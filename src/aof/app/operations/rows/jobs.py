"""Operations about jobs: schedules and batches that create tasks. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from aof.app.jobs.service import JobList, JobRan, JobRemoved, JobShown
from aof.app.operations.rows.fields import TASK_TEXT, Resource, Tags, TargetAgent, TargetRole, TargetTeam
from aof.app.operations.spec import OBJECTS, Cli, Extra, Family, Operation, Params, Spelling, one_of, param
from aof.core.jobs.schedule import MISSED
from aof.core.model.kinds import Priority

_JOB = Family(
    verb="job",
    help="add, list, show, pause, resume, run or remove jobs: schedules and batches that create tasks",
    example="aof job add nightly --cron '0 2 * * *' --title 'Nightly check'",
    place="name of the job",
)
_Name = Annotated[str, param("name of the job", Spelling(place="NAME"))]


class JobParams(Params, frozen=True, kw_only=True):
    """Parameters of an operation on one job."""

    job_id: _Name


class JobAddParams(JobParams, frozen=True, kw_only=True):
    """A new job: when, and what it creates."""

    title: Annotated[str, param("title of the tasks that it creates")] | UnsetType = UNSET
    cron: Annotated[str, param("minute, hour, day of month, month and day of week, or @daily")] | UnsetType = UNSET
    at: Annotated[str, param("time of a job that runs once, such as 2026-03-02T09:00")] | UnsetType = UNSET
    timezone: Annotated[str, param("time zone of both, such as Europe/Berlin")] | UnsetType = UNSET
    missed: (
        Annotated[
            str,
            param("what to do about times when nothing ran: skip, once (the newest) or all", says=one_of(MISSED)),
        ]
        | UnsetType
    ) = UNSET
    items: (
        Annotated[
            list[Any],
            param("task of a batch, as a JSON object", Spelling(option="--item", metavar="JSON"), says=OBJECTS),
        ]
        | UnsetType
    ) = UNSET
    brief: Annotated[str, param("description, as Markdown", TASK_TEXT)] | UnsetType = UNSET
    agent: TargetAgent | UnsetType = UNSET
    team: TargetTeam | UnsetType = UNSET
    role: TargetRole | UnsetType = UNSET
    priority: Priority = "normal"
    tags: Tags = msgspec.field(default_factory=list)
    workflow: Annotated[str, param("workflow to pass through")] | UnsetType = UNSET
    parent_id: Annotated[str, param("parent task", Spelling(option="--parent", metavar="ID"))] | UnsetType = UNSET
    resource: Resource | UnsetType = UNSET
    review: (
        Annotated[bool, param("whether a review follows", Spelling(option="--no-review", help="skip the review"))]
        | UnsetType
    ) = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="job_add",
        parameters=JobAddParams,
        result=JobShown,
        help="Add a job that creates a task at the times of a cron expression or once, or a batch of tasks.",
        effect="append",
        tool="aof_job_add",
        verb="job add",
        cli=Cli(
            section="team",
            order=45,
            example="aof job add nightly --cron '0 2 * * *' --title 'Nightly check'",
            extra=(Extra(option="--file", help="a batch: one task per line, as JSON; or -", metavar="FILE"),),
            family=_JOB,
        ),
        needs="lead",
    ),
    Operation(
        name="job_list",
        parameters=Params,
        result=JobList,
        help="All jobs, and when they are due next.",
        effect="read",
        tool="aof_job_list",
        verb="job list",
        cli=Cli(section="team", order=45, example="aof job list", family=_JOB),
    ),
    Operation(
        name="job_show",
        parameters=JobParams,
        result=JobShown,
        help="One job: what it creates and when, and what has come of it.",
        effect="read",
        tool="aof_job_show",
        verb="job show",
        cli=Cli(section="team", order=45, example="aof job show nightly", family=_JOB),
    ),
    Operation(
        name="job_pause",
        parameters=JobParams,
        result=JobShown,
        help="Let nothing come of a job until it is resumed.",
        effect="write",
        tool="aof_job_pause",
        verb="job pause",
        cli=Cli(section="team", order=45, example="aof job pause nightly", family=_JOB),
        needs="lead",
    ),
    Operation(
        name="job_resume",
        parameters=JobParams,
        result=JobShown,
        help="Let a paused job go on; what came due meanwhile is left out.",
        effect="write",
        tool="aof_job_resume",
        verb="job resume",
        cli=Cli(section="team", order=45, example="aof job resume nightly", family=_JOB),
        needs="lead",
    ),
    Operation(
        name="job_run",
        parameters=JobParams,
        result=JobRan,
        help="Create the job's task now, beside its schedule; of a batch, everything that is still to be created.",
        effect="append",
        tool="aof_job_run",
        verb="job run",
        cli=Cli(section="team", order=45, example="aof job run nightly", family=_JOB),
        needs="lead",
    ),
    Operation(
        name="job_rm",
        parameters=JobParams,
        result=JobRemoved,
        help="Remove a job; the tasks that it has created stay.",
        effect="destructive",
        tool="aof_job_rm",
        verb="job rm",
        cli=Cli(section="team", order=45, example="aof job rm nightly", family=_JOB),
        needs="lead",
    ),
)
