"""The one tree of errors. The core returns them as values; the edge raises them.

    AofError
    ├── NotFound      not_found    TaskNotFound, NothingReady, NoDataDirectory
    ├── Conflict      conflict     AlreadyClaimed, StaleLease, NotLeaseHolder, RunRequired, KeyConflict
    ├── Refused       refused      NotReady, InvalidTransition, CancelRequested, DependencyCycle, ResourceBusy
    ├── Invalid       invalid      InvalidInput, SettingsUnusable, AmbiguousId, PayloadTooLarge, UnreadableTask
    ├── Unavailable   unavailable  LockTimeout, DiskFull, StorageFailed, UnsupportedFilesystem,
    │                              UnsupportedVersion
    └── Internal      internal     CommitUnknown, LogPoisoned, LogDamaged

Every leaf has a stable `code`. A hint is text plus, where a call helps, the call as data, so that each
surface spells it in its own way. Must not know any surface.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class Call(msgspec.Struct, frozen=True):
    """The call that would have worked: an operation and its arguments."""

    operation: str
    arguments: dict[str, Any] = {}


class AofError(Exception):
    """What every refusal and failure of AOF is."""

    code: ClassVar[str] = "error"
    kind: ClassVar[str] = "internal"

    def __init__(self, message: str, hint: str = "", call: Call | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.call = call
        self.details = details


class NotFound(AofError):
    """What was asked for does not exist."""

    code = kind = "not_found"


class TaskNotFound(NotFound):
    """No task has that ID."""

    code = "task_not_found"


class NothingReady(NotFound):
    """There is no task that this agent could claim now."""

    code = "nothing_ready"


class NoDataDirectory(NotFound):
    """There is no data directory here."""

    code = "no_data_directory"


class Conflict(AofError):
    """Somebody else was first, or the caller's knowledge is out of date."""

    code = kind = "conflict"


class AlreadyClaimed(Conflict):
    """Another agent holds the task."""

    code = "already_claimed"


class StaleLease(Conflict):
    """The run that the caller acts for has been replaced or has ended."""

    code = "stale_lease"


class NotLeaseHolder(Conflict):
    """The caller is not the agent that holds the lease."""

    code = "not_lease_holder"


class RunRequired(Conflict):
    """The agent has had several runs of this task and must say which one it acts for."""

    code = "run_required"


class KeyConflict(Conflict):
    """The idempotency key belongs to a task with other content."""

    code = "key_conflict"


class Refused(AofError):
    """The rules do not allow this now."""

    code = kind = "refused"


class NotReady(Refused):
    """The task cannot be run yet."""

    code = "not_ready"


class InvalidTransition(Refused):
    """The status table has no such edge."""

    code = "invalid_transition"


class CancelRequested(Refused):
    """The task, or one above it, is being cancelled."""

    code = "cancel_requested"


class DependencyCycle(Refused):
    """The edge would make a task wait for itself."""

    code = "dependency_cycle"


class ResourceBusy(Refused):
    """Another running task occupies the resource."""

    code = "resource_busy"


class Invalid(AofError):
    """The call itself is wrong."""

    code = kind = "invalid"


class InvalidInput(Invalid):
    """A value is missing, of the wrong type or not allowed."""

    code = "invalid"


class SettingsUnusable(InvalidInput):
    """`aof.toml` cannot be used as it is."""

    code = "settings_unusable"


class AmbiguousId(Invalid):
    """A short ID stands for several tasks."""

    code = "ambiguous_id"


class PayloadTooLarge(Invalid):
    """A value is longer than the limit for it."""

    code = "payload_too_large"


class UnreadableTask(Invalid):
    """The task's file cannot be understood; it was left as it is."""

    code = "unreadable_task"


class Unavailable(AofError):
    """The machine cannot do it at the moment; nothing was changed."""

    code = kind = "unavailable"


class LockTimeout(Unavailable):
    """Another process kept a lock for too long."""

    code = "lock_timeout"


class DiskFull(Unavailable):
    """There is no space left; the change was not made."""

    code = "disk_full"


class StorageFailed(Unavailable):
    """The operating system refused a read or a write; the change was not made."""

    code = "storage_failed"


class UnsupportedFilesystem(Unavailable):
    """The data directory lies on a file system whose locks cannot be relied on."""

    code = "unsupported_filesystem"


class UnsupportedVersion(Unavailable):
    """A newer AOF has written the data, in a form that this one does not know; it was left as it is."""

    code = "unsupported_version"


class Internal(AofError):
    """The data needs a look by `doctor`."""

    code = kind = "internal"


class CommitUnknown(Internal):
    """The change was appended, but not proven to be durable."""

    code = "commit_unknown"


class LogPoisoned(Internal):
    """A flush of the log failed earlier; nothing is appended until `doctor` has verified it."""

    code = "log_poisoned"


class LogDamaged(Internal):
    """The log's chain is broken in a place that no crash explains."""

    code = "log_damaged"
