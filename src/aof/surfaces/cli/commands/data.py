"""Verbs about the data directory: its history and health, help, and its log in a portable form."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from aof.kernel.events import SUPERSEDED, Event
from aof.kernel.limits import visible_line
from aof.kernel.model import millis
from aof.queries import history, read_models
from aof.support.printable import escaped
from aof.surfaces.cli import parser
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError
from aof.surfaces.cli.screen import Screen, ago

_NEEDS_DOCTOR = 5
_SHORT, _ROOMY, _NARROW = len("TASK-2026-"), 100, 60
_WIDTH = len("TASK-2026-02-21-001")


def log(context: Context, values: dict[str, Any]) -> Answer:
    """`aof log`."""
    if values.get("format", "native") != "native":
        return _portable_log(context, values)
    after, kind, limit = values.get("after", 0), values.get("type"), values.get("limit")
    if limit is not None and limit < 0:
        raise UsageError(f"--limit {limit} is less than nothing", "give a number such as 20")
    fabric = context.fabric
    end = read_models.number_in("log", values["cursor"]) if "cursor" in values else None
    events = [
        event
        for event in fabric.events(after=after, task_id=values.get("task_id"))
        if (kind is None or event.type in (kind, f"task.{kind}")) and (end is None or event.seq < end)
    ]
    if not events and values.get("task_id"):
        fabric.get(values["task_id"])  # a task that is not there is not one without news
    following = {}
    if limit is not None:
        if 0 < limit < len(events):
            following["nextCursor"] = read_models.place_in("log", str(events[-limit].seq))
        events = events[len(events) - limit :] if limit else []
    now = fabric.now()
    if values.get("follow"):
        _follow_events(context, values, events)

    none = "no event matches" if values else "nothing has happened yet"
    named = bool(values.get("types") or kind is not None)
    return Answer({"events": events} | following, lambda screen: _event_lines(screen, events, now, none, named))


def _event_lines(screen: Screen, events: list[Event], now: int, none: str, named: bool) -> None:  # noqa: FBT001
    """What happened; with the types of events, every single one."""
    if named or screen.compact:
        for event in events:
            typed_line(screen, event, now)
    else:
        story_lines(screen, events, now)
    if not events:
        screen.line(none)


def _follow_events(context: Context, values: dict[str, Any], events: list[Event]) -> None:
    """Print what there is, and then what comes, until somebody interrupts."""
    fabric, kind, last = context.fabric, values.get("type"), values.get("after", 0)
    wanted = fabric.resolve(values["task_id"]) if values.get("task_id") else None
    now = fabric.now()
    line = partial(_event_lines, none="", named=bool(values.get("types") or kind is not None))
    for event in events:
        last = event.seq
        context.deliver_line(event, partial(line, events=[event], now=now))
    end_on_interrupt()
    for event in fabric.follow(after=last, timeout=float("inf")):
        fits = kind is None or event.type in (kind, f"task.{kind}")
        if fits and (wanted is None or event.task_id == wanted):
            context.deliver_line(event, partial(line, events=[event], now=fabric.now()))


def _question(what: dict[str, Any]) -> str:
    asked = what["question"]
    return f"{asked['id']} {asked['text']}" if isinstance(asked, dict) else f"{asked} {what['text']}"


def _superseded(what: dict[str, Any]) -> str:
    return f"{what['was']} in another clone" + (f": {what['workLog']}" if what.get("workLog") else "")


def _message(what: dict[str, Any]) -> str:
    told = (what.get(name) for name in ("type", "reason", "detail", "handoffId"))
    return "  ".join(str(one) for one in told if one)


_SUMMARIES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "task.transitioned": lambda what: (
        f"{what['from']} → {what['to']}" + (f" ({what['reason']})" if what.get("reason") else "")
    ),
    "task.attempt.failed": lambda what: f"{what['error'].get('cause', 'failed')} ({what['error']['code']})",
    "task.created": lambda what: str(what["task"]["title"]),
    "task.commented": lambda what: str(what.get("workLog") or what["text"]),
    "task.merged": lambda what: "; ".join(what.get("conflicts", ())),
    SUPERSEDED: _superseded,
    "protocol.": _message,
    "delegation.": _message,
    "task.warning": _message,
    "task.question.": _question,
}
"""How an event reads in a few words, by its type or the beginning of its type."""


def _summary(event: Event) -> str:
    for beginning, summary in _SUMMARIES.items():
        if event.type.startswith(beginning):
            return summary(event.payload)
    return str(event.payload.get("workLog") or ", ".join(event.payload.get("fields", ())))


def story_lines(screen: Screen, events: list[Event], now: int, last: int | None = None) -> None:
    """What happened in words, one line for what somebody did; only the `last` few where that is given."""
    for story in list(history.stories(events))[-last if last else 0 :]:
        event = story.event
        made = event.payload["task"]["title"] if event.type == "task.created" else ""
        about = (f"'{visible_line(made)}'" if made else "it") if story.about else ""
        said = " ".join(part for part in (story.who, story.before, about, story.after) if part)
        said += f": {story.detail}" if story.detail else ""
        said += f" → {story.becomes}" if story.becomes not in ("", "in-progress") else ""
        said += f" ({story.beside})" if story.beside else ""
        begin = _SHORT if 0 < screen.width < _ROOMY else 0
        when = ago(millis(event.timestamp), now)
        task = f"{event.task_id[begin:] or '-':<{_WIDTH - begin}}"
        screen.say((f"{event.seq:>6}  {when:<8}  ", "dim"), f"{task}  {said}")


def typed_line(screen: Screen, event: Event, now: int) -> None:
    """One event on one line, by its type."""
    said = _summary(event)
    who = f"{event.actor} for {event.agent}" if event.agent else event.actor
    who = f"{who} (by {event.called_by})" if event.called_by else who
    when = ago(millis(event.timestamp), now)
    short, task = event.type.removeprefix("task."), event.task_id or "-"
    if screen.compact:
        screen.say(f"{event.seq} {task} {short} {who} {said}", cut_off=False)
    elif 0 < screen.width < _NARROW:
        screen.say((f"{event.seq} {when} ", "dim"), f"{event.task_id[_SHORT:] or '-'} {short} {who} {said}")
    elif screen.width in range(_NARROW, _ROOMY):  # what is left of the ID still names the task
        screen.say(
            (f"{event.seq:>6}  {when:<8}  ", "dim"),
            f"{event.task_id[_SHORT:] or '-':<{_WIDTH - _SHORT}}  {short:<17}  {who}  {said}",
        )
    else:
        screen.say((f"{event.seq:>6}  {when:<8}  ", "dim"), f"{task:<{_WIDTH}}  {event.type:<22}  {who}  {said}")


def recover(context: Context, _values: dict[str, Any]) -> Answer:
    """`aof admin recover`."""
    recovered = context.fabric.recover()

    def text(screen: Screen) -> None:
        for one in recovered:
            screen.line(f"{one.task_id}  {screen.paint(one.status, one.status)}  {one.reason}")
        if not recovered:
            screen.line("no lease has ended; who holds what, and for how long yet: aof agents")

    return Answer({"recovered": recovered}, text)


def sync(context: Context, values: dict[str, Any]) -> Answer:
    """`aof sync`."""
    with context.progress("sync") as progress:
        report = context.fabric.sync(say=progress, **values)
    data = msgspec.to_builtins(report)

    def text(screen: Screen) -> None:
        for name, items in (("imported", report.taken_in), ("new", report.new)):
            for item in items:
                screen.line(f"{name}: {item}")
        for name, kind, left in (("waits", "high", report.waiting), ("refused", "error", report.refused)):
            for one in left:
                screen.say((name, kind), f"  {one.path}: {one.reason}", cut_off=False)
                screen.say(f"  → {one.hint}", cut_off=False)
        for copy in report.put_aside:
            screen.line(f"kept as {copy}")
        if not any(data.values()):
            screen.line("nothing was changed by hand")

    return Answer(data, text, code=1 if report.refused else 0)


def doctor(context: Context, values: dict[str, Any]) -> Answer:
    """`aof doctor`."""
    with context.progress("doctor") as progress:
        where, fix = context.options.get("data_dir"), values.get("fix", False)
        report = context.service("upkeep").diagnose(where, fix=fix, say=progress)

    def text(screen: Screen) -> None:
        for problem in report.healed:
            screen.say(("mended", "good"), f"  {problem.code}  {problem.path}: {problem.detail}", cut_off=False)
        for problem in report.problems:
            screen.say((problem.code, "error"), f"  {problem.path}: {problem.detail}", cut_off=False)
            screen.say(f"  → {problem.fix}", cut_off=False)
        for advice in report.advice:
            screen.say(("advice", "dim"), f"  {advice.path}: {advice.detail}", cut_off=False)
            screen.say(f"  → {advice.fix}", cut_off=False)
        if report.ok:
            screen.line(screen.paint("everything is in order", "good"))
        else:
            screen.line(f"{len(report.problems)} problem{'' if len(report.problems) == 1 else 's'}")

    return Answer(report, text, 0 if report.ok else _NEEDS_DOCTOR)


def reindex(context: Context, _values: dict[str, Any]) -> Answer:
    """`aof admin reindex`."""
    with context.progress("reindex"):
        files = context.fabric.store.working_copy
        assert files is not None, "the command works on a data directory"
        files.rebuild_index()
    total = context.fabric.status(compact=True).total
    return Answer({"tasks": total}, lambda screen: screen.line(f"{total} tasks indexed"))


def help_on(_context: Context, values: dict[str, Any]) -> Answer:
    """`aof help [VERB [ACTION]]` and `aof help --all`."""
    from aof.surfaces.cli import help as cli_help

    action, whole = str(values.get("action", "")), values.get("all", False)
    verb = parser.find_verb(values["verb"]) if values.get("verb") else None
    if verb is not None and action:
        verb = next(iter(parser.below(verb, action)), verb)

    def page(width: int = 0) -> str:
        return cli_help.every_verb(width) if whole and verb is None else cli_help.help_text(verb, width, action)

    return Answer({"help": page()}, lambda screen: screen.block(page(screen.width)[:-1]))


def version(context: Context, _values: dict[str, Any]) -> Answer:
    """`aof version`."""
    number = context.service("bootstrap").version()
    return Answer({"version": number}, lambda screen: screen.line(f"aof {number}"))


def completion(_context: Context, values: dict[str, Any]) -> Answer:
    """`aof completion`."""
    from aof.surfaces.cli.help import completion_script

    text = completion_script(values["shell"])
    return Answer({"script": text}, lambda screen: screen.block(text.rstrip()))


def snapshot(context: Context, values: dict[str, Any]) -> Answer:
    """`aof admin snapshot`."""
    with context.progress("snapshot") as progress:
        view = context.fabric.snapshot(**values, say=progress)

    def text(screen: Screen) -> None:
        summary = view["taskSummary"]
        when = f"  {view['updatedAt']}" if "updatedAt" in view else ""
        screen.line(f"after event {view['sequence']}{when}")
        for status, count in summary["byStatus"].items():
            screen.line(f"{count:>6}  {status}")
        screen.line(f"{summary['totalCount']:>6}  in all, {summary['activeCount']} of them unfinished")
        rows = [(one["taskId"], one["status"], one["reason"]) for one in view["blockedTasks"]]
        if rows:
            screen.line()
            screen.table(("ID", "STATUS", "WHY"), rows, colour_by=(1,), whole=True)

    return Answer(view, text)


def _portable_log(context: Context, values: dict[str, Any]) -> Answer:
    """`aof log --format agentruntime`: a JSON object a line, also for people."""
    given = dict(values)
    form = given.pop("format")
    if form != "agentruntime":
        raise UsageError(f"there is no format {form[:40]!r}", "use native or agentruntime")
    if "cursor" in given:
        raise UsageError("--cursor reads the native log backwards", "read this one forwards: --after SEQ")
    if given.pop("follow", False):
        end_on_interrupt()
        for line in context.fabric.portable_follow(**given, timeout=float("inf")):
            context.deliver_line(line, partial(_line, line=line))
    told = context.fabric.portable_log(**given)

    def text(screen: Screen) -> None:
        for line in told["events"]:
            _line(screen, line)

    return Answer(told, text)


def _line(screen: Screen, line: dict[str, Any]) -> None:
    screen.line(escaped(json.dumps(line, ensure_ascii=False, separators=(",", ":"))))


def end_on_interrupt() -> None:
    """Ctrl-C is the way to stop following. Raised as an error it could get lost in a reader that is being closed."""

    def end(_number: int, _frame: object) -> None:
        with suppress(RuntimeError, OSError):  # somebody may be in the middle of writing
            sys.stdout.flush()
        os._exit(0)

    signal.signal(signal.SIGINT, end)
