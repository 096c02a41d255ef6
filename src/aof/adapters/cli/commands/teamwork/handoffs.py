"""`aof handoff`: hand work over, answer, return, and see what became of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aof._support import nesting
from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.spec.parser import UsageError
from aof.adapters.cli.terminal import handoff_view

_EXAMPLE = "for example: aof handoff list --to swe-qa"
_REQUIRED = {
    "new": {"type": "--type", "task": "--task", "reason": "--reason"},
    "accept": {"handoff_id": "ID"},
    "reject": {"handoff_id": "ID", "reason": "--reason"},
    "defer": {"handoff_id": "ID", "reason": "--reason"},
    "return": {"handoff_id": "ID", "status": "--status"},
    "answer": {"handoff_id": "ID", "text": "--text"},
    "escalate": {"handoff_id": "ID", "rationale": "--rationale"},
    "reroute": {"handoff_id": "ID", "reason": "--reason"},
    "withdraw": {"handoff_id": "ID", "reason": "--reason"},
    "resend": {"handoff_id": "ID"},
    "show": {"handoff_id": "ID"},
    "list": {},
    "group": {"handoff_id": "ID"},
    "chain": {"handoff_id": "TASK"},
}


def handoff(context: Context, values: dict[str, Any]) -> Answer:
    """Every action of the verb."""
    given = dict(values)
    action = given.pop("action")
    if action not in _REQUIRED:
        raise UsageError(f"'aof handoff' knows {', '.join(_REQUIRED)}, not '{action}'", _EXAMPLE)
    for name, spelled in _REQUIRED[action].items():
        if given.get(name) in (None, ""):
            raise UsageError(f"'aof handoff {action}' needs {spelled}", f"see: aof handoff --help; {_EXAMPLE}")
    perform = _ACTIONS.get(action, _answered(action))
    try:
        return perform(context, given)
    except TypeError as error:
        unknown = str(error).rpartition("argument ")[2].strip("'")
        if "unexpected keyword" not in str(error):
            raise
        raise UsageError(f"'aof handoff {action}' takes no {unknown}", f"see: aof handoff --help; {_EXAMPLE}") from None


def _new(context: Context, given: dict[str, Any]) -> Answer:
    to = [name for one in given.pop("to", ()) for name in one.split(",") if name]
    if given.pop("no_wait", False):
        given["wait"] = False
    started = context.fabric.handoff_new(task_id=given.pop("task"), to=to, **given)
    return Answer(started, lambda screen: handoff_view.started(screen, started))


def _accept(context: Context, given: dict[str, Any]) -> Answer:
    taken = context.fabric.handoff_accept(**given)
    return Answer(taken.flat(), lambda screen: handoff_view.taken(screen, taken))


def _return(context: Context, given: dict[str, Any]) -> Answer:
    for name, meant in (("variables", "variables_changed"), ("artifacts", "artifacts_produced")):
        if name in given:
            given[meant] = given.pop(name)
    if to := given.pop("to", None):
        given["to_agent"] = to[0]
    if "result" in given:
        given["result"] = _read(given["result"])
    one = context.fabric.handoff_return(**given)
    return Answer(one, lambda screen: handoff_view.returned(screen, one))


def _read(text: str) -> Any:
    """A result as JSON, and as plain text where it is none."""
    try:
        nesting.refuse_nesting(text)
        return json.loads(text)
    except nesting.NestedTooDeeply as error:
        raise UsageError(f"--result is {error}", "keep deep structures in a file of the task") from None
    except ValueError:
        return text


def _passed_on(action: str) -> Callable[[Context, dict[str, Any]], Answer]:
    """An action that may name the next agent, and answers with the handoff to that one."""

    def perform(context: Context, given: dict[str, Any]) -> Answer:
        to = given.pop("to", None)
        one = getattr(context.fabric, f"handoff_{action}")(**given, **({"to_agent": to[0]} if to else {}))
        return Answer(one, lambda screen: handoff_view.line(screen, one))

    return perform


def _list(context: Context, given: dict[str, Any]) -> Answer:
    to = given.pop("to", None)
    found = context.fabric.handoff_list(**given, **({"to_agent": to[0]} if to else {}))
    data = {"total": found.total, "handoffs": tuple(found)}
    if found.next_cursor is not None:
        data["nextCursor"] = found.next_cursor
    return Answer(data, lambda screen: handoff_view.table(screen, found))


def _show(context: Context, given: dict[str, Any]) -> Answer:
    one = context.fabric.handoff_show(**given)
    return Answer(one, lambda screen: handoff_view.whole(screen, one))


def _group(context: Context, given: dict[str, Any]) -> Answer:
    group = context.fabric.handoff_group(given.pop("handoff_id"), **given)
    return Answer(group, lambda screen: handoff_view.group(screen, group))


def _chain(context: Context, given: dict[str, Any]) -> Answer:
    drawn = context.fabric.handoff_chain(given.pop("handoff_id"), **given)
    return Answer(drawn, lambda screen: screen.block(drawn["text"].rstrip("\n")))


def _answered(action: str) -> Callable[[Context, dict[str, Any]], Answer]:
    """An action that answers with the handoff as it then is."""

    def perform(context: Context, given: dict[str, Any]) -> Answer:
        one = getattr(context.fabric, f"handoff_{action}")(**given)
        return Answer(one, lambda screen: handoff_view.line(screen, one))

    return perform


_ACTIONS: dict[str, Callable[[Context, dict[str, Any]], Answer]] = {
    "new": _new,
    "accept": _accept,
    "return": _return,
    "escalate": _passed_on("escalate"),
    "reroute": _passed_on("reroute"),
    "list": _list,
    "show": _show,
    "group": _group,
    "chain": _chain,
}
