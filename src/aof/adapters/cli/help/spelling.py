"""Spells a call as the command line writes it, for hints that can be followed to the letter.

Must not know what a call does.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from aof.adapters.cli.spec.grammar import FLAG, ONE, Option
from aof.adapters.cli.spec.operations import NAMES, WORDS
from aof.adapters.cli.spec.verbs import VERBS
from aof.core.errors.base import Call


def spell(call: Call) -> str:
    """The command that makes this call."""
    words = WORDS.get(call.operation, call.operation)
    verb = next(verb for verb in VERBS if verb.name == words.split()[0])
    places = {argument.target for argument in verb.arguments}
    names = NAMES.get(call.operation, {})
    given = _flat({names.get(name, name): value for name, value in call.arguments.items()}, verb.options)
    parts = ["aof", words]
    for argument in verb.arguments:
        if argument.target in given:
            value = given[argument.target]
            parts += map(_quote, value if argument.many else [value])
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


def _flat(given: dict[str, Any], options: tuple[Option, ...]) -> dict[str, Any]:
    """The values by the targets of options, which may be keys of an object such as `routing.agent`."""
    inside = [option.target.partition(".") for option in options if "." in option.target]
    keys = {f"{name}.{key}": given[name][key] for name, _, key in inside if key in given.get(name, {})}
    targets = {option.target for option in options}
    return {name: value for name, value in given.items() if name in targets or not isinstance(value, dict)} | keys


def _quote(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, dict) else str(value)
    return f'"{text}"' if text == "…" else shlex.quote(text)
