"""Tells clients that asked for it when a resource has changed: over `subscriptions/listen`, and in the older way.

Follows the log only once somebody listens. Must not know what a resource contains.
"""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import ListenHandler, ResourceUpdated
from mcp_types import (
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from aof.adapters.mcp.features.resources import touched
from aof.adapters.mcp.sessions import Hub
from aof.app.faults import record

_PATIENCE = 1.0  # seconds that one look at the log waits
_AFTER_A_FAULT = 5.0  # seconds


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
        """Note that it no longer does."""
        self._subscribed.pop((id(ctx.session._connection), str(params.uri)), None)  # noqa: SLF001 - as above
        return EmptyResult()

    def close(self) -> None:
        """End every stream."""
        self._listen.close()

    async def _follow(self) -> None:
        """Nobody is told that we listen before it is known from which event on."""
        async with self._begun:
            if not self._following:
                seen = await self._hub.ask(self._hub.fabric.store.head)
                self._hub.start(self._tell, seen)
                self._following = True

    async def _tell(self, seen: int) -> None:
        """Tell for as long as the server runs. What goes wrong in one round costs nobody more than that round."""
        while True:
            try:
                seen = await self._told(seen)
            except Exception as error:  # noqa: BLE001 - the edge of one round
                record("telling of changes", error)
                await anyio.sleep(_AFTER_A_FAULT)

    async def _told(self, seen: int) -> int:
        store = self._hub.fabric.store
        if not await self._hub.ask(store.wait, seen, _PATIENCE):
            return seen
        events = await self._hub.ask(lambda after: list(store.events(after)), seen)
        changed: set[str] = set()
        for event in events:
            seen = event.seq
            changed |= touched(event)
        for uri in sorted(changed):
            await self._hub.bus.publish(ResourceUpdated(uri=uri))
            for (_, wanted), connection in list(self._subscribed.items()):
                if wanted == uri:
                    await self._update(connection, uri)
        return seen

    async def _update(self, connection: Any, uri: str) -> None:
        try:
            await connection.send_resource_updated(uri)
        except Exception as error:  # noqa: BLE001 - the edge of one connection
            record(f"telling of {uri}", error)
