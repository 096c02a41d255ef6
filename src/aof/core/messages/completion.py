"""`completion.report`: what a run has achieved goes on record; the task moves when the session ends.

Must not know the wire.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.messages.message import Message, sender
from aof.core.model.errors import AofError, StaleLease
from aof.core.model.events import Draft
from aof.core.model.ids import task_of_run
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.run import Result
from aof.core.model.task import Task
from aof.core.runs.completion import LEADS_TO
from aof.core.runs.lease import stale
from aof.core.tasks import graph
from aof.core.workflows import message_reports

HANDOFF_REF: Final = "outputs/handoff.md"


class CompletionReport(Message, frozen=True, kw_only=True):
    """The outcome of a run, as its agent sees it."""

    outcome: str
    summary_ref: str
    deliverables: tuple[str, ...] = ()
    tests: dict[str, int] | None = None
    blockers: tuple[str, ...] = ()
    notes: str | None = None

    def needs(self, known: Records) -> Needs:
        """The task, and what its run, or those of its hops, have reported before."""
        own = frozenset({self.task_id})
        task = known.tasks.get(self.task_id)
        if task is None or not task.gated:
            return Needs(write=own, results=own)

        return Needs(write=own, results=message_reports.places(task))

    def judge(self, records: Records, now: int) -> Verdict:  # noqa: ARG002 - the contract's form
        """Put the result on record, once."""
        task = records.look(self.task_id)
        if task is None:
            return graph.missing(self.task_id)
        if task.status == "done":
            return Decision() if self.run is None or task.gated else self._repeated(task)
        return self._of_hop(records, task) if task.gated else self._of_task(records, task)

    def _of_hop(self, records: Records, task: Task) -> Verdict:

        return message_reports.report(records, task, self)

    def _of_task(self, records: Records, task: Task) -> Verdict:
        if task.lease is None:
            return self._late(task)
        holder = sender(task, self)
        if isinstance(holder, AofError):
            return holder
        earlier = records.results[task.id]
        if isinstance(earlier, Result) and earlier.run_id == task.lease.run_id and self.repeats(earlier, holder):
            return Decision()
        payload = {"outcome": self.outcome, "result": self.result_of(holder)}
        return Decision(
            drafts=(Draft(type="task.completed", task_id=task.id, run_id=task.lease.run_id, payload=payload),)
        )

    def _repeated(self, task: Task) -> Verdict:
        """On a task that is done, only the run that did it may report again."""
        return Decision() if self.run == task.last_run else stale(task, str(self.run))

    def _late(self, task: Task) -> Verdict:
        """Nobody runs the task: the same report again is none the worse for it, any other comes too late."""
        if self.run is not None and task_of_run(self.run) == task.id and self.run != task.last_run:
            return stale(task, self.run)
        if task.retry.attempts and LEADS_TO[self.outcome] == task.status:
            return Decision()
        what = f"{task.id} is {task.status}: nobody is running it, so there is no run to report on"
        return StaleLease(what, *graph.way_on(task, self.actor), status=task.status)

    def repeats(self, earlier: Result, agent: str) -> bool:
        """Whether a result that is on record says the same."""
        return _said(earlier) == self.result_of(agent)

    def result_of(self, agent: str) -> dict[str, Any]:
        """The result that the report is, as its run's file holds it."""
        result: dict[str, Any] = {
            "agentId": agent,
            "outcome": self.outcome,
            "summaryRef": self.summary_ref,
            "handoffRef": HANDOFF_REF,
            "deliverables": list(self.deliverables),
            "tests": self.tests,
            "blockers": list(self.blockers),
            "notes": self.notes,
        }
        return {name: value for name, value in result.items() if value is not None}


def _said(result: Result) -> dict[str, Any]:
    """The part of a result that its sender chose."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(result))
    return {name: value for name, value in whole.items() if name not in ("taskId", "runId", "completedAt", "hop")}
