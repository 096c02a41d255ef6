"""What a plan looks at: the unfinished tasks at one moment. Must not know how it was read."""

from __future__ import annotations

import msgspec

from aof.core.model.handoffs.record import Handoff
from aof.core.model.run import Heartbeat
from aof.core.model.task import Task
from aof.core.org.health import agent_health as health
from aof.core.runs.lease_clock import Boot


class Overdue(msgspec.Struct, frozen=True, kw_only=True):
    """A file with records that need not be kept any longer."""

    path: str
    records: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Unfinished tasks by what can be done with them, each group in the order of the schedule.

    `free` are those in `ready` and `backlog` that wait for no other task. `hosted` are the runs that this process
    keeps alive, `orphaned` those whose host has died. `handoffs` are messages that wait for an answer, `handed` the
    engine's open handoffs with their tasks, `answers` the tasks by which agents answer some of those, and `triggered`
    the task, trigger and reason of every handoff of a task that is not over. `hosting` says that agents can be started,
    `watches` are the agents whose health is checked. `overdue` are files to prune, and `overdue_at` is when there may
    be more. Of finished tasks only those are part of it that are to be archived, and the one that is next, however many
    there are.
    """

    running: tuple[Task, ...] = ()
    backlog: tuple[Task, ...] = ()
    ready: tuple[Task, ...] = ()
    blocked: tuple[Task, ...] = ()
    review: tuple[Task, ...] = ()
    finished: tuple[Task, ...] = ()
    free: frozenset[str] = frozenset()
    heartbeats: dict[str, Heartbeat | None] = {}
    boot: Boot | None = None
    hosted: frozenset[str] = frozenset()
    orphaned: frozenset[str] = frozenset()
    handoffs: tuple[Handoff, ...] = ()
    handed: tuple[tuple[Task, Handoff], ...] = ()
    triggered: frozenset[tuple[str, str, str]] = frozenset()
    answers: dict[str, Task] = {}
    hosting: bool = False
    watches: dict[str, health.Watch] = {}
    overdue: tuple[Overdue, ...] = ()
    overdue_at: int | None = None


class Action(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One thing to do, and why. `agent` is who is to do the task, `run_id` the run that it is about.

    Of mail it is about a message, and no task.
    What concerns no task has an empty `task_id`. A handoff that is to begin goes from `agent` to `to_agent`, for what
    `trigger` names.
    """

    action: str
    task_id: str
    reason: str
    agent: str | None = None
    run_id: str | None = None
    hop: str | None = None
    handoff_id: str | None = None
    message_id: str | None = None
    trigger: str | None = None
    to_agent: str | None = None


class LeftAlone(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A task with which nothing is done, and why not."""

    task_id: str
    reason: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now, what not, and the moment from which the answer may be another one though nothing happened."""

    actions: tuple[Action, ...] = ()
    left: tuple[LeftAlone, ...] = ()
    next_at: int | None = None
