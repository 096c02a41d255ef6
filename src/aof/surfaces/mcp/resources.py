"""Tasks and views as resources, and the notifications of clients that subscribe to them."""

from __future__ import annotations

import re
from typing import Any

import anyio
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aof.api.call import Caller, error_payload, parameters, perform
from aof.api.catalogue import BY_NAME
from aof.errors import AofError, InvalidInput, NotFound
from aof.kernel.events import Event
from aof.kernel.faults import record
from aof.surfaces.mcp.sessions import Hub
from aof.surfaces.mcp.tools import spell

TASKS = "aof://tasks"
_SNAPSHOT = "aof://snapshot"
JSON = "application/json"
_NOT_FOUND = -32002
_URI = re.compile(r"aof://(?P<name>[a-z]+)(?:/(?P<id>[A-Za-z0-9-]+))?(?:\?status=(?P<status>[a-z-]+))?")
_VIEWS = {"snapshot": ("snapshot", "The whole state, portable."), "org": ("org_show", "Agents, teams and roles.")}
_WAIT = 1.0  # seconds that one look at the log waits
_AFTER_A_FAULT = 5.0  # seconds


def resources() -> list[Resource]:
    """What can be read without knowing any ID."""
    listed = Resource(uri=TASKS, name="tasks", description="All tasks, one line each.", mime_type=JSON)
    views = [
        Resource(uri=f"aof://{name}", name=name, description=text, mime_type=JSON) for name, (_, text) in _VIEWS.items()
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
    """Read a resource as JSON. Only before revision 2026-07-28, a missing one has an error code of its own."""
    try:
        name, given = _operation_for(uri)
        operation = BY_NAME[name]
        result = await hub.ask(perform, hub.fabric, operation, parameters(operation, given), caller)
    except AofError as error:
        data = {"uri": uri, **msgspec.to_builtins(error_payload(error, spell))}
        missing = error.kind == "not_found" and revision not in MODERN_PROTOCOL_VERSIONS
        raise MCPError(_NOT_FOUND if missing else INVALID_PARAMS, error.message, data) from None
    text = msgspec.json.encode(result).decode()
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=JSON, text=text)])


def _operation_for(uri: str) -> tuple[str, dict[str, Any]]:
    """The operation that reads a resource, and its arguments."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise InvalidInput(f"{uri[:80]!r} is not a resource of AOF", "use aof://tasks/{id} or aof://tasks?status=ready")
    name, task_id, status = found.group("name", "id", "status")
    if name == "tasks":
        if task_id is not None and status is None:
            return "show", {"taskId": task_id}
        if task_id is None:
            return "list", {"status": status} if status else {}
    elif task_id is None and status is None and name in _VIEWS:
        return _VIEWS[name][0], {}
    raise NotFound(f"there is no resource {uri[:80]!r}", "use aof://tasks/{id} or aof://tasks?status=ready")


def touched(event: Event) -> set[str]:
    """The resources that an event has changed."""
    moved = {event.payload[end] for end in ("from", "to") if isinstance(event.payload.get(end), str)}
    uris = {TASKS, _SNAPSHOT, *(f"{TASKS}?status={status}" for status in moved)}
    return uris | ({f"{TASKS}/{event.task_id}"} if event.task_id else set())


class Changes:
    """Subscriptions of all connections."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._listen = ListenHandler(hub.bus)
        self._following = False
        self._begun = anyio.Lock()
        self._subscribed: dict[tuple[int, str], Any] = {}

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream of changes."""
        await self._follow()
        return await self._listen(ctx, params)

    async def subscribe(self, ctx: ServerRequestContext[Any, Any], params: SubscribeRequestParams) -> EmptyResult:
        """Note that this connection wants to know of a resource."""
        await self._follow()
        connection = ctx.session._connection  # noqa: SLF001 - the only way to what lives as long as the connection
        key = (id(connection), str(params.uri))
        if key not in self._subscribed:
            self._subscribed[key] = connection
            connection.exit_stack.callback(self._subscribed.pop, key, None)
        return EmptyResult()

    async def unsubscribe(self, ctx: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams) -> EmptyResult:
        """Forget that this connection wants to know of a resource."""
        self._subscribed.pop((id(ctx.session._connection), str(params.uri)), None)  # noqa: SLF001 - as above
        return EmptyResult()

    def close(self) -> None:
        """End every stream."""
        self._listen.close()

    async def _follow(self) -> None:
        """Begin to publish changes, once; it returns when it is known from which event on."""
        async with self._begun:
            if not self._following:
                seen = await self._hub.ask(self._hub.fabric.store.head)
                self._hub.start(self._publish, seen)
                self._following = True

    async def _publish(self, seen: int) -> None:
        """Publish changes for as long as the server runs. A fault in one round costs nobody more than that round."""
        while True:
            try:
                seen = await self._publish_after(seen)
            except Exception as error:  # noqa: BLE001 - the edge of one round
                record("telling of changes", error)
                await anyio.sleep(_AFTER_A_FAULT)

    async def _publish_after(self, seen: int) -> int:
        """Wait a little for events after this one, and publish what they have changed; returns the last one."""
        store = self._hub.fabric.store
        if not await self._hub.ask(store.wait, seen, _WAIT):
            return seen
        events = await self._hub.ask(lambda after: list(store.events(after)), seen)
        changed: set[str] = set()
        for event in events:
            seen = event.seq
            changed |= touched(event)
        for uri in sorted(changed):
            await self._hub.bus.publish(ResourceUpdated(uri=uri))
            for (_, wanted), connection in list(self._subscribed.items()):
                if wanted != uri:
                    continue
                try:
                    await connection.send_resource_updated(uri)
                except Exception as error:  # noqa: BLE001 - the edge of one connection
                    record(f"telling of {uri}", error)
        return seen
