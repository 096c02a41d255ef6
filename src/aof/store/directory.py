"""Interfaces to what a data directory holds beside the log.

Files that people edit, the org chart, workflows, the charter's gates, and audit records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from aof.handoffs.audit import AuditRecord
from aof.kernel.findings import Finding
from aof.merge.model import Report as MergeReport
from aof.org.model import Gate, OrgChart
from aof.support.answer import StructAnswer
from aof.tasks.model import Task


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """Something that is wrong with the data: where, in what way, and what helps."""

    code: str
    path: str
    detail: str
    fix: str


class Checkup(msgspec.Struct, frozen=True):
    """What a store found wrong, the tasks with edits that have not been judged, and what could be better.

    `shared` are the running tasks of each resource that several of them occupy.
    """

    problems: tuple[Problem, ...] = ()
    edited: tuple[str, ...] = ()
    advice: tuple[Problem, ...] = ()
    shared: dict[str, tuple[str, ...]] = {}


class WorkingCopy(Protocol):
    """The files of one data directory."""

    root: str

    def file_status(self, task: Task) -> str | None:
        """`stale` when the task's file was changed and not imported, `unknown` when it cannot be read, else None."""
        ...

    def odd_files(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Those of many tasks whose files are not what the log wrote. It is cheap to ask again."""
        ...

    def changes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Files that people added without a task's ID as name, and tasks whose files are new or not what the log wrote.

        Looks at every file.
        """
        ...

    def is_modified(self, task_id: str) -> bool:
        """Whether the file of a task may be another than what the log wrote; no lock is taken."""
        ...

    def moved_into(self, status: str) -> tuple[str, ...]:
        """Tasks whose files somebody has put into the folder of this status, as far as nobody has imported that."""
        ...

    def places(self, task_id: str) -> tuple[str, ...]:
        """Where files of the task lie, relative to the data directory; one that somebody moved lies elsewhere."""
        ...

    def restored(self) -> tuple[str, ...]:
        """Tasks whose file somebody had deleted and that a command has restored from the log; each is told once."""
        ...

    def preloaded(self, task_ids: Sequence[str]) -> Iterator[str]:
        """These tasks one by one; what a look at each of them needs is read beforehand, for many at once."""
        ...

    def adopt(self, path: str, now: int) -> str:
        """Give such a file an ID, under which it is new."""
        ...

    def quarantine(self, task_id: str) -> tuple[str, ...]:
        """Keep a file that cannot be imported under another name, and restore the log's version; returns the names."""
        ...

    def diagnose(self) -> Checkup:
        """Compare everything that the store keeps with everything else; changes nothing."""
        ...

    def repair(self) -> None:
        """Put right what a diagnosis finds, as far as that needs no person."""
        ...

    def tips(self) -> int:
        """How many histories there are that nobody has brought together: one, unless git brought another."""
        ...

    def merge(self, *, dry_run: bool) -> MergeReport | None:
        """Bring all histories together, durably; None where there is only one. Raises MergePending."""
        ...

    def rebuild_index(self) -> None:
        """Discard the index and rebuild it."""
        ...

    def checkpoint(self) -> None:
        """Sync everything, so that a power cut costs less afterwards."""
        ...

    def templates(self) -> tuple[str, ...]:
        """The names of the templates that people have written for new tasks."""
        ...

    def template(self, name: str) -> tuple[dict[str, Any], str] | None:
        """The keys and the text of a template; None where there is none. Raises UnreadableTask."""
        ...

    def watched(self) -> tuple[str, tuple[str, ...]]:
        """The folder in which the log grows, and those in which people edit tasks."""
        ...

    def verified(self, most: int | None = None) -> int:
        """Verify the log's chain of hashes on from where it was verified, at most so many events; how far it holds.

        Raises LogDamaged where it does not.
        """
        ...

    def log_end(self) -> object:
        """Differs from what it was when the log has grown; for systems that do not tell of changes."""
        ...


class Whereabouts(Protocol):
    """The data directory as this process has found it, and what its caller's name comes from. Looks only when asked."""

    data_dir: str
    found_by: Literal["given", "environment", "folder"]
    actor: str
    actor_from: Literal["given", "environment", "run", "user"]

    @property
    def version(self) -> str:
        """Of AOF."""
        ...

    @property
    def python(self) -> str:
        """The version of Python."""
        ...

    def format(self) -> int:
        """The version of the data directory's format."""
        ...

    def lane(self) -> str | None:
        """The lane of the log that this clone appends to; None before it has begun one."""
        ...


class ProjectFiles(Protocol):
    """The files of the project that a data directory belongs to. Looks, and changes nothing."""

    def has(self, path: str) -> bool:
        """Whether there is something at a path below the project's folder; what leads out of it is not there."""
        ...


OrgState = Literal["absent", "current", "last_good", "unusable", "unreadable"]


class OrgReport(StructAnswer, frozen=True, kw_only=True):
    """Which chart is in force, and what is wrong with the one that is written down."""

    path: str
    state: OrgState
    chart: OrgChart
    findings: tuple[Finding, ...] = ()


class OrgSource(Protocol):
    """Where the chart comes from."""

    def chart(self) -> OrgChart | None:
        """The chart in force, looked at again; None when there is none. Raises UnusableOrgChart."""
        ...

    def report(self) -> OrgReport:
        """A close look at what is written down; never raises for what it says."""
        ...


class WorkflowReport(StructAnswer, frozen=True, kw_only=True, rename="camel"):
    """One template that is written down, and everything that is wrong with it; `document` is None if unreadable."""

    name: str
    path: str
    ok: bool
    findings: tuple[Finding, ...] = ()
    document: dict[str, Any] | None = None


class WorkflowSource(Protocol):
    """Where templates come from."""

    def names(self) -> tuple[str, ...]:
        """Every workflow that is written down, in order."""
        ...

    def report(self, name: str) -> WorkflowReport | None:
        """A close look at one of them, read again; None when there is none of that name."""
        ...


class GatesSource(Protocol):
    """Knows the gates in force."""

    def gates(self) -> tuple[Gate, ...]:
        """The gates that hold anything up; the same object as long as the charter stays as it is."""
        ...


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
