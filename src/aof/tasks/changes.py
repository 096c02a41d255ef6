"""One change of many tasks, with a preview and one report; and undoing the caller's last change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aof.errors import AofError, Call, InvalidInput, NotFound, RevisionConflict
from aof.kernel import commands
from aof.kernel import limits as kernel_limits
from aof.kernel.events import DOCUMENT, is_remark
from aof.kernel.evolve import evolve
from aof.kernel.results import Result
from aof.queries import history as queries_history
from aof.tasks import fields, reversal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from aof.kernel.context import Environment
    from aof.kernel.declarations import Filters
    from aof.kernel.dispatcher import Dispatcher
    from aof.kernel.events import Draft, Event
    from aof.tasks.model import Task
    from aof.tasks.reversal import Step

if TYPE_CHECKING:
    Commit = list[Event]


_COMMANDS: dict[str, type[commands.OnTask]] = {
    "cancel": commands.CancelTask,
    "archive": commands.ArchiveTask,
    "retry": commands.RetryTask,
    "edit": commands.Edit,
}
_MOST = 1_000  # tasks of one call
_ROUTES = tuple(row.key for row in fields.ROUTING)
_NOT_NARROWING = frozenset({"limit", "archived", "sort", "reverse", "cursor"})


class BulkProblem(Result, frozen=True, kw_only=True):
    """Why one task stays as it is."""

    code: str
    message: str
    hint: str


class BulkItem(Result, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one task, or would. `also` are tasks that change with it, such as its children."""

    task_id: str
    title: str
    outcome: str
    status: str
    rev: int
    also: tuple[str, ...] = ()
    error: BulkProblem | None = None


class BulkReport(Result, frozen=True, kw_only=True):
    """One item per task. Of a dry run: what would become of them."""

    command: str
    dry_run: bool
    total: int
    changed: int
    unchanged: int
    refused: int
    items: tuple[BulkItem, ...]


class BulkService:
    """Changes many tasks."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def bulk(
        self,
        command: str,
        *,
        task_ids: Sequence[str] = (),
        reason: str | None = None,
        changes: dict[str, Any] | None = None,
        expect_revs: dict[str, int] | None = None,
        dry_run: bool = False,
        key: str | None = None,
        actor: str | None = None,
        **filters: Unpack[Filters],
    ) -> BulkReport:
        """Cancel, archive, retry or edit the tasks with these IDs, or all that match the filters."""
        given: dict[str, Any] = {"actor": actor, "key": key, **_given(command, reason, changes)}
        chosen = self._chosen(command, task_ids, dict(filters))
        resolve = self._environment.lookup.resolve
        revisions = {resolve(part): rev for part, rev in (expect_revs or {}).items()}
        items: list[BulkItem] = []
        first: int | None = None  # event of this change, which the others name, so that one undo finds all
        stopped: AofError | None = None
        for task_id in chosen:
            if stopped is not None:
                items.append(_item(self._environment.lookup.get(task_id), "skipped", error=stopped))
                continue
            one = given | {"expect_rev": revisions.get(task_id), "bulk": first}
            item, begun, stopped = self._changed(_COMMANDS[command], task_id, one, dry_run=dry_run)
            items.append(item)
            first = begun if first is None else first
        return _report(command, items, dry_run=dry_run)

    def _chosen(self, command: str, task_ids: Sequence[str], filters: dict[str, Any]) -> list[str]:
        """The tasks that are meant; refused as a whole where that is nothing, everything, or not clear."""
        narrowing = {name for name, value in filters.items() if value and name not in _NOT_NARROWING}
        shown = Call("bulk", {"command": command, "status": "ready", "tag": "…", "dry_run": True})
        if task_ids and narrowing:
            raise InvalidInput("the tasks are given by their IDs and by a filter", "give one of them", shown)
        if task_ids:
            if len(task_ids) > _MOST:
                raise InvalidInput(f"{len(task_ids):,} tasks at once are too many", f"give at most {_MOST:,}")
            return list(dict.fromkeys(self._environment.lookup.get(part).id for part in task_ids))
        if not narrowing:
            raise InvalidInput(
                "neither IDs nor a filter say which tasks are meant",
                "name the tasks, or narrow them down by a filter",
                shown,
            )
        query = self._environment.read_models.query(**filters)
        page = self._environment.store.find(query)
        if len(page.tasks) > _MOST:
            raise InvalidInput(
                f"{len(page.tasks):,} tasks match, and {_MOST:,} can be changed at once",
                "narrow the filter, or give a limit",
                Call("bulk", filters | {"command": command, "limit": _MOST, "dry_run": True}),
            )
        return [task.id for task in page.tasks]

    def _changed(
        self, kind: type[commands.OnTask], task_id: str, given: dict[str, Any], *, dry_run: bool
    ) -> tuple[BulkItem, int | None, AofError | None]:
        """One task; with the first event of its commit, and the trouble that lets no other task fare better."""
        facts: Sequence[Draft | Event]
        begun: int | None = None
        try:
            if dry_run:
                facts = self._dispatcher.rehearse(kind, task_id, **given).drafts
            else:
                facts = events = self._dispatcher.on_task(kind, task_id, **given).events
                begun = events[-1].begins if events else None
        except AofError as error:
            trouble = error if error.kind in ("unavailable", "internal") else None
            return _item(self._environment.lookup.get(task_id), "refused", error=error), None, trouble
        task = self._environment.lookup.get(task_id)
        also = tuple(dict.fromkeys(one.task_id for one in facts if one.task_id != task_id))
        return _item(task, "changed" if facts else "unchanged", facts, also), begun, None


def _given(command: str, reason: str | None, changes: dict[str, Any] | None) -> dict[str, Any]:
    """The values of the command; a refusal of what does not belong to the command."""
    if problem := kernel_limits.choice("command", command, tuple(_COMMANDS)):
        raise problem
    if changes and command != "edit":
        raise InvalidInput(f"'{command}' takes no changes", "use the command edit", Call("bulk", {"command": "edit"}))
    if command == "edit":
        if not changes:
            shown = Call("bulk", {"command": "edit", "tag": "…", "changes": {"priority": "high"}, "dry_run": True})
            raise InvalidInput("there is nothing to change", "say what", shown)
        kept = {name: None if value in ("", []) else value for name, value in changes.items()}  # empty takes away
        routing = {name: kept.pop(name) for name in _ROUTES if name in kept}
        return {"changes": kept | ({"routing": routing} if routing else {})}
    if command == "archive":
        return {}
    if command == "retry" and not reason:
        shown = Call("bulk", {"command": "retry", "status": "deadletter", "reason": "…", "dry_run": True})
        raise InvalidInput("'reason' must not be empty", "say why", shown)
    return {"reason": reason}


def _item(
    task: Task,
    outcome: str,
    facts: Sequence[Draft | Event] = (),
    also: tuple[str, ...] = (),
    *,
    error: AofError | None = None,
) -> BulkItem:
    moves = [one.payload["to"] for one in facts if one.type == "task.transitioned" and one.task_id == task.id]
    problem = BulkProblem(code=error.code, message=error.message, hint=error.hint) if error is not None else None
    return BulkItem(
        task_id=task.id,
        title=task.title,
        outcome=outcome,
        status=moves[-1] if moves else task.status,
        rev=task.rev,
        also=also,
        error=problem,
    )


def _report(command: str, items: list[BulkItem], *, dry_run: bool) -> BulkReport:
    counts = {name: sum(item.outcome == name for item in items) for name in ("changed", "unchanged")}
    return BulkReport(
        command=command,
        dry_run=dry_run,
        total=len(items),
        changed=counts["changed"],
        unchanged=counts["unchanged"],
        refused=len(items) - sum(counts.values()),
        items=tuple(items),
    )


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
            found = reversal.inverse(commit, *_around(commit, histories))
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
        queries_history.known(self._environment.store, seq)
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
                if not is_remark(one) and reversal.is_material(one) and one.begins not in settled:
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
