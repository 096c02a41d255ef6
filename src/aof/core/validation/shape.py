"""Does a document have the shape of a struct? Names every unknown key and wrong type, not only the first.

For what people write: the org chart, and workflows. Must not know what the values mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from aof.core.validation.findings import Finding, Step, suggestion

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
