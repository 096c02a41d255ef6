"""What the portable view looks at: all lives at one moment, and what stands beside the log. Must not read anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from aof.app.portable.task_histories import Attempt, Life, Lives
from aof.core.model.ids import split_task_id
from aof.core.model.lifecycle import FINISHED
from aof.core.model.org_chart import OrgChart
from aof.core.model.policy import Policy
from aof.core.model.records import Records
from aof.core.model.run import Heartbeat, lease_end
from aof.core.model.task import Task
from aof.core.model.times import millis
from aof.core.model.workflow import leases
from aof.core.tasks.normalized_status import Normalized, normalized_status


class Scene:
    """The lives, the signs of life and what is odd about files.

    In the past there are neither: a lease counts there until the log ends it, and the time is that of the last event.
    """

    def __init__(
        self,
        lives: Lives,
        policy: Policy,
        *,
        now: int | None = None,
        chart: OrgChart | None = None,
        beats: Mapping[str, Heartbeat] | None = None,
        odd: Mapping[str, str] | None = None,
    ) -> None:
        self.lives = lives
        self.policy = policy
        self.chart = chart
        self._live = now is not None
        self.now = now if now is not None else millis(lives.moment) if lives.moment else 0
        self._beats = beats or {}
        self.odd = odd or {}
        self._status: dict[str, Normalized] = {}

    def task(self, task_id: str) -> Task | None:
        """A task that may not be there."""
        life = self.lives.by_id.get(task_id)
        return life.task if life is not None else None

    def status(self, task: Task) -> Normalized:
        """The normalized status."""
        known = self._status.get(task.id)
        if known is None:
            known = self._status[task.id] = self._judged(task)
        return known

    def _judged(self, task: Task) -> Normalized:
        odd = self.odd.get(task.id)
        if odd is not None:
            return normalized_status(task if odd == "stale" else None, None, self.now, stale=True)
        if not self._live:
            return as_logged(task, self.now)
        return normalized_status(task, self._last_beat(task), self.now)

    def _last_beat(self, task: Task) -> Heartbeat | None:
        """Of several hops the sign of life that lasts longest speaks for the task."""
        beats = [self._beats[lease.run_id] for lease in leases(task) if lease.run_id in self._beats]
        return max(beats, key=lambda beat: beat.expires_at, default=None)

    def run_status(self, life: Life, attempt: Attempt) -> str:
        """How a run stands that the task is held with: its own lease and its own signs of life count."""
        run_id = attempt.run.run_id
        lease = next((one for one in leases(life.task) if one.run_id == run_id), None)
        beat = self._beats.get(run_id)
        if self._live and lease is not None and lease_end(lease, beat) <= self.now:
            return "unavailable"
        alive = (beat is not None and beat.beat_count > 0) or attempt.checkpoint is not None
        return "running" if alive else "preparing"

    @cached_property
    def children(self) -> dict[str, list[Life]]:
        """The tasks below each task, in the order of their IDs."""
        found: dict[str, list[Life]] = {}
        for life in self.ordered:
            above = life.parent
            if above is not None:
                found.setdefault(above[0], []).append(life)
        return found

    @cached_property
    def dependents(self) -> dict[str, list[Life]]:
        """Who waits for each task, in the order of their IDs."""
        found: dict[str, list[Life]] = {}
        for life in self.ordered:
            for blocker in life.task.depends_on:
                found.setdefault(blocker, []).append(life)
        return found

    @cached_property
    def ordered(self) -> list[Life]:
        """All lives, by day and number of their IDs."""
        return [self.lives.by_id[one] for one in sorted(self.lives.by_id, key=split_task_id)]

    @cached_property
    def records(self) -> Records:
        """All that the ready rule may look at."""
        tasks: dict[str, Task | None] = {life.task.id: life.task for life in self.ordered}
        records = Records(policy=self.policy, tasks=tasks)
        for task_id in tasks:
            below = (life.task for life in self.children.get(task_id, ()))
            records.children[task_id] = tuple(task.id for task in below if task.parent_id == task_id)
        holders: dict[str, list[str]] = {}
        for life in self.ordered:
            if life.task.resource is not None:
                running = (life.task.id,) if life.task.status == "in-progress" else ()
                holders.setdefault(life.task.resource, []).extend(running)
            for blocker in life.task.depends_on:
                tasks.setdefault(blocker, None)
        records.resource_holders = {name: tuple(held) for name, held in holders.items()}
        return records

    @cached_property
    def load(self) -> Counter[str]:
        """How many running tasks each agent holds."""
        return Counter(one.run.agent_id for life in self.lives.by_id.values() for one in active(life))

    @cached_property
    def roots(self) -> dict[str, str]:
        """The topmost task above each one, itself where nothing is above; a circle ends the walk."""
        found: dict[str, str] = {}
        for task_id in self.lives.by_id:
            trail = [task_id]
            while trail[-1] not in found:
                above = self.lives.by_id[trail[-1]].parent
                if above is None or above[0] in trail or above[0] not in self.lives.by_id:
                    found[trail[-1]] = trail[-1]
                else:
                    trail.append(above[0])
            for one in trail:
                found[one] = found[trail[-1]]
        return found


def as_logged(task: Task, moment: int) -> Normalized:
    """The status by the log alone: a lease counts until the log ends it, and a run that is just beginning has none."""
    if task.status != "in-progress":
        return normalized_status(task, None, moment)
    beginning = task.cancel is None and not leases(task)
    return "preparing" if beginning and not task.archived else normalized_status(task, None, 0)


def active(life: Life) -> list[Attempt]:
    """The runs that the task is held with."""
    if life.task.status != "in-progress":
        return []
    return [one for one in life.attempts if one.run.status == "running"]


def finished(task: Task) -> bool:
    """Whether nothing more is to happen with it."""
    return task.archived or task.status in FINISHED
