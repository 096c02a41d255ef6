"""Reopening a finished task, archived or not: out of the archive, and then what a retry does.

Must not know rights: the retry is asked for them.
"""

from __future__ import annotations

import msgspec

from aof.core.errors.base import AofError
from aof.core.model.commands import Decide, NeedsOf, OwnRule, RetryTask
from aof.core.model.events import Draft
from aof.core.model.lifecycle import FINISHED
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.tasks import graph
from aof.core.tasks.transitions import transition


class ReopenTask(OwnRule, frozen=True, kw_only=True):
    """Open a finished task again: ready, or in the backlog. One that is open stays as it is."""

    reason: str | None = None
    backlog: bool = False

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What a retry needs."""
        return needs(self._retry(), known)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Out of the archive where it is there, then ready, then into the backlog where that is wanted."""
        task = records.look(self.task_id)
        if task is None:
            return graph.missing(self.task_id)
        if task.status not in FINISHED:
            return Decision()
        present = msgspec.structs.replace(task, archived=False)
        loaded = msgspec.structs.replace(records, tasks=records.tasks | {task.id: present})
        verdict = decide(loaded, self._retry(), now)
        if isinstance(verdict, AofError):
            return verdict
        out = (Draft(type="task.unarchived", task_id=task.id),) if task.archived else ()
        drafts = (*out, *verdict.drafts)
        moves = [one.payload["to"] for one in drafts if one.type == "task.transitioned" and one.task_id == task.id]
        if self.backlog and moves[-1:] == ["ready"]:
            drafts += (transition(present, "backlog", origin="ready", reason=self.reason),)
        return msgspec.structs.replace(verdict, drafts=drafts)

    def _retry(self) -> RetryTask:
        return RetryTask(**self.passed_on(), reason=self.reason or f"reopened by {self.acting}")
