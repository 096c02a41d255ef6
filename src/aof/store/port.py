"""The store as the application needs it: versioned records, a log, and a clock.

Above: the subjects' operations. Below: memory, files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from aof.errors import AofError
from aof.kernel.commands import ImportEdit, Numbers
from aof.kernel.events import Draft, Event
from aof.runs.model import Boot, Heartbeat, Run, RunResult
from aof.store.lists import Query, Rows
from aof.tasks.model import FileLock, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.documents.projection import Projection
    from aof.handoffs.audit import AuditRecord
    from aof.handoffs.model import Handoff
    from aof.org.routing import AgentHealth
    from aof.store.directory import AuditFiles, AuditQuery, WorkingCopy
    from aof.supervision.rules import AttentionPage, AttentionQuery, FlowFacts, SpanPage, SpanQuery


class Clock(Protocol):
    """Moments for records, durations for waiting."""

    def now(self) -> int:
        """The wall clock in UTC milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...

    def boot(self) -> Boot | None:
        """The count since the machine's start, the same for all its processes; None where there is none."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        ...


class Scope(msgspec.Struct, frozen=True):
    """What a unit of work covers: task IDs to write and to read, and named locks for what spans tasks."""

    write: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def covers(self, other: Scope) -> bool:
        """Whether everything in the other scope is locked at least as strongly here."""
        return other.write <= self.write and other.read <= self.write | self.read and other.names <= self.names

    def union(self, other: Scope) -> Scope:
        """Both scopes together; what one of them writes is written."""
        write = self.write | other.write
        return Scope(write, (self.read | other.read) - write, self.names | other.names)


class ScopeTooNarrow(Exception):
    """The unit of work found that it must lock more: begin again with this as well."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.scope = scope


class Page(msgspec.Struct, frozen=True):
    """The tasks that were asked for (without bodies), how many match in all, and how many in each status.

    `end` is the place of the last one in the order that was asked for, where others follow it.
    """

    total: int
    by_status: dict[str, int]
    tasks: tuple[Task, ...]
    end: tuple[str | int, str] | None = None


class HashedEvent(msgspec.Struct, frozen=True):
    """An event found by its hash: its number, or that of the event which repeats it in the log after a merge.

    Without a number it is only in a file of another clone, or of a merge that another one has replaced.
    """

    hash: str
    seq: int | None
    file: str = ""


class Unit(Protocol):
    """One unit of work under the locks of its scope."""

    def task(self, task_id: str) -> Task | None:
        """The task as the log knows it, or None."""
        ...

    def edit(self, task_id: str) -> ImportEdit | AofError | None:
        """What a person did to the task's file and the log does not know yet, or why that cannot be told."""
        ...

    def run(self, task_id: str) -> Run | None:
        """The task's current or last run."""
        ...

    def result(self, task_id: str) -> RunResult | AofError | None:
        """What that run has reported, or why that cannot be told; `<task>/hops/<hop>` asks for the run of a hop."""
        ...

    def heartbeat(self, task_id: str) -> Heartbeat | None:
        """The last heartbeat of that run, or of a hop's run."""
        ...

    def numbers(self) -> Numbers:
        """How this clone numbers what it makes."""
        ...

    def handoffs(self, task_id: str) -> tuple[Handoff, ...]:
        """The handoffs of the task, oldest first."""
        ...

    def lacks(self, task_id: str, ref: str) -> bool:
        """Whether a file that should be among the task's own is not there."""
        ...

    def size(self, task_id: str, ref: str) -> tuple[int, int]:
        """How many files, and how many lines in them, a path among the task's own files has; what is missing is one."""
        ...

    def digest(self, task_id: str, ref: str) -> str | None:
        """The SHA-256 of one of the task's own files; None where there is none, or it is very large."""
        ...

    def children(self, task_id: str) -> tuple[str, ...]:
        """The tasks directly below."""
        ...

    def above(self, task_id: str) -> tuple[str, ...]:
        """The ancestors, from the parent up."""
        ...

    def tree(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """The children of the task and of everything below it."""
        ...

    def dependents(self, task_id: str) -> tuple[str, ...]:
        """The tasks that wait for this one."""
        ...

    def dependents_of(self, task_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """The tasks that wait for each of these."""
        ...

    def reachable(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """All dependency edges on the ways that lead from this task."""
        ...

    def resource_holders(self, resource: str) -> tuple[str, ...]:
        """The running tasks that occupy the resource."""
        ...

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The running tasks that the agent holds, each as often as it holds hops of it."""
        ...

    def key_owner(self, key: str) -> str | None:
        """The task that was created with this idempotency key."""
        ...

    def follow(self, projection: Projection) -> str:
        """Let a document's files catch up with the log, and answer with the projection's note.

        The document's lock is among the names of the scope. The note is empty where there is none.
        """
        ...

    def document(self, path: str) -> str:
        """The text of a document's file, as it lies there; empty where there is none."""
        ...

    def foreseen(self, projection: Projection, paths: Iterable[str]) -> dict[str, str]:
        """The texts that these files would have after the document caught up. Needs no lock and writes nothing."""
        ...

    def file_locks(self) -> dict[str, tuple[FileLock, ...]]:
        """The locks on files, by the running tasks that hold them."""
        ...

    def commit(
        self, drafts: tuple[Draft, ...], *, actor: str, agent: str | None, now: int, caller: str | None = None
    ) -> tuple[Event, ...]:
        """Make the events durable and everything that follows from them visible; all or nothing."""
        ...

    def take_in(self, edit: ImportEdit, drafts: tuple[Draft, ...], now: int) -> None:
        """Record a person's edit and write the file back as it then is; without events only the latter."""
        ...

    def beat(self, heartbeat: Heartbeat) -> None:
        """Write a sign of life: cheap, not durable, no event."""
        ...

    def flush(self) -> None:
        """Make sure that nothing of what was answered from can still be lost."""
        ...


class RecordStore(Protocol):
    """Where the records live: locks, units of work, IDs, and what belongs to a task."""

    def unit(self, scope: Scope) -> AbstractContextManager[Unit]:
        """Begin a unit of work; waits for its locks, within bounds."""
        ...

    def reserve_id(self, now: int) -> str:
        """A task ID that nobody else will get."""
        ...

    def put_back_id(self, unused: str) -> None:
        """Let an ID that nothing was made under be given again, as long as no other one was given since."""
        ...

    def heartbeats(self, task_ids: Iterable[str]) -> dict[str, Heartbeat | None]:
        """The last sign of life of each running task, as it lies there now; nothing is locked."""
        ...

    def attempts(self, task_id: str) -> tuple[Run, ...]:
        """Every run of the task, oldest first."""
        ...

    def output(self, run: Run, stream: str, offset: int, most: int) -> tuple[bytes, int]:
        """At most so many bytes of what a run has printed to a stream, from an offset on; and how many there are."""
        ...

    def handoffs(self, tasks: Iterable[Task] | None = None) -> tuple[Handoff, ...]:
        """Every handoff, or those of some tasks; oldest first."""
        ...

    def find_handoffs(self, part: str) -> tuple[Handoff, ...]:
        """The handoffs whose IDs begin like this, as they are now; nothing is locked. A whole ID means only itself."""
        ...

    def path_of(self, task: Task) -> str:
        """Where the task can be read, relative to the data directory."""
        ...


class EventLog(Protocol):
    """What happened, in order."""

    def head(self) -> int:
        """The sequence number of the last event."""
        ...

    def events(self, after: int = 0, task_id: str | None = None) -> Iterator[Event]:
        """Durable events in order, from any sequence number on."""
        ...

    def events_of_types(self, types: tuple[str, ...], since: str = "") -> Iterator[Event]:
        """Durable events whose types begin so, in order, from that day on; all others cost next to nothing."""
        ...

    def events_by_hash(self, beginning: str) -> tuple[HashedEvent, ...]:
        """The durable events whose hashes begin so, also those of other clones; a store that keeps none has none."""
        ...

    def wait(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after that number; False when the time is over."""
        ...


class ReadModel(Protocol):
    """Questions about many tasks, answered as of the end of the log."""

    def find(self, query: Query) -> Page:
        """The tasks that match, as records without bodies."""
        ...

    def pages(self, queries: Iterable[Query]) -> tuple[Page, ...]:
        """The answers to several queries, all as of the same end of the log."""
        ...

    def rows(self, query: Query) -> Rows:
        """The same for lists: each task as a row, with the status of its file."""
        ...

    def ids(self, part: str) -> tuple[str, ...]:
        """The IDs that a short form could stand for."""
        ...

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """The IDs that tasks had elsewhere before a merge of histories renumbered them, each with its tasks."""
        ...

    def resources_in_use(self) -> dict[str, int]:
        """How many running tasks occupy each resource."""
        ...

    def records(self, task_ids: Collection[str]) -> tuple[Task, ...]:
        """These tasks, as records without bodies; what does not exist is left out."""
        ...

    def child_counts(self, task_ids: Collection[str]) -> dict[str, dict[str, int]]:
        """How many tasks directly below each of these are in which status; who has none is left out."""
        ...

    def health(self) -> dict[str, AgentHealth]:
        """What the log says last of each agent's health; an agent that it says nothing of can be reached."""
        ...

    def attention(self, query: AttentionQuery) -> AttentionPage:
        """What of the tasks needs a person, oldest first; costs no more for tasks that need nobody."""
        ...

    def last_seen(self) -> dict[str, str]:
        """When each agent or person was last seen in the log."""
        ...

    def run_spans(self, query: SpanQuery) -> SpanPage:
        """A page of runs, the last one first; costs no more for a longer log once it was asked."""
        ...

    def flow_facts(self, since: str) -> FlowFacts:
        """All moves between statuses by day; lead times and how runs ended from that day on."""
        ...

    def audited(self, query: AuditQuery) -> tuple[AuditRecord, ...]:
        """The audit records of handoffs that match, in the order of the log."""
        ...

    def locking(self) -> tuple[Task, ...]:
        """The running tasks that hold locks on files, without bodies."""
        ...


class Store(RecordStore, EventLog, ReadModel, Protocol):
    """What every store has. Files that people edit beside the log are its `working_copy`."""

    @property
    def working_copy(self) -> WorkingCopy | None:
        """The files of the tasks; None where there are none."""
        ...

    def audit_files(self, project: str) -> AuditFiles | None:
        """The audit records of a project as files; None where there are none."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
