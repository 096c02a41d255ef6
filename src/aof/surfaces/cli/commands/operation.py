"""Verbs that are an operation: their values are passed on, and what comes back is said in words.

`claim`, `agents`, `dep` and `bulk` do a little more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aof.kernel.model import millis
from aof.surfaces.cli.operations import WORDS
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import chosen_action
from aof.surfaces.cli.screen import Screen, ago, complain


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


def _failed(screen: Screen, failed: Any) -> None:
    if failed.not_before is None:
        _moved(screen, failed)
        return
    screen.line(f"{failed.task_id}  {screen.paint('waiting', 'waiting')}  can be claimed again at {failed.not_before}")


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


def _reported(screen: Screen, reported: Any) -> None:
    percent = reported.progress.get("percent")
    shown = " ".join(filter(None, (f"{percent:g} %" if percent is not None else "", reported.progress.get("text"))))
    screen.line(f"{reported.task_id}  {shown or 'noted'}")


def _depends(screen: Screen, depends: Any) -> None:
    screen.line(f"{depends.task_id}  waits for {', '.join(depends.depends_on) or 'nothing'}")


def _locks(screen: Screen, found: Any) -> None:
    rows = [
        (
            one["path"],
            one["lockType"],
            one["owner"],
            one["taskId"],
            one["since"],
            "lost" if one["state"] == "lost" else "",
        )
        for one in found.locks
    ]
    screen.table(("PATH", "TYPE", "OWNER", "TASK", "SINCE", ""), rows, none="nothing is locked")


def _unlocked(screen: Screen, unlocked: Any) -> None:
    screen.line(f"{unlocked.task_id}  {', '.join(unlocked.released) or 'nothing was locked'}")


def _undone(screen: Screen, undone: Any) -> None:
    what = "would undo" if undone.dry_run else "undid"
    screen.line(f"{what} event {undone.seq} ({undone.type} by {undone.actor}, {undone.timestamp})")
    for step in undone.steps:
        screen.line(f"{step.task_id}  {screen.paint(step.status, step.status)}  {step.change}")


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


def _ticked(screen: Screen, ticked: Any) -> None:
    done = [(one.task_id, one.action, one.reason) for one in ticked.actions]
    left = [(one.task_id, "-", one.reason) for one in ticked.left]
    if done or left:
        screen.table(("TASK", "ACTION", "WHY"), done + left, whole=True)
    else:
        screen.line("nothing is unfinished")


def _templates(screen: Screen, found: Any) -> None:
    rows = [(one.name, one.problem or one.about) for one in found.templates]
    screen.table(
        ("TEMPLATE", "WHAT FOR"),
        rows,
        whole=True,
        none="no templates yet; write one to templates/NAME.md in the data directory",
    )


def _verified(screen: Screen, verified: Any) -> None:
    rest = f" of {verified.head}" if verified.verified_to < verified.head else ""
    screen.line(f"the hash chain is verified up to event {verified.verified_to}{rest}")


def claim(context: Context, values: dict[str, Any]) -> Answer:
    """`aof claim`."""
    given = {"agent": context.fabric.actor} | values
    claimed = context.fabric.claim(**given)

    def text(screen: Screen) -> None:
        screen.line(f"{claimed.task_id}  claimed by {given['agent']} as {claimed.run_id}, until {claimed.expires_at}")
        if context.fabric.needs_secret and isinstance(claimed.secret, str):
            screen.line(f"AOF_RUN_SECRET={claimed.secret}")

    return Answer(claimed, text)


def agents(context: Context, values: dict[str, Any]) -> Answer:
    """`aof agents`: who is at work, and on what."""
    page = context.fabric.agents(**values)

    def text(screen: Screen) -> None:
        now, rows = context.fabric.now(), []
        for one in page.agents:
            state = "silent" if not one.available else "inactive" if not one.active else "busy" if one.load else "idle"
            load = f"{one.load}/{one.capacity}" if isinstance(one.capacity, int) else str(one.load)
            seen = ago(millis(one.last_seen), now) if one.last_seen else "-"
            rows.append((one.id, state, load, seen, _holds(one)))
        screen.table(("AGENT", "STATE", "LOAD", "LAST SEEN", "HOLDS"), rows, none="no agents")
        if page.agents:
            _rest(screen, page, len(page.agents))

    return Answer(page, text)


def dep(context: Context, values: dict[str, Any]) -> Answer:
    """`aof dep add` and `aof dep rm`."""
    given = dict(values)
    if given.get("action") == "remove":
        given["action"] = "rm"
    action = chosen_action("dep", given, ("add", "rm"), "for example: aof dep add 002 001", "add")
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


_LONG = 60  # characters of a value
_NAMED = ("agent", "lease")  # kinds whose reason names the agent
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def _inbox(screen: Screen, page: Any) -> None:
    """What needs a person, with the verbs that go on with each."""
    if not page.items:
        screen.line("nothing needs a person")
        return
    rows = [
        (one.task_id or one.message_id or one.agent, _kind(one), lasted(one.age), _verbs(one), _said(one))
        for one in page.items
    ]
    screen.table(("WHAT", "NEEDS", "FOR", "NEXT", "WHY"), rows)
    _rest(screen, page, len(page.items))


def _kind(one: Any) -> str:
    """What it is, in the word that people use."""
    return "review" if one.kind == "gate" else str(one.kind)


def _verbs(one: Any) -> str:
    """The verbs to use next; `show` only where there is no other."""
    return (
        ", ".join(WORDS.get(call.operation, call.operation) for call in one.next if call.operation != "show") or "show"
    )


def _said(one: Any) -> str:
    words = " ".join(one.reason.split())
    named = f"{one.question} " if one.question else f"{one.hop}: " if one.hop else ""
    who = f" ({one.agent})" if one.agent and one.kind not in _NAMED else ""
    return f"{named}{words}{choices_of(one.choices or ())}{who}" + (f"  · {one.title}" if one.title else "")


def choices_of(choices: Sequence[str]) -> str:
    """The answers that a question offers, to stand after its text."""
    return f" [{' | '.join(choices)}]" if choices else ""


def _rest(screen: Screen, page: Any, shown: int) -> None:
    if page.total > shown:
        screen.say((f"… {page.total - shown} more", "dim"))


def _holds(one: Any) -> str:
    held = [f"{work.task_id} ({'expired' if work.expired else lasted(work.left) + ' left'})" for work in one.holds]
    return ", ".join(held) or (one.reason or "-")


def _moves(screen: Screen, found: Any) -> None:
    """What may be done with a task now."""
    screen.line(f"{found.task_id}  {screen.paint(found.status, found.status)}")
    rows = [(one.operation, one.to or "-", ", ".join(one.asks) or "-") for one in found.actions]
    screen.table(("ACTION", "TO", "NEEDS"), rows)


def _timeline(screen: Screen, page: Any) -> None:
    """Runs, the last one first."""
    if not page.rows:
        screen.line("nothing was run")
        return
    rows = [
        (one.task_id, one.agent, one.started_at[:19], one.status, lasted(one.working), lasted(one.waiting), one.title)
        for one in page.rows
    ]
    screen.table(("ID", "AGENT", "STARTED", "RUN", "WORKED", "WAITED", "TITLE"), rows)
    _rest(screen, page, len(page.rows))


def _neighbourhood(screen: Screen, found: Any) -> None:
    """The tasks around one."""
    rows = [(one.id, one.status, str(one.depth), one.title) for one in found.nodes]
    screen.table(("ID", "STATUS", "DISTANCE", "TITLE"), rows, colour_by=(1,))
    for edge in found.edges:
        screen.line(f"{edge.source} {edge.kind} {edge.target}")
    if found.left_out:
        screen.say((f"… {found.left_out} more", "dim"))


def _flow(screen: Screen, found: Any) -> None:
    """How work flows."""
    moved = [day for day in found.days if day.by_status]
    rows = [
        (
            day.day,
            str(day.created),
            str(day.done),
            ", ".join(f"{count} {name}" for name, count in day.by_status.items()),
        )
        for day in moved
    ]
    screen.table(("DAY", "CREATED", "DONE", "AT END OF DAY"), rows or [("-", "0", "0", "no tasks yet")])
    for name, times in (("lead time", found.lead_time), ("cycle time", found.cycle_time)):
        shown = ", ".join(f"{share} % within {lasted(getattr(times, f'p{share}'))}" for share in (50, 75, 90, 95))
        screen.line(
            f"{name} of {times.count} finished task{'' if times.count == 1 else 's'}: {shown}"
            if times.count
            else f"{name}: no task finished"
        )
    ended = [
        (one.agent, str(one.attempts), str(one.completed), str(one.failed), str(one.expired)) for one in found.agents
    ]
    if ended:
        screen.table(("AGENT", "RUNS", "COMPLETED", "FAILED", "EXPIRED"), ended)


def _moment(screen: Screen, found: Any) -> None:
    """One task after one event, and what that changed."""
    event = found.event
    screen.line(f"{found.task_id}  event {found.seq} ({found.number} of {found.events}): {event['type']}")
    if not found.changed:
        screen.line("this event changed no field")
        return
    from aof.queries.history import excerpts  # which only this view needs

    rows = [(one.field, *excerpts(one.before, one.after, _LONG)) for one in found.changed]
    screen.table(("FIELD", "BEFORE", "AFTER"), rows, whole=True)


def lasted(seconds: int) -> str:
    """A length of time in one unit."""
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(seconds) >= size), (1, "s"))
    return f"{seconds // size if seconds >= 0 else -(-seconds // size)}{unit}"


_UNITS: Sequence[tuple[int, str]] = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"))


_SOURCES = {
    "given": "--actor",
    "environment": "$AOF_ACTOR",
    "run": "the secret of its run",
    "token": "a token",
    "session": "the session",
    "user": "the user of this machine",
}
_FOUND = {"given": "--data-dir", "environment": "$AOF_DATA_DIR", "folder": "the current folder"}


def _whoami(screen: Screen, who: Any) -> None:
    """`aof whoami`."""
    rights = ["maintainer"] if who.maintainer else []
    rights += [who.kind] if who.kind is not None and who.kind not in rights else []
    rights += [f"roles {', '.join(who.roles)}"] if who.roles else []
    rights += ["may act for others"] if who.acts_for_others else ["acts as itself only"]
    rows = [("actor", f"{who.actor} (from {_SOURCES[who.source]})"), ("rights", ", ".join(rights))]
    rows += [("run", who.run_id)] if who.run_id is not None else []
    rows += [("scope", who.scope)] if who.scope is not None else []
    if who.data_dir is not None and who.found_by is not None:
        rows.append(("data", f"{who.data_dir} (from {_FOUND[who.found_by]})"))
    rows += [("clone", who.lane)] if who.lane not in (None, "root") else []
    rows.append(("version", f"aof {who.version}, Python {who.python}, format {who.format}"))
    for name, said in rows:
        screen.say((f"{name:<9}", "dim"), str(said), cut_off=False)


_TEXTS: dict[str, Callable[[Screen, Any], None]] = {
    "flow": _flow,
    "moves": _moves,
    "neighbourhood": _neighbourhood,
    "task_at": _moment,
    "timeline": _timeline,
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
    "fail": _failed,
    "heartbeat": lambda screen, beaten: screen.line(f"{beaten.task_id}  alive until {beaten.expires_at}"),
    "inbox": _inbox,
    "lock": _locks,
    "locks": _locks,
    "merge": _merged,
    "output": lambda screen, printed: screen.block(printed.text),
    "progress": _reported,
    "templates": _templates,
    "tick": _ticked,
    "whoami": _whoami,
    "undo": _undone,
    "unlock": _unlocked,
    "verify": _verified,
}
