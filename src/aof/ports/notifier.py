"""Telling people that a task needs them. Above: the application, after a commit. Below: a command, a file, a test.

A notifier is called after the change; its failure changes nothing.
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class Notification(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A task has come to where somebody should look at it.

    `to` is who should hear of it, where that is one agent: of a handoff that was rejected, the orchestrator.
    """

    task_id: str
    title: str
    from_status: str
    status: str
    actor: str
    timestamp: str
    seq: int
    reason: str | None = None
    to: str | None = None
    handoff_id: str | None = None


class Notifier(Protocol):
    """Receives notifications."""

    def notify(self, notification: Notification) -> None:
        """Pass it on. May fail; nobody waits for an answer."""
        ...
