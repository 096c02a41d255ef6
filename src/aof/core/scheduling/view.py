"""What a plan looks at: the unfinished tasks at one moment, and the same while they are being planned for.

A view adds what has been given out, what was said, and when to look again. Must not know how a snapshot was read, nor
any rule of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from aof.core.model.handoffs.record import Handoff
from aof.core.model.policy import Policy
from aof.core.model.run import Heartbeat
from aof.core.model.task import Task
from aof.core.org.health import agent_health as health
from aof.core.runs.lease_clock import Boot, present
from aof.core.scheduling.crew import STARTED, Capacity, Crew

_TOLD = 3  # agents of which a reason says why they take nothing


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


class View:
    """What the rules of a plan look at, and where they leave what they want."""

    def __init__(self, snapshot: Snapshot, crew: Crew, policy: Policy, now: int) -> None:
        self.snapshot = snapshot
        self.crew = crew
        self.policy = policy
        self.now = now
        most = policy.scheduling.max_concurrent
        self.capacity = Capacity(snapshot.running, crew, most, policy.resource_slots)
        self.next_at: int | None = None
        self.actions: list[Action] = []
        self.left: list[LeftAlone] = []

    def leave(self, task: Task, reasons: Iterable[str]) -> None:
        """Say what is not done with parts of a task, beside what is."""
        self.left += [LeftAlone(task_id=task.id, reason=reason) for reason in reasons]

    def first_fit(self, agents: Iterable[str]) -> tuple[str | None, str]:
        """The first of some agents that can be given something now; else why the first ones cannot."""
        reasons: list[str] = []
        for agent in agents:
            why_not = self.unfit(agent)
            if why_not is None:
                return agent, ""
            reasons.append(why_not)
        return None, "; ".join(reasons[:_TOLD]) or "nobody can take it"

    def unfit(self, agent: str) -> str | None:
        """Why this agent is not given anything now."""
        seat = self.crew.seats.get(agent)
        if seat is None or seat.kind not in STARTED:
            return f"waits for {agent} to claim it"
        if not seat.active:
            return f"{agent} is not active"
        return self.capacity.full() or self.capacity.full_for(seat)

    def again(self, at: int) -> None:
        """The answer may be another one from that moment on."""
        if at > self.now and (self.next_at is None or at < self.next_at):
            self.next_at = at

    def heartbeat(self, task: Task) -> Heartbeat | None:
        """The task's last sign of life, as of now."""
        return self.beat_of(task.id)

    def beat_of(self, place: str) -> Heartbeat | None:
        """The last sign of life of a task's run, or of a hop's, as of now."""
        return present(self.snapshot.heartbeats.get(place), self.now, self.snapshot.boot)
