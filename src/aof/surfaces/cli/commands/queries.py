"""Verbs that only look."""

from __future__ import annotations

from aof.kernel import model
from aof.queries import ready_queue
from aof.surfaces.cli import task_view
from aof.surfaces.cli.output import Answer, Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from aof.api.fabric import Fabric
    from aof.queries.read_models import Listed
    from aof.store.lists import Row
    from aof.surfaces.cli.screen import Screen

_READY_LIMIT = 50  # nobody chooses among more, and the answer costs the same however many there are

_STATES = {
    "stale": ("edited", "its file was changed by hand; 'aof sync' imports that, and 'aof show ID' says why it cannot"),
    "unknown": ("unreadable", "its file cannot be read; 'aof show ID' says why, and how to go on"),
}


def list_tasks(context: Context, values: dict[str, Any]) -> Answer:
    """`aof list`."""
    given = dict(values)
    tree = given.pop("tree", False)
    listed = context.fabric.list(**given)
    none = "no task matches" if given else 'no tasks yet; make one: aof create "My first task"'
    stems = {task_id: stem for stem, task_id in context.fabric.branches(**given)} if tree else {}
    status = given.get("status")
    return _listed(listed, none, stems=stems, moved=lambda: _moved(context.fabric, status) if status else "")


def ready(context: Context, values: dict[str, Any]) -> Answer:
    """`aof ready`."""
    given = dict(values)
    explain = given.pop("explain", False)
    given.setdefault("limit", _READY_LIMIT)
    listed = context.fabric.ready(**given)
    answer = _listed(listed, "nothing is ready", moved=lambda: _moved(context.fabric, "ready"))
    given.pop("limit")
    held = context.fabric.held_back(**given) if explain else ()

    def text(screen: Screen) -> None:
        answer.text(screen)
        if not explain:
            _ended(context.fabric, screen)
        elif held:
            screen.line()
            rows = [(row.id, "waiting" if row.status == "ready" else row.status, _why(row)) for row in held]
            screen.table(("ID", "STATUS", "WHY NOT"), rows, colour_by=(1,), whole=True)

    return Answer({**listed, "notReady": held} if explain else listed, text)


def _ended(fabric: Fabric, screen: Screen) -> None:
    """Below what is ready: what can be taken from workers that have vanished."""
    from aof.queries.ready_queue import unrecovered_leases
    from aof.surfaces.cli.screen import ago

    now = fabric.now()
    for one in unrecovered_leases(fabric.services.environment):
        who, when = one.lease.agent, ago(one.end, now)
        screen.say((f"{one.task.id}: the lease of {who} ended {when}; aof claim {one.task.id} recovers it", "dim"))


def search(context: Context, values: dict[str, Any]) -> Answer:
    """`aof search`."""
    found = context.fabric.search(**values)

    def text(screen: Screen) -> None:
        if not found.tasks:
            screen.line("nothing matches")
            return
        for row in found.tasks:
            screen.say((row.id, "bold"), "  ", (_state(row), row.status), "  ", row.title, cut_off=True)
            if row.get("excerpt") and row["excerpt"] != row.title:
                screen.say((f"  {row['where']}: ", "dim"), row["excerpt"], cut_off=True)
        _more(screen, found)

    return Answer(found, text)


def inbox(context: Context, values: dict[str, Any]) -> Answer:
    """`aof inbox`; what is called a gate elsewhere is a review for people."""
    from contextlib import suppress

    from aof.surfaces.cli.commands.operation import perform

    kinds = values.get("kind")
    meant = {"kind": ["gate" if one == "review" else one for one in kinds]} if kinds else {}
    answer = perform(context, "inbox", values | meant)
    if kinds and "edit" not in kinds:
        return answer

    from aof.errors import AofError
    from aof.maintenance.operations import unaccepted_edits

    def text(screen: Screen) -> None:
        answer.text(screen)
        with suppress(AofError):  # as without the right to write: then nobody can tell
            for one in unaccepted_edits(context.fabric.services.environment):
                screen.say((one.path, "bold"), f"  {one.reason}", cut_off=False)
                screen.say(f"  → {one.hint}", cut_off=False)

    return Answer(answer.data, text)


def blocked(context: Context, values: dict[str, Any]) -> Answer:
    """`aof blocked`."""
    none, found = "nothing is blocked", context.fabric.blocked(**values)
    return _listed(found, none, reasons=True, moved=lambda: _moved(context.fabric, "blocked"))


def _moved(fabric: Fabric, status: str) -> str:
    """What people moved into the folder of a status and nobody has imported; only a list that is empty asks."""
    files = fabric.store.working_copy
    moved = files.moved_into(status) if files is not None else ()
    if not moved:
        return ""
    what = f"{moved[0]} was" if len(moved) == 1 else f"{len(moved)} tasks were"
    return f"{what} moved to {status}/ by hand; 'aof sync' imports that"


def _listed(
    listed: Listed,
    empty: str,
    *,
    reasons: bool = False,
    stems: dict[str, str] | None = None,
    moved: Callable[[], str] = str,
) -> Answer:
    """A table; with `stems`, in their order and with the branch that leads to each task before its title.

    An empty one says what people have `moved` to where it looked.
    """

    def text(screen: Screen) -> None:
        if not listed.tasks:
            screen.line(empty)
            if by_hand := moved():
                screen.line(screen.paint(by_hand, "dim"))
            return
        rows = {row.id: row for row in listed.tasks}
        head = ("ID", "STATUS", "PRIORITY", "AGENT", "TITLE")
        body = [
            (
                row.id,
                _state(row),
                row.priority,
                row.agent or "-",
                (stems or {}).get(row.id, "") + _title(row, reasons=reasons),
            )
            for row in ((rows[one] for one in stems if one in rows) if stems else rows.values())
        ]
        screen.table(head, body, colour_by=(1, 2), hide=(3, 2), whole=reasons)
        for state, (word, meaning) in _STATES.items():
            if any(row.state == state for row in listed.tasks):
                screen.line(screen.paint(f"{word}: {meaning}", "dim"))
        _more(screen, listed)

    return Answer(listed, text)


def _more(screen: Screen, listed: Listed) -> None:
    """How much there is beside the page, and how to get it."""
    if listed.total > len(listed.tasks):
        more = f"; the next page: --cursor {listed.next_cursor}" if listed.next_cursor else ""
        screen.line(screen.paint(f"{len(listed.tasks)} of {listed.total}{more}", "dim"))


def _state(row: Row) -> str:
    """The word for where a task is, and what is odd about its file; `ready` only if it can be claimed."""
    status = "waiting" if row.waits else row.status
    return f"{status} ({_STATES[row.state][0]})" if row.state in _STATES else status


def _why(row: Row) -> str:
    """What it waits for. Its own ID is in the line already; its holder is worth a word."""
    said = (row.reason or "").removeprefix(f"{row.id} ")
    return f"{said}: {row.agent} has it" if said == "is in-progress" and row.agent else said


def _title(row: Row, *, reasons: bool) -> str:
    """The title, why it waits where that is not plain from the status, or was asked for, and when it is due."""
    told = row.waits or row.step or (row.reason if reasons or row.status != "blocked" else None)
    title = f"{row.title}: {told}" if told else row.title
    if row.due is None or row.status in model.FINISHED:
        return title
    return f"{title} ({'overdue since' if row.overdue else 'due'} {row.due})"


def status(context: Context, values: dict[str, Any]) -> Answer:
    """`aof status`."""
    compact = context.options.get("compact", False)
    summary = context.fabric.status(compact=compact, **values)

    def text(screen: Screen) -> None:
        if compact:
            told = ready_queue.counts(context.fabric, summary.by_status, **values)
            screen.line(" ".join(f"{name}:{count}" for name, count in told) or "no tasks")
            return
        for name, count in ready_queue.counts(context.fabric, summary.by_status, **values):
            screen.line(f"{count:>6}  {screen.paint(name, name)}")
        screen.line(f"{summary.total:>6}  in all")

    return Answer(summary, text)


def show(context: Context, values: dict[str, Any]) -> Answer:
    """`aof show`."""
    task = context.fabric.show(values["task_id"], at=values.get("at"))
    return Answer(task, lambda screen: task_view.draw_task(screen, task, context.fabric))
