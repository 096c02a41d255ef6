"""Operations on jobs. Must not know how jobs are kept, nor any surface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from aof._support import nesting
from aof._support.typed import prepare_type
from aof.app.jobs.dispatch import dispatched, read
from aof.app.operations.results import Result
from aof.core.errors.base import AofError, InvalidInput
from aof.core.jobs import job as j
from aof.core.jobs import schedule, timing
from aof.core.model.times import iso
from aof.documents.jobs.commands import AddJob, ChangeJob, found

if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher
    from aof.core.model.kinds import Priority


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
    task: j.JobTask | None = None
    items: int = 0
    done: int = 0
    created: int = 0
    last: j.JobOutcome | None = None
    outcomes: tuple[j.JobOutcome, ...] = ()


class JobList(Result, frozen=True, kw_only=True):
    """All jobs, by name, without the outcomes of single items; and why others cannot be used, by their names."""

    jobs: tuple[JobShown, ...]
    unusable: dict[str, str]


class JobRan(Result, frozen=True, kw_only=True):
    """What a job has created just now."""

    job_id: str
    outcomes: tuple[j.JobOutcome, ...]


class JobRemoved(Result, frozen=True, kw_only=True):
    """A job that is no more; its tasks stay."""

    job_id: str


class JobService:
    """Adds, shows, runs and removes jobs."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def job_add(
        self,
        job_id: str,
        *,
        title: str | None = None,
        cron: str | None = None,
        at: str | None = None,
        timezone: str = "UTC",
        missed: str = "once",
        items: Sequence[Any] = (),
        brief: str = "",
        agent: str | None = None,
        role: str | None = None,
        team: str | None = None,
        priority: Priority = "normal",
        tags: Sequence[str] = (),
        workflow: str | None = None,
        parent_id: str | None = None,
        resource: str | None = None,
        review: bool = True,
        actor: str | None = None,
    ) -> JobShown:
        """Add a job: a task at the times of a cron expression or once, or a batch of tasks."""
        parent = self._environment.lookup.resolve(parent_id) if parent_id else None
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
        caller = actor or self._dispatcher.actor
        record = j.Job(
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
        self._dispatcher.dispatch(AddJob(actor=caller, job_id=job_id, job=record))
        return self.job_show(job_id)

    def job_list(self) -> JobList:
        """All jobs, by name."""
        file = read(self._environment)
        shown = tuple(self._shown(job, whole=False) for _, job in sorted(file.jobs.items()))
        return JobList(jobs=shown, unusable={name: one.error.message for name, one in sorted(file.unusable.items())})

    def job_show(self, job_id: str) -> JobShown:
        """One job, with what has come of each item of a batch."""
        return self._shown(found(read(self._environment), job_id), whole=True)

    def job_pause(self, job_id: str, *, actor: str | None = None) -> JobShown:
        """Let nothing come of a job until it is resumed."""
        return self._changed(job_id, j.PAUSED, actor)

    def job_resume(self, job_id: str, *, actor: str | None = None) -> JobShown:
        """Let a paused job go on; what came due meanwhile is left out."""
        return self._changed(job_id, j.RESUMED, actor)

    def job_run(self, job_id: str, *, actor: str | None = None) -> JobRan:
        """Create the job's task now, beside its schedule; of a batch, everything that is still to be created."""
        here, outcomes = self._environment, list[j.JobOutcome]()
        caller = actor or self._dispatcher.actor
        while True:
            job = found(read(here), job_id)
            occasions = timing.by_hand(job, here.clock.now())
            taken = tuple(dispatched(here, self._dispatcher.dispatch, job, occasions, caller))
            outcomes += taken
            if not job.items or not taken:
                return JobRan(job_id=job_id, outcomes=tuple(outcomes))

    def job_rm(self, job_id: str, *, actor: str | None = None) -> JobRemoved:
        """Remove a job; the tasks that it has created stay."""
        self._dispatcher.dispatch(ChangeJob(actor=actor or self._dispatcher.actor, job_id=job_id, event=j.REMOVED))
        return JobRemoved(job_id=job_id)

    def _changed(self, job_id: str, event: str, actor: str | None) -> JobShown:
        self._dispatcher.dispatch(ChangeJob(actor=actor or self._dispatcher.actor, job_id=job_id, event=event))
        return self.job_show(job_id)

    def _shown(self, job: j.Job, *, whole: bool) -> JobShown:
        coming = timing.next_due(job, self._environment.clock.now()) if not job.items else None
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
    where = schedule.zone(timezone)
    when = where if isinstance(where, AofError) else schedule.moment(text, where)
    if isinstance(when, AofError):
        raise when
    return iso(when)


def _task(given: Any, what: str) -> j.JobTask:
    try:
        return msgspec.convert(given, prepare_type(j.JobTask))
    except (msgspec.ValidationError, RecursionError) as error:
        fields = ", ".join(field.encode_name for field in msgspec.structs.fields(j.JobTask))
        raise InvalidInput(f"{what} is not possible: {nesting.reason(error)[:200]}", f"an item has {fields}") from None
