"""Errors about mail between agents."""

from __future__ import annotations

from aof.core.errors.base import Conflict, Invalid, NotFound, Refused


class MessageNotFound(NotFound):
    """No such message in the mailbox."""

    code = "message_not_found"


class MessageClosed(Refused):
    """A closed message is never opened again."""

    code = "message_closed"


class NotReceiver(Refused):
    """Only the receiver of a message acknowledges, blocks or actions it."""

    code = "not_receiver"


class NotCloser(Refused):
    """Only the sender of a message or a maintainer closes it."""

    code = "not_closer"


class StatusNotAllowed(Refused):
    """A message in this status cannot go to that one."""

    code = "status_not_allowed"


class RevisionMismatch(Refused):
    """An answer to a review payload does not repeat its revision."""

    code = "revision_mismatch"


class MissingPart(Refused):
    """A review payload in several parts is not complete."""

    code = "missing_part"


class MalformedPayload(Invalid):
    """A review payload lacks a field, does not fit its revision, or is too large."""

    code = "malformed_payload"


class UnreadableMessage(Conflict):
    """The card of a message cannot be read as it stands in the file."""

    code = "unreadable_message"
