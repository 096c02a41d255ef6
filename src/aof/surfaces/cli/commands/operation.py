"""Verbs that are an operation: their values are passed on, and the usual answer is printed.

`claim`, `dep` and `bulk` do a little more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aof.surfaces.cli import supervision_view
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError
from aof.surfaces.cli.screen import Screen, complain


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
    """How much was merged, then everything that needs a look."""
    if merged.histories == 1 and not merged.commits:
        screen.line("there is only one history: nothing to merge")
        for note in merged.notes:
            screen.say(note, cut_off=False)
        return
    would = "would merge" if merged.dry_run else "merged"
    commits = f"{merged.commits} change{'' if merged.commits == 1 else 's'}"
    tasks = f"{merged.touched} task{'' if merged.touched == 1 else 's'}"
    screen.line(f"{would} {merged.histories} histories: {commits} to {tasks}")
    for one in merged.renumbered:
        screen.say(("renumbered", "waiting"), f"  {one.old} → {one.new}  {one.title}", cut_off=False)
    for task in merged.tasks:
        screen.say(f"{task.task_id}  ", (task.status, task.status), f"  {task.title}", cut_off=False)
        for note in task.notes:
            screen.say(f"  {note}", cut_off=False)
    for note in merged.notes:
        screen.say(note, cut_off=False)
    if not merged.dry_run:
        screen.line("commit the result: git add -A .aof && git commit")


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
    "agents": supervision_view.agents,
    "flow": supervision_view.flow,
    "moves": supervision_view.moves,
    "neighbourhood": supervision_view.neighbourhood,
    "task_at": supervision_view.moment,
    "timeline": supervision_view.timeline,
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
    "inbox": supervision_view.inbox,
    "merge": _merged,
    "output": _printed,
    "progress": _reported,
    "templates": _templates,
    "tick": _ticked,
    "whoami": supervision_view.whoami,
    "undo": _undone,
    "verify": _verified,
}


def claim(context: Context, values: dict[str, Any]) -> Answer:
    """`aof claim`."""
    given = {"agent": context.fabric.actor} | values
    claimed = context.fabric.claim(**given)

    def text(screen: Screen) -> None:
        screen.line(f"{claimed.task_id}  claimed by {given['agent']} as {claimed.run_id}, until {claimed.expires_at}")
        if context.fabric.needs_secret and isinstance(claimed.secret, str):
            screen.line(f"AOF_RUN_SECRET={claimed.secret}")

    return Answer(claimed, text)


def dep(context: Context, values: dict[str, Any]) -> Answer:
    """`aof dep add` and `aof dep rm`."""
    given = dict(values)
    action = given.pop("action", "add")
    if action not in ("add", "rm", "remove"):
        raise UsageError(f"'aof dep' knows add and rm, not '{action}'", "for example: aof dep add 002 001")
    return perform(context, "dep_add" if action == "add" else "dep_remove", given)


def bulk(context: Context, values: dict[str, Any]) -> Answer:
    """`aof bulk`."""
    report = context.fabric.bulk(**values)

    def text(screen: Screen) -> None:
        rows = [
            (one.task_id, one.outcome, one.status, one.title if one.error is None else one.error.message)
            for one in report.items
        ]
        if rows:
            screen.table(("TASK", "OUTCOME", "STATUS", ""), rows, whole=True)
        also = sum(len(one.also) for one in report.items)
        said = f"{report.changed} {'would change' if report.dry_run else 'changed'}, {report.unchanged} unchanged"
        more = f"; with them {also} other {'task' if also == 1 else 'tasks'}" if also else ""
        screen.line(f"{said}, {report.refused} refused{more}")

    return Answer(report, text, 1 if report.refused else 0)
