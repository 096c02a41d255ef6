"""Every operation in one table, from which tools, routes, schemas and the reference are made.

And its JSON schemas.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from aof.api.signatures import operations_of
from aof.documents import charter_operations, mail_operations, worklog_operations
from aof.errors import InvalidInput
from aof.handoffs import operations as handoffs_operations
from aof.handoffs import shared_work
from aof.interchange import service as interchange_service
from aof.jobs import operations as jobs_operations
from aof.kernel.declarations import SCOPES, Effect, Operation, Params, Scope, Tier
from aof.maintenance import operations as maintenance_operations
from aof.messages import service as messages_service
from aof.org import operations as org_operations
from aof.portable import operations as portable_operations
from aof.queries import operations as queries_operations
from aof.runs import brief
from aof.runs import operations as runs_operations
from aof.scheduler import tick
from aof.supervision import inbox, views
from aof.tasks import changes as tasks_changes
from aof.tasks import operations as tasks_operations
from aof.workflows import operations as workflows_operations

__all__ = [
    "BY_NAME",
    "BY_TOOL",
    "OPERATIONS",
    "SCOPES",
    "TIERS",
    "Effect",
    "Operation",
    "Params",
    "Scope",
    "Tier",
    "listed_in",
    "tiers_of",
]

MODULES: Final = (  # whose functions are operations, in the order in which tools and pages list these
    tasks_operations, runs_operations, tasks_changes, inbox, queries_operations, brief, portable_operations, views,
    org_operations, messages_service, handoffs_operations, shared_work, mail_operations,
    charter_operations, worklog_operations, workflows_operations, jobs_operations, tick,
    maintenance_operations, interchange_service,
)  # fmt: skip
OPERATIONS: Final[tuple[Operation, ...]] = tuple(one for module in MODULES for one in operations_of(module))
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
BY_TOOL: Final = {operation.tool: operation for operation in OPERATIONS}
TIERS: Final[tuple[Tier, ...]] = ("core", "worker", "handoff", "mail", "all")


def tiers_of(names: str | None) -> tuple[str, ...]:
    """The tiers that a list such as `core,handoff` names; none: the core."""
    tiers = tuple(name.strip() for name in (names or "core").split(","))
    if unknown := [name for name in tiers if name not in TIERS]:
        raise InvalidInput(f"there is no set of tools {unknown[0][:40]!r}", f"use one or more of: {', '.join(TIERS)}")
    return tiers


def listed_in(tiers: tuple[str, ...]) -> tuple[Operation, ...]:
    """The operations that a client of these tiers is told about; the core is always among them."""
    if "all" in tiers:
        return OPERATIONS
    works = "worker" in tiers
    return tuple(one for one in OPERATIONS if one.tier in ("core", *tiers) or (works and one.worker))


_REF = "{name}"
SELF_EXPLAINING = frozenset({
    "actor", "blockerId", "body", "description", "expectRev", "handoffId", "limit", "messageId", "metadata", "parentId",
    "priority", "reason", "role", "tags", "taskId", "team", "title",
})  # fmt: skip
RARE = ("key", "expect_rev")  # parameters that a tool takes, and shows only where its row says so
_NOT_FOR_MODELS = ("minItems", "minLength", "minimum")  # a refusal says it to the few who need it


@cache
def _full(kind: Any) -> dict[str, Any]:
    (schema,), parts = msgspec.json.schema_components([kind], ref_template=_REF)
    written: dict[str, Any] = plain_schema(_written_out(in_order(schema), in_order(parts)))
    return written


def in_order(schema: Any) -> Any:
    """The same schema with each closed set in the order in which it is declared, not in that of the alphabet."""
    if isinstance(schema, list | tuple):
        return [in_order(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    orders = _orders()
    return {
        key: orders.get(frozenset(value), value) if key == "enum" and isinstance(value, list) else in_order(value)
        for key, value in schema.items()
    }


@cache
def _orders() -> dict[frozenset[Any], list[Any]]:
    kinds = [kind for operation in OPERATIONS for kind in (operation.parameters, operation.result)]
    found: dict[frozenset[Any], list[Any]] = {}
    for values in _closed_sets(kinds, set()):
        found.setdefault(frozenset(values), values)
    return found


def _closed_sets(kinds: Any, seen: set[type]) -> Iterator[list[Any]]:
    """The values of each set of words that these types mention; words of one union are one set."""
    if words := [value for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]:
        yield words
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in seen:
            seen.add(kind)
            for field in msgspec.structs.fields(kind):
                yield from _closed_sets((field.type,), seen)
        elif get_origin(kind) is not Literal:
            yield from _closed_sets(get_args(kind), seen)


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


def input_schema(operation: Operation, *, tool: bool = False, whole: bool = False) -> dict[str, Any]:
    """What the operation takes, over the wire or as a tool; of a tool what it shows, or the `whole`."""
    schema = schema_of(operation.parameters)
    properties = schema["properties"]
    required = list(schema.get("required", ()))
    if tool:
        fields = shown_fields(operation) if not whole else msgspec.structs.fields(operation.parameters)
        shown = [field.encode_name for field in fields]
        required = [name for name in shown if name in (*required, *operation.tool_requires)]
        properties = {name: _in_short(name, properties[name]) for name in shown}
        for name, value in operation.tool_defaults:
            properties[name] = properties[name] | {"default": value}
        return {"type": "object", "properties": properties} | ({"required": required} if required else {})
    schema["properties"] = {
        name: filled_schema(name, one) if name in required else one for name, one in properties.items()
    }
    return schema | ({"required": required} if required else {})


def _in_short(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter with as few words as a model needs: every word costs every agent.

    A name that says enough is not described, and limits are left to refusals. What else an object may hold is not
    said either: a tool takes more parameters than it shows, and clients would refuse them.
    """
    kept = {key: one for key, one in schema.items() if key not in _NOT_FOR_MODELS}
    if name in SELF_EXPLAINING:
        kept.pop("description", None)
    if kept.get("additionalProperties") is False:
        del kept["additionalProperties"]
    if "properties" in kept:
        kept["properties"] = {key: _in_short(key, one) for key, one in kept["properties"].items()}
    return kept


@cache
def shown_fields(operation: Operation) -> tuple[FieldInfo, ...]:
    """The parameters that a tool shows, in this order; it takes the others as well.

    Who holds the run acts as its agent, so a worker's tools show no `agent` beside `run`.
    """
    fields = {field.name: field for field in msgspec.structs.fields(operation.parameters)}
    hidden = {*RARE, "actor"} | ({"agent"} if operation.runs else set())
    names = operation.tool_shows or (*(name for name in fields if name not in hidden), "actor")
    return tuple(fields[name] for name in names)


def example_arguments(operation: Operation) -> dict[str, Any]:
    """Arguments of a call that works once its placeholders are filled in."""
    return needed_arguments(operation) | dict(operation.example)


def needed_arguments(operation: Operation) -> dict[str, Any]:
    """The arguments that a call as a tool must have, with placeholders."""
    required = input_schema(operation, tool=True).get("required", ())
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(operation.parameters)}
    properties = schema_of(operation.parameters)["properties"]
    return {fields[name]: _sample(name, properties[name]) for name in required}


def _sample(name: str, schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kinds: dict[str, Any] = {"array": ["…"], "object": {}, "integer": 1, "number": 1, "boolean": True}
    return kinds.get(schema.get("type", ""), "001" if name in ("taskId", "blockerId") else "…")


def output_schema(operation: Operation) -> dict[str, Any]:
    """What the operation answers; what is left out of an answer is said by its absence, not by a default."""
    answer: dict[str, Any] = plain_schema(schema_of(operation.result), defaults=False)
    return answer


_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_VALUES: Final = ("enum", "default", "const", "required")  # what holds data, not schemas


def plain_schema(schema: Any, *, defaults: bool = True, opened: bool = False) -> Any:
    """The schema in the subset of JSON Schema that every client takes.

    Without `defaults` it names none: in an answer nobody may assume one. With `opened`, an object of unknown properties
    says that it takes any, which some generators do not take for granted.
    """
    again = partial(plain_schema, defaults=defaults, opened=opened)
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


def filled_schema(name: str, schema: dict[str, Any]) -> dict[str, Any]:
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
