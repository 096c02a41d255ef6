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
    """Which commit, or bulk change, was reversed, by its first event, and how. Of a dry run: how it would be."""

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
        commits = [self._by_number(seq, full)] if seq is not None else self._last_of(who, full)
        histories = self._histories(commits)
        plan: list[tuple[int, Step]] = []
        revisions: dict[str, int] = {}
        reversing = {commit[0].seq for commit in commits}
        for commit in commits:
            found = inverse.inverse(commit, *_around(commit, histories))
            if isinstance(found, AofError):
                raise found
            revisions |= self._unchanged_since(commit, {step.task_id for step in found}, histories, reversing)
            plan += ((commit[0].seq, step) for step in found)
        self._carry_out(plan, revisions, actor, dry_run=dry_run)
        first = commits[-1][0]
        return Undone(
            seq=first.seq,
            type=first.type,
            timestamp=first.timestamp,
            actor=first.actor,
            dry_run=dry_run,
            steps=tuple(
                UndoneStep(
                    task_id=one.task_id, change=one.words, status=self._environment.lookup.get(one.task_id).status
                )
                for _, one in plan
            ),
        )

    def _carry_out(
        self, plan: list[tuple[int, Step]], revisions: dict[str, int], actor: str | None, *, dry_run: bool
    ) -> None:
        """Give the commands; the first one of each task counts only while the task is as it was seen.

        In a dry run only the first of all can be asked about: the others may depend on it.
        """
        for place, (undoes, step) in enumerate(plan):
            seen = revisions.pop(step.task_id, None)
            given = {"actor": actor, "undoes": undoes, "expect_rev": seen, **step.given}
            if not dry_run:
                self._dispatcher.move(step.kind, step.task_id, **given)
            elif place == 0:
                self._dispatcher.rehearse(step.kind, step.task_id, **given)

    def _by_number(self, seq: int, task_id: str | None) -> Commit:
        history.known(self._environment.store, seq)
        found = next((event for event in self._environment.store.events(seq - 1) if event.seq == seq), None)
        if found is None or not found.task_id or is_remark(found) or (task_id is not None and found.task_id != task_id):
            what = f"a change of {task_id}" if task_id else "a change of a task"
            raise InvalidInput(f"event {seq} is not {what}", "see the events", Call("log", {}))
        return self._whole(found)

    def _whole(self, event: Event) -> Commit:
        commit = []
        for one in self._environment.store.events(event.begins - 1):
            if one.seq >= event.begins + event.commit[1]:
                break
            commit.append(one)
        return commit

    def _last_of(self, who: str, task_id: str | None) -> list[Commit]:
        """The last commit of the caller that is neither undone nor an undo; of a bulk change all of them, last first.

        Of one task, only the part of a bulk change that concerns it is meant.
        """
        for events in self._looks_back(task_id):
            settled = _settled(events)
            for event in reversed(events):
                counts = event.type.startswith(DOCUMENT) or (event.task_id and not is_remark(event))
                if event.actor == who and counts and event.begins not in settled:
                    commit = self._whole(event)
                    return [commit] if task_id is not None else self._bulk(commit)
        where = f" of {task_id}" if task_id else ""
        raise NotFound(
            f"there is no change{where} by {who} that is not undone already",
            "see what happened",
            Call("log", {"task_id": task_id} if task_id else {"limit": 20}),
        )

    def _bulk(self, commit: Commit) -> list[Commit]:
        """The commits of the bulk change that one belongs to, last first, without what is undone already."""
        bulk = next((event.payload["bulk"] for event in commit if "bulk" in event.payload), None)
        if bulk is None:
            return [commit]
        events = list(self._environment.store.events(bulk - 1))
        parts = {bulk} | {event.begins for event in events if event.payload.get("bulk") == bulk}
        commits: dict[int, Commit] = {first: [] for first in sorted(parts - _settled(events), reverse=True)}
        for event in events:
            if event.begins in commits:
                commits[event.begins].append(event)
        return list(commits.values())

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

    def _histories(self, commits: list[Commit]) -> dict[str, list[Event]]:
        """All events of the tasks that the commits are about; of several tasks in one look at the log."""
        store = self._environment.store
        concerned = {event.task_id for commit in commits for event in commit if event.task_id and not is_remark(event)}
        if len(concerned) == 1:
            return {task_id: list(store.events(task_id=task_id)) for task_id in concerned}
        found: dict[str, list[Event]] = {task_id: [] for task_id in concerned}
        for event in store.events():
            if event.task_id in found:
                found[event.task_id].append(event)
        return found

    def _unchanged_since(
        self, commit: Commit, task_ids: set[str], histories: dict[str, list[Event]], reversing: set[int]
    ) -> dict[str, int]:
        """The revisions that the tasks have now; refused where one has changed since, except for what is undone."""
        revisions: dict[str, int] = {}
        for task_id in task_ids:
            revisions[task_id] = self._environment.lookup.get(task_id).rev
            later = [one for one in histories[task_id] if one.seq > commit[-1].seq]
            settled = _settled(later) | reversing
            for one in later:
                if not is_remark(one) and inverse.is_material(one) and one.begins not in settled:
                    raise _changed_since(task_id, commit[0], one)
        return revisions


def _around(commit: Commit, histories: dict[str, list[Event]]) -> tuple[dict[str, Task | None], dict[str, Task]]:
    """Each task of the commit before and after it."""
    before: dict[str, Task | None] = {}
    after: dict[str, Task] = {}
    for task_id in dict.fromkeys(event.task_id for event in commit if event.task_id and not is_remark(event)):
        task: Task | None = None
        before[task_id] = None
        for event in histories[task_id]:
            if event.seq > commit[-1].seq:
                break
            if not is_remark(event):
                task = evolve(task, event)
                if event.seq < commit[0].seq:
                    before[task_id] = task
        if task is not None:
            after[task_id] = task
    return before, after


def _settled(events: list[Event]) -> set[int]:
    """The commits that were undone, and those that undid them, by their first events."""
    undoing = [event for event in events if "undoes" in event.payload]
    return {event.payload["undoes"] for event in undoing} | {event.begins for event in undoing}


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
