"""What the operations on shared work answer. Must not know any surface."""

from __future__ import annotations

from typing import Any

from aof.app.operations.results import Result
from aof.core.model.handoffs.context import Artifact, ContextVariables, Variable
from aof.ports.store import Scope


class Locked(Result, frozen=True, kw_only=True):
    """All locks of the task after the call."""

    task_id: str
    locks: tuple[dict[str, Any], ...]


class Unlocked(Result, frozen=True, kw_only=True):
    """The paths that were given back."""

    task_id: str
    released: tuple[str, ...]


class LockList(Result, frozen=True, kw_only=True):
    """Who holds what, since when; `lost` is one whose holder shows no life any more."""

    total: int
    locks: tuple[dict[str, Any], ...]


class ContextShown(Result, frozen=True, kw_only=True):
    """The context of a workflow: as a handoff carries it, and each variable with scope, writer and version."""

    task_id: str
    top_task_id: str
    context_variables: ContextVariables
    context_variables_hash: str
    variables: dict[str, Variable]
    artifacts: tuple[Artifact, ...]
    conflicts: str


class DecisionRecorded(Result, frozen=True, kw_only=True, omit_defaults=True):
    """A decision of the workflow: `recorded`, or `escalated` by a handoff that has to come back first."""

    state: str
    description: str
    task_id: str
    decision_id: str | None = None
    made_by: str | None = None
    timestamp: str | None = None
    handoff_id: str | None = None


class Preflighted(Result, frozen=True, kw_only=True):
    """Whether the agent may: `proceed`, `proceed_with_warnings` or `blocked`, and which stage decided."""

    task_id: str
    agent: str
    outcome: str
    point: str
    stage: str
    reason: str
    warnings: tuple[str, ...] = ()


def reading(task_id: str) -> Scope:
    """The scope of a look at one task and at what the index knows of its relatives."""
    return Scope(read=frozenset({task_id}))
