"""`completion.report`: what a run has achieved goes on record; the task moves when the session ends.

Must not know the wire.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.runs import NotLeaseHolder, StaleLease
from aof.core.messages.message import Message
from aof.core.messages.sender import held_hop, sender
from aof.core.model.commands import Decide, NeedsOf
from aof.core.model.events import Draft
from aof.core.model.ids import run_place, task_of_run
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.run import RunResult
from aof.core.model.task import Task
from aof.core.model.workflow import HopState, workflow_of
from aof.core.org.budgets import enforcement
from aof.core.runs import late_result
from aof.core.runs.completion import LEADS_TO
from aof.core.runs.lease import stale
from aof.core.tasks import graph
from aof.core.tasks.authorship import did
from aof.core.workflows.claim import wrong_role

HANDOFF_REF: Final = "outputs/handoff.md"


class CompletionReport(Message, frozen=True, kw_only=True):
    """The outcome of a run, as its agent sees it."""

    outcome: str
    summary_ref: str
    deliverables: tuple[str, ...] = ()
    tests: dict[str, int] | None = None
    blockers: tuple[str, ...] = ()
    notes: str | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The task, and what its run, or those of its hops, have reported before."""
        own = frozenset({self.task_id})
        task = known.tasks.get(self.task_id)
        sizes = enforcement.sizes(known, task, self)
        if task is None or not task.gated:
            return Needs(write=own, results=own, sizes=sizes)
        hops = (hop["id"] for hop in task.workflow["hops"] if "runId" in hop)
        return Needs(write=own, results=frozenset(run_place(task.id, hop) for hop in hops), sizes=sizes)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Put the message on record, and keep what it says where it comes too late."""
        verdict = super().decide(records, now, decide)
        task = records.look(self.task_id)
        refusal = verdict.refusal if isinstance(verdict, Decision) else None
        if task is None or not isinstance(refusal, StaleLease | NotLeaseHolder):
            return verdict
        return late_result.kept(records.policy, task, self, self.actor, self._result_of(self.actor), verdict)

    def judge(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Put the result on record, once."""
        task = records.look(self.task_id)
        if task is None:
            return graph.missing(self.task_id)
        if task.status == "done":
            return self._after_the_end(records, task)
        verdict = self._of_hop(records, task) if task.gated else self._of_task(records, task)
        return enforcement.judged(records, self, verdict, now) or verdict

    def _of_hop(self, records: Records, task: Task) -> Verdict:
        """A report goes on record and the hop moves when the session ends, as with every task."""
        hop = held_hop(task, self)
        if isinstance(hop, AofError):
            return Decision() if self._repeats_a_hop(records, task) else hop
        agent = str(hop.agent)
        refusal = wrong_role(records, task, hop, agent) or self._without_blockers(task, hop)
        if refusal is not None:
            return refusal
        if self._repeats_result(records.results[run_place(task.id, hop.id)], hop):
            return Decision()
        payload = {"hop": hop.id, "outcome": self.outcome, "result": self._result_of(agent)}
        drafts = (Draft(type="task.completed", task_id=task.id, run_id=hop.run_id, payload=payload),)
        return Decision(drafts=drafts, agent=agent)

    def _without_blockers(self, task: Task, hop: HopState) -> AofError | None:
        """The refusal of a report that sends work back and does not say what has to change."""
        rule = workflow_of(task).template.by_id[hop.id]
        rejects = self.outcome == "needs_review" and rule.can_reject and bool(rule.depends_on)
        if not rejects or any(text.strip() for text in self.blockers):
            return None
        return InvalidInput(
            f"outcome 'needs_review' rejects at hop '{hop.id}' of {task.id} and needs 'blockers': "
            "say what has to change",
            "give at least one blocker",
            Call("complete", {"task_id": task.id, "outcome": "needs_review", "blockers": ["no test for expiry"]}),
            hop=hop.id,
        )

    def _repeats_a_hop(self, records: Records, task: Task) -> bool:
        """Whether a hop's last run has said the same before, whatever has become of the hop since."""
        own = (hop for hop in workflow_of(task).hops if hop.agent == self.actor and hop.run_id is not None)
        return any(
            self.run in (None, hop.run_id)
            and self._repeats_result(records.results.get(run_place(task.id, hop.id)), hop)
            for hop in own
        )

    def _repeats_result(self, earlier: RunResult | AofError | None, hop: HopState) -> bool:
        return (
            isinstance(earlier, RunResult) and earlier.run_id == hop.run_id and self._repeats(earlier, str(hop.agent))
        )

    def _of_task(self, records: Records, task: Task) -> Verdict:
        if task.lease is None:
            return self._late(records, task)
        holder = sender(task, self)
        if isinstance(holder, AofError):
            return holder
        earlier = records.results[task.id]
        if isinstance(earlier, RunResult) and earlier.run_id == task.lease.run_id and self._repeats(earlier, holder):
            return Decision()
        payload = {"outcome": self.outcome, "result": self._result_of(holder)}
        return Decision(
            drafts=(Draft(type="task.completed", task_id=task.id, run_id=task.lease.run_id, payload=payload),)
        )

    def _after_the_end(self, records: Records, task: Task) -> Verdict:
        """On a task that is done, only the run that did it may report again."""
        if task.gated:
            hops = workflow_of(task).hops
            own = any(hop.agent == self.actor and self.run in (None, hop.run_id) for hop in hops)
            if own or (self.run is None and not did(task, self.actor)):
                return Decision()
        elif self.run in (None, task.last_run) and not self._replaced(records, task):
            return Decision()
        return stale(task, self.run) if self.run is not None else self._ended(task)

    def _late(self, records: Records, task: Task) -> Verdict:
        """Nobody runs the task: the same report again is none the worse for it, any other comes too late."""
        if self.run is not None and task_of_run(self.run) == task.id and self.run != task.last_run:
            return stale(task, self.run)
        if task.retry.attempts and LEADS_TO[self.outcome] == task.status and not self._replaced(records, task):
            return Decision()
        return self._ended(task)

    def _replaced(self, records: Records, task: Task) -> bool:
        """Whether the result that stands is that of another agent than the sender, who ran the task before."""
        result = records.results.get(task.id)
        others = isinstance(result, RunResult) and result.run_id == task.last_run and result.agent_id != self.actor
        return others and did(task, self.actor)

    def _ended(self, task: Task) -> StaleLease:
        what = f"{task.id} is {graph.stands(task)}: nobody is running it, so there is no run to report on"
        return StaleLease(what, *graph.way_on(task, self.actor), status=task.status)

    def _repeats(self, earlier: RunResult, agent: str) -> bool:
        """Whether a result that is on record says the same."""
        return _said(earlier) == self._result_of(agent)

    def _result_of(self, agent: str) -> dict[str, Any]:
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


def _said(result: RunResult) -> dict[str, Any]:
    """The part of a result that its sender chose."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(result))
    return {name: value for name, value in whole.items() if name not in ("taskId", "runId", "completedAt", "hop")}
