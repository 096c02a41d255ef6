"""The five messages of AOF/1 and the envelope that carries them, as models. A message type is one row in `PAYLOADS`.

Fields that a sender adds and that version 1 does not know are passed over. Must not know what a message does.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from aof.core.model.kinds import Status
from aof.core.model.run import Outcome


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Common form: the wire writes names in camel case."""


class Envelope(Wire, frozen=True, kw_only=True):
    """What every message has. `runId` is optional: a channel that knows the run supplies it."""

    protocol: Literal["aof"]
    version: Literal[1]
    type: str
    task_id: str
    from_agent: str
    to_agent: str
    sent_at: str
    payload: dict[str, Any]
    run_id: str | None = None


class Payload(Wire, frozen=True, kw_only=True):
    """What differs by type."""


class Tests(Payload, frozen=True, kw_only=True):
    """How many tests there were and how they went."""

    total: int
    passed: int
    failed: int


class CompletionPayload(Payload, frozen=True, kw_only=True):
    """`completion.report`: the outcome of a run."""

    outcome: Outcome
    summary_ref: str
    deliverables: tuple[str, ...] = ()
    tests: Tests | None = None
    blockers: tuple[str, ...] = ()
    notes: str | None = None


class StatusPayload(Payload, frozen=True, kw_only=True):
    """`status.update`: how far the work is, or where the task should go."""

    task_id: str
    agent_id: str
    status: Status | None = None
    progress: str | None = None
    blockers: tuple[str, ...] | None = None
    notes: str | None = None


class RequestPayload(Payload, frozen=True, kw_only=True):
    """`handoff.request`: what a child task's agent is asked to do. Criteria of a wrong form do not stop it."""

    task_id: str
    parent_task_id: str
    from_agent: str
    to_agent: str
    acceptance_criteria: Any = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    due_by: str | None = None


class AcceptedPayload(Payload, frozen=True, kw_only=True):
    """`handoff.accepted`: the addressee takes the child task."""

    task_id: str
    accepted: bool


class RejectedPayload(Payload, frozen=True, kw_only=True):
    """`handoff.rejected`: the addressee does not take it, and says why."""

    task_id: str
    accepted: bool
    reason: str


PAYLOADS: Final[dict[str, type[Payload]]] = {
    "handoff.request": RequestPayload,
    "handoff.accepted": AcceptedPayload,
    "handoff.rejected": RejectedPayload,
    "status.update": StatusPayload,
    "completion.report": CompletionPayload,
}
