"""The one tree of errors. The core returns them as values; the edge raises them.

    AofError
    ├── NotFound      not_found    TaskNotFound, NoSuchAttempt, ParentNotFound, HandoffNotFound, NothingReady,
    │                              NoDataDirectory, WorkflowNotFound, MessageNotFound, NoCharter, ConflictNotFound,
    │                              JobNotFound, NoQuestion, NothingWaits
    ├── Conflict      conflict     AlreadyClaimed, StaleLease, NotLeaseHolder, RunRequired, KeyConflict,
    │                              RevisionConflict, IdTaken, AnotherTask, ContextConflict, FileLocked, HandoffClosed,
    │                              HandoffOpen, AlreadyReturned, StaleHandoff, UnreadableMessage, JobExists,
    │                              AlreadyAnswered
    ├── Refused       refused      NotReady, NotReconciled, NotUndoable, ChildrenOpen, InvalidTransition, TaskRunning,
    │                              CancelRequested, DependencyCycle, ResourceBusy, NoRoute, NotRouted, AtCapacity,
    │                              AgentInactive, NotAllowed, OwnWork, ReviewRequired, NestedDelegation, Reserved,
    │                              NotClaimed, QuestionOpen,
    │                              Unauthenticated, ActorMismatch, EditWaits, OutcomeRequired, HopRoleMismatch,
    │                              NotAttached, Unmerged,
    │                              MergePending, UnmergeableHistory, OutOfScope, LockRequired, BudgetExceeded,
    │                              BudgetTooSmall, NotAddressee,
    │                              NotAccepted, HandedOver, NoReturnExpected, SegmentOpen, EscalationDepth,
    │                              CapabilityMismatch, MessageClosed, NotReceiver, NotCloser, StatusNotAllowed,
    │                              RevisionMismatch, MissingPart, CharterExists, ApprovalRequired, RebuttalUsed,
    │                              RebuttalLate, ConflictSettled, QuestionRequired, SelfAnswer
    ├── Invalid       invalid      InvalidInput, SettingsUnusable, AmbiguousId, PayloadTooLarge, UnreadableTask,
    │                              UnusableOrgChart, UnreadableResult, InvalidJson, InvalidEnvelope, TaskIdMismatch,
    │                              InvalidWorkflow, TooManyMessages, MalformedPayload, UnreadableJobs
    ├── Unavailable   unavailable  LockTimeout, DiskFull, StorageFailed, LinkRefused, ReadOnly,
    │                              UnsupportedFilesystem, UnsupportedVersion, RunnerFailed, TooManyRequests
    └── Internal      internal     CommitUnknown, LogPoisoned, LogDamaged, LogRewritten, LineEndingsConverted,
                                   LaneRefused

Every leaf has a stable `code`. A hint is text plus, where a call helps, the call as data, so that each
surface spells it in its own way. Must not know any surface.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


__all__ = [
    "ActorMismatch",
    "AgentInactive",
    "AlreadyAnswered",
    "AlreadyClaimed",
    "AlreadyReturned",
    "AmbiguousId",
    "AnotherTask",
    "AofError",
    "ApprovalRequired",
    "AtCapacity",
    "BudgetExceeded",
    "BudgetTooSmall",
    "Call",
    "CancelRequested",
    "CapabilityMismatch",
    "CharterExists",
    "ChildrenOpen",
    "CommitUnknown",
    "Conflict",
    "ConflictNotFound",
    "ConflictSettled",
    "ContextConflict",
    "DependencyCycle",
    "DiskFull",
    "EditWaits",
    "EscalationDepth",
    "FileLocked",
    "HandedOver",
    "HandoffClosed",
    "HandoffNotFound",
    "HandoffOpen",
    "HopRoleMismatch",
    "IdTaken",
    "Internal",
    "Invalid",
    "InvalidEnvelope",
    "InvalidInput",
    "InvalidJson",
    "InvalidTransition",
    "InvalidWorkflow",
    "JobExists",
    "JobNotFound",
    "KeyConflict",
    "LaneRefused",
    "LineEndingsConverted",
    "LinkRefused",
    "LockRequired",
    "LockTimeout",
    "LogDamaged",
    "LogPoisoned",
    "LogRewritten",
    "MalformedPayload",
    "MergePending",
    "MessageClosed",
    "MessageNotFound",
    "MissingPart",
    "NestedDelegation",
    "NoCharter",
    "NoDataDirectory",
    "NoQuestion",
    "NoReturnExpected",
    "NoRoute",
    "NoSuchAttempt",
    "NotAccepted",
    "NotAddressee",
    "NotAllowed",
    "NotAttached",
    "NotClaimed",
    "NotCloser",
    "NotFound",
    "NotLeaseHolder",
    "NotReady",
    "NotReceiver",
    "NotReconciled",
    "NotRouted",
    "NotUndoable",
    "NothingReady",
    "NothingWaits",
    "OutOfScope",
    "OutcomeRequired",
    "OwnWork",
    "ParentNotFound",
    "PayloadTooLarge",
    "QuestionOpen",
    "QuestionRequired",
    "ReadOnly",
    "RebuttalLate",
    "RebuttalUsed",
    "Refused",
    "Reserved",
    "ResourceBusy",
    "ReviewRequired",
    "RevisionConflict",
    "RevisionMismatch",
    "RunRequired",
    "RunnerFailed",
    "SegmentOpen",
    "SelfAnswer",
    "SettingsUnusable",
    "StaleHandoff",
    "StaleLease",
    "StatusNotAllowed",
    "StorageFailed",
    "TaskIdMismatch",
    "TaskNotFound",
    "TaskRunning",
    "TooManyMessages",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "UnmergeableHistory",
    "Unmerged",
    "UnreadableJobs",
    "UnreadableMessage",
    "UnreadableResult",
    "UnreadableTask",
    "UnsupportedFilesystem",
    "UnsupportedVersion",
    "UnusableOrgChart",
    "WorkflowNotFound",
]


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

    def __str__(self) -> str:
        """The call in Python."""
        given = dict(self.arguments)
        name = "held_back" if given.pop("explain", False) else "events" if self.operation == "log" else self.operation
        first = [repr(given.pop("task_id"))] if "task_id" in given and name != "events" else []
        return f"fabric.{name}({', '.join([*first, *(f'{one}={value!r}' for one, value in given.items())])})"


class AofError(Exception):
    """What every refusal and failure of AOF is. A hint may show another way on, `otherwise`: in words, and its call."""

    __module__ = "aof.errors"
    code: ClassVar[str] = "error"
    kind: ClassVar[str] = "internal"
    otherwise: tuple[str, Call] | None = None

    def __init__(self, message: str, hint: str = "", call: Call | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.call = call
        self.details = details

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override] # what a traceback shows below the error
        ways = [(self.hint, self.call), *((self.otherwise,) if self.otherwise is not None else ())]
        told = [": ".join(filter(None, (hint, str(call or "")))) for hint, call in ways if hint or call is not None]
        notes: list[str] = self.__dict__.setdefault("_notes", told)  # others may add to it
        return notes


class NotFound(AofError):
    """What was asked for does not exist."""

    code = kind = "not_found"


class Conflict(AofError):
    """Another caller was first, or the caller's knowledge is out of date."""

    code = kind = "conflict"


class Refused(AofError):
    """The rules do not allow this now."""

    code = kind = "refused"


class Invalid(AofError):
    """The call itself is wrong."""

    code = kind = "invalid"


class InvalidInput(Invalid):
    """A value is missing, of the wrong type or not allowed."""

    code = "invalid"


class PayloadTooLarge(Invalid):
    """A value is longer than the limit for it."""

    code = "payload_too_large"


class Unavailable(AofError):
    """The machine cannot do it at the moment; nothing was changed."""

    code = kind = "unavailable"


class TooManyRequests(Unavailable):
    """The caller makes too many requests, or has too many open."""

    code = "too_many_requests"


class Internal(AofError):
    """The data needs a look by `doctor`."""

    code = kind = "internal"


class TaskNotFound(NotFound):
    """No task has that ID."""

    code = "task_not_found"


class NoSuchAttempt(NotFound):
    """The task has no run with that number."""

    code = "no_such_attempt"


class NothingReady(NotFound):
    """There is no task that this agent could claim now."""

    code = "nothing_ready"


class KeyConflict(Conflict):
    """The idempotency key belongs to a task with other content."""

    code = "key_conflict"


class RevisionConflict(Conflict):
    """The task has changed since the revision that the caller has seen."""

    code = "revision_conflict"


class IdTaken(Conflict):
    """A task has this ID already."""

    code = "id_taken"


class AnotherTask(Conflict):
    """The task's file is of a different task with the same ID; both are kept."""

    code = "another_task"


class NotReady(Refused):
    """The task cannot be run yet."""

    code = "not_ready"


class ChildrenOpen(Refused):
    """A parent is not complete while tasks below it are unfinished."""

    code = "children_open"


class NotReconciled(Refused):
    """Something that the task itself declares is still open."""

    code = "not_reconciled"


class InvalidTransition(Refused):
    """The status table has no such edge."""

    code = "invalid_transition"


class NotUndoable(Refused):
    """The change cannot be reversed by another one; the message says why."""

    code = "not_undoable"


class TaskRunning(Refused):
    """Somebody runs the task, and that must end first."""

    code = "task_running"


class CancelRequested(Refused):
    """The task, or one above it, is being cancelled."""

    code = "cancel_requested"


class DependencyCycle(Refused):
    """The edge would make a task wait for itself."""

    code = "dependency_cycle"


class ResourceBusy(Refused):
    """Another running task occupies the resource."""

    code = "resource_busy"


class AmbiguousId(Invalid):
    """A short ID stands for several tasks."""

    code = "ambiguous_id"


class EditWaits(Refused):
    """A maintainer has to confirm an edit by hand before it is imported; until then the log's version counts."""

    code = "edit_waits"


class NothingWaits(NotFound):
    """No edit by hand of the task waits for a maintainer."""

    code = "nothing_waits"


class UnreadableTask(Invalid):
    """The task's file cannot be understood; it was left as it is."""

    code = "unreadable_task"


class AlreadyClaimed(Conflict):
    """Another agent holds the task."""

    code = "already_claimed"


class Reserved(Refused):
    """The task is reserved for another agent."""

    code = "reserved"


class StaleLease(Conflict):
    """The run that the caller acts for has been replaced or has ended."""

    code = "stale_lease"


class NotLeaseHolder(Conflict):
    """The caller is not the agent that holds the lease."""

    code = "not_lease_holder"


class RunRequired(Conflict):
    """The agent has had several runs of this task and must say which one it acts for."""

    code = "run_required"


class UnreadableResult(Invalid):
    """The file with a run's result cannot be understood; it was left as it is."""

    code = "invalid_run_result"


class RunnerFailed(Unavailable):
    """A worker could not be started."""

    code = "runner_failed"


class AlreadyAnswered(Conflict):
    """The question has already been answered."""

    code = "already_answered"


class NoQuestion(NotFound):
    """No agent has asked such a question about the task."""

    code = "no_question"


class NotClaimed(Refused):
    """The caller has not claimed the task that it calls complete."""

    code = "not_claimed"


class QuestionOpen(Refused):
    """The work cannot be complete while a question that its agent has asked is open."""

    code = "question_open"


class QuestionRequired(Refused):
    """Several questions are open, and the call does not say which one it answers."""

    code = "question_required"


class SelfAnswer(Refused):
    """An agent cannot answer its own question."""

    code = "self_answer"


class Unauthenticated(Refused):
    """The caller did not prove who it is."""

    code = "unauthenticated"


class NoRoute(Refused):
    """Nobody in the org chart could take the task."""

    code = "no_route"


class NotRouted(Refused):
    """The org chart sends the task to somebody else."""

    code = "not_routed"


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


class OwnWork(Refused):
    """An agent cannot judge its own work."""

    code = "own_work"


class ReviewRequired(Refused):
    """The settings demand that such a task is reviewed, and only a maintainer may decide otherwise."""

    code = "review_required"


class UnusableOrgChart(Invalid):
    """The org chart cannot be understood, and there is no earlier version that could."""

    code = "unusable_org_chart"


class WorkflowNotFound(NotFound):
    """No workflow has that name."""

    code = "workflow_not_found"


class OutcomeRequired(Refused):
    """The task is in a workflow, which only the outcomes of its hops move on."""

    code = "outcome_required"


class HopRoleMismatch(Refused):
    """The hop is for another role."""

    code = "wrong_role"


class NotAttached(Refused):
    """The task names a workflow that it has not begun."""

    code = "workflow_not_attached"


class InvalidWorkflow(Invalid):
    """The workflow's template cannot be used."""

    code = "invalid_workflow"


class ParentNotFound(NotFound):
    """No task has the ID that a delegation names as its parent."""

    code = "parent_not_found"


class HandoffNotFound(NotFound):
    """No handoff has that ID."""

    code = "handoff_not_found"


class NestedDelegation(Refused):
    """A task that was delegated cannot be delegated on."""

    code = "nested_delegation"


class TooManyMessages(Invalid):
    """One call brings more messages than it may; those beyond the limit were not looked at."""

    code = "too_many_messages"


class InvalidJson(Invalid):
    """A message says that it is one of ours, and what follows is not JSON."""

    code = "invalid_json"


class InvalidEnvelope(Invalid):
    """A message does not have the form that its type asks for."""

    code = "invalid_envelope"


class TaskIdMismatch(Invalid):
    """A message names one task outside and another one inside."""

    code = "taskId_mismatch"


class NotAddressee(Refused):
    """The caller is not the agent that the handoff is addressed to, nor its sender where that is asked for."""

    code = "not_addressee"


class HandoffClosed(Conflict):
    """The handoff has its final answer already."""

    code = "handoff_closed"


class HandoffOpen(Conflict):
    """The same is under way already."""

    code = "handoff_open"


class AlreadyReturned(Conflict):
    """The result of the handoff is there already."""

    code = "already_returned"


class StaleHandoff(Conflict):
    """The handoff went on without the caller: its result came too late. It was recorded and not applied."""

    code = "stale_handoff"


class NotAccepted(Refused):
    """The handoff has not been accepted."""

    code = "handoff_not_accepted"


class NoReturnExpected(Refused):
    """Nobody waits for a result of this handoff."""

    code = "no_return_expected"


class SegmentOpen(Refused):
    """The sender's own part of the task is not complete."""

    code = "segment_open"


class EscalationDepth(Refused):
    """The matter has been escalated as far as it goes: a person has it."""

    code = "escalation_depth"


class CapabilityMismatch(Refused):
    """The target has none of the required capabilities."""

    code = "capability_mismatch"


class HandedOver(Refused):
    """The task was handed to another agent, or its receiver has not accepted it yet."""

    code = "handed_over"


class OutOfScope(Refused):
    """The variable is in a scope that the agent may not write."""

    code = "out_of_scope"


class ContextConflict(Conflict):
    """The variable was written by another agent since the caller has read it."""

    code = "context_conflict"


class FileLocked(Conflict):
    """Another run holds a lock on the file, or on a folder above or a file below it."""

    code = "file_locked"


class LockRequired(Refused):
    """A file may be written only under a lock, and the run holds none on it."""

    code = "lock_required"


class BudgetExceeded(Refused):
    """The run has used, or would use, more than the agent's autonomy allows."""

    code = "budget_exceeded"


class BudgetTooSmall(Refused):
    """The agent's autonomy does not suffice for the work."""

    code = "budget_too_small"


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


class NoCharter(NotFound):
    """There is no session charter."""

    code = "no_charter"


class CharterExists(Refused):
    """The session has its charter already."""

    code = "charter_exists"


class ApprovalRequired(Refused):
    """A gate of the charter leaves this to a person."""

    code = "approval_required"


class ConflictNotFound(NotFound):
    """No proposal or disagreement has this ID."""

    code = "conflict_not_found"


class RebuttalUsed(Refused):
    """An agent has one rebuttal in a disagreement."""

    code = "rebuttal_used"


class RebuttalLate(Refused):
    """The window for a rebuttal is over."""

    code = "rebuttal_late"


class ConflictSettled(Refused):
    """The disagreement is settled already."""

    code = "conflict_settled"


class JobNotFound(NotFound):
    """There is no such job."""

    code = "job_not_found"


class JobExists(Conflict):
    """There is a job of that name already."""

    code = "job_exists"


class UnreadableJobs(Invalid):
    """The file of the jobs cannot be used as it is."""

    code = "jobs_unreadable"


class NoDataDirectory(NotFound):
    """There is no data directory here."""

    code = "no_data_directory"


class Unmerged(Refused):
    """Git is in the middle of a merge with unresolved conflicts."""

    code = "unmerged_paths"


class MergePending(Refused):
    """Several histories are not merged yet, and git is in the middle of a merge, a rebase or a cherry-pick."""

    code = "merge_pending"


def one_of_several(histories: int) -> str:
    """The warning that belongs to whatever is read meanwhile; one line, in ASCII."""
    return f"{MergePending.code}: {histories} clones have written, and this shows one of their histories"


class SettingsUnusable(InvalidInput):
    """`aof.toml` cannot be used as it is."""

    code = "settings_unusable"


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
    """The caller may not write to the data directory; reads that need no write still work."""

    code = "read_only"


class UnsupportedFilesystem(Unavailable):
    """The data directory lies on a file system whose locks cannot be relied on."""

    code = "unsupported_filesystem"


class UnsupportedVersion(Unavailable):
    """A newer AOF has written the data, in a form that this one does not know; it was left as it is."""

    code = "unsupported_version"


class CommitUnknown(Internal):
    """The change was appended, but not proven to be durable."""

    code = "commit_unknown"


class LogPoisoned(Internal):
    """A flush of the log failed earlier; nothing is appended until `doctor` has verified it."""

    code = "log_poisoned"


class LogDamaged(Internal):
    """The log's chain is broken in a place that no crash explains."""

    code = "log_damaged"


class LogRewritten(LogDamaged):
    """The log's hashes hold, but they are not those of what was appended: somebody calculated them again."""

    code = "log_rewritten"


class LaneRefused(LogDamaged):
    """A file in the log's folder is not a lane of it: from another repository, cut, or with a wrong header."""

    code = "lane_refused"


class LineEndingsConverted(LogDamaged):
    """The lines of the log end with CR LF, which AOF never writes: somebody converted them."""

    code = "log_line_endings"


class UnmergeableHistory(Refused):
    """Lanes of the log do not belong together, or a part of one is missing; nothing was changed."""

    code = "unmergeable_history"
