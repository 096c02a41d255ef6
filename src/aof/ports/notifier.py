"""Telling people that a task needs them. Above: the application, after a commit. Below: a command, a file, a test.

A notifier is told what has happened already. That a finished task's news did not get through is recorded as its
failed delivery.
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class Notification(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A task has come to where somebody should look at it."""

    task_id: str
    title: str
    from_status: str
    status: str
    actor: str
    timestamp: str
    seq: int
    reason: str | None = None


class Notifier(Protocol):
    """Whoever is to be told."""

    def notify(self, notification: Notification) -> bool | None:
        """Pass it on. May raise, or answer False, where it did not get through."""
        ...
