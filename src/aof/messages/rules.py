"""What messages do: status updates, completion reports, the end of a session. A refused one is recorded too."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.errors import AofError, Call, InvalidInput, NotLeaseHolder, StaleLease
from aof.kernel.commands import (
    Claim,
    Decide,
    Decision,
    Expire,
    Fail,
    Needs,
    NeedsOf,
    OnTask,
    OwnRule,
    Records,
    ReportProgress,
    Settle,
    Update,
    Verdict,
)
from aof.kernel.events import Draft
from aof.kernel.kinds import Status
from aof.kernel.limits import REASON
from aof.kernel.model import run_place, task_of_run
from aof.org import budgets
from aof.runs import results as runs_results
from aof.runs.authentication import lease_of, ran_work, unproven
from aof.runs.leases import authorize, not_holder, stale_lease
from aof.runs.model import RunResult
from aof.runs.results import LEADS_TO, apply_reported, referred_files, submit
from aof.tasks import graph
from aof.tasks.model import Task
from aof.workflows import hops as workflows_hops
from aof.workflows import outcomes
from aof.workflows.hops import Walk, wrong_role
from aof.workflows.model import HopState, has_open_hop, workflow_of

HANDOFF_REF: Final = "outputs/handoff.md"
_NOT_THE_SENDERS: Final = ("taskId", "runId", "completedAt", "hop")  # the fields of a result that AOF fills in


class Message(OwnRule, frozen=True, kw_only=True):
    """A message about a task. `actor` sent it, `caller` delivered it."""

    type: str
    to_agent: str
    sent_at: str
    caller: str

    def judge(self, records: Records, now: int, decide: Decide) -> Verdict:
        """What the message causes, or why it is refused."""
        raise NotImplementedError

    def beside(self, refusal: AofError) -> tuple[Draft, ...]:
        """What else is recorded when the message is refused."""
        return ()

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """What was received and what it causes are one commit; so are a refusal and its reason."""
        verdict = self.judge(records, now, decide)
        if isinstance(verdict, AofError):
            payload: dict[str, Any] = {"reason": verdict.code, "type": self.type, "detail": verdict.message}
            rejected = self._record("protocol.message.rejected", payload)
            return Decision(drafts=(rejected, *self.beside(verdict)), refusal=verdict)
        payload = {"type": self.type, "toAgent": self.to_agent, "sentAt": self.sent_at}
        if verdict.instead is not None:
            payload["notApplied"] = {"reason": verdict.instead.code, "detail": verdict.instead.message}
        received = self._record("protocol.message.received", payload)
        return msgspec.structs.replace(verdict, drafts=(received, *verdict.drafts))

    def _record(self, kind: str, payload: dict[str, Any]) -> Draft:
        called = {"calledBy": self.caller} if self.caller != self.actor else {}
        return Draft(type=kind, task_id=self.task_id, run_id=self.run, payload=payload | called)


def is_held(task: Task) -> bool:
    """Whether somebody runs the task, or a hop of it."""
    return task.lease is not None or (task.gated and any("lease" in hop for hop in task.workflow["hops"]))


def sender(task: Task, message: OnTask) -> str | AofError:
    """The holder of the task's lease, if the message is from it; naming its run does not make one the holder."""
    if task.gated:
        hop = held_hop(task, message)
        return hop if isinstance(hop, AofError) else str(hop.agent)
    holder = authorize(task, message)
    if isinstance(holder, str) and task.lease is not None and message.actor != holder:
        return not_holder(task, task.lease, message.actor)
    return holder


def held_hop(task: Task, message: OnTask) -> HopState | AofError:
    """The hop that the sender holds; naming a run does not make one its holder."""
    hop = workflows_hops.held_hop(task, workflow_of(task), message)
    if isinstance(hop, HopState) and hop.agent != message.actor:
        return NotLeaseHolder(
            f"hop '{hop.id}' of {task.id} is held by {hop.agent}, not by {message.actor}",
            f"only {hop.agent} may report on it",
            Call("workflow_show", {"name": task.id}),
            holder=hop.agent,
        )
    return hop


class StatusUpdate(Message, frozen=True, kw_only=True):
    """How far the work is, or where the task should go."""

    agent_id: str
    status: Status | None = None
    progress: str | None = None
    blockers: tuple[str, ...] = ()
    notes: str | None = None
    secret_digest: str | None = None
    keep: bool = False

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What the same update by any other way needs; a hop that is held up may also end its task."""
        base = needs(self._update(), known)
        task = known.tasks.get(self.task_id)
        if task is None or not task.gated or self.status != "blocked":
            return base
        ending = needs(Fail(actor=self.actor, task_id=self.task_id, code="blocked", message=""), known)
        write = base.write | ending.write
        read = (base.read | ending.read) - write
        return msgspec.structs.replace(base, write=write, read=read, dependents=ending.dependents)

    def judge(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Move the task, if that is asked for and possible; else note the text."""
        task = records.find(self.task_id)
        if task is None:
            return graph.missing(self.task_id)
        if refusal := self._unentitled(task):
            return refusal
        if task.gated and (verdict := self._of_hop(records, task, now, decide)) is not None:
            return verdict
        if self.status is None or self.status == task.status:
            return self._noted(records, task, now, decide)
        moved = self._moved(records, task, now, decide)
        if isinstance(moved, AofError) and moved.kind == "refused":
            noted = self._noted(records, task, now, decide)
            return noted if isinstance(noted, AofError) else msgspec.structs.replace(noted, instead=moved)
        return moved

    def _unentitled(self, task: Task) -> AofError | None:
        if self.agent_id != self.actor:
            return NotLeaseHolder(
                f"{self.actor} sends an update in the name of {self.agent_id}",
                "an agent speaks for itself: 'payload.agentId' and 'fromAgent' must be the same",
            )
        if task.gated and is_held(task):
            takes = self.run is None and self.status == "in-progress" and has_open_hop(task)
            hop = None if takes else held_hop(task, self)
            return hop if isinstance(hop, AofError) else None
        if task.lease is not None:
            holder = sender(task, self)
            return holder if isinstance(holder, AofError) else None
        replaced = self.run is not None and task_of_run(self.run) == task.id
        return stale_lease(task, str(self.run)) if replaced else None

    def _of_hop(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict | None:
        """What a status means from the holder of a hop, or from an agent that takes one; else None."""
        hop = held_hop(task, self)
        if isinstance(hop, AofError):
            free = self.run is None and isinstance(hop, NotLeaseHolder) and has_open_hop(task)
            takes = free and self.status == "in-progress"
            return decide(records, Claim(actor=self.actor, task_id=task.id), now) if takes else None
        if self.status != "blocked":
            return None
        walk = Walk(records, task, now)
        walk.by = str(hop.agent)
        reason = self._reason() or f"blocked by {hop.agent}"
        walk.end_run(hop, status="cancelled", code="blocked", message=reason)
        walk.step(hop.id, "blocked", "blocked", hop.run_id, agent=hop.agent, **(self._texts() | {"reason": reason}))
        return walk.finish(reason, agent=hop.agent)

    def _moved(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        reason = self._reason()
        if (task.status, self.status) == ("in-progress", "review") and task.lease is not None:
            drafts = submit(task, (task.lease.agent, task.lease.run_id), now, reason, self._texts())
            return Decision(drafts=drafts)
        verdict = decide(records, self._update(reason), now)
        if isinstance(verdict, Decision):
            for draft in verdict.drafts:
                if draft.type == "task.transitioned" and draft.task_id == task.id:
                    draft.payload.update(self._texts() | ({"reason": reason} if reason else {}))
        return verdict

    def _noted(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        labelled = (("Progress", self.progress), ("Notes", self.notes), ("Blockers", "; ".join(self.blockers)))
        line = " | ".join(f"{label}: {text}" for label, text in labelled if text and text.strip())
        if not is_held(task):
            note = Draft(type="task.noted", task_id=task.id, payload={"workLog": line})
            return Decision(drafts=(note,) if line else ())
        if not line:
            return decide(records, self._update(), now) if self.status == task.status else Decision()
        report = ReportProgress(
            actor=self.actor,
            run=self.run,
            proven=self.proven,
            proof=self.proof,
            task_id=task.id,
            text=self.progress,
            note=self.notes,
            blockers=self.blockers,
        )
        verdict = decide(records, report, now)
        if isinstance(verdict, Decision):
            for draft in verdict.drafts:
                draft.payload["workLog"] = line  # the line of the protocol, which names no author
        return verdict

    def _update(self, reason: str | None = None) -> Update:
        return Update(
            **self.passed_on(),
            secret_digest=self.secret_digest,
            keep=self.keep,
            status=self.status,
            reason=reason,
        )

    def _reason(self) -> str | None:
        """The first of blockers, notes and progress that there is, as long as a reason may be."""
        text = "; ".join(self.blockers) or self.notes or self.progress
        return text if text is None or len(text) <= REASON else f"{text[: REASON - 1]}…"

    def _texts(self) -> dict[str, Any]:
        """What the message has beside a status, for events."""
        texts = {"progress": self.progress, "notes": self.notes, "blockers": list(self.blockers)}
        return {name: value for name, value in texts.items() if value}


class CompletionReport(Message, frozen=True, kw_only=True):
    """The outcome of a run, as its agent sees it."""

    outcome: str
    summary_ref: str
    deliverables: tuple[str, ...] = ()
    tests: dict[str, int] | None = None
    blockers: tuple[str, ...] = ()
    notes: str | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The task, and what its run, or those of its hops, have reported before."""
        own = frozenset({self.task_id})
        task = known.tasks.get(self.task_id)
        sizes = budgets.sizes(known, task, self, self.deliverables)
        if task is None or not task.gated:
            return Needs(write=own, results=own, sizes=sizes)
        hops = (hop["id"] for hop in task.workflow["hops"] if "runId" in hop)
        return Needs(write=own, results=frozenset(run_place(task.id, hop) for hop in hops), sizes=sizes)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Put the message on record, and keep what it says where it comes too late."""
        verdict = super().decide(records, now, decide)
        task = records.find(self.task_id)
        refusal = verdict.refusal if isinstance(verdict, Decision) else None
        if task is None or not isinstance(refusal, StaleLease | NotLeaseHolder):
            return verdict
        return runs_results.kept_refusal(records.policy, task, self, self.actor, self._result_of(self.actor), verdict)

    def judge(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Put the result on record, once."""
        task = records.find(self.task_id)
        if task is None:
            return graph.missing(self.task_id)
        if task.status == "done":
            return self._after_the_end(records, task)
        verdict = self._of_hop(records, task) if task.gated else self._of_task(records, task)
        over = budgets.judged(records, self, verdict, now, outcome=self.outcome, deliverables=self.deliverables)
        return over or verdict

    def _of_hop(self, records: Records, task: Task) -> Verdict:
        """A report goes on record and the hop moves when the session ends, as with every task."""
        hop = held_hop(task, self)
        if isinstance(hop, AofError):
            return Decision() if self._repeats_a_hop(records, task) else hop
        agent = str(hop.agent)
        refusal = wrong_role(records, task, hop, agent) or self._without_blockers(task, hop)
        if refusal is not None:
            return refusal
        if self._repeats(records.results[run_place(task.id, hop.id)], hop.run_id, agent):
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
            and self._repeats(records.results.get(run_place(task.id, hop.id)), hop.run_id, str(hop.agent))
            for hop in own
        )

    def _of_task(self, records: Records, task: Task) -> Verdict:
        if task.lease is None:
            return self._late(records, task)
        holder = sender(task, self)
        if isinstance(holder, AofError):
            return holder
        run = task.lease.run_id
        if self._repeats(records.results[task.id], run, holder):
            return Decision()
        payload = {"outcome": self.outcome, "result": self._result_of(holder)}
        return Decision(drafts=(Draft(type="task.completed", task_id=task.id, run_id=run, payload=payload),))

    def _after_the_end(self, records: Records, task: Task) -> Verdict:
        """On a task that is done, only the run that did it may report again."""
        if task.gated:
            hops = workflow_of(task).hops
            own = any(hop.agent == self.actor and self.run in (None, hop.run_id) for hop in hops)
            if own or (self.run is None and not ran_work(task, self.actor)):
                return Decision()
        elif self.run in (None, task.last_run) and not self._replaced(records, task):
            return Decision()
        return stale_lease(task, self.run) if self.run is not None else self._ended(task)

    def _late(self, records: Records, task: Task) -> Verdict:
        """Nobody runs the task: the same report again is accepted, any other comes too late."""
        if self.run is not None and task_of_run(self.run) == task.id and self.run != task.last_run:
            return stale_lease(task, self.run)
        if task.retry.attempts and LEADS_TO[self.outcome] == task.status and not self._replaced(records, task):
            return Decision()
        return self._ended(task)

    def _replaced(self, records: Records, task: Task) -> bool:
        """Whether the result that stands is that of another agent than the sender, who ran the task before."""
        result = records.results.get(task.id)
        others = isinstance(result, RunResult) and result.run_id == task.last_run and result.agent_id != self.actor
        return others and ran_work(task, self.actor)

    def _ended(self, task: Task) -> StaleLease:
        what = f"{task.id} is {graph.stands(task)}: nobody is running it, so there is no run to report on"
        return StaleLease(what, *graph.way_on(task, self.actor), status=task.status)

    def _repeats(self, earlier: RunResult | AofError | None, run: str | None, agent: str) -> bool:
        """Whether the result that is on record is of this run, and says the same."""
        if not isinstance(earlier, RunResult) or earlier.run_id != run:
            return False
        whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(earlier))
        own = {name: value for name, value in whole.items() if name not in _NOT_THE_SENDERS}
        return own == self._result_of(agent)

    def _result_of(self, agent: str) -> dict[str, Any]:
        """The report as the result file of its run holds it."""
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
            sizes = budgets.sizes_of_report(known, self.task_id)
            return Needs(write=own, results=own, files=referred_files(known, self.task_id), sizes=sizes)
        return needs(Expire(actor=self.actor, task_id=self.task_id), known)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """End the session's run; a task that has moved on, or that another run holds, is left alone."""
        task = records.find(self.task_id)
        if task is None:
            return graph.missing(self.task_id)
        lease = lease_of(task, self.run) if self.run is not None else None
        if lease is not None and (refusal := unproven(task, lease, self)):
            return refusal
        ended = self._of_hop if task.gated else self._of_task
        within = budgets.limited(records, task.id)
        return within.recorded(ended(within.records, task, now, decide))

    def _of_task(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        lease, late = task.lease, runs_results.left_behind(task, records.results[task.id])
        if lease is None or lease.agent != self.actor or self.run not in (None, lease.run_id):
            return Decision(drafts=late)
        if task.cancel is not None:
            return decide(records, Settle(actor=self.actor, task_id=task.id), now) if self.run else Decision()
        result = records.results[task.id]
        if isinstance(result, AofError):
            return result
        if result is None or result.run_id != lease.run_id:
            failed = Fail(
                actor=self.actor,
                run=self.run,
                task_id=task.id,
                code="no_completion_report",
                message=f"the session of {lease.agent} ended without a completion report",
            )
            verdict = decide(records, failed, now) if self.run is not None else Decision()
            return verdict if isinstance(verdict, AofError) else verdict.followed_by(late)
        called = {} if self.caller == self.actor else {"calledBy": self.caller}
        return Decision(drafts=apply_reported(records, task, result, now, None, **called))

    def _of_hop(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        """End the session's run of a hop of a gated task."""
        if task.cancel is not None:
            ended = Settle(actor=self.actor, run=self.run, task_id=task.id)
            return decide(records, ended, now) if self.run else Decision()
        return outcomes.end_session(records, task, self.actor, self.run, now)
