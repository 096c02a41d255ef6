"""A snapshot while it is being planned for: what has been given out, what was said, and when to look again.

Must not know any rule of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable

from aof.core.model.policy import Policy
from aof.core.model.run import Heartbeat
from aof.core.model.task import Task
from aof.core.runs.lease_clock import present
from aof.core.scheduling.capacity import Capacity
from aof.core.scheduling.crew import STARTED, Crew
from aof.core.scheduling.snapshot import Action, LeftAlone, Snapshot

_TOLD = 3  # agents of which a reason says why they take nothing


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
