"""The end of a session: what its run has reported is carried out; a run that has not reported anything has failed.

Must not know who noticed the end.
"""

from __future__ import annotations

from aof.core.errors.base import AofError
from aof.core.model.commands import Decide, Expire, Fail, NeedsOf, OwnRule, Settle
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.task import Lease, Task
from aof.core.org.budgets import reported
from aof.core.runs import late_result
from aof.core.runs.authentication import lease_of, unproven
from aof.core.runs.reported_result import apply_reported, referred
from aof.core.tasks import graph
from aof.core.workflows import failures


class EndSession(OwnRule, frozen=True, kw_only=True):
    """The session that the actor had on a task is over.

    With a `run` the caller says that this very run has ended; without one only a result that is there is carried out.
    """

    caller: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """A run that fails concerns the tasks that wait for this one."""
        own = frozenset({self.task_id})
        task = known.tasks.get(self.task_id)
        reviewed = task is None or task.metadata.get("reviewRequired") is not False
        if self.run is None and reviewed and (task is None or not task.gated):
            sizes = reported.sizes(known, self.task_id)
            return Needs(write=own, results=own, files=referred(known, self.task_id), sizes=sizes)
        return needs(Expire(actor=self.actor, task_id=self.task_id), known)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Leave alone what has moved on, and what another run holds by now."""
        task = records.look(self.task_id)
        if task is None:
            return graph.missing(self.task_id)
        lease = lease_of(task, self.run) if self.run is not None else None
        if lease is not None and (refusal := unproven(task, lease, self)):
            return refusal
        ended = self._of_hop if task.gated else self._of_task
        within = reported.limited(records, task.id)
        return within.recorded(ended(within.records, task, now, decide))

    def _of_task(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        lease, late = task.lease, late_result.left_behind(task, records.results[task.id])
        if lease is None or lease.agent != self.actor or self.run not in (None, lease.run_id):
            return Decision(drafts=late)
        if task.cancel is not None:
            return decide(records, Settle(actor=self.actor, task_id=task.id), now) if self.run else Decision()
        result = records.results[task.id]
        if isinstance(result, AofError):
            return result
        if result is None or result.run_id != lease.run_id:
            failed = self._in_vain(task, lease)
            verdict = Decision() if failed is None else decide(records, failed, now)
            return verdict if isinstance(verdict, AofError) else verdict.followed_by(late)
        called = {} if self.caller == self.actor else {"calledBy": self.caller}
        return Decision(drafts=apply_reported(records, task, result, now, None, **called))

    def _of_hop(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        """The same for the hop of a gated task that the run holds."""
        if task.cancel is not None:
            ended = Settle(actor=self.actor, run=self.run, task_id=task.id)
            return decide(records, ended, now) if self.run else Decision()
        return failures.end_session(records, task, self.actor, self.run, now)

    def _in_vain(self, task: Task, lease: Lease) -> Fail | None:
        """The failure of a run that ended without a report; None where nobody says that it ended."""
        if self.run is None:
            return None
        return Fail(
            actor=self.actor,
            run=self.run,
            task_id=task.id,
            code="no_completion_report",
            message=f"the session of {lease.agent} ended without a completion report",
        )
