"""The scheduler's part in jobs: what is due is created. Must not know how jobs are kept."""

from __future__ import annotations

from aof.app.jobs.dispatch import dispatched, read
from aof.core.jobs import timing
from aof.core.scheduling.snapshot import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.environment import Environment
    from aof.app.faults import Faults
    from aof.app.jobs.dispatch import Execute
    from aof.core.jobs.job import Job

DISPATCH, READING = "job_dispatch", "jobs"
_READING = (READING,)


class JobSteps:
    """Looks at the jobs in every tick; one that fails concerns no other, and is tried again later."""

    def __init__(self, environment: Environment, execute: Execute, faults: Faults) -> None:
        self._environment = environment
        self._execute = execute
        self._faults = faults

    def dispatch(self, *, dry_run: bool) -> tuple[tuple[Action, ...], int | None]:
        """What was created, or would be, and when to look again."""
        if self._faults.wait(_READING):
            return (), None
        try:
            jobs = tuple(read(self._environment, catch_up=not dry_run).jobs.values())
            self._faults.succeeded(_READING)
        except Exception as error:  # noqa: BLE001 - the edge of one action
            self._faults.failed(_READING, "reading the jobs", "", error)
            return (), None
        done: list[Action] = []
        for job in jobs:
            done += self._of(job, dry_run=dry_run)
        now = self._environment.clock.now()
        sound = (job for job in jobs if not self._faults.wait((DISPATCH, job.id)))
        coming = [when for job in sound if (when := timing.next_due(job, now)) is not None]
        return tuple(done), min(coming, default=None)

    def _of(self, job: Job, *, dry_run: bool) -> list[Action]:
        key = (DISPATCH, job.id)
        occasions = timing.due(job, self._environment.clock.now())
        if not occasions or self._faults.wait(key):
            return []
        if dry_run:
            return [_action("", job, one.name, None) for one in occasions]
        done: list[Action] = []
        try:
            for one in dispatched(self._environment, self._execute, job, occasions):
                done.append(_action(one.task_id or "", job, one.occasion, one.error))  # noqa: PERF401 - kept if it fails
            self._faults.succeeded(key)
        except Exception as error:  # noqa: BLE001 - the edge of one job
            self._faults.failed(key, DISPATCH, job.id, error)
        return done


def _action(task_id: str, job: Job, occasion: str, error: str | None) -> Action:
    reason = f"job {job.id}: {occasion}"
    return Action(action=DISPATCH, task_id=task_id, reason=f"{reason}: {error}" if error else reason)
