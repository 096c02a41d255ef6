"""`status.update`: an entry in the work log, or a move; a move that is not possible becomes an entry too.

Must not know the wire.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof.core.errors.base import AofError
from aof.core.errors.runs import NotLeaseHolder
from aof.core.messages.message import Message
from aof.core.messages.sender import held_hop, is_held, sender
from aof.core.model.commands import Claim, Decide, Fail, NeedsOf, ReportProgress, Update
from aof.core.model.events import Draft
from aof.core.model.ids import task_of_run
from aof.core.model.kinds import Status
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.task import Task
from aof.core.model.workflow import has_open_hop
from aof.core.runs.completion import submit
from aof.core.runs.lease import stale
from aof.core.tasks import graph
from aof.core.validation.limits import REASON
from aof.core.workflows.transaction import Walk


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
        """Move, if that is asked for and possible; else note what was said."""
        task = records.look(self.task_id)
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
        return stale(task, str(self.run)) if replaced else None

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
        walk.step(hop.id, "blocked", "blocked", hop.run_id, agent=hop.agent, **(self._said() | {"reason": reason}))
        return walk.finish(reason, agent=hop.agent)

    def _moved(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        reason = self._reason()
        if (task.status, self.status) == ("in-progress", "review") and task.lease is not None:
            drafts = submit(task, (task.lease.agent, task.lease.run_id), now, reason, self._said())
            return Decision(drafts=drafts)
        verdict = decide(records, self._update(reason), now)
        if isinstance(verdict, Decision):
            for draft in verdict.drafts:
                if draft.type == "task.transitioned" and draft.task_id == task.id:
                    draft.payload.update(self._said() | ({"reason": reason} if reason else {}))
        return verdict

    def _noted(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        said = " | ".join(f"{label}: {text}" for label, text in self._parts() if text and text.strip())
        if not is_held(task):
            note = Draft(type="task.noted", task_id=task.id, payload={"workLog": said})
            return Decision(drafts=(note,) if said else ())
        if not said:
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
                draft.payload["workLog"] = said  # the line of the protocol, which names no author
        return verdict

    def _update(self, reason: str | None = None) -> Update:
        return Update(
            actor=self.actor,
            run=self.run,
            proven=self.proven,
            proof=self.proof,
            outside=self.outside,
            session=self.session,
            vouched=self.vouched,
            limited=self.limited,
            secret_digest=self.secret_digest,
            keep=self.keep,
            task_id=self.task_id,
            status=self.status,
            reason=reason,
        )

    def _reason(self) -> str | None:
        """The first of blockers, notes and progress that there is, as long as a reason may be."""
        text = "; ".join(self.blockers) or self.notes or self.progress
        return text if text is None or len(text) <= REASON else f"{text[: REASON - 1]}…"

    def _said(self) -> dict[str, Any]:
        """All that the message says beside a status, for events."""
        said = {"progress": self.progress, "notes": self.notes, "blockers": list(self.blockers)}
        return {name: value for name, value in said.items() if value}

    def _parts(self) -> tuple[tuple[str, str | None], ...]:
        return (("Progress", self.progress), ("Notes", self.notes), ("Blockers", "; ".join(self.blockers)))
