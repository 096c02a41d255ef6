"""JSON Schema in the subset that every client and generator takes. Must not know any operation.

Clients differ in what they understand. Many read draft 7, where a tuple has no `prefixItems` and `items` is always a
schema; some need a type beside `enum`, and some know no `const`. Nobody needs an empty list of required names.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_VALUES: Final = ("enum", "default", "const", "required")  # what holds data, not schemas


def plain(schema: Any, *, defaults: bool = True, opened: bool = False) -> Any:
    """The same schema in that subset.

    Without `defaults`, nothing says which value stands for what is left out: in an answer nobody may assume one. With
    `opened`, an object of unknown properties says that it takes any, which some generators do not take for granted.
    """
    again = partial(plain, defaults=defaults, opened=opened)
    if isinstance(schema, list):
        return [again(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = _typed(_listed(schema))
    if opened and found.get("type") == "object" and not {"properties", "additionalProperties"} & found.keys():
        found = found | {"additionalProperties": True}
    return {
        key: {name: again(one) for name, one in value.items()}
        if key == "properties"
        else value
        if key in _VALUES
        else again(value)
        for key, value in found.items()
        if not (key == "required" and not value) and (defaults or key != "default")
    }


def filled(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value that must be given: an empty text is none. Of an ID nobody needs to be told that."""
    free = schema.get("type") == "string" and "enum" not in schema and not name.endswith("Id")
    return schema | {"minLength": 1} if free else schema


def _listed(schema: dict[str, Any]) -> dict[str, Any]:
    """A tuple as a list of as many values, each of a type that it has anywhere; a list of anything says so."""
    if "prefixItems" not in schema:
        return schema | {"items": {}} if schema.get("type") == "array" and "items" not in schema else schema
    kinds: list[Any] = []
    for one in schema["prefixItems"]:
        if one not in kinds:
            kinds.append(one)
    items = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return {key: value for key, value in schema.items() if key != "prefixItems"} | {"items": items}


def _typed(schema: dict[str, Any]) -> dict[str, Any]:
    """What is enumerated has a type, and one value is an enumeration of one."""
    if "const" in schema:
        schema = {key: value for key, value in schema.items() if key != "const"} | {"enum": [schema["const"]]}
    kinds = {_TYPES.get(type(one)) for one in schema.get("enum", ())}
    if "type" in schema or len(kinds) != 1 or None in kinds:
        return schema
    return {"type": kinds.pop()} | schema
