"""What is wrong with a value, in a sentence for people: the parameter, the value, and what would fit.

The checker of types says it in the words of types, and this is only loaded when it has something to say. Must not know
which operation was called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin

_SHOWN = 60
_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_BOUNDS = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}
_EXPECTED = re.compile(r"Expected `([^`]+)`(?: (of length )?([<>]=?) (\S+))?(?:, got `(\w+)`)?")
_FIELD = re.compile(r"field `([^`]+)`")
_PLACE = re.compile(r" - at (?:`key` in )?`\$([^`]*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_NOWHERE = object()
_LISTS = (Sequence, set, frozenset)
_LARGE = 10**30  # a text of it is still short


class Complaint(NamedTuple):
    """A sentence, the parameter that it is about ('' for none), and whether there is no such parameter."""

    sentence: str
    parameter: str
    unknown: bool = False


def complaint(said: str, given: object, choices: Mapping[str, Sequence[str]], *, name: str = "") -> Complaint:
    """What the checker said about the given parameters, or about the value of the parameter with this name."""
    if field := _FIELD.search(said):
        unknown = "unknown" in said
        known_as = field.group(1)[:_SHOWN]
        return Complaint(
            f"there is no parameter '{known_as}'" if unknown else f"'{known_as}' is missing", known_as, unknown
        )
    found = _PLACE.search(said)
    steps = [one or two for one, two in _STEP.findall(found.group(1) if found else "")]
    parameter = name or (steps[0] if steps else "")
    value = _at(given, steps)
    allowed = choices.get(parameter, ())
    if allowed:
        return Complaint(
            f"{_called(name, steps)} cannot be {_shown(value)}; choose one of {', '.join(allowed)}", parameter
        )
    if expected := _EXPECTED.match(said):
        kind, length, sign, bound, got = expected.groups()
        fits = _needed(kind, length, sign, bound)
        instead = _shown(value) if value is not _NOWHERE else _WORDS.get(got or "", "this")
        return Complaint(f"{_called(name, steps)} must {fits}, not {instead}", parameter)
    return Complaint(f"{_called(name, steps)} cannot be used: {_PLACE.sub('', said)[:200].lower()}", parameter)


def choices(kind: Any) -> tuple[str, ...]:
    """The values of an enumeration, wherever in a type it stands."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return next((found for part in get_args(kind) if (found := choices(part))), ())


def _called(name: str, steps: Sequence[str]) -> str:
    """The place as a person would write it."""
    if not name and not steps:
        return "the parameters"
    first, rest = (name, steps) if name else (steps[0], steps[1:])
    if "..." in rest:
        return f"a value in '{first}'"
    return f"'{first}{''.join(f'[{step}]' if step.isdigit() else f'.{step}' for step in rest)}'"


def _needed(kind: str, length: str | None, sign: str | None, bound: str | None) -> str:
    if sign is None:
        wanted = [_WORDS.get(one, one) for one in kind.split(" | ") if one != "null"]
        return f"be {' or '.join(wanted)}"
    return f"{'have a length of ' if length else 'be '}{_BOUNDS[sign]} {bound}"


def _at(given: Any, steps: Sequence[str]) -> Any:
    """The value at a place; where that cannot be told, nothing."""
    for step in steps:
        if isinstance(given, Mapping) and step in given:
            given = given[step]
        elif isinstance(given, Sequence) and step.isdigit() and int(step) < len(given):
            given = given[int(step)]
        else:
            return _NOWHERE
    return given


def _shown(value: object) -> str:
    """A plain value as it was given, in short; of anything else only what it is."""
    if isinstance(value, str):
        cut = value[:_SHOWN] + ("…" if len(value) > _SHOWN else "")
        return f"'{''.join(one if one.isprintable() else '?' for one in cut)}'"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return f"{value}"[:_SHOWN] if abs(value) < _LARGE else "so large a number"
    return _WORDS["object"] if isinstance(value, Mapping) else _WORDS["array"] if isinstance(value, _LISTS) else "this"
