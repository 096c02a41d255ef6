"""What is wrong with a value, in a sentence for people: where it stands, what it is, and what would fit.

The checker of types says it in the words of types, and this is only loaded when it has something to say. Must not know
what the values are for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from aof.core.validation import limits

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
    """A sentence, the field that it is about ('' for none), whether there is no such field, and the hint of choices.

    `choices` is empty where the value is not one of a few.
    """

    sentence: str
    field: str
    unknown: bool = False
    choices: str = ""

    @property
    def whole(self) -> str:
        """The sentence, and the choices where there are any: for those whose hint says something else."""
        return f"{self.sentence}; {self.choices}" if self.choices else self.sentence


def complaint(said: str, given: object, kind: Any, *, name: str = "", noun: str = "parameter") -> Complaint:
    """What the checker said about the fields that were given, or about the value of that name.

    `kind` is what they should have been, and `noun` what a field is called here.
    """
    if missing := _FIELD.search(said):
        unknown, field = "unknown" in said, _printable(missing.group(1))
        outer = _steps(said)
        where = _called(name, [*outer, field])
        sentence = f"there is no {noun} {where}" if unknown else f"{where} is missing"
        return Complaint(sentence, outer[0]) if outer else Complaint(sentence, field, unknown)
    steps = _steps(said)
    where = _called(name, steps) if name or steps else f"the {noun}s"
    about, value = steps[0] if steps else "", _at(given, steps)
    match _choices(kind, steps):
        case [one]:
            return Complaint(f"{where} must be {one}, not {_shown(value)}", about)
        case [*allowed] if allowed:
            there = limits.choices(where.strip("'"), allowed)
            return Complaint(f"{where} cannot be {_shown(value)}", about, choices=there)
    if expected := _EXPECTED.match(said):
        wanted, length, sign, bound, got = expected.groups()
        instead = _shown(value) if value is not _NOWHERE else _WORDS.get(got or "", "this")
        return Complaint(f"{where} must {_needed(wanted, length, sign, bound)}, not {instead}", about)
    return Complaint(f"{where} cannot be used: {_PLACE.sub('', said)[:200].lower()}", about)


def _steps(said: str) -> list[str]:
    """The way from what was given to what is wrong."""
    found = _PLACE.search(said)
    return [one or two for one, two in _STEP.findall(found.group(1) if found else "")]


def _choices(kind: Any, steps: Sequence[str]) -> tuple[str, ...]:
    """The values of the enumeration at a place; none where there is something else."""
    kinds = [kind]
    for step in steps:
        kinds = [inner for one in kinds for part in _parts(one) for inner in _inside(part, step)]
    found = (get_args(part) for one in kinds for part in _parts(one) if get_origin(part) is Literal)
    return tuple(map(str, next(found, ())))


def _parts(kind: Any) -> list[Any]:
    """What a union or an annotated type consists of."""
    if get_origin(kind) in (Union, UnionType, Annotated):
        return [part for one in get_args(kind) for part in _parts(one)]
    return [kind]


def _inside(kind: Any, step: str) -> Iterable[Any]:
    """The types of what a step leads to."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [field.type for field in msgspec.structs.fields(kind) if field.encode_name == step]
    return get_args(kind)


def _called(name: str, steps: Sequence[str]) -> str:
    """The place as a person would write it."""
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
        return f"'{_printable(value)}'"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return f"{value}"[:_SHOWN] if abs(value) < _LARGE else "so large a number"
    return _WORDS["object"] if isinstance(value, Mapping) else _WORDS["array"] if isinstance(value, _LISTS) else "this"


def _printable(text: str) -> str:
    """On one line, and not too much of it."""
    cut = text[:_SHOWN] + ("…" if len(text) > _SHOWN else "")
    return "".join(one if one.isprintable() else "?" for one in cut)
