"""Hints that can be followed to the letter: calls as the command line writes them, and the task that was meant.

Must not know what a call does.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from aof.errors import Call
from aof.surfaces.cli.grammar import FLAG, ONE, Argument, Option
from aof.surfaces.cli.operations import NAMES, WORDS
from aof.surfaces.cli.parser import is_task
from aof.surfaces.cli.verbs import verb_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.api.fabric import Fabric
    from aof.surfaces.cli.output import Context

_KEPT = {"data_dir": "--data-dir", "actor": "--actor"}
_ACTING = {"run", "ttl"}  # parameters of verbs that an agent acts by, and does not only filter with
_COMMAND = re.compile(r"\baof (?=[a-z])")
_LETTERS_FOR_DIGITS = str.maketrans("lIiOo", "11100")
_MEANT_MOST = 3


def spell(call: Call, options: dict[str, Any] | None = None, agent: str | None = None) -> str:
    """The command that makes this call.

    `options` are those that every verb has and that the refused command was given, such as the data directory; `agent`
    is who it acted for. Both are kept, so that the command works when it is pasted.
    """
    words = WORDS.get(call.operation, call.operation)
    verb = verb_of(words)
    places = {argument.target for argument in verb.arguments}
    names = NAMES.get(call.operation, {})
    given = _flat({names.get(name, name): value for name, value in call.arguments.items()}, verb.options)
    targets = {option.target for option in verb.options}
    if agent is not None and "agent" in targets and _ACTING & targets:
        given.setdefault("agent", agent)
    parts = ["aof", *_kept(options or {}), words]
    for argument in verb.arguments:
        if argument.target in given:
            value = given[argument.target]
            parts += [_placed(argument, one) for one in (value if argument.many else [value])]
    for option in verb.options:
        if option.target in given and option.target not in places:
            value = given[option.target]
            if option.kind == FLAG:
                parts += [option.name] if value == option.value else []
                continue
            if option.kind == ONE and not isinstance(value, str | int | float):
                value = json.dumps(value)
            if isinstance(value, dict):
                value = [f"{key}={json.dumps(one)}" for key, one in value.items()]
            for one in value if isinstance(value, list | tuple) else [value]:
                parts.append(f"{option.name} {_quote(one)}")
    return " ".join(parts)


def _placed(argument: Argument, value: Any) -> str:
    """A word in its place; a text that would not be taken for one there stands behind its option."""
    if argument.also and (is_task(str(value)) or str(value).startswith("-")):
        return f"{argument.also[0]}={_quote(value)}"
    return _quote(value)


def in_text(hint: str, options: dict[str, Any]) -> str:
    """A hint whose commands keep these options; there they stand in single quotes already."""
    kept = " ".join(_kept(options)).replace("'", '"')
    return _COMMAND.sub(lambda found: f"{found.group()}{kept} ", hint) if kept else hint


def _kept(options: dict[str, Any]) -> list[str]:
    return [f"{name} {_quote(options[key])}" for key, name in _KEPT.items() if options.get(key) is not None]


def _flat(given: dict[str, Any], options: tuple[Option, ...]) -> dict[str, Any]:
    """The values by the targets of options, which may be keys of an object such as `routing.agent`."""
    inside = [option.target.partition(".") for option in options if "." in option.target]
    keys = {f"{name}.{key}": given[name][key] for name, _, key in inside if key in given.get(name, {})}
    targets = {option.target for option in options}
    return {name: value for name, value in given.items() if name in targets or not isinstance(value, dict)} | keys


def _quote(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, dict) else str(value)
    return f'"{text}"' if text == "…" else shlex.quote(text)


def suggest_task(context: Context, error: Exception) -> None:
    """Add the tasks that may have been meant to the hint of a task that was not found: mistyped, or named by title."""
    asked = getattr(error, "details", {}).get("asked") if getattr(error, "code", "") == "task_not_found" else None
    if not asked or "did you mean" in getattr(error, "hint", ""):
        return
    if meant := _meant(context.fabric, asked):
        error.hint = f"did you mean {' or '.join(meant)}? List what there is"  # type: ignore[attr-defined]


def _meant(fabric: Fabric, asked: str) -> list[str]:
    """The nearest tasks, each with its title: those that share the number, never all, for there may be very many."""
    from difflib import SequenceMatcher

    is_number = any(one.isdigit() for one in asked)
    numbers = re.findall(r"[0-9]+", asked.translate(_LETTERS_FOR_DIGITS)) if is_number else []
    found = fabric.store.ids(numbers[-1].lstrip("0").zfill(3)) if numbers else ()
    near = sorted(found, key=lambda one: (-SequenceMatcher(None, one, asked.upper()).ratio(), one))[:_MEANT_MOST]
    titled = {row.id: row.title for row in fabric.list(search=asked, limit=_MEANT_MOST).tasks} if not near else {}
    titles = titled or {task_id: task.title for task_id, task in fabric.relatives(near).items()}
    return [f"{task_id} ({titles[task_id]})" for task_id in near or titled if task_id in titles]
