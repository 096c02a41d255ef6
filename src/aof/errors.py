"""The one tree of errors. The core returns them as values; the edge raises them.

    AofError
    ├── NotFound      not_found    TaskNotFound, ParentNotFound, HandoffNotFound, NothingReady, NoDataDirectory,
    │                              WorkflowNotFound
    ├── Conflict      conflict     AlreadyClaimed, StaleLease, NotLeaseHolder, RunRequired, KeyConflict,
    │                              IdTaken, AnotherTask
    ├── Refused       refused      NotReady, NotReconciled, InvalidTransition, CancelRequested, DependencyCycle,
    │                              ResourceBusy, NoRoute, NotRouted, AtCapacity, AgentInactive, NotAllowed,
    │                              SelfApproval, NestedDelegation, Unauthenticated, ActorMismatch, OutcomeRequired,
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

from aof.core.errors.base import (
    AofError,
    Call,
    Conflict,
    Internal,
    Invalid,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    Refused,
    TooManyRequests,
    Unavailable,
)
from aof.core.errors.messages import (
    HandoffNotFound,
    InvalidEnvelope,
    InvalidJson,
    NestedDelegation,
    ParentNotFound,
    TaskIdMismatch,
    TooManyMessages,
)
from aof.core.errors.org import (
    ActorMismatch,
    AgentInactive,
    AtCapacity,
    NoRoute,
    NotAllowed,
    NotRouted,
    SelfApproval,
    Unauthenticated,
    UnusableOrgChart,
)
from aof.core.errors.runs import AlreadyClaimed, NotLeaseHolder, RunnerFailed, RunRequired, StaleLease, UnreadableResult
from aof.core.errors.storage import (
    CommitUnknown,
    DiskFull,
    LineEndingsConverted,
    LinkRefused,
    LockTimeout,
    LogDamaged,
    LogPoisoned,
    NoDataDirectory,
    ReadOnly,
    SettingsUnusable,
    StorageFailed,
    Unmerged,
    UnsupportedFilesystem,
    UnsupportedVersion,
)
from aof.core.errors.tasks import (
    AmbiguousId,
    AnotherTask,
    CancelRequested,
    DependencyCycle,
    IdTaken,
    InvalidTransition,
    KeyConflict,
    NothingReady,
    NotReady,
    NotReconciled,
    ResourceBusy,
    TaskNotFound,
    UnreadableTask,
)
from aof.core.errors.workflows import HopRoleMismatch, InvalidWorkflow, NotAttached, OutcomeRequired, WorkflowNotFound

__all__ = [
    "ActorMismatch",
    "AgentInactive",
    "AlreadyClaimed",
    "AmbiguousId",
    "AnotherTask",
    "AofError",
    "AtCapacity",
    "Call",
    "CancelRequested",
    "CommitUnknown",
    "Conflict",
    "DependencyCycle",
    "DiskFull",
    "HandoffNotFound",
    "HopRoleMismatch",
    "IdTaken",
    "Internal",
    "Invalid",
    "InvalidEnvelope",
    "InvalidInput",
    "InvalidJson",
    "InvalidTransition",
    "InvalidWorkflow",
    "KeyConflict",
    "LineEndingsConverted",
    "LinkRefused",
    "LockTimeout",
    "LogDamaged",
    "LogPoisoned",
    "NestedDelegation",
    "NoDataDirectory",
    "NoRoute",
    "NotAllowed",
    "NotAttached",
    "NotFound",
    "NotLeaseHolder",
    "NotReady",
    "NotReconciled",
    "NotRouted",
    "NothingReady",
    "OutcomeRequired",
    "ParentNotFound",
    "PayloadTooLarge",
    "ReadOnly",
    "Refused",
    "ResourceBusy",
    "RunRequired",
    "RunnerFailed",
    "SelfApproval",
    "SettingsUnusable",
    "StaleLease",
    "StorageFailed",
    "TaskIdMismatch",
    "TaskNotFound",
    "TooManyMessages",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "Unmerged",
    "UnreadableResult",
    "UnreadableTask",
    "UnsupportedFilesystem",
    "UnsupportedVersion",
    "UnusableOrgChart",
    "WorkflowNotFound",
]
