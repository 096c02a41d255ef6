"""Audit records as the application needs them: questions to them, and the files that people read. Above: app.

Below: memory, filesystem. A store never decides how long a record is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from aof.core.handoffs.audit import AuditRecord


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which records: all that match every key that is given, in the order of the log, after a number."""

    handoff_id: str | None = None
    task_id: str | None = None
    from_agent: str | None = None
    to_agent: str | None = None
    after: int = 0
    limit: int | None = None

    def matches(self, record: AuditRecord) -> bool:
        """Whether a record has every key that is given."""
        return (
            self.handoff_id in (None, record.handoff_id)
            and self.task_id in (None, record.context_snapshot.task_id)
            and self.from_agent in (None, record.from_agent)
            and self.to_agent in (None, record.to_agent)
        )


class AuditProblem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A record that is not what was written: which one, where, and in what way."""

    code: str
    path: str
    detail: str
    seq: int | None = None
    handoff_id: str | None = None


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """How many records were compared, and what is wrong."""

    checked: int
    problems: tuple[AuditProblem, ...] = ()


class Expired(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one file that need not be kept any longer."""

    path: str
    records: int


Expires = Callable[[tuple[AuditRecord, ...]], tuple[bool, ...]]  # of each record, whether it may go


class AuditFiles(Protocol):
    """The records as JSON lines, one file per day. They follow from the log when somebody reads them."""

    def exist(self) -> bool:
        """Whether there are any."""
        ...

    def follow(self) -> None:
        """Write what the log has and the files have not."""
        ...

    def verify(self, expires: Expires) -> Verified:
        """Compare the log with itself and the files with the log; changes nothing."""
        ...

    def expired(self, before: str, expires: Expires) -> tuple[Expired, ...]:
        """What may go from the files of the days before one."""
        ...

    def prune(self, before: str, expires: Expires) -> tuple[Expired, ...]:
        """Remove that; the log stays as it is."""
        ...
