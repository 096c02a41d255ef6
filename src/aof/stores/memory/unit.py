"""What the memory store keeps, and one unit of work on it.

What is handed out is a copy, so that nobody can change a record but by a commit. Must not know any rule about tasks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.commands import ImportEdit
from aof.core.model.events import Draft, Event, is_remark, numbered
from aof.core.model.handoffs.record import Handoff
from aof.core.model.ids import run_place, split_task_id
from aof.core.model.numbers import Numbers
from aof.core.model.run import Heartbeat, Run, RunResult
from aof.core.model.task import FileLock, Task
from aof.core.model.times import iso
from aof.core.model.workflow import occupied_by
from aof.documents.projection import Projection
from aof.ports.store import Scope, ScopeTooNarrow
from aof.stores.base import documents
from aof.stores.base.documents import DocumentState
from aof.stores.base.fold import Folded
from aof.stores.memory.documents import MemoryDesk

_Record = TypeVar("_Record", bound=msgspec.Struct | None)
_encode = msgspec.json.Encoder().encode


def copied(record: _Record) -> _Record:
    """The same record, sharing nothing with the first one."""
    return msgspec.json.decode(_encode(record), type=prepare_type(type(record)))


class MemoryState:
    """The log, what follows from it, and the signs of life. Readers and writers hold the lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.appended = threading.Condition(self.lock)
        self.log: list[Event] = []
        self.folded: dict[str, Folded] = {}
        self.heartbeats: dict[str, Heartbeat] = {}
        self.texts: dict[str, tuple[str, int]] = {}
        self.states: dict[str, DocumentState] = {}

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


class MemoryUnit:
    """Keeps the contract of `ports.store.Unit`."""

    def __init__(self, kept: MemoryState, scope: Scope) -> None:
        self._kept = kept
        self._scope = scope

    def task(self, task_id: str) -> Task | None:
        """The task as the log knows it."""
        return copied(self._kept.one(task_id).task)

    def edit(self, task_id: str) -> ImportEdit | None:  # noqa: ARG002 - the contract's form
        """Nobody edits what is in no file."""
        return None

    def run(self, task_id: str) -> Run | None:
        """The current or last run."""
        return copied(self._kept.one(task_id).run)

    def result(self, task_id: str) -> RunResult | None:
        """What that run has reported."""
        owner, _, hop = task_id.partition("/hops/")
        kept = self._kept.one(owner)
        last = kept.last_of(hop) if hop else None
        return copied(kept.results.get(last.run_id) if last is not None else None if hop else kept.result)

    def heartbeat(self, task_id: str) -> Heartbeat | None:
        """That run's last sign of life."""
        return copied(self._kept.heartbeats.get(task_id))

    def numbers(self) -> Numbers:
        """There is no other clone."""
        return Numbers()

    def handoffs(self, task_id: str) -> tuple[Handoff, ...]:
        """The handoffs of the task."""
        return tuple(copied(handoff) for handoff in self._kept.one(task_id).handoffs.values())

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
        return self._kept.where(lambda task: task.parent_id == task_id)

    def dependents(self, task_id: str) -> tuple[str, ...]:
        """The tasks that wait for this one."""
        return self._kept.where(lambda task: task_id in task.depends_on)

    def above(self, task_id: str) -> tuple[str, ...]:
        """The ancestors, from the parent up; a circle ends the walk."""
        found: dict[str, None] = {}
        task = self._kept.one(task_id).task
        while task is not None and task.parent_id is not None and task.parent_id not in found:
            found[task.parent_id] = None
            task = self._kept.one(task.parent_id).task
        return tuple(found)

    def tree(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """The children of the task and of everything below it."""
        tasks, below = self._kept.tasks(), dict[str, list[str]]()
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
        tasks, found = self._kept.tasks(), {task_id: list[str]() for task_id in task_ids}
        for name in sorted(tasks, key=split_task_id):
            for blocker in dict.fromkeys(tasks[name].depends_on):
                if blocker in found:
                    found[blocker].append(name)
        return {task_id: tuple(names) for task_id, names in found.items()}

    def reachable(self, task_id: str) -> dict[str, tuple[str, ...]]:
        """All dependency edges on the ways that lead from this task."""
        tasks = self._kept.tasks()
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
        return self._kept.where(lambda task: task.resource == resource and task.status == "in-progress")

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The running tasks that the agent holds, each as often as it holds hops of it."""
        with self._kept.lock:
            tasks = self._kept.tasks()
            found = sorted(tasks, key=split_task_id)
            return tuple(name for name in found for holder in occupied_by(tasks[name]) if holder == agent)

    def file_locks(self) -> dict[str, tuple[FileLock, ...]]:
        """The locks on files, by the running tasks that hold them."""
        with self._kept.lock:
            return {task.id: copied(task).locks for task in self._kept.tasks().values() if task.locks}

    def key_owner(self, key: str) -> str | None:
        """The task that was created with this key."""
        return next(iter(self._kept.where(lambda task: task.key is not None and task.key.value == key)), None)

    def follow(self, projection: Projection) -> None:
        """Let a document's text catch up with the log."""
        documents.follow(MemoryDesk(self._kept, projection.name), projection, self)

    def foreseen(self, projection: Projection, paths: Iterable[str]) -> dict[str, str]:
        """What the texts are after the document caught up."""
        self.follow(projection)
        return {path: self.document(path) for path in paths}

    def document(self, path: str) -> str:
        """The text of a document."""
        return self._kept.texts.get(path, ("", 0))[0]

    def title(self, task_id: str) -> str | None:
        """The title of a task."""
        task = self._kept.one(task_id).task
        return task.title if task is not None else None

    def commit(
        self, drafts: tuple[Draft, ...], *, actor: str, agent: str | None, now: int, caller: str | None = None
    ) -> tuple[Event, ...]:
        """Number the events and apply them; all or nothing."""
        outside = {draft.task_id for draft in drafts if not is_remark(draft)} - self._scope.write
        if outside:
            raise ScopeTooNarrow(Scope(write=frozenset(outside)))
        events = numbered(drafts, actor=actor, agent=agent, timestamp=iso(now), last=len(self._kept.log), caller=caller)
        self._kept.append([copied(event) for event in events])
        return tuple(events)

    def take_in(self, edit: ImportEdit, drafts: tuple[Draft, ...], now: int) -> None:
        """Record an edit, if somebody has one after all."""
        self.commit(drafts, actor=edit.actor, agent=None, now=now)

    def beat(self, heartbeat: Heartbeat) -> None:
        """Keep a sign of life; no event."""
        self._kept.heartbeats[run_place(heartbeat.task_id, heartbeat.hop)] = copied(heartbeat)

    def flush(self) -> None:
        """Nothing can be lost but everything."""
