"""The record of a job: what it creates, when, and what has come of it so far. A job is no task.

What each event makes of it stands here too: the log alone rebuilds every job. Must not know how jobs are kept.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.events import Event
from aof.core.model.kinds import Priority

ADDED: Final = "document.job.added"
PAUSED: Final = "document.job.paused"
RESUMED: Final = "document.job.resumed"
DISPATCHED: Final = "document.job.dispatched"
FAILED: Final = "document.job.failed"
REMOVED: Final = "document.job.removed"
LINK: Final = "job"  # the kind of the edge from a task to the job that made it


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Common form."""


class JobTask(_Part, frozen=True, kw_only=True):
    """What a task that a job creates is like, in the words of `create`."""

    title: str
    brief: str = ""
    agent: str | None = None
    role: str | None = None
    team: str | None = None
    priority: Priority = "normal"
    tags: tuple[str, ...] = ()
    workflow: str | None = None
    parent_id: str | None = None
    resource: str | None = None
    review: bool = True


class JobOutcome(_Part, frozen=True, kw_only=True):
    """What has come of one occasion: a task, or why there is none."""

    occasion: str
    at: str
    task_id: str | None = None
    error: str | None = None


class Job(_Part, frozen=True, kw_only=True):
    """A schedule with the task that it creates each time, or a batch of tasks that are created once, in order.

    `handled` is the last due time that is over with; of a batch `done` says how many items are. `last` is what came of
    the last occasion; of a batch `outcomes` has that of each item. `rev` is the log's number of its last event.
    """

    id: str
    created_by: str
    created_at: str
    rev: int = 0
    cron: str | None = None
    at: str | None = None
    timezone: str = "UTC"
    missed: str = "once"
    task: JobTask | None = None
    items: tuple[JobTask, ...] = ()
    paused: bool = False
    handled: str = ""
    done: int = 0
    created: int = 0
    last: JobOutcome | None = None
    outcomes: tuple[JobOutcome, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it by itself."""
        if self.items:
            return self.done >= len(self.items)
        return self.at is not None and self.handled >= self.at


def item_of(occasion: str) -> int | None:
    """The number of the item that an occasion of a batch is about; None for every other occasion."""
    number = occasion.removeprefix("item ")
    return int(number) - 1 if number != occasion else None


def evolve_jobs(jobs: dict[str, Job], event: Event) -> dict[str, Job]:
    """The jobs after an event about one of them; one that is not there changes nothing."""
    name = str(event.payload.get("job"))
    if event.type == ADDED:
        told: dict[str, Any] = event.payload["record"]
        fresh = told | {"rev": event.seq, "createdAt": event.timestamp, "handled": event.timestamp}
        return jobs | {name: msgspec.convert(fresh, prepare_type(Job))}
    job = jobs.get(name)
    if job is None or event.seq <= job.rev:
        return jobs
    if event.type == REMOVED:
        return {other: one for other, one in jobs.items() if other != name}
    return jobs | {name: _changed(msgspec.structs.replace(job, rev=event.seq), event)}


def _changed(job: Job, event: Event) -> Job:
    if event.type == PAUSED:
        return msgspec.structs.replace(job, paused=True)
    if event.type == RESUMED:  # what came due meanwhile was left out on purpose
        return msgspec.structs.replace(job, paused=False, handled=max(job.handled, event.timestamp))
    payload = event.payload
    outcome = JobOutcome(
        occasion=payload["occasion"],
        at=event.timestamp,
        task_id=payload.get("taskId"),
        error=payload.get("error"),
    )
    changes: dict[str, Any] = {"last": outcome, "created": job.created + (outcome.task_id is not None)}
    number = item_of(outcome.occasion)
    if number is not None:
        changes |= {"done": max(job.done, number + 1), "outcomes": (*job.outcomes, outcome)}
    elif payload.get("due"):
        changes["handled"] = max(job.handled, payload["due"])
    return msgspec.structs.replace(job, **changes)
