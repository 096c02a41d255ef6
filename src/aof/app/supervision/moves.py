"""Where the caller may move a task now, and what else it may do with it: each change is rehearsed, none is made.

What is offered is exactly what would be accepted, because the same rules decide. Must not know any rule itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from aof.app.supervision import results
from aof.core.errors.base import AofError
from aof.core.model import commands as c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher
    from aof.app.supervision.results import Move, Moves
    from aof.core.model.task import Task

_TEXT = "…"


class _Offer:
    """A change to try: its command with values, and the call that makes it."""

    def __init__(
        self,
        operation: str,
        command: type[c.OnTask],
        *,
        given: dict[str, Any] | None = None,
        shown: dict[str, Any] | None = None,
        asks: tuple[str, ...] = (),
        confirm: bool = False,
        drags: bool = False,
    ) -> None:
        self.operation = operation
        self.command = command
        self.given = given or {}
        self.shown = shown if shown is not None else self.given
        self.asks = asks
        self.confirm = confirm
        self.drags = drags


class MoveService:
    """Tries what could be done with a task."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def moves(self, task_id: str) -> Moves:
        """What the caller may do with the task now."""
        task = self._environment.lookup.get(task_id)
        tried = [(offer, self._tried(task, offer)) for offer in _offers(task)]
        found = [(offer, move) for offer, move in tried if move is not None]
        return results.Moves(
            task_id=task.id,
            status=task.status,
            rev=task.rev,
            moves=tuple(move for offer, move in found if offer.drags and move.to is not UNSET),
            actions=tuple(move for offer, move in found),
        )

    def _tried(self, task: Task, offer: _Offer) -> Move | None:
        try:
            decision = self._dispatcher.rehearse(offer.command, task.id, **offer.given)
        except AofError:
            return None
        own = (one for one in decision.drafts if one.task_id == task.id and one.type == "task.transitioned")
        to = next((one.payload["to"] for one in reversed([*own])), None)
        if not decision.drafts:
            return None  # it would change nothing
        return results.Move(
            operation=offer.operation,
            arguments={"taskId": task.id} | offer.shown,
            to=to if to is not None and to != task.status else UNSET,
            asks=offer.asks,
            confirm=offer.confirm,
        )


def _offers(task: Task) -> Iterator[_Offer]:
    """Everything that is worth trying with a task in this status."""
    yield _Offer("comment", c.Comment, given={"text": _TEXT}, asks=("text",))
    yield from _judgements(task)
    for one in task.open_questions:
        given = {"text": _TEXT, "question": one.id}
        yield _Offer("answer", c.AnswerQuestion, given=given, asks=("text",))
    if task.status in ("backlog", "ready"):
        other = "ready" if task.status == "backlog" else "backlog"
        yield _Offer("update", c.Update, given={"status": other}, drags=True)
    if task.blocked is not None:
        on = ("resume", c.Resume) if task.blocked.kind == "paused" else ("unblock", c.Unblock)
        yield _Offer(*on, drags=True)
    if task.status not in ("blocked", "done", "cancelled", "deadletter"):
        yield _Offer("block", c.Block, given={"reason": _TEXT}, asks=("reason",), drags=True)
        yield _Offer("pause", c.Pause)
    if task.status == "in-progress":
        yield _Offer("release", c.Release, drags=True)
    yield _Offer("retry", c.RetryTask, given={"reason": _TEXT}, asks=("reason",), drags=True)
    if task.status not in ("done", "cancelled", "deadletter"):
        yield _Offer("cancel", c.CancelTask, confirm=True, drags=True)
    title = {"changes": {"title": f"{task.title[:400]} {_TEXT}"}}
    yield _Offer("edit", c.Edit, given=title, shown={}, asks=("title",))
    yield _Offer(
        "link", c.AddLink, given={"kind": "evidence", "target_id": "outputs/x"}, shown={}, asks=("kind", "target")
    )
    archive = ("unarchive", c.UnarchiveTask) if task.archived else ("archive", c.ArchiveTask)
    yield _Offer(*archive)


def _judgements(task: Task) -> Iterator[_Offer]:
    """Approving and rejecting, of each hop that waits for it."""
    hops = [hop["id"] for hop in task.workflow.get("hops", ()) if hop.get("status") == "review"] if task.gated else []
    for at in [{"hop": hop} for hop in hops] or ([{}] if task.status == "review" else []):
        yield _Offer("approve", c.Approve, given=at, confirm=True)
        given = {"blockers": (_TEXT,)} | at
        yield _Offer("reject", c.Reject, given=given, shown={"blockers": [_TEXT]} | at, asks=("blockers",))
