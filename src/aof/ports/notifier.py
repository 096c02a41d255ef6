"""Telling people that a task needs them. Above: the application, after a commit. Below: a command, a file, a channel.

A notifier is called after the change; that nobody heard of finished work is recorded as a failed delivery, and changes
nothing else. A channel leads out of the machine, so nobody waits for it: an outbox follows the log and keeps how far it
has come.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Literal, Protocol

import msgspec

Kind = Literal["status", "sla", "handoff", "mail", "question"]


class Notification(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A task has come to where somebody should look at it.

    `kind` says why: it came to a status, it stayed in one for too long, its agent has asked something (`reason` is
    the question), or nobody answered the handoff of it. Of mail
    that nobody answered, `task_id` is the ID of the message.
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
    kind: Kind = "status"
    priority: str = "normal"
    agent: str | None = None


class Notifier(Protocol):
    """Receives notifications."""

    def notify(self, notification: Notification) -> bool | None:
        """Pass it on. May raise, or answer False, where it did not get through."""
        ...


class ChannelFailed(Exception):
    """A channel did not take a message. Its text never holds an address or a secret."""


class Channel(Protocol):
    """A service that takes messages for people, such as a chat or a mail server."""

    def refused(self) -> str | None:
        """Why nothing may be sent there, if so; looked at anew."""
        ...

    def send(self, subject: str, text: str) -> None:
        """Send one message, within a bounded time. Raises ChannelFailed."""
        ...


class Delivery(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How far a channel has come: everything up to `seq` was sent or is of no interest to it.

    `failures` counts those since the last success. `recent` has the moment at which each piece of news was sent.
    """

    seq: int
    sent: int = 0
    sent_at: str | None = None
    failures: int = 0
    failed_since: str | None = None
    error: str | None = None
    recent: dict[str, int] = {}


class Deliveries(Protocol):
    """Keeps how far each channel has come, and lets one process at a time send to it."""

    def alone(self, channel: str) -> AbstractContextManager[bool]:
        """Whether nobody else sends to the channel; then nobody else does until the block ends."""
        ...

    def load(self, channel: str) -> Delivery | None:
        """How far it has come; None when nothing is known."""
        ...

    def save(self, channel: str, delivery: Delivery) -> None:
        """Keep it."""
        ...
