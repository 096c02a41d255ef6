"""The one tree of errors. The core returns them as values; the edge raises them.

    AofError
    ├── NotFound      not_found    TaskNotFound, ParentNotFound, HandoffNotFound, NothingReady, NoDataDirectory,
    │                              WorkflowNotFound
    ├── Conflict      conflict     AlreadyClaimed, StaleLease, NotLeaseHolder, RunRequired, KeyConflict,
    │                              IdTaken, AnotherTask
    ├── Refused       refused      NotReady, InvalidTransition, CancelRequested, DependencyCycle, ResourceBusy,
    │                              NoRoute, NotRouted, AtCapacity, AgentInactive, NotAllowed, SelfApproval,
    │                              NestedDelegation, Unauthenticated, ActorMismatch, OutcomeRequired,
    │                              HopRoleMismatch, NotAttached, Unmerged
    ├── Invalid       invalid      InvalidInput, SettingsUnusable, AmbiguousId, PayloadTooLarge, UnreadableTask,
    │                              UnusableOrgChart, UnreadableResult, InvalidJson, InvalidEnvelope, TaskIdMismatch,
    │                              InvalidWorkflow, TooManyMessages
    ├── Unavailable   unavailable  LockTimeout, DiskFull, StorageFailed, LinkRefused, ReadOnly,
    │                              UnsupportedFilesystem, UnsupportedVersion, RunnerFailed, TooManyRequests
    └── Internal      internal     CommitUnknown, LogPoisoned, LogDamaged, LineEndingsConverted

Every leaf has a stable `code`. A hint is text plus, where a call helps, the call as data, so that each
surface spells it in its own way. Must not know any surface.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class Call(dict[str, "Any"]):
    """The call that would have worked: an operation and its arguments. An object in JSON for any encoder."""

    __slots__ = ()

    def __init__(self, operation: str, arguments: dict[str, Any]) -> None:
        super().__init__(operation=operation, arguments=arguments)

    @property
    def operation(self) -> str:
        """What to call."""
        name: str = self["operation"]
        return name

    @property
    def arguments(self) -> dict[str, Any]:
        """With what."""
        given: dict[str, Any] = self["arguments"]
        return given


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


class ParentNotFound(NotFound):
    """No task has the ID that a delegation names as its parent."""

    code = "parent_not_found"


class HandoffNotFound(NotFound):
    """No handoff has that ID."""

    code = "handoff_not_found"


class NothingReady(NotFound):
    """There is no task that this agent could claim now."""

    code = "nothing_ready"


class NoDataDirectory(NotFound):
    """There is no data directory here."""

    code = "no_data_directory"


class WorkflowNotFound(NotFound):
    """No workflow has that name."""

    code = "workflow_not_found"


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


class IdTaken(Conflict):
    """A task has this ID already."""

    code = "id_taken"


class AnotherTask(Conflict):
    """The task's file is of a different task with the same ID; both are kept."""

    code = "another_task"


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


class Unauthenticated(Refused):
    """The caller did not prove who it is."""

    code = "unauthenticated"


class NoRoute(Refused):
    """Nobody in the org chart could take the task."""

    code = "no_route"


class NotRouted(Refused):
    """The org chart sends the task to somebody else."""

    code = "not_routed"


class Unmerged(Refused):
    """Git is in the middle of a merge that nobody has settled yet."""

    code = "unmerged_paths"


class AtCapacity(Refused):
    """The agent, or its team, holds as many tasks as it may."""

    code = "at_capacity"


class AgentInactive(Refused):
    """The org chart says that the agent takes no work."""

    code = "agent_inactive"


class NotAllowed(Refused):
    """The caller's roles do not allow this."""

    code = "not_allowed"


class ActorMismatch(Refused):
    """The caller claims to be somebody else than its token, or the secret of its run, says."""

    code = "actor_mismatch"


class SelfApproval(Refused):
    """An agent cannot judge its own work."""

    code = "self_approval"


class OutcomeRequired(Refused):
    """The task is in a workflow, which only the outcomes of its hops move on."""

    code = "outcome_required"


class HopRoleMismatch(Refused):
    """The hop is for another role."""

    code = "wrong_role"


class NotAttached(Refused):
    """The task names a workflow that it has not begun."""

    code = "workflow_not_attached"


class NestedDelegation(Refused):
    """A task that was delegated cannot be delegated on."""

    code = "nested_delegation"


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


class UnusableOrgChart(Invalid):
    """The org chart cannot be understood, and there is no earlier version that could."""

    code = "unusable_org_chart"


class InvalidWorkflow(Invalid):
    """The workflow's template cannot be used."""

    code = "invalid_workflow"


class UnreadableResult(Invalid):
    """The file with a run's result cannot be understood; it was left as it is."""

    code = "invalid_run_result"


class TooManyMessages(Invalid):
    """One call brings more messages than it may; those beyond the limit were not looked at."""

    code = "too_many_messages"


class InvalidJson(Invalid):
    """A message says that it is one of ours, and what follows is no JSON."""

    code = "invalid_json"


class InvalidEnvelope(Invalid):
    """A message does not have the form that its type asks for."""

    code = "invalid_envelope"


class TaskIdMismatch(Invalid):
    """A message names one task outside and another one inside."""

    code = "taskId_mismatch"


class Unavailable(AofError):
    """The machine cannot do it at the moment; nothing was changed."""

    code = kind = "unavailable"


class TooManyRequests(Unavailable):
    """Whoever calls does so too often, or has too much open."""

    code = "too_many_requests"


class LockTimeout(Unavailable):
    """Another process kept a lock for too long."""

    code = "lock_timeout"


class DiskFull(Unavailable):
    """There is no space left; the change was not made."""

    code = "disk_full"


class StorageFailed(Unavailable):
    """The operating system refused a read or a write; the change was not made."""

    code = "storage_failed"


class LinkRefused(Unavailable):
    """A symbolic link lies where AOF would write; it was not followed."""

    code = "link_refused"


class ReadOnly(Unavailable):
    """Whoever calls may not write to the data directory; what can be answered without that is."""

    code = "read_only"


class RunnerFailed(Unavailable):
    """A worker could not be started."""

    code = "runner_failed"


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


class LineEndingsConverted(LogDamaged):
    """The lines of the log end with CR LF, which AOF never writes: somebody converted them."""

    code = "log_line_endings"
