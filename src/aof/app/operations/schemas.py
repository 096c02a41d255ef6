"""JSON schemas of parameters and results, in the short form that agents pay for by the word.

References are written out and what only repeats a name is left out. Must not know any surface.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec.structs import FieldInfo

from aof.app.operations.catalogue import Operation

_REF = "{name}"


@cache
def _full(kind: Any) -> dict[str, Any]:
    (schema,), parts = msgspec.json.schema_components([kind], ref_template=_REF)
    written: dict[str, Any] = _written_out(schema, parts)
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
    texts = {"type": "string"} if all(isinstance(one, str) for one in schema.get("enum", (None,))) else {}
    return texts | {
        key: {name: _written_out(one, parts) for name, one in value.items()}
        if key == "properties"
        else value
        if key in ("enum", "default", "const")
        else _written_out(value, parts)
        for key, value in schema.items()
        if not (named and key in ("title", "description")) and not (key == "required" and not value)
    }


def input_schema(operation: Operation, *, tool: bool = False) -> dict[str, Any]:
    """What the operation takes, over the wire or as a tool."""
    schema = schema_of(operation.parameters)
    if not tool:
        return schema
    shown = [field.encode_name for field in shown_fields(operation)]
    schema["properties"] = {name: schema["properties"][name] for name in shown}
    for name, value in operation.tool_defaults:
        schema["properties"][name] = schema["properties"][name] | {"default": value}
    required = [name for name in shown if name in (*schema.get("required", ()), *operation.tool_requires)]
    return schema | ({"required": required} if required else {})


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
    """What the operation answers."""
    return schema_of(operation.result)
