"""The memory store: the whole contract of the port in one process, for tests that want no disk.

An org chart and workflow templates are handed in. A query looks at every task; the index of the filesystem store
answers the same queries in SQL (`files/index/queries.py`). Must not know any rule about tasks.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from aof.documents.projection import Projection
from aof.errors import LockTimeout
from aof.handoffs import audit
from aof.handoffs.model import Handoff, by_age
from aof.kernel.commands import ImportEdit, Numbers
from aof.kernel.events import Draft, Event, is_remark, number_events
from aof.kernel.model import (
    FINISHED,
    STATUSES,
    day,
    end_of,
    iso,
    matching_ids,
    priority_rank,
    run_place,
    split_task_id,
    task_id,
)
from aof.org import chart as org_chart
from aof.org import routing
from aof.org.model import OrgChart
from aof.runs.model import Heartbeat, Run, RunResult
from aof.store import chronicle
from aof.store.directory import AuditFiles, AuditQuery, OrgReport, WorkflowReport, WorkingCopy
from aof.store.documents import DocumentState, follow_log
from aof.store.fold import Folded
from aof.store.lists import NEVER, OPEN, PARTS, Query, Row, Rows
from aof.store.port import Clock, HashedEvent, Page, Scope, ScopeTooNarrow
from aof.supervision import rules
from aof.supervision.rules import FlowFacts, SpanPage, SpanQuery
from aof.support.typed import prepare_type
from aof.support.words import hold, wanted
from aof.tasks.body import parts
from aof.tasks.model import FileLock, Task
from aof.workflows import templates
from aof.workflows.model import has_open_hop, leases, occupied_by, waits_at_hop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.lists import Place, Span


_Record = TypeVar("_Record", bound=msgspec.Struct | None)
_encode = msgspec.json.Encoder().encode


def copied(record: _Record) -> _Record:
    """The same record, sharing nothing with the first one."""
    return msgspec.json.decode(_encode(record), type=prepare_type(type(record)))


def _without_body(task: Task) -> Task:
    return copied(msgspec.structs.replace(task, body="", layout=None))


class MemoryState:
    """The log, what follows from it, and the signs of life. Readers and writers hold the lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.appended = threading.Condition(self.lock)
        self.log: list[Event] = []
        self.folded: dict[str, Folded] = {}
        self.heartbeats: dict[str, Heartbeat] = {}
        self.texts: dict[str, tuple[str, int]] = {}
        self.documents: dict[str, DocumentState] = {}

    def one(self, task_id: str) -> Folded:
        """A task with its runs and results."""
        return self.folded.get(task_id) or Folded()

    def tasks(self) -> dict[str, Task]:
        """Every task, archived ones included."""
        return {name: folded.task for name, folded in self.folded.items() if folded.task is not None}

    def where(self, keeps: Callable[[Task], bool]) -> tuple[str, ...]:
        """The IDs of the tasks that a question is about, in order."""
        with self.lock:
            return tuple(sorted((name for name, task in self.tasks().items() if keeps(task)), key=split_task_id))

    def append(self, events: list[Event]) -> None:
        """All of the events and what follows from them, or nothing."""
        changing = [event for event in events if not is_remark(event)]
        after = {event.task_id: self.one(event.task_id).copy() for event in changing}
        for event in changing:
            after[event.task_id].add(event)
        self.folded |= after
        self.log += events
        for event in events:
            if event.type == "task.attempt.started":
                self.heartbeats.pop(run_place(event.task_id, event.payload.get("hop")), None)
        self.appended.notify_all()


class MemoryDocument:
    """A document that is kept in memory; the caller holds the store's lock. Marks are numbers of versions."""

    def __init__(self, state: MemoryState, name: str) -> None:
        self._state = state
        self._name = name

    def state(self) -> DocumentState | None:
        """What was kept last; in the beginning nothing was applied."""
        return self._state.documents.get(self._name, DocumentState("0", ""))

    def keep(self, state: DocumentState) -> None:
        """Remember it."""
        self._state.documents[self._name] = state

    def fresh(self, state: DocumentState | None, types: tuple[str, ...]) -> tuple[str, list[Event]]:
        """The events behind the number that was kept."""
        log, start = self._state.log, 0 if state is None else int(state.place)
        return str(len(log)), [event for event in log[start:] if event.type.startswith(types)]

    def past(self, place: str, types: tuple[str, ...]) -> Iterator[Event]:
        """The events up to a number, newest first."""
        return (event for event in reversed(self._state.log[: int(place)]) if event.type.startswith(types))

    def mark(self, path: str) -> str:
        """The number of its version."""
        return str(self._state.texts[path][1]) if path in self._state.texts else ""

    def read(self, path: str) -> tuple[str, str]:
        """The text and its version."""
        return self._state.texts.get(path, ("", 0))[0], self.mark(path)

    def append(self, path: str, mark: str, text: str) -> str | None:
        """Add to the text."""
        return (
            self.replace(path, mark, self.read(path)[0] + text, lambda _written: None, flushed=False) if mark else None
        )

    def intend(self, before: DocumentState | None, after: DocumentState) -> None:
        """Do nothing: there is no crash to prepare for."""

    def replace(
        self,
        path: str,
        mark: str,
        text: str,
        written: Callable[[str], None],  # noqa: ARG002 - the contract's form
        *,
        flushed: bool,  # noqa: ARG002 - the contract's form
    ) -> str | None:
        """Put another text in its place."""
        if mark != self.mark(path):
            return None
        self._state.texts[path] = (text, int(mark or 0) + 1)
        return self.mark(path)


class MemoryUnit:
    """One unit of work; the store's lock is held meanwhile."""

    def __init__(self, state: MemoryState, scope: Scope) -> None:
        self._state = state
        self._scope = scope

    def task(self, task_id: str) -> Task | None:
        """The task as the log knows it."""
        return copied(self._state.one(task_id).task)

    def edit(self, task_id: str) -> ImportEdit | None:  # noqa: ARG002 - the contract's form
        """Always None: there are no files that a person could edit."""
        return None

    def run(self, task_id: str) -> Run | None:
        """The current or last run."""
        return copied(self._state.one(task_id).run)

    def result(self, task_id: str) -> RunResult | None:
        """What that run has reported."""
        owner, _, hop = task_id.partition("/hops/")
        folded = self._state.one(owner)
        run = folded.last_of(hop) if hop else folded.run
        return copied(folded.results.get(run.run_id) if run is not None else None)

    def heartbeat(self, task_id: str) -> Heartbeat | None:
        """That run's last sign of life."""
        return copied(self._state.heartbeats.get(task_id))

    def numbers(self) -> Numbers:
        """There is no other clone."""
        return Numbers()

    def handoffs(self, task_id: str) -> tuple[Handoff, ...]:
        """The handoffs of the task."""
        return tuple(copied(handoff) for handoff in self._state.one(task_id).handoffs.values())

    def lacks(self, task_id: str, ref: str) -> bool:  # noqa: ARG002 - the contract's form
        """There are no files, so nobody misses one."""
        return False

    def size(self, task_id: str, ref: str) -> tuple[int, int]:  # noqa: ARG002 - the contract's form
        """There are no files: what is named counts as one."""
        return 1, 0

    def digest(self, task_id: str, ref: str) -> str | None:  # noqa: ARG002 - the contract's form
        """There are no files."""
        return None

    def children(self, task_id: str) -> tuple[str, ...]:
        """The tasks directly below."""
        return self._state.where(lambda task: task.parent_id == task_id)

    def dependents(self, task_id: str) -> tuple[str, ...]:
        """The tasks that wait for this one."""
        return self._state.where(lambda task: task_id in task.depends_on)

    def above(self, task_id: str) -> tuple[str, ...]:
        """The ancestors, from the parent up; a circle ends the walk."""
        found: dict[str, None] = {}
        task = self._state.one(task_id).task
        while task is not None and task.parent_id is not None and task.parent_id not in found:
            found[task.parent_id] = None
            task = self._state.one(task.parent_id).task
        return tuple(found)

    def tree(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """The children of the task and of everything below it."""
        tasks, below = self._state.tasks(), dict[str, list[str]]()
        for name in sorted(tasks, key=split_task_id):
            if (parent := tasks[name].parent_id) is not None:
                below.setdefault(parent, []).append(name)
        found: dict[str, tuple[str, ...]] = {}
        waiting = [task_id]
        for one in waiting:
            if one not in found:
                found[one] = tuple(below.get(one, ()))
                waiting += found[one]
        return found

    def dependents_of(self, task_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Who waits for each of these, found in one pass over all tasks."""
        tasks, found = self._state.tasks(), {task_id: list[str]() for task_id in task_ids}
        for name in sorted(tasks, key=split_task_id):
            for blocker in dict.fromkeys(tasks[name].depends_on):
                if blocker in found:
                    found[blocker].append(name)
        return {task_id: tuple(names) for task_id, names in found.items()}

    def reachable(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """All dependency edges on the ways that lead from this task."""
        tasks = self._state.tasks()
        found: dict[str, tuple[str, ...]] = {}
        queue = [task_id]
        for current in queue:
            task = tasks.get(current)
            if task is not None and task.depends_on and current not in found:
                found[current] = tuple(sorted(task.depends_on))
                queue += task.depends_on
        return found

    def resource_holders(self, resource: str) -> tuple[str, ...]:
        """The running tasks that occupy the resource."""
        return self._state.where(lambda task: task.resource == resource and task.status == "in-progress")

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The running tasks that the agent holds, each as often as it holds hops of it."""
        with self._state.lock:
            tasks = self._state.tasks()
            found = sorted(tasks, key=split_task_id)
            return tuple(name for name in found for holder in occupied_by(tasks[name]) if holder == agent)

    def file_locks(self) -> dict[str, tuple[FileLock, ...]]:
        """The locks on files, by the running tasks that hold them."""
        with self._state.lock:
            return {task.id: copied(task).locks for task in self._state.tasks().values() if task.locks}

    def key_owner(self, key: str) -> str | None:
        """The task that was created with this key."""
        return next(iter(self._state.where(lambda task: task.key is not None and task.key.value == key)), None)

    def follow(self, projection: Projection) -> str:
        """Let a document's text catch up with the log."""
        return follow_log(MemoryDocument(self._state, projection.name), projection, self)

    def foreseen(self, projection: Projection, paths: Iterable[str]) -> dict[str, str]:
        """What the texts are after the document caught up."""
        self.follow(projection)
        return {path: self.document(path) for path in paths}

    def document(self, path: str) -> str:
        """The text of a document."""
        return self._state.texts.get(path, ("", 0))[0]

    def title(self, task_id: str) -> str | None:
        """The title of a task."""
        task = self._state.one(task_id).task
        return task.title if task is not None else None

    def commit(
        self, drafts: tuple[Draft, ...], *, actor: str, agent: str | None, now: int, caller: str | None = None
    ) -> tuple[Event, ...]:
        """Number the events and apply them; all or nothing."""
        outside = {draft.task_id for draft in drafts if not is_remark(draft)} - self._scope.write
        if outside:
            raise ScopeTooNarrow(Scope(write=frozenset(outside)))
        events = number_events(
            drafts, actor=actor, agent=agent, timestamp=iso(now), last=len(self._state.log), caller=caller
        )
        self._state.append([copied(event) for event in events])
        return tuple(events)

    def take_in(self, edit: ImportEdit, drafts: tuple[Draft, ...], now: int) -> None:
        """Record an edit, if somebody has one after all."""
        self.commit(drafts, actor=edit.actor, agent=None, now=now)

    def beat(self, heartbeat: Heartbeat) -> None:
        """Keep a sign of life; no event."""
        self._state.heartbeats[run_place(heartbeat.task_id, heartbeat.hop)] = copied(heartbeat)

    def flush(self) -> None:
        """Do nothing: memory has nothing to flush."""


_POLL_SECONDS = 0.02


class MemoryStore:
    """Records and log of one process. Safe for several threads."""

    def __init__(self, clock: Clock, *, lock_timeout: float = 10.0) -> None:
        self._clock = clock
        self._timeout = lock_timeout
        self._state = MemoryState()
        self._day, self._number = "", 0
        self._chronicle: sqlite3.Connection | None = None
        self._chronicled = 0

    @property
    def working_copy(self) -> WorkingCopy | None:
        """There are no files."""
        return None

    @contextmanager
    def unit(self, scope: Scope) -> Iterator[MemoryUnit]:
        """Begin a unit of work; one at a time."""
        if not self._state.lock.acquire(timeout=self._timeout):
            raise LockTimeout(f"waited {self._timeout:g} s for another thread", "end what holds the store")
        try:
            yield MemoryUnit(self._state, scope)
        finally:
            self._state.lock.release()

    @contextmanager
    def _known(self) -> Iterator[MemoryState]:
        """All that the log tells now; it does not change meanwhile. Overridden where others write the log."""
        with self._state.lock:
            yield self._state

    def reserve_id(self, now: int) -> str:
        """A task ID that nobody else will get; the day never goes back."""
        with self._state.lock:
            today = day(now)
            if self._day < today:
                used = (split_task_id(name) for name in self._state.folded)
                self._day, self._number = today, max((number for on, number in used if on == today), default=0)
            self._number += 1
            return task_id(self._day, self._number)

    def put_back_id(self, unused: str) -> None:
        """Let an ID that nothing was made under be given again, if it is the last one."""
        with self._state.lock:
            if self._number and unused == task_id(self._day, self._number):
                self._number -= 1

    def find(self, query: Query) -> Page:
        """Answer from the records themselves."""
        return self.pages((query,))[0]

    def pages(self, queries: Iterable[Query]) -> tuple[Page, ...]:
        """Answer several queries at once."""
        found: list[Page] = []
        with self._known() as state:
            for query in queries:
                chosen = select_tasks(query, state.tasks())
                kept, end = page_of(query, chosen)
                by_status: dict[str, int] = dict(Counter(task.status for task in (chosen if query.counted else kept)))
                found.append(Page(sum(by_status.values()), by_status, tuple(map(_without_body, kept)), end))
        return tuple(found)

    def rows(self, query: Query) -> Rows:
        """The tasks that match, as rows of a list."""
        page, files = self.find(query), self.working_copy
        shown = (
            Row.of(task, task.blocked.reason if task.blocked else None, files.file_status(task) if files else None)
            for task in page.tasks
        )
        return Rows(page.by_status, tuple(shown), page.end)

    def ids(self, part: str) -> tuple[str, ...]:
        """The IDs that a short form could stand for."""
        with self._known() as state:
            return tuple(matching_ids(part, state.where(lambda _task: True)))

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """The IDs that tasks had elsewhere."""
        with self._known() as state:
            renumbered = [task for task in state.tasks().values() if task.aliases]
        found: dict[str, tuple[str, ...]] = {}
        for task in sorted(renumbered, key=lambda task: split_task_id(task.id)):
            for old in task.aliases:
                found[old] = (*found.get(old, ()), task.id)
        return found

    def resources_in_use(self) -> dict[str, int]:
        """How many running tasks occupy each resource."""
        with self._known() as state:
            running = [task for task in state.tasks().values() if task.status == "in-progress"]
        return dict(Counter(task.resource for task in running if task.resource is not None))

    def records(self, task_ids: Collection[str]) -> tuple[Task, ...]:
        """These tasks, without their bodies."""
        with self._known() as state:
            found = [task for one in task_ids if (task := state.one(one).task) is not None]
        return tuple(map(_without_body, found))

    def child_counts(self, task_ids: Collection[str]) -> dict[str, dict[str, int]]:
        """How many tasks below each of these are in which status."""
        found: dict[str, dict[str, int]] = {}
        with self._known() as state:
            for task in state.tasks().values():
                if task.parent_id in task_ids:
                    counts = found.setdefault(str(task.parent_id), {})
                    counts[task.status] = counts.get(task.status, 0) + 1
        return found

    def attention(self, query: rules.AttentionQuery) -> rules.AttentionPage:
        """What needs a person, from the records themselves."""
        with self._known() as state:
            every = [one for task in state.tasks().values() for one in rules.attention_of(task)]
        return rules.selected(query, every)

    def _current_chronicle(self) -> sqlite3.Connection:
        """What the log tells over time; it follows the log from the first question on."""
        if self._chronicle is None:
            self._chronicle = sqlite3.connect(":memory:", check_same_thread=False)
            self._chronicle.executescript(chronicle.TABLES)
        fresh = list(self.events(self._chronicled))
        chronicle.add(self._chronicle, fresh)
        self._chronicled = fresh[-1].seq if fresh else self._chronicled
        return self._chronicle

    def last_seen(self) -> dict[str, str]:
        """When each name was last seen in the log."""
        with self._state.lock:
            return chronicle.last_seen(self._current_chronicle())

    def run_spans(self, query: SpanQuery) -> SpanPage:
        """A page of runs, the last one first."""
        with self._state.lock:
            return chronicle.run_spans(self._current_chronicle(), query)

    def flow_facts(self, since: str) -> FlowFacts:
        """What moved, was finished and was run."""
        with self._state.lock:
            return chronicle.flow_facts(self._current_chronicle(), since)

    def audited(self, query: AuditQuery) -> tuple[audit.AuditRecord, ...]:
        """The audit records that match, from the log itself."""
        found = (audit.audit_record(event) for event in self.events(query.after))
        return tuple(islice((one for one in found if one is not None and query.matches(one)), query.limit))

    def health(self) -> dict[str, routing.AgentHealth]:
        """What the log says last of each agent's health."""
        return {one.agent: one for event in self.events() if (one := routing.health_of(event)) is not None}

    def audit_files(self, project: str) -> AuditFiles | None:  # noqa: ARG002 - the contract's form
        """There are no files."""
        return None

    def locking(self) -> tuple[Task, ...]:
        """The running tasks that hold locks on files."""
        with self._known() as state:
            tasks = state.tasks()
            found = [tasks[name] for name in sorted(tasks, key=split_task_id) if tasks[name].locks]
            return tuple(map(_without_body, found))

    def heartbeats(self, task_ids: Iterable[str]) -> dict[str, Heartbeat | None]:
        """The last signs of life."""
        with self._known() as state:
            return {task_id: copied(state.heartbeats.get(task_id)) for task_id in task_ids}

    def attempts(self, task_id: str) -> tuple[Run, ...]:
        """Every run, oldest first."""
        with self._known() as state:
            return tuple(copied(run) for run in state.one(task_id).runs)

    def output(self, run: Run, stream: str, offset: int, most: int) -> tuple[bytes, int]:  # noqa: ARG002 - the contract's form
        """Always empty: no worker prints into memory."""
        return b"", 0

    def handoffs(self, tasks: Iterable[Task] | None = None) -> tuple[Handoff, ...]:
        """Every handoff, or those of some tasks; oldest first."""
        with self._known() as state:
            every = state.folded.values()
            asked = every if tasks is None else [state.one(task.id) for task in tasks]
            found = [copied(one) for folded in asked for one in folded.handoffs.values()]
        return tuple(sorted(found, key=by_age))

    def find_handoffs(self, part: str) -> tuple[Handoff, ...]:
        """The handoffs whose IDs begin like this."""
        found = [one for one in self.handoffs() if one.id.startswith(part)]
        return tuple(one for one in found if one.id == part) or tuple(found)

    def path_of(self, task: Task) -> str:
        """Where the task would lie in a data directory."""
        return f"{'archive/tasks' if task.archived else f'tasks/{task.status}'}/{task.id}.md"

    def head(self) -> int:
        """The number of the last event."""
        return len(self._state.log)

    def events(self, after: int = 0, task_id: str | None = None) -> Iterator[Event]:
        """The events in order, as of the moment of asking."""
        for event in self._state.log[max(after, 0) :]:
            if task_id is None or event.task_id == task_id:
                yield copied(event)

    def events_of_types(self, types: tuple[str, ...], since: str = "") -> Iterator[Event]:
        """The events of some types, as of the moment of asking."""
        return (event for event in self.events() if event.type.startswith(types) and event.timestamp >= since)

    def events_by_hash(self, beginning: str) -> tuple[HashedEvent, ...]:  # noqa: ARG002 - what is kept here has no hashes
        """None: nothing is chained here."""
        return ()

    def wait(self, after: int, timeout: float) -> bool:
        """Sleep until an event comes. A clock that stands still (a fake one) is moved on, for nobody else would."""
        deadline = self._clock.monotonic() + timeout
        while True:
            with self._state.appended:
                if self.head() > after:
                    return True
                before = self._clock.monotonic()
                if before >= deadline:
                    return False
                self._state.appended.wait(min(_POLL_SECONDS, deadline - before))
            if self._clock.monotonic() == before:
                self._clock.sleep(deadline - before)

    def close(self) -> None:
        """Do nothing: nothing is held open."""


class FixedChart:
    """An org chart that is handed in; assign `current` to change the chart."""

    def __init__(self, chart: OrgChart) -> None:
        self.current = chart

    def chart(self) -> OrgChart:
        """The chart that was handed in."""
        return self.current

    def report(self) -> OrgReport:
        """The same, with what it says of names that are not there."""
        return OrgReport(path="", state="current", chart=self.current, findings=tuple(org_chart.dangling(self.current)))


class FixedWorkflows:
    """Workflow templates that are handed in; change `documents` to change the templates."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self.documents = {str(document.get("name")): document for document in documents}

    def names(self) -> tuple[str, ...]:
        """The names that were handed in."""
        return tuple(sorted(self.documents))

    def report(self, name: str) -> WorkflowReport | None:
        """Check one."""
        document = self.documents.get(name)
        if document is None:
            return None
        checked = templates.validate_template(document, name)
        return WorkflowReport(
            name=name, path="", ok=checked.template is not None, findings=checked.findings, document=document
        )


def select_tasks(query: Query, tasks: dict[str, Task]) -> list[Task]:
    """All tasks that the query keeps, in its order."""
    kept = (task for task in tasks.values() if _keeps(query, task, tasks))
    return sorted(kept, key=lambda task: _position(_place(query, task)), reverse=query.reverse)


def page_of(query: Query, chosen: list[Task]) -> tuple[list[Task], Place | None]:
    """The part of what was selected that the query asks for, and where it ends if more follows."""
    if query.behind is not None:
        behind = _position(query.behind)
        positions = ((task, _position(_place(query, task))) for task in chosen)
        chosen = [task for task, here in positions if (here < behind if query.reverse else here > behind)]
    if query.limit is None:
        return chosen[query.offset :], None
    end = query.offset + query.limit
    shown = chosen[query.offset : end]
    return shown, _place(query, shown[-1]) if shown and len(chosen) > end else None


def _place(query: Query, task: Task) -> Place:
    """The task's place in the order of the query."""
    if query.order == "relevance":
        return _relevance(task, query.search or ""), task.id
    return _ORDERS[query.order](task), task.id


def _position(where: Place) -> tuple[str | int, ...]:
    return (where[0], *split_task_id(where[1]))


# What tasks are ordered by, then by their IDs. A task that is never due comes last.
_ORDERS: Final[dict[str, Callable[[Task], str | int]]] = {
    "id": lambda _task: 0,
    "schedule": lambda task: f"{priority_rank(task.priority)}{task.created_at}",
    "created": lambda task: task.created_at,
    "updated": lambda task: task.updated_at,
    "due": lambda task: _due(task) or NEVER,
    "title": lambda task: task.title.casefold(),
    "status": lambda task: len(STATUSES) if task.archived else STATUSES.index(task.status),
}


def _due(task: Task) -> str | None:
    return end_of(task.due) if task.due is not None else None


def _keeps(query: Query, task: Task, tasks: dict[str, Task]) -> bool:
    return (
        (query.archived or not task.archived)
        and (query.hidden or task.visibility not in ("internal", "hidden"))
        and (not query.status or task.status in query.status)
        and (query.agent is None or _is_for(query.agent, task, unrouted_too=query.unrouted_too))
        and (query.tag is None or query.tag in task.routing.tags)
        and (query.search is None or _mentions(task, query.search))
        and (query.parent_id is None or task.parent_id == query.parent_id)
        and (query.among is None or task.id in query.among)
        and (query.priority is None or task.priority == query.priority)
        and (not query.unfinished or task.status not in FINISHED)
        and _within(query.created, task.created_at)
        and _within(query.updated, task.updated_at)
        and _within(query.due, _due(task))
        and _is_in_queue(task, tasks, query)
        and task.id not in query.without
        and (not query.at_hops or waits_at_hop(task))
        and (not query.open_hops or (has_open_hop(task) and not _waits_below(task, tasks)))
        and (not query.open_handoffs or bool(task.handoffs))
    )


def _within(span: Span, moment: str | None) -> bool:
    since, before = span
    if moment is None:
        return span == OPEN
    return (since is None or moment >= since) and (before is None or moment < before)


def _is_for(agent: str, task: Task, *, unrouted_too: bool) -> bool:
    holders = leases(task)
    whose = holders[0].agent if holders else None if task.gated else task.routing.agent
    return whose == agent or (unrouted_too and whose is None)


def _mentions(task: Task, text: str) -> bool:
    sought = wanted(text)
    return _is_named(task, text) or bool(sought and hold((task.title, *parts(task.body)), sought))


def _is_named(task: Task, text: str) -> bool:
    said = text.casefold()
    return said in task.title.casefold() or said in task.id.casefold()


def _relevance(task: Task, text: str) -> int:
    """The part that holds all that is sought: title, description, comments, work log, or no single one of them."""
    sought = wanted(text)
    if _is_named(task, text):
        return len(PARTS)
    texts = (task.title, *parts(task.body))
    return next((len(PARTS) - place for place, one in enumerate(texts) if sought and hold((one,), sought)), 0)


def _is_in_queue(task: Task, tasks: dict[str, Task], query: Query) -> bool:
    """Whether it is runnable, where the query asks for that; or waits, where it asks for those that do."""
    if query.waiting:
        here = task.status == query.waiting_in and not task.archived
        return here and not _is_in_queue(task, tasks, query.but(waiting=False))
    free = query.runnable_at is None or _waits_for_nothing(task, tasks, query, query.runnable_at)
    return free and task.resource not in query.busy_resources


def _waits_for_nothing(task: Task, tasks: dict[str, Task], query: Query, moment: str) -> bool:
    return (
        not (query.dependent and not task.depends_on)
        and task.status == query.waiting_in
        and task.cancel is None
        and not task.archived
        and not task.metadata.get("draft")
        and not task.awaits_answer
        and (not task.gated or any(hop.get("status") == "ready" for hop in task.workflow["hops"]))
        and (task.retry.not_before is None or task.retry.not_before <= moment)
        and all(edge in tasks and tasks[edge].status == "done" for edge in task.depends_on)
        and not _waits_below(task, tasks)
    )


def _waits_below(task: Task, tasks: dict[str, Task]) -> bool:
    return task.waits_for_children and any(
        child.parent_id == task.id and child.status not in FINISHED for child in tasks.values()
    )
