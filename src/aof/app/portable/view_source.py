"""What the portable view looks at: all lives at one moment, and what stands beside the log. Must not read anything."""

from __future__ import annotations

from collections.abc import Mapping

from aof._support.frozen import FrozenDict
from aof.app.portable.relations import Relations
from aof.app.portable.task_histories import Attempt, Life, Lives
from aof.core.errors.base import AofError
from aof.core.model.lifecycle import FINISHED
from aof.core.model.org_chart import OrgChart
from aof.core.model.policy import Policy
from aof.core.model.run import Heartbeat, lease_end
from aof.core.model.task import Task
from aof.core.model.times import millis
from aof.core.model.workflow import leases
from aof.core.tasks.graph import readiness
from aof.core.tasks.normalized_status import Normalized, normalized_status


class Scene:
    """The lives, the signs of life and what is odd about files.

    In the past there are neither: a lease counts there until the log ends it, and the time is that of the last event.
    """

    def __init__(
        self,
        lives: Lives,
        relations: Relations,
        policy: Policy,
        *,
        now: int | None = None,
        chart: OrgChart | None = None,
        beats: Mapping[str, Heartbeat] | None = None,
        odd: Mapping[str, str] | None = None,
    ) -> None:
        self.lives = lives
        self.relations = relations
        self.records = relations.records  # all that the ready rule may look at
        self.children = relations.children
        self.dependents = relations.dependents
        self.load = relations.load
        self.roots = relations.roots
        self.policy = policy
        self.chart = chart
        self._live = now is not None
        self.now = now if now is not None else millis(lives.moment) if lives.moment else 0
        self._beats = beats or {}
        self.odd = odd or {}
        self.scope = FrozenDict(project=policy.project)
        self.names: dict[str, FrozenDict] = {}  # who somebody is, once it was found out
        self._status: dict[str, Normalized] = {}
        self._refusals: dict[str, AofError | None] = {}

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
        return normalized_status(task, self._last_beat(task) if task.status == "in-progress" else None, self.now)

    def refusal(self, task: Task) -> AofError | None:
        """Why the task may not be run now."""
        try:
            return self._refusals[task.id]
        except KeyError:
            found = self._refusals[task.id] = readiness(self.records, task, self.now)
            return found

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


def as_logged(task: Task, moment: int) -> Normalized:
    """The status by the log alone: a lease counts until the log ends it, and a run that is just beginning has none."""
    if task.status != "in-progress":
        return normalized_status(task, None, moment)
    beginning = task.cancel is None and not leases(task)
    return "preparing" if beginning and not task.archived else normalized_status(task, None, 0)


def finished(task: Task) -> bool:
    """Whether nothing more is to happen with it."""
    return task.archived or task.status in FINISHED
