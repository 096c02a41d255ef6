"""`aof job`: schedules and batches that create tasks."""

from __future__ import annotations

from typing import Any

import msgspec

from aof._support import nesting
from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.spec.values import file_text
from aof.adapters.cli.terminal.screen import Screen

_ACTIONS = ("add", "list", "show", "pause", "resume", "run", "rm")
_EXAMPLE = "for example: aof job add nightly --cron '0 2 * * *' --title 'Nightly check'"


def job(context: Context, values: dict[str, Any]) -> Answer:
    """Every action of the verb."""
    given = dict(values)
    action = given.pop("action")
    if action not in _ACTIONS:
        raise UsageError(f"'aof job' knows {', '.join(_ACTIONS)}, not '{action}'", _EXAMPLE)
    if (action == "list") == ("job_id" in given):
        raise UsageError(f"'aof job {action}' {'takes no' if action == 'list' else 'needs a'} name", _EXAMPLE)
    if action != "add" and (wrong := sorted(given.keys() - {"job_id"})):
        raise UsageError(f"'aof job {action}' does not take {wrong[0]}", "see: aof help job")
    if "file" in given:
        given["items"] = [*given.get("items", ()), *_lines(given.pop("file"))]
    result = getattr(context.fabric, f"job_{action}")(**given)
    text = {"list": _listed, "run": _ran, "rm": _removed}.get(action, _shown)
    return Answer(result, lambda screen: text(screen, result))


def _lines(path: str) -> list[Any]:
    """The tasks of a batch, one per line."""
    found: list[Any] = []
    for number, line in enumerate(file_text(path).splitlines(), 1):
        try:
            found += [nesting.decode(line, object)] if line.strip() else []
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            message = f"line {number} of {path} is not JSON: {error}"
            raise UsageError(message, 'a line is a task, such as {"title": "First"}') from None
    return found


def _listed(screen: Screen, listed: Any) -> None:
    rows = [(one.job_id, one.state, _when(one), one.next_due or "-", str(one.created)) for one in listed.jobs]
    if rows:
        screen.table(("JOB", "STATE", "WHEN", "NEXT", "CREATED"), rows)
    elif not listed.unusable:
        screen.line("there is no job")
    for why in listed.unusable.values():
        screen.line(why)


def _when(one: Any) -> str:
    if one.items:
        return f"{one.done} of {one.items} items"
    return f"{one.cron} ({one.timezone})" if one.cron is not None else str(one.at)


def _shown(screen: Screen, one: Any) -> None:
    screen.line(f"{one.job_id}: {one.state}, {_when(one)}, by {one.created_by}")
    if one.task is not None:
        screen.line(f"creates: {one.task.title}")
    if one.next_due is not None:
        screen.line(f"next: {one.next_due}")
    _outcomes(screen, one.outcomes or ((one.last,) if one.last is not None else ()))


def _ran(screen: Screen, ran: Any) -> None:
    _outcomes(screen, ran.outcomes)
    if not ran.outcomes:
        screen.line(f"{ran.job_id}: nothing is left to create")


def _outcomes(screen: Screen, outcomes: Any) -> None:
    for one in outcomes:
        screen.line(f"{one.occasion}  {one.task_id or one.error}")


def _removed(screen: Screen, removed: Any) -> None:
    screen.line(f"{removed.job_id}  removed; its tasks stay")
