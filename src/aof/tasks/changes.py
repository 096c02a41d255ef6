"""One change of many tasks, with a preview and one report; and undoing the caller's last change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aof.errors import AofError, Call, InvalidInput, NotFound, RevisionConflict
from aof.kernel import commands
from aof.kernel import limits as kernel_limits
from aof.kernel.events import DOCUMENT, is_remark
from aof.kernel.evolve import evolve
from aof.kernel.operation import Spelling, operation
from aof.kernel.results import Result
from aof.queries import history as queries_history
from aof.queries.operations import Filters
from aof.tasks import fields, reversal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, Literal, Unpack

    from aof.kernel.context import CallContext
    from aof.kernel.declarations import IdempotencyKey, Reason, param
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


@operation(
    effect="destructive",
    section="plan",
    order=135,
    summary="cancel, archive, retry or edit many tasks",
    notes="The filters are those of 'aof list'. Exit code 1 says that some tasks were refused; the others are "
    "changed all the same.",
    example='aof bulk cancel --tag stale --reason "not wanted" --dry-run',
    shows_defaults=("task_ids",),
    wire_types={"changes": "aof.tasks.parameters.BulkChanges"},
)
def bulk(
    context: CallContext,
    command: Annotated[Literal["cancel", "archive", "retry", "edit"], param("what to do", Spelling(place="COMMAND"))],
    *,
    task_ids: Annotated[
        Sequence[str], param("the tasks; none: all that match the filters", Spelling(place="[ID…]"))
    ] = (),
    reason: Reason | None = None,
    changes: dict[str, Any] | None = None,
    dry_run: Annotated[bool, param("report what would be done, and change nothing")] = False,
    expect_revs: Annotated[
        dict[str, int],
        param("change a task only if it still has this revision", Spelling(option="--expect-rev", metavar="ID=N")),
    ]
    | None = None,
    key: IdempotencyKey | None = None,
    actor: str | None = None,
    **filters: Unpack[Filters],
) -> BulkReport:
    """Cancel, archive, retry or edit many tasks: by their IDs, or all that match a filter."""
    given: dict[str, Any] = {"actor": actor, "key": key, **_given(command, reason, changes)}
    chosen = _chosen(context, command, task_ids, dict(filters))
    resolve = context.environment.lookup.resolve
    revisions = {resolve(part): rev for part, rev in (expect_revs or {}).items()}
    items: list[BulkItem] = []
    first: int | None = None  # event of this change, which the others name, so that one undo finds all
    stopped: AofError | None = None
    for task_id in chosen:
        if stopped is not None:
            items.append(_item(context.environment.lookup.get(task_id), "skipped", error=stopped))
            continue
        one = given | {"expect_rev": revisions.get(task_id), "bulk": first}
        item, begun, stopped = _changed_task(context, _COMMANDS[command], task_id, one, dry_run=dry_run)
        items.append(item)
        first = begun if first is None else first
    return _report(command, items, dry_run=dry_run)


def _chosen(context: CallContext, command: str, task_ids: Sequence[str], filters: dict[str, Any]) -> list[str]:
    """The tasks that are meant; refused as a whole where that is nothing, everything, or not clear."""
    narrowing = {name for name, value in filters.items() if value and name not in _NOT_NARROWING}
    shown = Call("bulk", {"command": command, "status": "ready", "tag": "…", "dry_run": True})
    if task_ids and narrowing:
        raise InvalidInput("the tasks are given by their IDs and by a filter", "give one of them", shown)
    if task_ids:
        if len(task_ids) > _MOST:
            raise InvalidInput(f"{len(task_ids):,} tasks at once are too many", f"give at most {_MOST:,}")
        return list(dict.fromkeys(context.environment.lookup.get(part).id for part in task_ids))
    if not narrowing:
        raise InvalidInput(
            "neither IDs nor a filter say which tasks are meant",
            "name the tasks, or narrow them down by a filter",
            shown,
        )
    query = context.environment.read_models.query(**filters)
    page = context.environment.store.find(query)
    if len(page.tasks) > _MOST:
        raise InvalidInput(
            f"{len(page.tasks):,} tasks match, and {_MOST:,} can be changed at once",
            "narrow the filter, or give a limit",
            Call("bulk", filters | {"command": command, "limit": _MOST, "dry_run": True}),
        )
    return [task.id for task in page.tasks]


def _changed_task(
    context: CallContext, kind: type[commands.OnTask], task_id: str, given: dict[str, Any], *, dry_run: bool
) -> tuple[BulkItem, int | None, AofError | None]:
    """One task; with the first event of its commit, and the trouble that lets no other task fare better."""
    facts: Sequence[Draft | Event]
    begun: int | None = None
    try:
        if dry_run:
            facts = context.dispatcher.rehearse(kind, task_id, **given).drafts
        else:
            facts = events = context.dispatcher.on_task(kind, task_id, **given).events
            begun = events[-1].begins if events else None
    except AofError as error:
        trouble = error if error.kind in ("unavailable", "internal") else None
        return _item(context.environment.lookup.get(task_id), "refused", error=error), None, trouble
    task = context.environment.lookup.get(task_id)
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


@operation(
    effect="write",
    tool="aof_undo",
    section="plan",
    order=140,
    summary="reverse your last change",
    notes="Without ID: your last change of any task, a bulk change as a whole. Again: the one before it. "
    "What cannot be undone says why; 'aof undo --seq 12' reverses the change that an event belongs to, also an undo.",
    example="aof undo --dry-run",
)
def undo(
    context: CallContext,
    task_id: Annotated[str, param("only of this task", Spelling(place="ID"))] | None = None,
    *,
    seq: Annotated[int, param("the change that this event belongs to, whoever made it", ge=1)] | None = None,
    dry_run: Annotated[bool, param("show what it would do, and change nothing")] = False,
    actor: str | None = None,
) -> Undone:
    """Reverse your last change of a task, by new events.

    Of one task or of any; or the change that an event belongs to.
    """
    who = actor or context.actor
    full = context.environment.lookup.get(task_id).id if task_id is not None else None
    commits = [_by_number(context, seq, full)] if seq is not None else _last_of(context, who, full)
    histories = _histories(context, commits)
    plan: list[tuple[int, Step]] = []
    revisions: dict[str, int] = {}
    reversing = {commit[0].seq for commit in commits}
    for commit in commits:
        found = reversal.inverse(commit, *_around(commit, histories))
        if isinstance(found, AofError):
            raise found
        revisions |= _unchanged_since(context, commit, {step.task_id for step in found}, histories, reversing)
        plan += ((commit[0].seq, step) for step in found)
    _carry_out(context, plan, revisions, actor, dry_run=dry_run)
    first = commits[-1][0]
    return Undone(
        seq=first.seq,
        type=first.type,
        timestamp=first.timestamp,
        actor=first.actor,
        dry_run=dry_run,
        steps=tuple(
            UndoneStep(task_id=one.task_id, change=one.words, status=context.environment.lookup.get(one.task_id).status)
            for _, one in plan
        ),
    )


def _carry_out(
    context: CallContext, plan: list[tuple[int, Step]], revisions: dict[str, int], actor: str | None, *, dry_run: bool
) -> None:
    """Give the commands; the first one of each task counts only while the task is as it was seen.

    In a dry run only the first of all can be asked about: the others may depend on it.
    """
    for place, (undoes, step) in enumerate(plan):
        seen = revisions.pop(step.task_id, None)
        given = {"actor": actor, "undoes": undoes, "expect_rev": seen, **step.given}
        if not dry_run:
            context.dispatcher.move(step.kind, step.task_id, **given)
        elif place == 0:
            context.dispatcher.rehearse(step.kind, step.task_id, **given)


def _by_number(context: CallContext, seq: int, task_id: str | None) -> Commit:
    queries_history.known(context.environment.store, seq)
    found = next((event for event in context.environment.store.events(seq - 1) if event.seq == seq), None)
    if found is None or not found.task_id or is_remark(found) or (task_id is not None and found.task_id != task_id):
        what = f"a change of {task_id}" if task_id else "a change of a task"
        raise InvalidInput(f"event {seq} is not {what}", "see the events", Call("log", {}))
    return _whole(context, found)


def _whole(context: CallContext, event: Event) -> Commit:
    commit = []
    for one in context.environment.store.events(event.begins - 1):
        if one.seq >= event.begins + event.commit[1]:
            break
        commit.append(one)
    return commit


def _last_of(context: CallContext, who: str, task_id: str | None) -> list[Commit]:
    """The last commit of the caller that is neither undone nor an undo; of a bulk change all of them, last first.

    Of one task, only the part of a bulk change that concerns it is meant.
    """
    for events in _looks_back(context, task_id):
        settled = _settled(events)
        for event in reversed(events):
            counts = event.type.startswith(DOCUMENT) or (event.task_id and not is_remark(event))
            if event.actor == who and counts and event.begins not in settled:
                commit = _whole(context, event)
                return [commit] if task_id is not None else _bulk_change(context, commit)
    where = f" of {task_id}" if task_id else ""
    raise NotFound(
        f"there is no change{where} by {who} that is not undone already",
        "see what happened",
        Call("log", {"task_id": task_id} if task_id else {"limit": 20}),
    )


def _bulk_change(context: CallContext, commit: Commit) -> list[Commit]:
    """The commits of the bulk change that one belongs to, last first, without what is undone already."""
    bulk = next((event.payload["bulk"] for event in commit if "bulk" in event.payload), None)
    if bulk is None:
        return [commit]
    events = list(context.environment.store.events(bulk - 1))
    parts = {bulk} | {event.begins for event in events if event.payload.get("bulk") == bulk}
    commits: dict[int, Commit] = {first: [] for first in sorted(parts - _settled(events), reverse=True)}
    for event in events:
        if event.begins in commits:
            commits[event.begins].append(event)
    return list(commits.values())


def _looks_back(context: CallContext, task_id: str | None) -> Iterator[list[Event]]:
    """The last events, more of them each time; of one task all of them."""
    store = context.environment.store
    if task_id is not None:
        yield list(store.events(task_id=task_id))
        return
    head = store.head()
    for window in _WINDOWS:
        yield list(store.events(max(head - window, 0)))
        if window >= head:
            return


def _histories(context: CallContext, commits: list[Commit]) -> dict[str, list[Event]]:
    """All events of the tasks that the commits are about; of several tasks in one look at the log."""
    store = context.environment.store
    concerned = {event.task_id for commit in commits for event in commit if event.task_id and not is_remark(event)}
    if len(concerned) == 1:
        return {task_id: list(store.events(task_id=task_id)) for task_id in concerned}
    found: dict[str, list[Event]] = {task_id: [] for task_id in concerned}
    for event in store.events():
        if event.task_id in found:
            found[event.task_id].append(event)
    return found


def _unchanged_since(
    context: CallContext, commit: Commit, task_ids: set[str], histories: dict[str, list[Event]], reversing: set[int]
) -> dict[str, int]:
    """The revisions that the tasks have now; refused where one has changed since, except for what is undone."""
    revisions: dict[str, int] = {}
    for task_id in task_ids:
        revisions[task_id] = context.environment.lookup.get(task_id).rev
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
