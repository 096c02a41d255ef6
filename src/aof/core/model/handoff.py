"""The handoff record, exactly as `handoffs/<id>.json` holds it. Must not know messages, files or events."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

HandoffKind = Literal["delegation"]
HandoffState = Literal["requested", "accepted", "rejected"]
_ID = re.compile(r"HO-[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{3,9}-[0-9]{1,15}\Z", re.ASCII)


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a delegation asks for: the nine fields of `inputs/handoff.json`, in their order."""

    task_id: str
    parent_task_id: str
    from_agent: str
    to_agent: str
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    due_by: str | msgspec.UnsetType = msgspec.UNSET


class Handoff(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One handoff. `rev` is the number of the event that wrote this version.

    `sent_at` is the sender's own stamp, by which a message that arrives twice is recognised.
    """

    id: str
    kind: HandoffKind
    state: HandoffState
    rev: int
    task_id: str
    parent_task_id: str
    from_agent: str
    to_agent: str
    depth: int
    request: Request
    sent_at: str
    created_at: str
    answered_at: str | None = None
    reason: str | None = None


def handoff_id(task_id: str, rev: int) -> str:
    """The ID of a handoff of a task that was at this version: every request raises the version, so none comes twice."""
    return f"HO-{task_id[5:]}-{rev}"


def age(handoff: Handoff) -> tuple[str, str, int]:
    """Sorts handoffs by when they began."""
    return handoff.created_at, handoff.task_id, int(handoff.id.rpartition("-")[2])


def task_of_handoff(text: str) -> str | None:
    """The task that a handoff is of, or None when the text is not a handoff's ID."""
    return f"TASK-{text[3:].rpartition('-')[0]}" if is_handoff_id(text) else None


def is_handoff_id(text: str) -> bool:
    """Whether the text is a whole handoff ID; it becomes a file name."""
    return _ID.match(text) is not None
