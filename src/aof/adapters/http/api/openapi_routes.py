"""What the OpenAPI document says of routes that are no operations, and of every refusal. Must not know operations."""

from __future__ import annotations

from typing import Any, Final

from aof.adapters.http.api.responses import STATUS_BY_CODE, STATUS_BY_KIND
from aof.app.operations.schema_subset import plain
from aof.app.portable.schemas import EVENT

JSON: Final = "application/json"
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
FAILURES: Final = {str(status): {"$ref": f"#/components/responses/{status}"} for status in _STATUSES}


def failures(body: dict[str, Any]) -> dict[str, Any]:
    """The refusals by their status, as components."""
    return {
        str(status): {"description": _MEANINGS[status], "content": {JSON: {"schema": body}}} for status in _STATUSES
    }


def other_paths(event: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Whether the server lives, its counters, and the events as they come."""
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
            plain(EVENT, opened=True),
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
                | {status: FAILURES[status] for status in ("403", "413")},
            }
        },
        "/metrics": {
            "get": {
                "operationId": "metrics",
                "tags": ["server"],
                "summary": "Counters of the server.",
                "description": "In the text format of Prometheus.",
                "responses": {"200": {"description": "The counters.", "content": {"text/plain": {"schema": text}}}}
                | FAILURES,
            }
        },
        f"{prefix}/events": {
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
                | FAILURES,
            }
        },
    }
