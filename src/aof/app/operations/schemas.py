"""JSON schemas of parameters and results, in the short form that agents pay for by the word.

References are written out, what only repeats a name is left out, and the rest is in the subset that all clients take.
Must not know any surface.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec.structs import FieldInfo

from aof.app.operations.catalogue import Operation
from aof.app.operations.schema_subset import filled, plain

_REF = "{name}"
_ON_EVERY_WRITE = ("expectRev",)


@cache
def _full(kind: Any) -> dict[str, Any]:
    (schema,), parts = msgspec.json.schema_components([kind], ref_template=_REF)
    written: dict[str, Any] = plain(_written_out(schema, parts))
    return written


def schema_of(kind: Any) -> dict[str, Any]:
    """The schema of a type, with nothing to look up elsewhere."""
    return dict(_full(kind))


def _written_out(schema: Any, parts: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_written_out(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _written_out(parts[schema["$ref"]], parts)
    named = schema.get("type") == "object" and "title" in schema
    return {
        key: {name: _written_out(one, parts) for name, one in value.items()}
        if key == "properties"
        else value
        if key in ("enum", "default", "const")
        else _written_out(value, parts)
        for key, value in schema.items()
        if not (named and key in ("title", "description"))
    }


def input_schema(operation: Operation, *, tool: bool = False) -> dict[str, Any]:
    """What the operation takes, over the wire or as a tool."""
    schema = schema_of(operation.parameters)
    properties = schema["properties"]
    required = list(schema.get("required", ()))
    if tool:
        shown = [field.encode_name for field in shown_fields(operation)]
        required = [name for name in shown if name in (*required, *operation.tool_requires)]
        properties = {name: _in_short(name, properties[name]) for name in shown}
        for name, value in operation.tool_defaults:
            properties[name] = properties[name] | {"default": value}
    schema["properties"] = {name: filled(name, one) if name in required else one for name, one in properties.items()}
    return schema | ({"required": required} if required else {})


def _in_short(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that nearly every tool has, and whose name says enough, is not described in each of them."""
    return {key: one for key, one in schema.items() if key != "description"} if name in _ON_EVERY_WRITE else schema


@cache
def shown_fields(operation: Operation) -> tuple[FieldInfo, ...]:
    """The parameters that a tool has, in the order in which they are shown. Working them out costs a commit's time."""
    fields = {field.name: field for field in msgspec.structs.fields(operation.parameters)}
    names = operation.tool_shows or (*(name for name in fields if name != "actor"), "actor")
    return tuple(fields[name] for name in names)


@cache
def shown_names(operation: Operation) -> frozenset[str]:
    """What those parameters are called on the wire."""
    return frozenset(field.encode_name for field in shown_fields(operation))


def output_schema(operation: Operation) -> dict[str, Any]:
    """What the operation answers; what is left out of an answer is said by its absence, not by a default."""
    answer: dict[str, Any] = plain(schema_of(operation.result), defaults=False)
    return answer
