"""Agent2Agent over HTTP: the card, JSON-RPC and REST, of revision 1.0 and of 0.3.

The application around it authenticates callers. The protocol's library is loaded with the first request, for that takes
long and most servers have no peers. Must not know tasks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from aof.adapters.a2a.served import paths
from aof.app.async_bridge import Follower
from aof.app.operations.call import Caller

if TYPE_CHECKING:
    from a2a.server.context import ServerCallContext

CallerOf = Callable[[Request], Caller]
CARD_PATH = "/.well-known/agent-card.json"
PATHS = (CARD_PATH, "/a2a/{path:path}")


class A2aOverHttp:
    """The endpoint, and the context in which it works."""

    def __init__(self, caller_of: CallerOf, version: str) -> None:
        self._caller_of = caller_of
        self._version = version
        self._app: ASGIApp | None = None
        self._follower: Follower | None = None

    @asynccontextmanager
    async def running(self, follower: Follower) -> AsyncIterator[None]:
        """Serve on this fabric until the context ends."""
        self._follower = follower
        yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._app is None:
            self._app = await anyio.to_thread.run_sync(self._made)
        await self._app(scope, receive, send)

    async def end_sessions(self, is_gone: Callable[[Caller], bool]) -> None:
        """There are none: every request comes with its token, and a stream ends with it."""

    def described(self) -> dict[str, Any]:
        """What the OpenAPI document says of it."""
        return paths.described()

    def _made(self) -> ASGIApp:
        from a2a.server.request_handlers.response_helpers import agent_card_to_dict
        from a2a.server.routes import (
            DefaultServerCallContextBuilder,
            create_jsonrpc_routes,
            create_rest_routes,
        )
        from starlette.responses import JSONResponse
        from starlette.routing import Route, Router

        from aof.adapters.a2a.served import card
        from aof.adapters.a2a.served.handler import CALLER, PeerRequests

        assert self._follower is not None
        fabric, caller_of, version = self._follower.fabric, self._caller_of, self._version
        project = fabric.services.environment.policy.project

        class Known(DefaultServerCallContextBuilder):
            """The call with its caller."""

            def build(self, request: Request) -> ServerCallContext:
                context = super().build(request)
                context.state[CALLER] = caller_of(request)
                return context

        def shown(request: Request) -> Any:
            base = str(request.base_url).rstrip("/")
            return JSONResponse(agent_card_to_dict(card.agent_card(base, project, version, fabric.org, push=False)))

        handler = PeerRequests(self._follower)
        rest = create_rest_routes(handler, Known(), enable_v0_3_compat=True, path_prefix=card.PREFIX)
        return Router([
            Route(card.CARD, shown),
            *create_jsonrpc_routes(handler, card.RPC, Known(), enable_v0_3_compat=True),
            *(route for route in rest if isinstance(route, Route)),  # what is left out are tenants: there are none
        ])  # fmt: skip
