"""The memory store: the whole contract of `ports.store` in one process, for tests that want no disk.

One lock keeps units apart. Must not know any rule about tasks.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

import msgspec

from aof.core.errors.storage import LockTimeout
from aof.core.handoffs import audit
from aof.core.model.events import Event
from aof.core.model.handoffs.record import Handoff, age
from aof.core.model.ids import matches, split_task_id, task_id
from aof.core.model.run import Heartbeat, Run
from aof.core.model.task import Task
from aof.core.model.times import day
from aof.core.org.health import agent_health as health
from aof.core.runs import attention
from aof.core.runs.chronicle import FlowFacts, SpanPage, SpanQuery
from aof.ports.audit import AuditFiles, AuditQuery
from aof.ports.clock import Clock
from aof.ports.lists import Query, Row, Rows
from aof.ports.store import HashedEvent, Page, Scope
from aof.ports.working_copy import WorkingCopy
from aof.stores.base import chronicle
from aof.stores.base.selection import page, select
from aof.stores.memory.unit import MemoryState, MemoryUnit, copied

_LOOK_AGAIN = 0.02


class MemoryStore:
    """Records and log of one process. Safe for several threads."""

    def __init__(self, clock: Clock, *, lock_timeout: float = 10.0) -> None:
        self._clock = clock
        self._timeout = lock_timeout
        self._kept = MemoryState()
        self._day, self._number = "", 0
        self._told: sqlite3.Connection | None = None
        self._told_to = 0

    @property
    def working_copy(self) -> WorkingCopy | None:
        """There are no files."""
        return None

    @contextmanager
    def unit(self, scope: Scope) -> Iterator[MemoryUnit]:
        """Begin a unit of work; one at a time."""
        if not self._kept.lock.acquire(timeout=self._timeout):
            raise LockTimeout(f"waited {self._timeout:g} s for another thread", "end what holds the store")
        try:
            yield MemoryUnit(self._kept, scope)
        finally:
            self._kept.lock.release()

    def reserve_id(self, now: int) -> str:
        """A task ID that nobody else will get; the day never goes back."""
        with self._kept.lock:
            today = day(now)
            if self._day < today:
                used = (split_task_id(name) for name in self._kept.folded)
                self._day, self._number = today, max((number for on, number in used if on == today), default=0)
            self._number += 1
            return task_id(self._day, self._number)

    def put_back_id(self, unused: str) -> None:
        """Let an ID that nothing was made under be given again, if it is the last one."""
        with self._kept.lock:
            if self._number and unused == task_id(self._day, self._number):
                self._number -= 1

    def find(self, query: Query) -> Page:
        """Answer from the records themselves."""
        return self.pages((query,))[0]

    def pages(self, queries: Iterable[Query]) -> tuple[Page, ...]:
        """The same for several queries at once."""
        with self._kept.lock:
            return tuple(map(self._page, queries))

    def _page(self, query: Query) -> Page:
        chosen = select(query, self._kept.tasks())
        kept, end = page(query, chosen)
        by_status: dict[str, int] = dict(Counter(task.status for task in (chosen if query.counted else kept)))
        shown = (msgspec.structs.replace(task, body="", layout=None) for task in kept)
        return Page(sum(by_status.values()), by_status, tuple(copied(task) for task in shown), end)

    def rows(self, query: Query) -> Rows:
        """The same as a list."""
        found = self.find(query)
        shown = (Row.of(task, task.blocked.reason if task.blocked else None) for task in found.tasks)
        return Rows(found.by_status, tuple(shown), found.end)

    def ids(self, part: str) -> tuple[str, ...]:
        """The IDs that a short form could stand for."""
        return tuple(matches(part, self._kept.where(lambda _task: True)))

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """The IDs that tasks had elsewhere."""
        with self._kept.lock:
            renumbered = [task for task in self._kept.tasks().values() if task.aliases]
        found: dict[str, tuple[str, ...]] = {}
        for task in sorted(renumbered, key=lambda task: split_task_id(task.id)):
            for old in task.aliases:
                found[old] = (*found.get(old, ()), task.id)
        return found

    def resources_in_use(self) -> dict[str, int]:
        """How many running tasks occupy each resource."""
        with self._kept.lock:
            running = [task for task in self._kept.tasks().values() if task.status == "in-progress"]
        return dict(Counter(task.resource for task in running if task.resource is not None))

    def records(self, task_ids: Collection[str]) -> tuple[Task, ...]:
        """These tasks, without their bodies."""
        with self._kept.lock:
            found = [task for one in task_ids if (task := self._kept.one(one).task) is not None]
        return tuple(copied(msgspec.structs.replace(task, body="", layout=None)) for task in found)

    def child_counts(self, task_ids: Collection[str]) -> dict[str, dict[str, int]]:
        """How many tasks below each of these are in which status."""
        found: dict[str, dict[str, int]] = {}
        with self._kept.lock:
            for task in self._kept.tasks().values():
                if task.parent_id in task_ids:
                    counts = found.setdefault(str(task.parent_id), {})
                    counts[task.status] = counts.get(task.status, 0) + 1
        return found

    def attention(self, query: attention.AttentionQuery) -> attention.AttentionPage:
        """What needs a person, from the records themselves."""
        with self._kept.lock:
            every = [one for task in self._kept.tasks().values() for one in attention.attention_of(task)]
        return attention.selected(query, every)

    def _chronicle(self) -> sqlite3.Connection:
        """What the log tells over time; it follows the log from the first question on."""
        if self._told is None:
            self._told = sqlite3.connect(":memory:", check_same_thread=False)
            self._told.executescript(chronicle.TABLES)
        fresh = list(self.events(self._told_to))
        chronicle.add(self._told, fresh)
        self._told_to = fresh[-1].seq if fresh else self._told_to
        return self._told

    def last_seen(self) -> dict[str, str]:
        """When each name was last seen in the log."""
        with self._kept.lock:
            return chronicle.last_seen(self._chronicle())

    def run_spans(self, query: SpanQuery) -> SpanPage:
        """A page of runs, the last one first."""
        with self._kept.lock:
            return chronicle.run_spans(self._chronicle(), query)

    def flow_facts(self, since: str) -> FlowFacts:
        """What moved, was finished and was run."""
        with self._kept.lock:
            return chronicle.flow_facts(self._chronicle(), since)

    def audited(self, query: AuditQuery) -> tuple[audit.AuditRecord, ...]:
        """The audit records that match, from the log itself."""
        found = (audit.audit_record(event) for event in self.events(query.after))
        return tuple(islice((one for one in found if one is not None and query.matches(one)), query.limit))

    def health(self) -> dict[str, health.AgentHealth]:
        """What the log says last of each agent's health."""
        return {one.agent: one for event in self.events() if (one := health.health_of(event)) is not None}

    def audit_files(self, project: str) -> AuditFiles | None:  # noqa: ARG002 - the contract's form
        """There are no files."""
        return None

    def locking(self) -> tuple[Task, ...]:
        """The running tasks that hold locks on files."""
        with self._kept.lock:
            tasks = self._kept.tasks()
            found = [tasks[name] for name in sorted(tasks, key=split_task_id) if tasks[name].locks]
            return tuple(copied(msgspec.structs.replace(task, body="", layout=None)) for task in found)

    def heartbeats(self, task_ids: Iterable[str]) -> dict[str, Heartbeat | None]:
        """The last signs of life."""
        with self._kept.lock:
            return {task_id: copied(self._kept.heartbeats.get(task_id)) for task_id in task_ids}

    def attempts(self, task_id: str) -> tuple[Run, ...]:
        """Every run, oldest first."""
        with self._kept.lock:
            return tuple(copied(run) for run in self._kept.one(task_id).runs)

    def output(self, run: Run, stream: str, offset: int, most: int) -> tuple[bytes, int]:  # noqa: ARG002 - the contract's form
        """No worker prints into memory."""
        return b"", 0

    def handoffs(self, tasks: Iterable[Task] | None = None) -> tuple[Handoff, ...]:
        """Every handoff, or those of some tasks; oldest first."""
        with self._kept.lock:
            every = self._kept.folded.values()
            asked = every if tasks is None else [self._kept.one(task.id) for task in tasks]
            found = [copied(one) for folded in asked for one in folded.handoffs.values()]
        return tuple(sorted(found, key=age))

    def find_handoffs(self, part: str) -> tuple[Handoff, ...]:
        """The handoffs whose IDs begin like this."""
        found = [one for one in self.handoffs() if one.id.startswith(part)]
        return tuple(one for one in found if one.id == part) or tuple(found)

    def path_of(self, task: Task) -> str:
        """Where the task would lie in a data directory."""
        return f"{'archive/tasks' if task.archived else f'tasks/{task.status}'}/{task.id}.md"

    def head(self) -> int:
        """The number of the last event."""
        return len(self._kept.log)

    def events(self, after: int = 0, task_id: str | None = None) -> Iterator[Event]:
        """The events in order, as of the moment of asking."""
        for event in self._kept.log[max(after, 0) :]:
            if task_id is None or event.task_id == task_id:
                yield copied(event)

    def told(self, types: tuple[str, ...], since: str = "") -> Iterator[Event]:
        """The events of some types, as of the moment of asking."""
        return (event for event in self.events() if event.type.startswith(types) and event.timestamp >= since)

    def hashed(self, beginning: str) -> tuple[HashedEvent, ...]:  # noqa: ARG002 - what is kept here has no hashes
        """None: nothing is chained here."""
        return ()

    def wait(self, after: int, timeout: float) -> bool:
        """Sleep until an event comes. A clock that stands still (a fake one) is moved on, for nobody else would."""
        deadline = self._clock.monotonic() + timeout
        while True:
            with self._kept.appended:
                if self.head() > after:
                    return True
                before = self._clock.monotonic()
                if before >= deadline:
                    return False
                self._kept.appended.wait(min(_LOOK_AGAIN, deadline - before))
            if self._clock.monotonic() == before:
                self._clock.sleep(deadline - before)

    def close(self) -> None:
        """Nothing is held open."""
