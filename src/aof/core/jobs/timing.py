"""What is wrong with a job, which occasions of it are due, and when to look again. Must not know how jobs are kept."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Final

import msgspec

from aof.core.errors.base import AofError, InvalidInput
from aof.core.jobs import cron, schedule
from aof.core.jobs.job import Job, JobTask
from aof.core.model.ids import is_agent_name
from aof.core.model.times import iso, millis
from aof.core.validation import limits
from aof.core.validation.task_fields import malformed

MOST_ITEMS: Final = 500
MOST_JOBS: Final = 200
_BYTES: Final = 400_000
_ID: Final = 64
_AT_ONCE: Final = 50  # items of a batch in one turn of the scheduler


class Occasion(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a job creates a task: a due time, an item of a batch, or because somebody asked."""

    name: str
    task: JobTask
    due: str | None = None


def problem(job: Job) -> AofError | None:
    """Why a job cannot be accepted, as somebody has described it."""
    if not is_agent_name(job.id) or len(job.id) > _ID:
        return InvalidInput(
            f"'{job.id[:80]}' cannot name a job", f"use up to {_ID} letters, digits and . _ - @ : +, such as nightly"
        )
    if sum((job.cron is not None, job.at is not None, bool(job.items))) != 1:
        return InvalidInput(
            "a job has a cron expression, or a time, or items", "give exactly one of cron, at and items"
        )
    if (job.task is None) != bool(job.items):
        return InvalidInput("a schedule has one task and a batch has items", "give a title, or items with titles")
    if len(job.items) > MOST_ITEMS:
        return limits.items("items", ["item"] * len(job.items), MOST_ITEMS)
    said = limits.data("the job", msgspec.to_builtins(job), _BYTES) or limits.choice(
        "missed", job.missed, schedule.MISSED
    )
    tasks = job.items or (job.task,)
    return said or next((wrong for task in tasks if task and (wrong := _bad_task(task))), None) or _bad_times(job)


def _bad_task(task: JobTask) -> AofError | None:
    routing = {"agent": task.agent, "role": task.role, "team": task.team, "workflow": task.workflow, "tags": task.tags}
    return malformed(
        {
            "title": task.title,
            "body": task.brief,
            "priority": task.priority,
            "parentId": task.parent_id,
            "resource": task.resource,
            "routing": routing,
        }
    )


def _bad_times(job: Job) -> AofError | None:
    for given in (job.created_at, job.handled):
        when = schedule.moment(given, UTC)
        if isinstance(when, AofError):
            return when
    if not 0 <= job.done <= len(job.items):
        return InvalidInput(f"{job.done} of {len(job.items)} items cannot be done", "correct 'done'")
    where = schedule.zone(job.timezone)
    if isinstance(where, AofError):
        return where
    times = _times(job, where)
    if isinstance(times, AofError):
        return times
    if isinstance(times, cron.Cron) and schedule.next_after(times, where, millis(job.created_at)) is None:
        return InvalidInput(f"'{job.cron}' never comes", "choose a day that there is")
    return None


def _times(job: Job, where: tzinfo) -> cron.Cron | int | AofError | None:
    """The times of a schedule; None for a batch, which has none."""
    if job.at is not None:
        return schedule.moment(job.at, where)
    return None if job.cron is None else cron.parse(job.cron)


def due(job: Job, now: int) -> tuple[Occasion, ...]:
    """The occasions of a job that are to be taken now, in order; of a batch only the next few items."""
    if job.paused or job.ended:
        return ()
    if job.items:
        coming = enumerate(job.items[job.done : job.done + _AT_ONCE], job.done + 1)
        return tuple(Occasion(name=f"item {number}", task=task) for number, task in coming)
    where = schedule.zone(job.timezone)
    times = where if isinstance(where, AofError) else _times(job, where)
    if times is None or job.task is None or isinstance(where, AofError) or isinstance(times, AofError):
        return ()
    policy = next(one for one in schedule.MISSED if one == job.missed)
    found = schedule.due(times, where, policy, millis(job.handled), now)
    return tuple(Occasion(name=iso(one), task=job.task, due=iso(one)) for one in found)


def next_due(job: Job, now: int) -> int | None:
    """When the next occasion comes; None where none does, or only after somebody resumes the job."""
    if job.paused or job.ended:
        return None
    if job.items:
        return now
    where = schedule.zone(job.timezone)
    times = where if isinstance(where, AofError) else _times(job, where)
    if isinstance(where, AofError) or isinstance(times, AofError) or times is None:
        return None
    if isinstance(times, int):
        return times if times > now else None
    return schedule.next_after(times, where, max(now, millis(job.handled)))


def by_hand(job: Job, now: int) -> tuple[Occasion, ...]:
    """The occasions of a job that somebody runs now, whatever its schedule says."""
    if job.items:
        return due(msgspec.structs.replace(job, paused=False), now)
    return (Occasion(name=f"by hand {iso(now)}", task=job.task),) if job.task is not None else ()
