"""What is wrong with a document or a value, as data and in sentences.

Where it stands, what it is, and what would fit.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from aof.kernel import limits

Step = str | int
Severity = Literal["error", "warning", "note"]
_TOLD = ("code", "severity", "line", "column", "detail", "fix")


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One problem. With an `error` the document cannot be used; a `note` may be intended."""

    code: str
    severity: Severity
    at: tuple[Step, ...]
    detail: str
    fix: str
    line: int | None = None
    column: int | None = None

    @property
    def where(self) -> str:
        """The place as a person would write it: `agents[2].runner.command`."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.at)
        return text.removeprefix(".") or "the document"

    def as_dict(self) -> dict[str, Any]:
        """The problem as every surface shows it."""
        return {"path": self.where} | {name: getattr(self, name) for name in _TOLD}


def similar(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return close[0] if close else None


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    """`did you mean …?`, else the given advice."""
    there = sorted(known)
    close = similar(name, there)
    return f"did you mean '{close}'?" if close is not None else otherwise


class DocumentFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing; an error makes a check fail, a warning does not."""

    line: int
    code: str
    detail: str
    severity: Literal["error", "warning"] = "error"


_At = tuple[Step, ...]
_TYPES: dict[type[inspect.Type], type | tuple[type, ...]] = {
    inspect.NoneType: type(None),
    inspect.BoolType: bool,
    inspect.IntType: int,
    inspect.FloatType: (int, float),
    inspect.StrType: str,
    inspect.StructType: dict,
    inspect.DictType: dict,
}


def misshapen(values: Any, kind: type[msgspec.Struct]) -> Iterator[Finding]:
    """Everything that keeps the document from being read as that kind of struct."""
    return _against(values, _shape(kind), ())


@cache
def _shape(kind: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(kind)


def _against(value: Any, kind: inspect.Type, at: _At) -> Iterator[Finding]:
    match kind:
        case inspect.UnionType():
            yield from _against(value, _chosen(value, kind), at)
        case inspect.StructType() if isinstance(value, dict):
            yield from _keys(value, kind, at)
        case inspect.DictType() if isinstance(value, dict):
            for key, item in value.items():
                yield from _against(item, kind.value_type, (*at, key))
        case inspect.VarTupleType() if isinstance(value, list):
            for number, item in enumerate(value):
                yield from _against(item, kind.item_type, (*at, number))
        case inspect.LiteralType():
            if value not in kind.values:
                yield _wrong(at, value, f"one of: {', '.join(map(str, kind.values))}")
        case _:
            if not _fits(value, kind):
                yield _wrong(at, value, _named(kind))


def _keys(value: dict[str, Any], kind: inspect.StructType, at: _At) -> Iterator[Finding]:
    fields = {field.encode_name: field for field in kind.fields}
    for key, item in value.items():
        if key in fields:
            yield from _against(item, fields[key].type, (*at, key))
        else:
            fix = suggestion(key, fields, f"use one of: {', '.join(fields)}")
            detail = f"there is no key '{key[:80]}' here"
            yield Finding(code="unknown_key", severity="error", at=(*at, key), detail=detail, fix=fix)
    for name, field in fields.items():
        if field.required and name not in value:
            detail = f"the key '{name}' is missing"
            yield Finding(code="missing_key", severity="error", at=at, detail=detail, fix=f"add '{name}: …'")


def _chosen(value: Any, kind: inspect.UnionType) -> inspect.Type:
    """The member of a union that the value is probably meant as: the first one that fits, else the first."""
    return next((member for member in kind.types if _fits(value, member)), kind.types[0])


def _fits(value: Any, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.AnyType):
        return True
    if isinstance(kind, inspect.LiteralType):
        return value in kind.values
    number = not isinstance(value, bool)
    wanted = _TYPES.get(type(kind), list)
    return isinstance(value, wanted) and (number or wanted is bool)


def _named(kind: inspect.Type) -> str:
    names: dict[type[inspect.Type], str] = {
        inspect.BoolType: "true or false",
        inspect.IntType: "a whole number",
        inspect.FloatType: "a number",
        inspect.StrType: "a text",
        inspect.VarTupleType: "a list",
    }
    return names.get(type(kind), "a mapping of keys")


def _wrong(at: _At, value: Any, wanted: str) -> Finding:
    shown = msgspec.json.encode(value).decode()[:60]
    quoted = " (put it in quotes)" if wanted == "a text" and isinstance(value, int | float | bool) else ""
    detail = f"{shown} cannot stand here"
    return Finding(code="wrong_type", severity="error", at=at, detail=detail, fix=f"give {wanted}{quoted}")


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
