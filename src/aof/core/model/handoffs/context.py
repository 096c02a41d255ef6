"""The shared context of a workflow: variables with scope and writer, decisions, artifacts.

It is kept on the topmost task of a tree, as `context` in its record. What a handoff carries of it has the snake-case
keys of the handoff record. Must not know events, commands or who may write what.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.kinds import LockMode, Priority
from aof.core.model.task import Task

SHARED: Final = "shared"  # the scope that every agent of the workflow may write
ROLE: Final = "role:"
TEAM: Final = "team:"

TaskStatus = Literal["pending", "in_progress", "blocked", "complete", "failed"]
ConflictRule = Literal["first", "last"]
ArtifactType = Literal["file", "code", "document", "test_result", "review_comment"]
ArtifactStatus = Literal["draft", "final", "superseded"]

TASK_STATUSES: Final[tuple[TaskStatus, ...]] = ("pending", "in_progress", "blocked", "complete", "failed")
CONFLICT_RULES: Final[tuple[ConflictRule, ...]] = ("first", "last")
ARTIFACT_TYPES: Final[tuple[ArtifactType, ...]] = ("file", "code", "document", "test_result", "review_comment")
ARTIFACT_STATUSES: Final[tuple[ArtifactStatus, ...]] = ("draft", "final", "superseded")
TASK_STATUS: Final[dict[str, TaskStatus]] = {
    "backlog": "pending",
    "ready": "pending",
    "in-progress": "in_progress",
    "review": "in_progress",
    "blocked": "blocked",
    "done": "complete",
    "deadletter": "failed",
    "cancelled": "failed",
}


class _Carried(msgspec.Struct, frozen=True, kw_only=True):
    """Common form of what a handoff carries: snake-case keys, every one written."""


class DecisionMade(_Carried, frozen=True, kw_only=True):
    """A decision that an agent of the workflow has made."""

    decision_id: str
    description: str
    made_by: str
    timestamp: str


class FileInProgress(_Carried, frozen=True, kw_only=True):
    """A file or folder that somebody has locked."""

    path: str
    owner: str
    lock_type: LockMode


class Artifact(_Carried, frozen=True, kw_only=True):
    """A reference to something that was made in the workflow: never its content."""

    id: str
    type: ArtifactType
    path: str
    created_by: str
    created_at: str
    description: str = ""
    status: ArtifactStatus = "draft"


class ContextVariables(_Carried, frozen=True, kw_only=True):
    """`context_variables` of a handoff: where the task stands, and what the agents have written so far."""

    task_id: str
    task_status: TaskStatus
    task_priority: Priority
    decisions_made: tuple[DecisionMade, ...] = ()
    files_in_progress: tuple[FileInProgress, ...] = ()
    custom: dict[str, Any] = {}


class TransferredContext(_Carried, frozen=True, kw_only=True):
    """What a handoff takes along. `context_variables_hash` is the SHA-256 of the variables as canonical JSON."""

    context_variables: ContextVariables
    context_variables_hash: str
    artifacts: tuple[Artifact, ...] = ()
    escalation_rationale: str | None = None


class Variable(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One variable as the record keeps it: `version` counts its writes, `task_id` is where the last one came from."""

    value: Any
    scope: str
    writer: str
    version: int
    written_at: str
    task_id: str


class RecordedDecision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A decision as the record keeps it."""

    decision_id: str
    description: str
    made_by: str
    timestamp: str
    task_id: str


class RecordedArtifact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An artifact as the record keeps it; `run_id` is the run that made it, where one did."""

    id: str
    type: ArtifactType
    path: str
    created_by: str
    created_at: str
    description: str = ""
    status: ArtifactStatus = "draft"
    task_id: str
    run_id: str | None = None


class SharedContext(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`context` in the record of a topmost task. `rule` says which of two conflicting writes holds."""

    variables: dict[str, Variable] = {}
    decisions: tuple[RecordedDecision, ...] = ()
    artifacts: tuple[RecordedArtifact, ...] = ()
    rule: ConflictRule = "first"


def context_of(task: Task) -> SharedContext:
    """The context that the record holds."""
    return msgspec.convert(task.context, prepare_type(SharedContext)) if task.context else SharedContext()


def builtins(context: SharedContext) -> dict[str, Any]:
    """As a record holds it: what comes back from JSON."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(context))
    return whole
