"""The OpenAPI document, made from the catalogue. Must not know any single operation."""

from __future__ import annotations

from typing import Any

import msgspec

from aof.adapters.http.api.responses import PREFIX, STATUS_BY_CODE, STATUS_BY_KIND, ErrorBody, method_of
from aof.adapters.http.guard import RUN_SECRET
from aof.app.operations.catalogue import OPERATIONS, Operation
from aof.app.operations.schemas import input_schema
from aof.core.model.events import Event

_REF = "#/components/schemas/{name}"
_JSON = "application/json"
_SECRET = {
    "name": RUN_SECRET,
    "in": "header",
    "description": "the secret that the claim returned, for what is done in the name of its run",
    "schema": {"type": "string"},
}


def document(version: str) -> dict[str, Any]:
    """The whole document."""
    kinds = [*(one.parameters for one in OPERATIONS), *(one.result for one in OPERATIONS), ErrorBody, Event]
    unique = list(dict.fromkeys(kinds))
    schemas, parts = msgspec.json.schema_components(unique, ref_template=_REF)
    of = dict(zip(unique, schemas, strict=True))
    failures = {
        str(status): {"description": "Not done.", "content": {_JSON: {"schema": of[ErrorBody]}}}
        for status in sorted({*STATUS_BY_KIND.values(), *STATUS_BY_CODE.values()})
    }
    paths = {f"{PREFIX}/{one.name}": {method_of(one).lower(): _described(one, of, failures)} for one in OPERATIONS}
    return {
        "openapi": "3.1.0",
        "info": {"title": "AOF", "version": version, "description": "A task fabric for teams of agents."},
        "security": [{"token": []}],
        "paths": paths | _others(of, failures),
        "components": {"schemas": parts, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _described(operation: Operation, of: dict[Any, Any], failures: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.help,
        "responses": {"200": {"description": "Done.", "content": {_JSON: {"schema": of[operation.result]}}}} | failures,
    }
    if operation.effect != "read":
        required = any(field.required for field in msgspec.structs.fields(operation.parameters))
        body = {"required": required, "content": {_JSON: {"schema": of[operation.parameters]}}}
        return described | {"parameters": [_SECRET], "requestBody": body}
    schema = input_schema(operation)
    parameters = [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": one}
        for name, one in schema["properties"].items()
    ]
    return described | {"parameters": parameters}


def _others(of: dict[Any, Any], failures: dict[str, Any]) -> dict[str, Any]:
    """What is not an operation: whether the server lives, and the events as they come."""
    health = {"type": "object", "properties": {"status": {"const": "ok"}, "version": {"type": "string"}}}
    text = {"type": "string"}
    stream = [
        ("after", "query", "only events with a greater number", {"type": "integer", "minimum": 0}),
        ("taskId", "query", "only this task's", {"type": "string"}),
        ("type", "query", "only events of this type", {"type": "string"}),
        (
            "format",
            "query",
            "in whose words; portable ones follow a snapshot",
            {"enum": ["native", "agentruntime"]},
        ),
        ("Last-Event-ID", "header", "the last event that was seen; beats `after`", {"type": "integer", "minimum": 0}),
    ]
    return {
        "/health": {
            "get": {
                "operationId": "health",
                "summary": "Whether the server lives.",
                "security": [],
                "responses": {"200": {"description": "It does.", "content": {_JSON: {"schema": health}}}}
                | {status: failures[status] for status in ("403", "413")},
            }
        },
        "/metrics": {
            "get": {
                "operationId": "metrics",
                "summary": "Counters of the server, in the text format of Prometheus.",
                "responses": {"200": {"description": "The counters.", "content": {"text/plain": {"schema": text}}}}
                | failures,
            }
        },
        f"{PREFIX}/events": {
            "get": {
                "operationId": "events",
                "summary": "Events as they come; the data of each is an event.",
                "parameters": [
                    {"name": name, "in": place, "description": text, "schema": schema}
                    for name, place, text, schema in stream
                ],
                "responses": {
                    "200": {
                        "description": "A stream that goes on.",
                        "content": {"text/event-stream": {"schema": {"type": "string"}, "x-event": of[Event]}},
                    }
                }
                | failures,
            }
        },
    }
