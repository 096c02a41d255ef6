"""Verbs that are an operation and nothing more: their values are passed on, and the usual answer is printed.

A result with a status is one line with both; `_TEXTS` has what is said of other results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.terminal import supervision
from aof.adapters.cli.terminal.screen import Screen, complain


def perform(context: Context, operation: str, values: dict[str, Any]) -> Answer:
    """Ask the fabric for what the verb names."""
    if operation in ("approve", "complete"):
        return _finished(context, operation, values)
    result = getattr(context.fabric, operation)(**values)
    text = _TEXTS.get(operation, _moved)
    return Answer(result, lambda screen: text(screen, result))


def _finished(context: Context, operation: str, values: dict[str, Any]) -> Answer:
    """What was done before is told, so that nobody takes it for their own doing."""
    before = context.fabric.store.head()
    result = getattr(context.fabric, operation)(**values)

    def text(screen: Screen) -> None:
        if result.status == "done" and context.fabric.get(result.task_id).rev <= before:
            screen.line(f"{result.task_id}  already {screen.paint('done', 'done')}")
        else:
            _TEXTS.get(operation, _moved)(screen, result)

    return Answer(result, text)


def _moved(screen: Screen, moved: Any) -> None:
    screen.line(f"{moved.task_id}  {screen.paint(moved.status, moved.status)}")


def _completed(screen: Screen, completed: Any) -> None:
    did = "approved: " if completed.approved else ""
    parts = [f"{did}{completed.task_id}", screen.paint(completed.status, completed.status)]
    if completed.sent_back:
        parts.append(f"sent back to {', '.join(completed.sent_back)}")
    elif completed.next:
        parts.append("next: " + ", ".join(f"{one.hop} ({one.role})" for one in completed.next))
    screen.line("  ".join(parts))


def _assigned(screen: Screen, assigned: Any) -> None:
    screen.line(f"{assigned.task_id}  reserved for {assigned.agent or 'nobody'}")


def _released(screen: Screen, moved: Any) -> None:
    if not moved.waits_for:
        _moved(screen, moved)
        return
    waits = f"waits for {', '.join(moved.waits_for)}"
    screen.line(f"{moved.task_id}  {screen.paint(waits, 'waiting')}")


def _created(screen: Screen, made: Any) -> None:
    shown = made.waits or made.status
    screen.line(f"{made.task_id}  {screen.paint(shown, 'waiting' if made.waits else made.status)}  {made.file_path}")
    if made.warning is not None:
        complain(f"{made.warning.code}: {made.warning.message}", made.warning.hint)


def _edited(screen: Screen, edited: Any) -> None:
    fields = ", ".join(edited.updated_fields)
    screen.line(f"{edited.task_id}  {f'changed: {fields}' if fields else 'nothing changed'}")


def _commented(screen: Screen, said: Any) -> None:
    screen.line(f"{said.task_id}  {said.comments} {'comment' if said.comments == 1 else 'comments'}")


def _asked(screen: Screen, asked: Any) -> None:
    if asked.answered:
        screen.line(f"{asked.task_id}  {asked.question} answered by {asked.answer.by}:")
        screen.block(asked.answer.text)
    else:
        screen.line(
            f"{asked.task_id}  {asked.question} is open{'' if asked.status == 'in-progress' else f': {asked.note}'}"
        )
        if asked.status == "in-progress":
            screen.say((f"wait for the answer: aof ask {asked.task_id} --question {asked.question} --wait 10m", "dim"))


def _answered(screen: Screen, answered: Any) -> None:
    told = f"{answered.question} of {answered.asked_by} answered"
    screen.line(f"{answered.task_id}  {told}  {screen.paint(answered.status, answered.status)}")
    if answered.none_of:
        screen.line(f"the answer is none of the choices: {', '.join(answered.none_of)}")


def _beaten(screen: Screen, beaten: Any) -> None:
    screen.line(f"{beaten.task_id}  alive until {beaten.expires_at}")


def _reported(screen: Screen, reported: Any) -> None:
    percent = reported.progress.get("percent")
    shown = " ".join(filter(None, (f"{percent:g} %" if percent is not None else "", reported.progress.get("text"))))
    screen.line(f"{reported.task_id}  {shown or 'noted'}")


def _depends(screen: Screen, depends: Any) -> None:
    screen.line(f"{depends.task_id}  waits for {', '.join(depends.depends_on) or 'nothing'}")


def _undone(screen: Screen, undone: Any) -> None:
    what = "would undo" if undone.dry_run else "undid"
    screen.line(f"{what} event {undone.seq} ({undone.type} by {undone.actor}, {undone.timestamp})")
    for step in undone.steps:
        screen.line(f"{step.task_id}  {screen.paint(step.status, step.status)}  {step.change}")
    if not undone.steps:
        screen.line("nothing is left of it")


def _merged(screen: Screen, merged: Any) -> None:
    from aof.adapters.cli.terminal import merge_view

    merge_view.show(screen, merged)


def _printed(screen: Screen, printed: Any) -> None:
    screen.block(printed.text)


def _ticked(screen: Screen, ticked: Any) -> None:
    done = [(one.task_id, one.action, one.reason) for one in ticked.actions]
    left = [(one.task_id, "-", one.reason) for one in ticked.left]
    if done or left:
        screen.table(("TASK", "ACTION", "WHY"), done + left, whole=True)
    else:
        screen.line("nothing is unfinished")


def _templates(screen: Screen, found: Any) -> None:
    rows = [(one.name, one.problem or one.about) for one in found.templates]
    if rows:
        screen.table(("TEMPLATE", "WHAT FOR"), rows, whole=True)
    else:
        screen.line("no templates yet; write one to templates/NAME.md in the data directory")


def _verified(screen: Screen, verified: Any) -> None:
    rest = f" of {verified.head}" if verified.verified_to < verified.head else ""
    screen.line(f"the hash chain is verified up to event {verified.verified_to}{rest}")


_TEXTS: dict[str, Callable[[Screen, Any], None]] = {
    "agents": supervision.agents,
    "flow": supervision.flow,
    "moves": supervision.moves,
    "neighbourhood": supervision.neighbourhood,
    "task_at": supervision.moment,
    "timeline": supervision.timeline,
    "answer": _answered,
    "assign": _assigned,
    "ask": _asked,
    "release": _released,
    "comment": _commented,
    "complete": _completed,
    "create": _created,
    "dep_add": _depends,
    "dep_remove": _depends,
    "edit": _edited,
    "heartbeat": _beaten,
    "inbox": supervision.inbox,
    "merge": _merged,
    "output": _printed,
    "progress": _reported,
    "templates": _templates,
    "tick": _ticked,
    "whoami": supervision.whoami,
    "undo": _undone,
    "verify": _verified,
}
