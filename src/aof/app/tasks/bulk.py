"""One change of many tasks: by their IDs or by a filter, with a preview and one report.

Every task is changed by its own command and commit, under the caller's own rights: what is refused for one leaves the
others alone, and the report says so. Must not know any surface.
"""

from __future__ import annotations

from collections.abc import Sequence

from aof.app.operations.results import Result
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.model import commands as c
from aof.core.validation import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher
    from aof.app.operations.filters import Filters
    from aof.core.model.events import Draft, Event
    from aof.core.model.task import Task

_COMMANDS: dict[str, type[c.OnTask]] = {
    "cancel": c.CancelTask,
    "archive": c.ArchiveTask,
    "retry": c.RetryTask,
    "edit": c.Edit,
}
_MOST = 1_000  # tasks of one call
_NOT_NARROWING = frozenset({"limit", "archived", "sort", "reverse", "cursor"})
_ROUTING = ("agent", "role", "team", "tags")


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
        self, kind: type[c.OnTask], task_id: str, given: dict[str, Any], *, dry_run: bool
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
    if problem := limits.choice("command", command, tuple(_COMMANDS)):
        raise problem
    if changes and command != "edit":
        raise InvalidInput(f"'{command}' takes no changes", "use the command edit", Call("bulk", {"command": "edit"}))
    if command == "edit":
        if not changes:
            shown = Call("bulk", {"command": "edit", "tag": "…", "changes": {"priority": "high"}, "dry_run": True})
            raise InvalidInput("there is nothing to change", "say what", shown)
        kept = {name: None if value in ("", []) else value for name, value in changes.items()}  # empty takes away
        routing = {name: kept.pop(name) for name in _ROUTING if name in kept}
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
