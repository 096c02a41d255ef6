"""A small model of a team's work, written from the design and from nothing else.

It knows tasks that wait for each other, claims, failures, review, cancelling and retries, but no files, no log and no
lock. Each method does what the operation of that name should do, and tells the code of the refusal, or `ok`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LEASE = 300_000
TERMINAL = ("done", "cancelled", "deadletter")


@dataclass
class Modelled:
    """One task."""

    waits_for: tuple[str, ...] = ()
    review: bool = True
    most: int = 3
    status: str = "ready"
    runs: int = 0
    reported: int = 0  # the run whose completion is on record
    holder: str | None = None
    ends: int = 0
    failures: int = 0
    not_before: int = 0
    dead: str | None = None
    archived: bool = False


@dataclass
class Model:
    """All tasks."""

    tasks: dict[str, Modelled] = field(default_factory=dict)

    def create(self, name: str, *, waits_for: tuple[str, ...], review: bool, most: int) -> None:
        """A new task, blocked from the start where it waits for something dead."""
        self.tasks[name] = Modelled(waits_for=waits_for, review=review, most=most)
        self._back(name)

    def claim(self, name: str, agent: str, now: int) -> str:
        """Exactly one claimant, and only of what is ready to run; what another has left behind is recovered first."""
        task = self.tasks[name]
        if task.holder not in (None, agent) and task.ends <= now:
            self._failed(name, now)
        if task.holder is not None:
            return "already_claimed"
        if task.status != "ready" or task.not_before > now or not self._met(task):
            return "not_ready"
        task.status, task.holder, task.ends, task.not_before = "in-progress", agent, now + LEASE, 0
        task.runs += 1
        return "ok"

    def claim_next(self, now: int) -> set[str]:
        """What could be claimed; where there is nothing, what was left behind is recovered first."""
        if not self.offered(now):
            self.recover(now)
        return self.offered(now)

    def offered(self, now: int) -> set[str]:
        """What could be claimed."""
        ready = {name: task for name, task in self.tasks.items() if task.status == "ready" and task.holder is None}
        return {name for name, task in ready.items() if task.not_before <= now and self._met(task)}

    def _met(self, task: Modelled) -> bool:
        return all(self.tasks[name].status == "done" for name in task.waits_for)

    def beat(self, name: str, run: int, now: int) -> str:
        """The lease lasts longer; also one that has run out and that nobody has reclaimed."""
        task = self.tasks[name]
        if not self._holds(task, run):
            return "stale_lease"
        task.ends = max(task.ends, now + LEASE)
        return "ok"

    def release(self, name: str, run: int) -> str:
        """Given back, which is not a failure."""
        if not self._holds(self.tasks[name], run):
            return "stale_lease"
        self._end(name, "ready")
        return "ok"

    def complete(self, name: str, run: int) -> str:
        """To review, or to done where none is wanted. Repeating it changes nothing."""
        task = self.tasks[name]
        if run == task.runs and (task.status in ("done", "review") or task.reported == run):
            return "ok"
        if not self._holds(task, run):
            return "stale_lease"
        task.reported = run
        self._end(name, "review" if task.review else "done")
        return "ok"

    def fail(self, name: str, run: int, now: int) -> str:
        """Tried again after a while, or given up."""
        if not self._holds(self.tasks[name], run):
            return "stale_lease"
        self._failed(name, now)
        return "ok"

    def recover(self, now: int) -> set[str]:
        """Runs without a sign of life fail."""
        lost = {name for name, task in self.tasks.items() if task.holder is not None and task.ends <= now}
        for name in sorted(lost):
            self._failed(name, now)
        return lost

    def _failed(self, name: str, now: int) -> None:
        task = self.tasks[name]
        task.failures += 1
        if task.failures >= task.most:
            self._end(name, "deadletter")
        else:
            task.not_before = now + min(60_000 * 3 ** (task.failures - 1), 900_000)
            self._end(name, "ready")

    def approve(self, name: str) -> str:
        """Only what is in review."""
        task = self.tasks[name]
        if task.status not in ("review", "done"):
            return "invalid_transition"
        task.status = "done"
        return "ok"

    def reject(self, name: str) -> str:
        """To be done again."""
        if self.tasks[name].status != "review":
            return "invalid_transition"
        self._end(name, "ready")
        return "ok"

    def cancel(self, name: str) -> str:
        """Ends whatever goes on."""
        task = self.tasks[name]
        if task.status in ("done", "deadletter"):
            return "invalid_transition"
        if task.status != "cancelled":
            self._end(name, "cancelled")
        return "ok"

    def block(self, name: str) -> str:
        """Held by hand."""
        task = self.tasks[name]
        if task.status in TERMINAL:
            return "invalid_transition"
        if task.status != "blocked":
            self._end(name, "blocked")
            task.dead = None
        return "ok"

    def unblock(self, name: str) -> str:
        """By hand; blocked again at once where it waits for something dead."""
        task = self.tasks[name]
        if task.status == "ready":
            return "ok"
        if task.status != "blocked":
            return "invalid_transition"
        task.status, task.dead = "ready", None
        self._back(name)
        return "ok"

    def retry(self, name: str, now: int) -> str:
        """A finished task once more, or at once instead of later."""
        task = self.tasks[name]
        if task.archived:
            return "not_found"
        if task.status not in (*TERMINAL, "ready"):
            return "invalid_transition"
        if task.status == "ready" and task.not_before <= now:
            return "ok"
        finished = task.status in TERMINAL
        task.failures, task.not_before = 0, 0
        if finished:
            self._end(name, "ready")
            for other in self.tasks.values():
                if other.status == "blocked" and other.dead == name:
                    other.status, other.dead = "ready", None
                    self._hold(other, but=name)
        return "ok"

    def archive(self, name: str) -> str:
        """Only what is finished."""
        task = self.tasks[name]
        if task.status not in TERMINAL:
            return "invalid_transition"
        task.archived = True
        return "ok"

    def _holds(self, task: Modelled, run: int) -> bool:
        return task.holder is not None and run == task.runs

    def _end(self, name: str, status: str) -> None:
        task = self.tasks[name]
        task.holder, task.status = None, status
        if status == "ready":
            self._back(name)
        if status in ("cancelled", "deadletter"):
            for other in self.tasks.values():
                if name in other.waits_for and other.status == "ready":
                    other.status, other.dead = "blocked", name

    def _back(self, name: str) -> None:
        self._hold(self.tasks[name])

    def _hold(self, task: Modelled, but: str | None = None) -> None:
        """Nobody waits silently for something dead."""
        dead = self._dead_for(task, but)
        if dead is not None:
            task.status, task.dead = "blocked", dead

    def _dead_for(self, task: Modelled, but: str | None = None) -> str | None:
        dead = (name for name in task.waits_for if self.tasks[name].status in ("cancelled", "deadletter"))
        return next((name for name in dead if name != but), None)
