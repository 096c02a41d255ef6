"""Undo: finds the caller's last change and reverses it by new commands, under the caller's own rights.

The log is never rewritten: what is undone stays in it, and the events of an undo name what they reverse. Must not know
how a change is reversed, nor any surface.
"""

from __future__ import annotations

from collections.abc import Iterator

from aof.app.operations.results import Result
from aof.app.queries import history
from aof.core.errors.base import AofError, Call, InvalidInput, NotFound
from aof.core.errors.tasks import RevisionConflict
from aof.core.evolve.task import evolve
from aof.core.model.events import DOCUMENT, is_remark
from aof.core.tasks.reversal import inverse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher
    from aof.core.model.events import Event
    from aof.core.model.task import Task
    from aof.core.tasks.reversal.inverse import Step

    Commit = list[Event]

_WINDOWS = (500, 5_000, 50_000)  # events that are looked through, from the end of the log


class UndoneStep(Result, frozen=True, kw_only=True):
    """What happened to one task, or would."""

    task_id: str
    change: str
    status: str


class Undone(Result, frozen=True, kw_only=True):
    """Which commit was reversed, by its first event, and how. Of a dry run: how it would be."""

    seq: int
    type: str
    timestamp: str
    actor: str
    dry_run: bool
    steps: tuple[UndoneStep, ...]


class UndoService:
    """Reverses changes."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def undo(
        self, task_id: str | None = None, *, seq: int | None = None, dry_run: bool = False, actor: str | None = None
    ) -> Undone:
        """Reverse the caller's last change, of one task or of any; or the change that an event belongs to."""
        who = actor or self._dispatcher.actor
        full = self._environment.lookup.get(task_id).id if task_id is not None else None
        commit = self._by_number(seq, full) if seq is not None else self._last_of(who, full)
        found = inverse.inverse(commit, *self._around(commit))
        if isinstance(found, AofError):
            raise found
        revisions = self._unchanged_since(commit, {step.task_id for step in found})
        first = commit[0]
        steps = tuple(self._step(one, first.seq, revisions, actor, dry_run=dry_run) for one in found)
        return Undone(
            seq=first.seq,
            type=first.type,
            timestamp=first.timestamp,
            actor=first.actor,
            dry_run=dry_run,
            steps=steps,
        )

    def _step(
        self, step: Step, undoes: int, revisions: dict[str, int], actor: str | None, *, dry_run: bool
    ) -> UndoneStep:
        """One command; the first one of each task counts only while that is what was looked at.

        In a dry run only that one can be asked about: the others follow from it.
        """
        seen = revisions.pop(step.task_id, None)
        given = {"actor": actor, "undoes": undoes, "expect_rev": seen, **step.given}
        if dry_run:
            if seen is not None:
                self._dispatcher.rehearse(step.kind, step.task_id, **given)
            task = self._environment.lookup.get(step.task_id)
            return UndoneStep(task_id=task.id, change=step.words, status=task.status)
        moved = self._dispatcher.move(step.kind, step.task_id, **given)
        return UndoneStep(task_id=moved.task_id, change=step.words, status=moved.status)

    def _by_number(self, seq: int, task_id: str | None) -> Commit:
        history.known(self._environment.store, seq)
        found = next((event for event in self._environment.store.events(seq - 1) if event.seq == seq), None)
        if found is None or not found.task_id or is_remark(found) or (task_id is not None and found.task_id != task_id):
            what = f"a change of {task_id}" if task_id else "a change of a task"
            raise InvalidInput(f"event {seq} is not {what}", "see the events", Call("log", {}))
        return self._whole(found)

    def _whole(self, event: Event) -> Commit:
        first, commit = _first(event), []
        for one in self._environment.store.events(first - 1):
            if one.seq >= first + event.commit[1]:
                break
            commit.append(one)
        return commit

    def _last_of(self, who: str, task_id: str | None) -> Commit:
        """The last commit of the caller that is neither undone nor an undo."""
        for events in self._looks_back(task_id):
            settled = _settled(events)
            for event in reversed(events):
                counts = event.type.startswith(DOCUMENT) or (event.task_id and not is_remark(event))
                if event.actor == who and counts and _first(event) not in settled:
                    return self._whole(event)
        where = f" of {task_id}" if task_id else ""
        raise NotFound(
            f"there is no change{where} by {who} that is not undone already",
            "see what happened",
            Call("log", {"task_id": task_id} if task_id else {"limit": 20}),
        )

    def _looks_back(self, task_id: str | None) -> Iterator[list[Event]]:
        """The last events, more of them each time; of one task all of them."""
        store = self._environment.store
        if task_id is not None:
            yield list(store.events(task_id=task_id))
            return
        head = store.head()
        for window in _WINDOWS:
            yield list(store.events(max(head - window, 0)))
            if window >= head:
                return

    def _around(self, commit: Commit) -> tuple[dict[str, Task | None], dict[str, Task]]:
        """Each task of the commit before and after it."""
        before: dict[str, Task | None] = {}
        after: dict[str, Task] = {}
        for task_id in dict.fromkeys(event.task_id for event in commit if event.task_id and not is_remark(event)):
            task: Task | None = None
            before[task_id] = None
            for event in self._environment.store.events(task_id=task_id):
                if event.seq > commit[-1].seq:
                    break
                if not is_remark(event):
                    task = evolve(task, event)
                    if event.seq < commit[0].seq:
                        before[task_id] = task
            if task is not None:
                after[task_id] = task
        return before, after

    def _unchanged_since(self, commit: Commit, task_ids: set[str]) -> dict[str, int]:
        """The revisions that the tasks have now; refused where one has changed since, except for what was undone."""
        revisions: dict[str, int] = {}
        for task_id in task_ids:
            revisions[task_id] = self._environment.lookup.get(task_id).rev
            later = [one for one in self._environment.store.events(task_id=task_id) if one.seq > commit[-1].seq]
            settled = _settled(later)
            for one in later:
                if not is_remark(one) and inverse.is_material(one) and _first(one) not in settled:
                    raise _changed_since(task_id, commit[0], one)
        return revisions


def _first(event: Event) -> int:
    """The number of the first event of its commit."""
    return event.seq - event.commit[0] + 1


def _settled(events: list[Event]) -> set[int]:
    """The commits that were undone, and those that undid them, by their first events."""
    undoing = [event for event in events if "undoes" in event.payload]
    return {event.payload["undoes"] for event in undoing} | {_first(event) for event in undoing}


def _changed_since(task_id: str, undone: Event, later: Event) -> RevisionConflict:
    by = later.agent or later.actor
    return RevisionConflict(
        f"{task_id} has changed since event {undone.seq}: {later.type} by {by} (event {later.seq})",
        "see whether that can be undone first",
        Call("undo", {"task_id": task_id, "seq": later.seq, "dry_run": True}),
        task_id=task_id,
        expected_rev=undone.seq,
        current_rev=later.seq,
    )
