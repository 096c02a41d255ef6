"""The OpenAPI document: operations from the catalogue, and the routes that are no operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from aof.api.catalogue import OPERATIONS, Operation, filled_schema, in_order, input_schema, plain_schema
from aof.kernel.events import Event
from aof.portable.schemas import EVENT
from aof.surfaces.http.guard import RUN_SECRET
from aof.surfaces.http.responses import PREFIX, STATUS_BY_CODE, STATUS_BY_KIND, ErrorBody, method_of

JSON: Final = "application/json"
_REF: Final = "#/components/schemas/{name}"
_MEANINGS: Final = {
    400: "The call itself is wrong.",
    401: "There is no token with the call, or it is not valid.",
    403: "The caller may not do this.",
    404: "What was asked for does not exist.",
    409: "Another caller was first, or the caller's knowledge is out of date.",
    413: "The call holds more than the server takes.",
    422: "The rules do not allow this now.",
    429: "The caller makes too many requests.",
    500: "The data needs a look, or the server failed.",
    503: "The server cannot do it at the moment.",
}
_STATUSES: Final = sorted({*STATUS_BY_KIND.values(), *STATUS_BY_CODE.values()})
_FAILURES: Final = {str(status): {"$ref": f"#/components/responses/{status}"} for status in _STATUSES}
_SECRET = {
    "name": RUN_SECRET,
    "in": "header",
    "description": "the secret that the claim returned, for what is done in the name of its run",
    "schema": {"type": "string"},
}
_TAGS = {
    "plan": "Create, order, hold and stop tasks.",
    "work": "Claim a task, show signs of life, report the outcome.",
    "review": "Accept work or send it back.",
    "see": "Lists, one task, history, graph, snapshot.",
    "team": "Org chart and workflows.",
    "messages": "AOF/1 messages, mail, handoffs and their audit, the shared documents.",
    "serve": "The scheduler and jobs.",
    "connect": "What an agent is told when its session begins.",
    "data": "Checks and repairs of the data directory.",
    "server": "The server itself, and the stream of events.",
    "mcp": "The Model Context Protocol.",
    "a2a": "The Agent2Agent protocol.",
}


def document(version: str, mounted: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The whole document; `mounted` are the paths of other protocols that are served beside the operations."""
    bodies = [one.parameters for one in OPERATIONS if one.effect != "read"]
    kinds = dict.fromkeys([*bodies, *(one.result for one in OPERATIONS if one.answer is None), ErrorBody, Event])
    schemas, parts = in_order(msgspec.json.schema_components(list(kinds), ref_template=_REF))
    of = {kind: plain_schema(one, opened=True) for kind, one in zip(kinds, schemas, strict=True)}
    components = {
        name: plain_schema(_describe_defaults(one), defaults=False, opened=True) for name, one in parts.items()
    }
    given = {kind.__name__ for kind in bodies}
    inner = {
        one.get("$ref", "").rpartition("/")[2] for name in given for one in components[name]["properties"].values()
    }
    components |= {name: _body_schema(components[name]) for name in given | inner - {""}}
    paths = {f"{PREFIX}/{one.name}": {method_of(one).lower(): _route(one, of)} for one in OPERATIONS}
    paths |= _paths_of_server(of[Event])
    for others in mounted:
        paths |= others
    used = {tag for path in paths.values() for one in path.values() for tag in one["tags"]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "AOF",
            "version": version,
            "description": "A task fabric for teams of agents. Every operation is also a tool and a command.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/", "description": "this server"}],
        "security": [{"token": []}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items() if name in used],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {
                str(status): {"description": _MEANINGS[status], "content": {JSON: {"schema": of[ErrorBody]}}}
                for status in _STATUSES
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _route(operation: Operation, of: dict[Any, Any]) -> dict[str, Any]:
    """What the document says of one operation; `of` are the schemas of parameters and results."""
    answer = (
        plain_schema(operation.answer(), defaults=False, opened=True)
        if operation.answer is not None
        else of[operation.result]
    )
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.cli.section if operation.cli is not None else "see"],
        "summary": operation.help,
        "description": f"Needs a token with the scope `{operation.scope}`. The tool is `{operation.tool}`, the command "
        f"`aof {operation.verb}`.",
        "responses": {"200": {"description": "Done.", "content": {JSON: {"schema": answer}}}} | _FAILURES,
    }
    if operation.effect != "read":
        required = any(field.required for field in msgspec.structs.fields(operation.parameters))
        body = {"required": required, "content": {JSON: {"schema": of[operation.parameters]}}}
        return described | {"parameters": [_SECRET], "requestBody": body}
    schema = plain_schema(_describe_defaults(input_schema(operation)), defaults=False, opened=True)
    parameters = [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": one.get("description", name),
            "schema": {key: value for key, value in one.items() if key != "description"},
        }
        for name, one in schema["properties"].items()
    ]
    return described | {"parameters": parameters}


def _describe_defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, whose descriptions say what is taken for a property that is left out."""
    if "properties" not in schema:
        return schema
    properties = {}
    for name, one in schema["properties"].items():
        default = one.get("default")
        if isinstance(default, str | int | float) and default != "":
            text = f"default: {str(default).lower() if isinstance(default, bool) else default}"
            properties[name] = one | {"description": f"{one['description']}; {text}" if "description" in one else text}
        else:
            properties[name] = one
    return schema | {"properties": properties}


def _body_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a body: a text that must be given must not be empty, and a null says as little as nothing."""
    required = schema.get("required", ())
    properties = {
        name: filled_schema(name, one) if name in required else _or_null(one)
        for name, one in schema["properties"].items()
    }
    return schema | {"properties": properties}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    description = {"description": schema["description"]} if "description" in schema else {}
    rest = {key: value for key, value in schema.items() if key != "description"}
    kinds = [rest] if rest.keys() != {"anyOf"} else rest["anyOf"]
    return schema if not rest else description | {"anyOf": [*kinds, {"type": "null"}]}


def _paths_of_server(event: dict[str, Any]) -> dict[str, Any]:
    """The routes that are no operations: health, metrics, and the stream of events."""
    text = {"type": "string"}
    number = {"type": "integer", "minimum": 0}
    health = {
        "type": "object",
        "properties": {"status": {"type": "string", "enum": ["ok"]}, "version": text},
        "required": ["status", "version"],
    }
    stream = [
        ("after", "query", "only events with a greater number", number),
        ("taskId", "query", "only events of this task", text),
        ("type", "query", "only events of this type", text),
        (
            "format",
            "query",
            "native events, or those of the agent task contract, which follow a snapshot",
            {"type": "string", "enum": ["native", "agentruntime"]},
        ),
        ("Last-Event-ID", "header", "the last event that was seen; beats `after`", number),
    ]
    data = {
        "anyOf": [
            event,
            plain_schema(EVENT, opened=True),
            {"type": "object", "description": "a snapshot", "additionalProperties": True},
        ]
    }
    return {
        "/health": {
            "get": {
                "operationId": "health",
                "tags": ["server"],
                "summary": "Whether the server lives.",
                "description": "Needs no token.",
                "security": [],
                "responses": {"200": {"description": "It does.", "content": {JSON: {"schema": health}}}}
                | {status: _FAILURES[status] for status in ("403", "413")},
            }
        },
        "/metrics": {
            "get": {
                "operationId": "metrics",
                "tags": ["server"],
                "summary": "Counters of the server.",
                "description": "In the text format of Prometheus.",
                "responses": {"200": {"description": "The counters.", "content": {"text/plain": {"schema": text}}}}
                | _FAILURES,
            }
        },
        f"{PREFIX}/events": {
            "get": {
                "operationId": "events",
                "tags": ["server"],
                "summary": "Events as they come.",
                "description": "Server-sent events: `id` is the number of the event, `event` its type, and `data` the "
                "event itself as JSON. The schema is that of one `data`.",
                "parameters": [
                    {"name": name, "in": place, "description": said, "schema": schema}
                    for name, place, said, schema in stream
                ],
                "responses": {
                    "200": {
                        "description": "A stream that goes on.",
                        "content": {"text/event-stream": {"schema": data}},
                    }
                }
                | _FAILURES,
            }
        },
    }
