"""Operations on jobs, and creating the tasks that are due, each by a command of its own.

Must not know how jobs are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec

from aof.documents import reading
from aof.errors import AofError, InvalidInput
from aof.jobs import rules
from aof.jobs.rules import (
    MISSED,
    NAME,
    PATH,
    AddJob,
    ChangeJob,
    DispatchJob,
    Job,
    JobOutcome,
    JobTask,
    Occasion,
    find_job,
    parse_jobs,
)
from aof.kernel.commands import Create
from aof.kernel.declarations import (
    OBJECTS,
    TASK_TEXT,
    Resource,
    Tags,
    TargetAgent,
    TargetRole,
    TargetTeam,
    one_of,
    param,
)
from aof.kernel.kinds import Priority
from aof.kernel.model import OURSELVES, iso
from aof.kernel.operation import Extra, Family, Spelling, operation
from aof.kernel.results import Result
from aof.store.directory import Problem
from aof.support import nesting
from aof.support.typed import prepare_type
from aof.tasks.operations import with_new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.jobs.rules import JobsFile
    from aof.kernel.commands import OnTask
    from aof.kernel.context import CallContext, Environment
    from aof.kernel.unit_of_work import Done


class JobShown(Result, frozen=True, kw_only=True, omit_defaults=True):
    """A job: what it creates and when, what has come of it, and when it is due next."""

    job_id: str
    state: str
    created_by: str
    created_at: str
    timezone: str
    missed: str
    cron: str | None = None
    at: str | None = None
    next_due: str | None = None
    task: rules.JobTask | None = None
    items: int = 0
    done: int = 0
    created: int = 0
    last: rules.JobOutcome | None = None
    outcomes: tuple[rules.JobOutcome, ...] = ()


class JobList(Result, frozen=True, kw_only=True):
    """All jobs, by name, without the outcomes of single items; and why others cannot be used, by their names."""

    jobs: tuple[JobShown, ...]
    unusable: dict[str, str]


class JobRan(Result, frozen=True, kw_only=True):
    """What a job has created just now."""

    job_id: str
    outcomes: tuple[rules.JobOutcome, ...]


class JobRemoved(Result, frozen=True, kw_only=True):
    """A job that is no more; its tasks stay."""

    job_id: str


_JOB = Family(
    verb="job",
    help="add, list, show, pause, resume, run or remove jobs: schedules and batches that create tasks",
    example="aof job add nightly --cron '0 2 * * *' --title 'Nightly check'",
    place="name of the job",
    section="team",
    order=45,
)
_Name = Annotated[str, param("name of the job", Spelling(place="NAME"))]


@operation(
    effect="append",
    example="aof job add nightly --cron '0 2 * * *' --title 'Nightly check'",
    extra=(Extra(option="--file", help="a batch: one task per line, as JSON; or -", metavar="FILE"),),
    family=_JOB,
    needs="lead",
    shows_defaults=("priority", "tags"),
)
def job_add(
    context: CallContext,
    job_id: _Name,
    *,
    title: Annotated[str, param("title of the tasks that it creates")] | None = None,
    cron: Annotated[str, param("minute, hour, day of month, month and day of week, or @daily")] | None = None,
    at: Annotated[str, param("time of a job that runs once, such as 2026-03-02T09:00")] | None = None,
    timezone: Annotated[str, param("time zone of both, such as Europe/Berlin")] = "UTC",
    missed: Annotated[
        str,
        param("what to do about times when nothing ran: skip, once (the newest) or all", says=one_of(MISSED)),
    ] = "once",
    items: Annotated[
        Sequence[Any],
        param("task of a batch, as a JSON object", Spelling(option="--item", metavar="JSON"), says=OBJECTS),
    ] = (),
    brief: Annotated[str, param("description, as Markdown", TASK_TEXT)] = "",
    agent: TargetAgent | None = None,
    team: TargetTeam | None = None,
    role: TargetRole | None = None,
    priority: Priority = "normal",
    tags: Tags = (),
    workflow: Annotated[str, param("workflow to pass through")] | None = None,
    parent_id: Annotated[str, param("parent task", Spelling(option="--parent", metavar="ID"))] | None = None,
    resource: Resource | None = None,
    review: Annotated[
        bool, param("whether a review follows", Spelling(option="--no-review", help="skip the review"))
    ] = True,
    actor: str | None = None,
) -> JobShown:
    """Add a job that creates a task at the times of a cron expression or once, or a batch of tasks."""
    parent = context.environment.lookup.resolve(parent_id) if parent_id else None
    given = {
        "title": title,
        "brief": brief,
        "agent": agent,
        "role": role,
        "team": team,
        "priority": priority,
        "tags": tuple(tags),
        "workflow": workflow,
        "parentId": parent,
        "resource": resource,
        "review": review,
    }
    caller = actor or context.actor
    record = rules.Job(
        id=job_id,
        created_by=caller,
        created_at="",
        cron=cron,
        at=None if at is None else _moment(at, timezone),
        timezone=timezone,
        missed=missed,
        task=None if title is None else _task(given, "the task"),
        items=tuple(_task(item, f"item {number}") for number, item in enumerate(items, 1)),
    )
    context.dispatch(AddJob(actor=caller, job_id=job_id, job=record))
    return job_show(context, job_id)


@operation(effect="read", example="aof job list", family=_JOB)
def job_list(context: CallContext) -> JobList:
    """All jobs, and when they are due next."""
    file = read_jobs(context.environment)
    shown = tuple(_shown(context, job, whole=False) for _, job in sorted(file.jobs.items()))
    return JobList(jobs=shown, unusable={name: one.error.message for name, one in sorted(file.unusable.items())})


@operation(effect="read", example="aof job show nightly", family=_JOB)
def job_show(context: CallContext, job_id: _Name) -> JobShown:
    """One job: what it creates and when, and what has come of it."""
    return _shown(context, find_job(read_jobs(context.environment), job_id), whole=True)


@operation(effect="write", example="aof job pause nightly", family=_JOB, needs="lead")
def job_pause(context: CallContext, job_id: _Name, *, actor: str | None = None) -> JobShown:
    """Let nothing come of a job until it is resumed."""
    return _changed(context, job_id, rules.PAUSED, actor)


@operation(effect="write", example="aof job resume nightly", family=_JOB, needs="lead")
def job_resume(context: CallContext, job_id: _Name, *, actor: str | None = None) -> JobShown:
    """Let a paused job go on; what came due meanwhile is left out."""
    return _changed(context, job_id, rules.RESUMED, actor)


@operation(effect="append", example="aof job run nightly", family=_JOB, needs="lead")
def job_run(context: CallContext, job_id: _Name, *, actor: str | None = None) -> JobRan:
    """Create the job's task now, beside its schedule; of a batch, everything that is still to be created."""
    here, outcomes = context.environment, list[rules.JobOutcome]()
    caller = actor or context.actor
    while True:
        job = find_job(read_jobs(here), job_id)
        occasions = rules.by_hand(job, here.clock.now())
        taken = tuple(dispatched(here, context.dispatcher.dispatch, job, occasions, caller))
        outcomes += taken
        if not job.items or not taken:
            return JobRan(job_id=job_id, outcomes=tuple(outcomes))


@operation(effect="destructive", example="aof job rm nightly", family=_JOB, needs="lead")
def job_rm(context: CallContext, job_id: _Name, *, actor: str | None = None) -> JobRemoved:
    """Remove a job; the tasks that it has created stay."""
    context.dispatch(ChangeJob(actor=actor or context.actor, job_id=job_id, event=rules.REMOVED))
    return JobRemoved(job_id=job_id)


def _changed(context: CallContext, job_id: str, event: str, actor: str | None) -> JobShown:
    context.dispatch(ChangeJob(actor=actor or context.actor, job_id=job_id, event=event))
    return job_show(context, job_id)


def _shown(context: CallContext, job: rules.Job, *, whole: bool) -> JobShown:
    coming = rules.next_due(job, context.environment.clock.now()) if not job.items else None
    return JobShown(
        job_id=job.id,
        state="ended" if job.ended else "paused" if job.paused else "active",
        created_by=job.created_by,
        created_at=job.created_at,
        cron=job.cron,
        at=job.at,
        timezone=job.timezone,
        missed=job.missed,
        next_due=None if coming is None else iso(coming),
        task=job.task,
        items=len(job.items),
        done=job.done,
        created=job.created,
        last=job.last,
        outcomes=job.outcomes if whole else (),
    )


def _moment(text: str, timezone: str) -> str:
    where = rules.zone(timezone)
    when = where if isinstance(where, AofError) else rules.moment(text, where)
    if isinstance(when, AofError):
        raise when
    return iso(when)


def _task(given: Any, what: str) -> rules.JobTask:
    try:
        return msgspec.convert(given, prepare_type(rules.JobTask))
    except (msgspec.ValidationError, RecursionError) as error:
        fields = ", ".join(field.encode_name for field in msgspec.structs.fields(rules.JobTask))
        raise InvalidInput(f"{what} is not possible: {nesting.reason(error)[:200]}", f"an item has {fields}") from None


Execute = Callable[["OnTask"], "Done"]


def read_jobs(here: Environment, *, catch_up: bool = True) -> JobsFile:
    """All jobs as they are now; raises UnreadableJobs. Without `catch_up` nothing is written."""
    look = reading.texts if catch_up else reading.foreseen
    return parse_jobs(look(here, NAME, PATH)[PATH])


def job_problems(here: Environment) -> Iterator[Problem]:
    """What keeps jobs from running: a file that cannot be used, and occasions that no task came of."""
    try:
        file = read_jobs(here, catch_up=False)
    except AofError as error:
        yield Problem(error.code, PATH, error.message, error.hint)
        return
    for one in file.unusable.values():
        yield Problem(one.error.code, PATH, one.error.message, one.error.hint)
    for job in file.jobs.values():
        if job.last is not None and job.last.error is not None:
            detail = f"job '{job.id}' could not create the task of {job.last.occasion}: {job.last.error}"
            yield Problem("job_failed", PATH, detail, f"see 'aof job show {job.id}'")


def dispatched(
    here: Environment, execute: Execute, job: Job, occasions: Iterable[Occasion], actor: str = OURSELVES
) -> Iterator[JobOutcome]:
    """Take the occasions one after the other; ends early where somebody else is at the job."""
    seen = job.rev
    for occasion in occasions:
        command = partial(_command, here, job, occasion, seen, actor)
        done = with_new_id(here, lambda task_id, command=command: execute(command(task_id)))  # type: ignore[misc]
        told = next((event for event in done.events if event.payload.get("job") == job.id), None)
        if told is None:
            return
        seen = told.seq
        task_id, error = told.payload.get("taskId"), told.payload.get("error")
        yield JobOutcome(occasion=occasion.name, at=told.timestamp, task_id=task_id, error=error)


def _command(  # noqa: PLR0917 - the parts of one request
    here: Environment, job: Job, occasion: Occasion, seen: int, actor: str, task_id: str
) -> DispatchJob:
    create: OnTask = _creation(job, occasion.task, f"job:{job.id}:{job.created_at}:{occasion.name}", task_id)
    unusable = None
    try:
        create = here.templates.gated(create, occasion.task.workflow)
    except AofError as error:
        unusable = f"{error.code}: {error.message}"
    assert isinstance(create, Create)
    return DispatchJob(
        actor=actor,
        job_id=job.id,
        seen=seen,
        occasion=occasion.name,
        due=occasion.due,
        create=create,
        unusable=unusable,
    )


def _creation(job: Job, task: JobTask, key: str, task_id: str) -> Create:
    """The task is made by AOF for the one who made the job."""
    return Create(
        actor=OURSELVES,
        agent=job.created_by,
        task_id=task_id,
        title=task.title,
        body=task.brief,
        assignee=task.agent,
        role=task.role,
        team=task.team,
        priority=task.priority,
        tags=task.tags,
        workflow=task.workflow,
        parent_id=task.parent_id,
        fields={"resource": task.resource} if task.resource is not None else {},
        metadata={} if task.review else {"reviewRequired": False},
        key=key,
    )
