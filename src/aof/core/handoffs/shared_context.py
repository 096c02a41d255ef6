"""The commands that write to the shared context of a workflow, which its topmost task keeps.

Must not know how a command arrived, nor what other commands there are.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof._support.hashing import hexdigest
from aof.core.errors.base import AofError, InvalidInput
from aof.core.errors.guards import LockRequired
from aof.core.errors.org import NotAllowed
from aof.core.errors.tasks import InvalidTransition
from aof.core.handoffs.author import heard, writer
from aof.core.handoffs.context import Write, Writer, oversize, reference, top_of, write
from aof.core.handoffs.file_locks import may_write, required
from aof.core.model.commands import Decide, NeedsOf, OwnRule
from aof.core.model.events import Draft
from aof.core.model.handoffs.context import (
    ARTIFACT_STATUSES,
    ARTIFACT_TYPES,
    CONFLICT_RULES,
    Artifact,
    RecordedArtifact,
    context_of,
)
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.run import ARTIFACT_PATHS
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.model.workflow import leases
from aof.core.validation import limits
from aof.core.validation.project_paths import bad_reference, is_uri, normalised


class Place(msgspec.Struct, frozen=True):
    """Where something is written to the context: from which task, in the record of which topmost one, and by whom."""

    task: Task
    top: Task
    by: Writer


class OnContext(OwnRule, frozen=True, kw_only=True):
    """A command on the context of the tree that a task belongs to."""

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The task and all above it; the topmost is written."""
        own = frozenset({self.task_id})
        chain = (self.task_id, *known.above.get(self.task_id, ()))
        return Needs(write=frozenset({chain[-1]}), read=frozenset(chain[:-1]), above=own)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Find out who writes, then what."""
        task = heard(records, self)
        if isinstance(task, AofError):
            return task
        top = top_of(records, task)
        if top.archived:
            return InvalidTransition(f"{top.id} is archived, and its context with it", "create a new task")
        by = writer(records, task, self)
        return by if isinstance(by, AofError) else self.written(records, Place(task, top, by), now)

    def written(self, records: Records, at: Place, now: int) -> Verdict:
        """What the command records in the context of the topmost task."""
        raise NotImplementedError


class SetContext(OnContext, frozen=True, kw_only=True):
    """Write variables, from the version that the writer has read; or say which of two conflicting writes holds."""

    variables: dict[str, Any] = msgspec.field(default_factory=dict)
    scope: str | None = None
    base: int | None = None
    conflicts: str | None = None

    def written(self, records: Records, at: Place, now: int) -> Verdict:  # noqa: ARG002 - the contract's form
        """All of the variables that may be written; the first refusal is answered, and every one recorded."""
        task, top, by = at.task, at.top, at.by
        if len(self.variables) > limits.ITEMS or not (self.variables or self.conflicts):
            return InvalidInput("'variables' must name between 1 and 50 variables", "set fewer at once")
        rule: tuple[Draft, ...] = ()
        if self.conflicts is not None:
            if problem := limits.choice("conflicts", self.conflicts, CONFLICT_RULES) or _not_orchestrator(by):
                return problem
            if self.conflicts != context_of(top).rule:
                rule = (Draft(type="context.rule", task_id=top.id, payload={"rule": self.conflicts}),)
        writes = tuple(
            Write(name=name, value=value, scope=self.scope, base=self.base) for name, value in self.variables.items()
        )
        result = write(top, writes, writer=by, task_id=task.id)
        refusal = next(iter(result.refusals), None)
        return Decision(drafts=(*rule, *result.drafts), agent=by.agent, refusal=refusal)


def _not_orchestrator(by: Writer) -> NotAllowed | None:
    if by.steers:
        return None
    return NotAllowed(
        f"{by.agent} may not say which of two conflicting writes holds",
        "leave it to the orchestrator, a lead or a maintainer",
        agent=by.agent,
    )


class RecordArtifact(OnContext, frozen=True, kw_only=True):
    """Record something that was made in the workflow, or the new status of what is recorded already."""

    path: str
    type: str | None = None
    status: str | None = None
    description: str | None = None

    def written(self, records: Records, at: Place, now: int) -> Verdict:  # noqa: ARG002 - the contract's form
        """A known artifact keeps all that identifies it; one that is superseded makes way for another."""
        task, top, by = at.task, at.top, at.by
        context = context_of(top)
        known = next((one for one in context.artifacts[::-1] if one.path == self.path), None)
        if known is not None and known.status == "superseded" and self.status != "superseded":
            known = None
        if refusal := self._malformed(known) or self._unlocked(task, by):
            return refusal
        run = next((lease.run_id for lease in leases(task) if lease.agent == by.agent), None)
        artifact = known or RecordedArtifact(
            id=_uuid(f"{top.id}/{top.rev}/{self.path}"),
            type=self.type or "file",  # type: ignore[arg-type] # judged above
            path=self.path,
            created_by=by.agent,
            created_at=iso(now),
            description=(self.description or "").strip(),
            task_id=task.id,
            run_id=run,
        )
        artifact = msgspec.structs.replace(artifact, status=self.status or artifact.status)
        if artifact == known:
            return Decision(agent=by.agent)
        others = tuple(one for one in context.artifacts if one.id != artifact.id)
        after = msgspec.structs.replace(context, artifacts=(*others, artifact))
        payload = {"artifact": msgspec.to_builtins(artifact)}
        drafts = (Draft(type="context.artifact", task_id=top.id, payload=payload),)
        return oversize(top, after) or Decision(drafts=drafts, agent=by.agent)

    def _malformed(self, known: RecordedArtifact | None) -> AofError | None:
        problem = (
            bad_reference("path", self.path)
            or (limits.choice("type", self.type, ARTIFACT_TYPES) if self.type is not None else None)
            or (limits.choice("status", self.status, ARTIFACT_STATUSES) if self.status is not None else None)
            or limits.text("description", self.description, limits.PROGRESS)
        )
        if problem is not None or known is None:
            return problem
        if self.type in (None, known.type) and self.description in (None, known.description):
            return None
        return InvalidInput(
            f"'{self.path[:80]}' is recorded already, and keeps its type and description",
            "change its status only, or mark it as superseded and record it anew",
        )

    def _unlocked(self, task: Task, by: Writer) -> LockRequired | None:
        """To report a file of the project, a run must hold its lock; what lies in the task's own folder needs none."""
        run = next((lease.run_id for lease in leases(task) if lease.agent == by.agent), None)
        if run is None or is_uri(self.path) or self.path.startswith(tuple(ARTIFACT_PATHS.values())):
            return None
        path = normalised("path", self.path)
        return None if isinstance(path, AofError) or may_write(task, run, path) else required(task, path)


def _uuid(name: str) -> str:
    """The UUID (version 8) of a name: the same name has the same one, and no two artifacts of a tree share a name."""
    digits = hexdigest(name.encode())
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def artifact_of(top: Task, path: str) -> Artifact | None:
    """The artifact that was recorded last under a path."""
    return next((reference(one) for one in context_of(top).artifacts[::-1] if one.path == path), None)
