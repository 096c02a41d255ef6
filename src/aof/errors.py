"""The one tree of errors. The core returns them as values; the edge raises them.

Six kinds, in this order: `NotFound`, `Conflict`, `Refused`, `Invalid`, `Unavailable` and `Internal`, each with the
errors of its kind below it. Every leaf has a stable `code`. A hint is text plus, where a call helps, the call as data,
so that each surface spells it in its own way. Must not know any surface.
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

    def __init_subclass__(cls, *, code: str | None = None) -> None:
        if code is not None:
            cls.code = code

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


class TaskNotFound(NotFound, code="task_not_found"):
    """No task has that ID."""


class NoSuchAttempt(NotFound, code="no_such_attempt"):
    """The task has no run with that number."""


class NothingReady(NotFound, code="nothing_ready"):
    """There is no task that this agent could claim now."""


class NothingWaits(NotFound, code="nothing_waits"):
    """No edit by hand of the task waits for a maintainer."""


class NoQuestion(NotFound, code="no_question"):
    """No agent has asked such a question about the task."""


class WorkflowNotFound(NotFound, code="workflow_not_found"):
    """No workflow has that name."""


class ParentNotFound(NotFound, code="parent_not_found"):
    """No task has the ID that a delegation names as its parent."""


class HandoffNotFound(NotFound, code="handoff_not_found"):
    """No handoff has that ID."""


class MessageNotFound(NotFound, code="message_not_found"):
    """No such message in the mailbox."""


class NoCharter(NotFound, code="no_charter"):
    """There is no session charter."""


class ConflictNotFound(NotFound, code="conflict_not_found"):
    """No proposal or disagreement has this ID."""


class JobNotFound(NotFound, code="job_not_found"):
    """There is no such job."""


class NoDataDirectory(NotFound, code="no_data_directory"):
    """There is no data directory here."""


class Conflict(AofError):
    """Another caller was first, or the caller's knowledge is out of date."""

    code = kind = "conflict"


class KeyConflict(Conflict, code="key_conflict"):
    """The idempotency key belongs to a task with other content."""


class RevisionConflict(Conflict, code="revision_conflict"):
    """The task has changed since the revision that the caller has seen."""


class IdTaken(Conflict, code="id_taken"):
    """A task has this ID already."""


class AnotherTask(Conflict, code="another_task"):
    """The task's file is of a different task with the same ID; both are kept."""


class AlreadyClaimed(Conflict, code="already_claimed"):
    """Another agent holds the task."""


class StaleLease(Conflict, code="stale_lease"):
    """The run that the caller acts for has been replaced or has ended."""


class NotLeaseHolder(Conflict, code="not_lease_holder"):
    """The caller is not the agent that holds the lease."""


class RunRequired(Conflict, code="run_required"):
    """The agent has had several runs of this task and must say which one it acts for."""


class AlreadyAnswered(Conflict, code="already_answered"):
    """The question has already been answered."""


class HandoffClosed(Conflict, code="handoff_closed"):
    """The handoff has its final answer already."""


class HandoffOpen(Conflict, code="handoff_open"):
    """The same is under way already."""


class AlreadyReturned(Conflict, code="already_returned"):
    """The result of the handoff is there already."""


class StaleHandoff(Conflict, code="stale_handoff"):
    """The handoff went on without the caller: its result came too late. It was recorded and not applied."""


class ContextConflict(Conflict, code="context_conflict"):
    """The variable was written by another agent since the caller has read it."""


class FileLocked(Conflict, code="file_locked"):
    """Another run holds a lock on the file, or on a folder above or a file below it."""


class UnreadableMessage(Conflict, code="unreadable_message"):
    """The card of a message cannot be read as it stands in the file."""


class JobExists(Conflict, code="job_exists"):
    """There is a job of that name already."""


class Refused(AofError):
    """The rules do not allow this now."""

    code = kind = "refused"


class NotReady(Refused, code="not_ready"):
    """The task cannot be run yet."""


class ChildrenOpen(Refused, code="children_open"):
    """A parent is not complete while tasks below it are unfinished."""


class NotReconciled(Refused, code="not_reconciled"):
    """Something that the task itself declares is still open."""


class InvalidTransition(Refused, code="invalid_transition"):
    """The status table has no such edge."""


class NotUndoable(Refused, code="not_undoable"):
    """The change cannot be reversed by another one; the message says why."""


class TaskRunning(Refused, code="task_running"):
    """Somebody runs the task, and that must end first."""


class CancelRequested(Refused, code="cancel_requested"):
    """The task, or one above it, is being cancelled."""


class DependencyCycle(Refused, code="dependency_cycle"):
    """The edge would make a task wait for itself."""


class ResourceBusy(Refused, code="resource_busy"):
    """Another running task occupies the resource."""


class EditWaits(Refused, code="edit_waits"):
    """A maintainer has to confirm an edit by hand before it is imported; until then the log's version counts."""


class Reserved(Refused, code="reserved"):
    """The task is reserved for another agent."""


class NotClaimed(Refused, code="not_claimed"):
    """The caller has not claimed the task that it calls complete."""


class QuestionOpen(Refused, code="question_open"):
    """The work cannot be complete while a question that its agent has asked is open."""


class QuestionRequired(Refused, code="question_required"):
    """Several questions are open, and the call does not say which one it answers."""


class SelfAnswer(Refused, code="self_answer"):
    """An agent cannot answer its own question."""


class Unauthenticated(Refused, code="unauthenticated"):
    """The caller did not prove who it is."""


class NoRoute(Refused, code="no_route"):
    """Nobody in the org chart could take the task."""


class NotRouted(Refused, code="not_routed"):
    """The org chart sends the task to somebody else."""


class AtCapacity(Refused, code="at_capacity"):
    """The agent, or its team, holds as many tasks as it may."""


class AgentInactive(Refused, code="agent_inactive"):
    """The org chart says that the agent takes no work."""


class NotAllowed(Refused, code="not_allowed"):
    """The caller's roles do not allow this."""


class ActorMismatch(Refused, code="actor_mismatch"):
    """The caller claims to be somebody else than its token, or the secret of its run, says."""


class OwnWork(Refused, code="own_work"):
    """An agent cannot judge its own work."""


class ReviewRequired(Refused, code="review_required"):
    """The settings demand that such a task is reviewed, and only a maintainer may decide otherwise."""


class OutcomeRequired(Refused, code="outcome_required"):
    """The task is in a workflow, which only the outcomes of its hops move on."""


class HopRoleMismatch(Refused, code="wrong_role"):
    """The hop is for another role."""


class NotAttached(Refused, code="workflow_not_attached"):
    """The task names a workflow that it has not begun."""


class NestedDelegation(Refused, code="nested_delegation"):
    """A task that was delegated cannot be delegated on."""


class NotAddressee(Refused, code="not_addressee"):
    """The caller is not the agent that the handoff is addressed to, nor its sender where that is asked for."""


class NotAccepted(Refused, code="handoff_not_accepted"):
    """The handoff has not been accepted."""


class NoReturnExpected(Refused, code="no_return_expected"):
    """Nobody waits for a result of this handoff."""


class SegmentOpen(Refused, code="segment_open"):
    """The sender's own part of the task is not complete."""


class EscalationDepth(Refused, code="escalation_depth"):
    """The matter has been escalated as far as it goes: a person has it."""


class CapabilityMismatch(Refused, code="capability_mismatch"):
    """The target has none of the required capabilities."""


class HandedOver(Refused, code="handed_over"):
    """The task was handed to another agent, or its receiver has not accepted it yet."""


class OutOfScope(Refused, code="out_of_scope"):
    """The variable is in a scope that the agent may not write."""


class LockRequired(Refused, code="lock_required"):
    """A file may be written only under a lock, and the run holds none on it."""


class BudgetExceeded(Refused, code="budget_exceeded"):
    """The run has used, or would use, more than the agent's autonomy allows."""


class BudgetTooSmall(Refused, code="budget_too_small"):
    """The agent's autonomy does not suffice for the work."""


class MessageClosed(Refused, code="message_closed"):
    """A closed message is never opened again."""


class NotReceiver(Refused, code="not_receiver"):
    """Only the receiver of a message acknowledges, blocks or actions it."""


class NotCloser(Refused, code="not_closer"):
    """Only the sender of a message or a maintainer closes it."""


class StatusNotAllowed(Refused, code="status_not_allowed"):
    """A message in this status cannot go to that one."""


class RevisionMismatch(Refused, code="revision_mismatch"):
    """An answer to a review payload does not repeat its revision."""


class MissingPart(Refused, code="missing_part"):
    """A review payload in several parts is not complete."""


class CharterExists(Refused, code="charter_exists"):
    """The session has its charter already."""


class ApprovalRequired(Refused, code="approval_required"):
    """A gate of the charter leaves this to a person."""


class RebuttalUsed(Refused, code="rebuttal_used"):
    """An agent has one rebuttal in a disagreement."""


class RebuttalLate(Refused, code="rebuttal_late"):
    """The window for a rebuttal is over."""


class ConflictSettled(Refused, code="conflict_settled"):
    """The disagreement is settled already."""


class Unmerged(Refused, code="unmerged_paths"):
    """Git is in the middle of a merge with unresolved conflicts."""


class MergePending(Refused, code="merge_pending"):
    """Several histories are not merged yet, and git is in the middle of a merge, a rebase or a cherry-pick."""


class UnmergeableHistory(Refused, code="unmergeable_history"):
    """Lanes of the log do not belong together, or a part of one is missing; nothing was changed."""


class Invalid(AofError):
    """The call itself is wrong."""

    code = kind = "invalid"


class InvalidInput(Invalid, code="invalid"):
    """A value is missing, of the wrong type or not allowed."""


class PayloadTooLarge(Invalid, code="payload_too_large"):
    """A value is longer than the limit for it."""


class AmbiguousId(Invalid, code="ambiguous_id"):
    """A short ID stands for several tasks."""


class UnreadableTask(Invalid, code="unreadable_task"):
    """The task's file cannot be understood; it was left as it is."""


class UnreadableResult(Invalid, code="invalid_run_result"):
    """The file with a run's result cannot be understood; it was left as it is."""


class UnusableOrgChart(Invalid, code="unusable_org_chart"):
    """The org chart cannot be understood, and there is no earlier version that could."""


class InvalidWorkflow(Invalid, code="invalid_workflow"):
    """The workflow's template cannot be used."""


class TooManyMessages(Invalid, code="too_many_messages"):
    """One call brings more messages than it may; those beyond the limit were not looked at."""


class InvalidJson(Invalid, code="invalid_json"):
    """A message says that it is one of ours, and what follows is not JSON."""


class InvalidEnvelope(Invalid, code="invalid_envelope"):
    """A message does not have the form that its type asks for."""


class TaskIdMismatch(Invalid, code="taskId_mismatch"):
    """A message names one task outside and another one inside."""


class MalformedPayload(Invalid, code="malformed_payload"):
    """A review payload lacks a field, does not fit its revision, or is too large."""


class UnreadableJobs(Invalid, code="jobs_unreadable"):
    """The file of the jobs cannot be used as it is."""


class SettingsUnusable(InvalidInput, code="settings_unusable"):
    """`aof.toml` cannot be used as it is."""


class Unavailable(AofError):
    """The machine cannot do it at the moment; nothing was changed."""

    code = kind = "unavailable"


class TooManyRequests(Unavailable, code="too_many_requests"):
    """The caller makes too many requests, or has too many open."""


class RunnerFailed(Unavailable, code="runner_failed"):
    """A worker could not be started."""


class LockTimeout(Unavailable, code="lock_timeout"):
    """Another process kept a lock for too long."""


class DiskFull(Unavailable, code="disk_full"):
    """There is no space left; the change was not made."""


class StorageFailed(Unavailable, code="storage_failed"):
    """The operating system refused a read or a write; the change was not made."""


class LinkRefused(Unavailable, code="link_refused"):
    """A symbolic link lies where AOF would write; it was not followed."""


class ReadOnly(Unavailable, code="read_only"):
    """The caller may not write to the data directory; reads that need no write still work."""


class UnsupportedFilesystem(Unavailable, code="unsupported_filesystem"):
    """The data directory lies on a file system whose locks cannot be relied on."""


class UnsupportedVersion(Unavailable, code="unsupported_version"):
    """A newer AOF has written the data, in a form that this one does not know; it was left as it is."""


class Internal(AofError):
    """The data needs a look by `doctor`."""

    code = kind = "internal"


class CommitUnknown(Internal, code="commit_unknown"):
    """The change was appended, but not proven to be durable."""


class LogPoisoned(Internal, code="log_poisoned"):
    """A flush of the log failed earlier; nothing is appended until `doctor` has verified it."""


class LogDamaged(Internal, code="log_damaged"):
    """The log's chain is broken in a place that no crash explains."""


class LogRewritten(LogDamaged, code="log_rewritten"):
    """The log's hashes hold, but they are not those of what was appended: somebody calculated them again."""


class LaneRefused(LogDamaged, code="lane_refused"):
    """A file in the log's folder is not a lane of it: from another repository, cut, or with a wrong header."""


class LineEndingsConverted(LogDamaged, code="log_line_endings"):
    """The lines of the log end with CR LF, which AOF never writes: somebody converted them."""


def one_of_several(histories: int) -> str:
    """The warning that belongs to whatever is read meanwhile; one line, in ASCII."""
    return f"{MergePending.code}: {histories} clones have written, and this shows one of their histories"
