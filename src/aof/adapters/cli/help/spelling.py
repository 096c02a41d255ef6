"""Spells a call as the command line writes it, for hints that can be followed to the letter.

Must not know what a call does.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from aof.adapters.cli.spec.grammar import FLAG
from aof.adapters.cli.spec.tasks import VERBS
from aof.core.errors.base import Call

_WORDS = {
    "dep_add": "dep add",
    "dep_remove": "dep rm",
    "handoff": "handoff show",
    "handoffs": "handoff list",
    "org_check": "org check",
    "org_route": "org route",
    "org_show": "org show",
    "portable_log": "log --format agentruntime",
    "session_end": "session-end",
    "workflow_attach": "workflow attach",
    "workflow_check": "workflow check",
    "workflow_show": "workflow show",
}
_NAMES = {"workflow_attach": {"task_id": "name"}}


def spell(call: Call) -> str:
    """The command that makes this call."""
    words = _WORDS.get(call.operation, call.operation)
    verb = next(verb for verb in VERBS if verb.name == words.split()[0])
    places = {argument.target for argument in verb.arguments}
    names = _NAMES.get(call.operation, {})
    given = {names.get(name, name): value for name, value in call.arguments.items()}
    parts = ["aof", words]
    parts += [_quote(given[argument.target]) for argument in verb.arguments if argument.target in given]
    for option in verb.options:
        if option.target in given and option.target not in places:
            value = given[option.target]
            if option.kind == FLAG:
                parts.append(option.name)
                continue
            if isinstance(value, dict):
                value = [f"{key}={json.dumps(one)}" for key, one in value.items()]
            for one in value if isinstance(value, list | tuple) else [value]:
                parts.append(f"{option.name} {_quote(one)}")
    return " ".join(parts)


def _quote(value: Any) -> str:
    text = str(value)
    return f'"{text}"' if text == "…" else shlex.quote(text)
