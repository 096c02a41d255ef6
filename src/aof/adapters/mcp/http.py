"""MCP as streamable HTTP: an ASGI application to mount. Who calls is for the application around it to prove."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from aof.adapters.mcp.hub import CallerOf, Hub
from aof.adapters.mcp.server import make_server
from aof.bridge import Follower


class McpOverHttp:
    """The endpoint, and the context in which it works.

    `streamed` is for tools that say something before they answer. Ours do not, so each answer is one JSON document:
    as a stream of one event it costs a session's client half as much again. Changes are told on streams of their own.
    """

    streamed: ClassVar[bool] = False

    def __init__(self, caller_of: CallerOf, tiers: tuple[str, ...], version: str, max_body: int) -> None:
        self._caller_of = caller_of
        self._tiers = tiers
        self._version = version
        self._max_body = max_body
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self, follower: Follower) -> AsyncIterator[None]:
        """Serve on this fabric until the context ends."""
        hub = Hub(follower, self._caller_of, self._tiers)
        self._manager = StreamableHTTPSessionManager(
            self.server(hub), json_response=not self.streamed, max_request_body_size=self._max_body
        )
        async with self._manager.run():
            try:
                yield
            finally:
                hub.stopping = True

    def server(self, hub: Hub) -> Server[Hub]:
        """The server that is mounted."""
        return make_server(hub, version=self._version)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        assert self._manager is not None
        await self._manager.handle_request(scope, receive, send)
