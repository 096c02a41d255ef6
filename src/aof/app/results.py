"""What operations answer, in the names that every surface uses."""

from __future__ import annotations

from typing import Any

import msgspec


class Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Common form of the answers."""


class Created(Result, frozen=True, kw_only=True):
    """A task that is durable."""

    task_id: str
    status: str
    file_path: str


class Claimed(Result, frozen=True, kw_only=True):
    """A run that the caller now holds."""

    task_id: str
    run_id: str
    epoch: int
    attempt: int
    expires_at: str
    file_path: str


class Beaten(Result, frozen=True, kw_only=True):
    """A lease that lasts longer now."""

    task_id: str
    run_id: str
    expires_at: str


class Moved(Result, frozen=True, kw_only=True):
    """Where the task is now."""

    task_id: str
    status: str


class Updated(Result, frozen=True, kw_only=True):
    """What an update really changed."""

    task_id: str
    status: str
    updated_at: str
    body_updated: bool
    transitioned: bool


class Edited(Result, frozen=True, kw_only=True):
    """Which fields an edit changed."""

    task_id: str
    updated_fields: tuple[str, ...]
    task: dict[str, str]


class Depends(Result, frozen=True, kw_only=True):
    """What the task now waits for."""

    task_id: str
    blocker_id: str
    depends_on: tuple[str, ...]


class Reported(Result, frozen=True, kw_only=True):
    """The progress as it now reads."""

    task_id: str
    progress: dict[str, Any]


class Recovered(Result, frozen=True, kw_only=True):
    """A run whose lease had ended, and where its task went."""

    task_id: str
    status: str
    reason: str
