"""Lets jobs create what is due, each task by a command of its own that looks again under its own locks.

Must not know when something is due, nor how jobs are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from aof.app.documents import reading
from aof.app.tasks.service import with_new_id
from aof.core.errors.base import AofError
from aof.core.jobs.job import Job, JobOutcome, JobTask
from aof.core.jobs.timing import Occasion
from aof.core.model.commands import Create
from aof.core.model.ids import OURSELVES
from aof.documents.jobs.commands import DispatchJob
from aof.documents.jobs.projection import NAME, PATH, parsed
from aof.ports.working_copy import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.app.commands.unit_of_work import Done
    from aof.core.model.commands import OnTask
    from aof.documents.jobs.projection import JobsFile

Execute = Callable[["OnTask"], "Done"]


def read(here: Environment, *, catch_up: bool = True) -> JobsFile:
    """All jobs as they are now; raises UnreadableJobs. Without `catch_up` nothing is written."""
    look = reading.texts if catch_up else reading.foreseen
    return parsed(look(here, NAME, PATH)[PATH])


def problems(here: Environment) -> Iterator[Problem]:
    """What keeps jobs from running: a file that cannot be used, and occasions that no task came of."""
    try:
        file = read(here, catch_up=False)
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
        resource=task.resource,
        metadata={} if task.review else {"reviewRequired": False},
        key=key,
    )
