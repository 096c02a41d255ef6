"""A task that another tool had: created here once, in the status that fits. Must not know any tool.

What was finished there is finished here from the start, without a run. Where callers are bound to their names, only a
maintainer may say so: nobody here has seen the work.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from aof._support.typed import prepare_type
from aof.core.errors.base import AofError, Call
from aof.core.errors.org import NotAllowed
from aof.core.evolve.task import evolve_draft
from aof.core.model.commands import Create, Decide, NeedsOf, OwnRule
from aof.core.model.records import Needs, Records, Verdict
from aof.core.model.times import iso
from aof.core.tasks.transitions import to_blocked, transition


class ImportTask(OwnRule, frozen=True, kw_only=True):
    """Create a task as another tool has it; `create` are the values of a creation, with the key of its source."""

    create: dict[str, Any]
    arrives: Literal["ready", "backlog", "blocked", "done", "cancelled"]
    reason: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What a creation needs."""
        return needs(self._creation(), known)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """A creation, and the move to where the task is in its source."""
        if self.arrives == "done" and records.policy.binds and self.acting not in records.policy.maintainers:
            return NotAllowed(
                f"{self.acting} is not a maintainer and may not import finished tasks as done",
                "let a maintainer import them",
                Call("list", {"status": "done"}),
                agent=self.acting,
            )
        verdict = decide(records, self._creation(), now)
        if isinstance(verdict, AofError) or verdict.replayed is not None or self.arrives in ("ready", "backlog"):
            return verdict
        task = evolve_draft(verdict.drafts[0], iso(now))
        moves = [one.payload["to"] for one in verdict.drafts if one.type == "task.transitioned"]
        origin = moves[-1] if moves else task.status
        if self.arrives != "blocked":
            moved = transition(task, self.arrives, origin=origin, reason=self.reason)
        elif origin == "blocked":
            return verdict
        else:
            moved = to_blocked(task, now, kind="blocked", reason=self.reason, by=self.acting, origin=origin)
        return msgspec.structs.replace(verdict, drafts=(*verdict.drafts, moved))

    def _creation(self) -> Create:
        status = "backlog" if self.arrives == "backlog" else "ready"
        return msgspec.convert(self.passed_on() | {"status": status} | self.create, prepare_type(Create))
