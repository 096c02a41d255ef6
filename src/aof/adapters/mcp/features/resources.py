"""Tasks as resources: `aof://tasks/{id}`, `aof://tasks{?status}`, and the views that the catalogue has.

Must not know sessions.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ReadResourceResult, Resource, ResourceTemplate, TextResourceContents
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aof.adapters.mcp.sessions import Hub
from aof.adapters.mcp.tools import spell
from aof.app.operations.call import Caller, parameters, perform
from aof.app.operations.catalogue import BY_NAME
from aof.app.operations.error_payload import told
from aof.core.errors.base import AofError, InvalidInput, NotFound
from aof.core.model.events import Event

TASKS = "aof://tasks"
_SNAPSHOT = "aof://snapshot"
JSON = "application/json"
_NOT_FOUND = -32002
_URI = re.compile(r"aof://(?P<name>[a-z]+)(?:/(?P<id>[A-Za-z0-9-]+))?(?:\?status=(?P<status>[a-z-]+))?")
_VIEWS = {"snapshot": ("snapshot", "The whole state, portable."), "org": ("org_show", "Agents, teams and roles.")}


def resources() -> list[Resource]:
    """What can be read without knowing any ID."""
    listed = Resource(uri=TASKS, name="tasks", description="All tasks, one line each.", mime_type=JSON)
    views = [
        Resource(uri=f"aof://{name}", name=name, description=text, mime_type=JSON)
        for name, (operation, text) in _VIEWS.items()
        if operation in BY_NAME
    ]
    return [listed, *views]


def templates() -> list[ResourceTemplate]:
    """What can be read once something is known."""
    return [
        ResourceTemplate(uri_template="aof://tasks/{id}", name="task", description="One task.", mime_type=JSON),
        ResourceTemplate(
            uri_template="aof://tasks{?status}", name="tasks by status", description="Tasks.", mime_type=JSON
        ),
    ]


async def read(hub: Hub, uri: str, caller: Caller, revision: str) -> ReadResourceResult:
    """The resource as JSON. A code of its own for what is not there is known before revision 2026-07-28 only."""
    try:
        result = await hub.ask(_ask, hub, uri, caller)
    except AofError as error:
        data = {"uri": uri, **msgspec.to_builtins(told(error, spell))}
        missing = error.kind == "not_found" and revision not in MODERN_PROTOCOL_VERSIONS
        raise MCPError(_NOT_FOUND if missing else INVALID_PARAMS, error.message, data) from None
    text = msgspec.json.encode(result).decode()
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=JSON, text=text)])


def _ask(hub: Hub, uri: str, caller: Caller) -> Any:
    name, given = _question(uri)
    operation = BY_NAME[name]
    return perform(hub.fabric, operation, parameters(operation, given), caller)


def _question(uri: str) -> tuple[str, dict[str, Any]]:
    found = _URI.fullmatch(uri)
    if found is None:
        raise InvalidInput(f"{uri[:80]!r} is not a resource of AOF", "use aof://tasks/{id} or aof://tasks?status=ready")
    name, task_id, status = found.group("name", "id", "status")
    if name == "tasks":
        if task_id is not None and status is None:
            return "show", {"taskId": task_id}
        if task_id is None:
            return "list", {"status": status} if status else {}
    elif task_id is None and status is None and name in _VIEWS and _VIEWS[name][0] in BY_NAME:
        return _VIEWS[name][0], {}
    raise NotFound(f"there is no resource {uri[:80]!r}", "use aof://tasks/{id} or aof://tasks?status=ready")


def touched(event: Event) -> set[str]:
    """The resources that an event has changed."""
    moved = {event.payload[end] for end in ("from", "to") if isinstance(event.payload.get(end), str)}
    uris = {TASKS, _SNAPSHOT, *(f"{TASKS}?status={status}" for status in moved)}
    return uris | ({f"{TASKS}/{event.task_id}"} if event.task_id else set())
