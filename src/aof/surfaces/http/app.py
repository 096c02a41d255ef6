"""The HTTP application: its routes behind the guard, and the watch that ends what revoked tokens have begun."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aof.api.async_bridge import Follower
from aof.api.call import Caller
from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidInput, NotFound
from aof.kernel.faults import record
from aof.surfaces.http.guard import (
    Authenticate,
    ConnectionScreen,
    FailedAuthentications,
    Guard,
    TokenLimits,
    Traffic,
    ValidTokens,
)
from aof.surfaces.http.openapi import document
from aof.surfaces.http.responses import PREFIX, answer, failure, fault
from aof.surfaces.http.routes import event_stream, operation_routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.surfaces.board.app import Board

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_OPEN = ("/health", "/openapi.json")  # paths that need no token
_AFTER_A_FAULT = 5.0  # seconds of silence
_log = logging.getLogger(__name__)

Tell = Callable[[str, str], None]


class Mounted(Protocol):
    """Another ASGI endpoint that works on the same fabric."""

    def running(self, follower: Follower) -> Any:
        """The context in which it works."""
        ...

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        ...

    async def end_sessions(self, is_gone: Callable[[Caller], bool]) -> None:
        """End the sessions of callers that may no longer call."""
        ...

    def described(self) -> dict[str, Any]:
        """What the OpenAPI document says of it: routes by path."""
        ...


def log_it(action: str, text: str) -> None:
    """The `tell` of a server without a service that reports events."""
    _log.warning("%s: %s", action, text)


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the application behaves. `hosts` are the names that it may be called by.

    A body must be there after `body_seconds`. `valid_tokens` are checked every `check_tokens_every` seconds, so that
    whatever goes on ends soon after its token; `tell` gets a line per minute about what was turned away. `open_paths`
    are those of mounted endpoints that need no token.
    """

    authenticate: Authenticate
    hosts: tuple[str, ...] = LOOPBACK
    max_body: int = 11_000_000
    body_seconds: float = 60.0
    check_tokens_every: float = 0.25
    requests_per_second: float = 200.0
    streams_per_token: int = 32
    failures_per_minute: float = 60.0
    valid_tokens: ValidTokens | None = None
    tell: Tell = log_it
    version: str = ""
    open_paths: tuple[str, ...] = ()


def make_app(
    fabric_factory: Callable[[], Fabric],
    settings: HttpSettings,
    mounts: dict[str, Mounted] | None = None,
    traffic: Traffic | None = None,
    board: Board | None = None,
) -> Starlette:
    """The application on one data directory; `traffic` is what its server counts with, `board` the page for people.

    Its server may ask `state.refuse` about the first bytes of each connection.
    """
    mounted = mounts or {}
    endpoints = tuple(dict.fromkeys(mounted.values()))  # one may be reached by several paths
    open_paths = (*_OPEN, *settings.open_paths)
    described = document(settings.version, [endpoint.described() for endpoint in endpoints])
    counted = traffic or Traffic()
    token_limits = TokenLimits(
        counted,
        requests_per_second=settings.requests_per_second,
        streams=settings.streams_per_token,
        valid=settings.valid_tokens,
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        fabric = await anyio.to_thread.run_sync(fabric_factory)
        async with AsyncExitStack() as stack:
            stack.callback(fabric.close)
            app.state.follower = Follower(fabric)
            await stack.enter_async_context(app.state.follower.running())
            for endpoint in endpoints:
                await stack.enter_async_context(endpoint.running(app.state.follower))
            background = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(background.cancel_scope.cancel)
            background.start_soon(_watch, fabric, settings, counted, token_limits, endpoints)
            yield

    async def health(_request: Request) -> Response:
        return answer({"status": "ok", "version": settings.version})

    async def openapi(_request: Request) -> Response:
        return answer(described)

    async def metrics(_request: Request) -> Response:
        return Response(counted.prometheus(), media_type="text/plain; version=0.0.4")

    failures = FailedAuthentications(settings.failures_per_minute)
    routes = [  # looked through in this order, so what is called most stands first
        *(Route(path, endpoint) for path, endpoint in mounted.items()),
        Route("/health", health),
        Route("/openapi.json", openapi),
        Route("/metrics", metrics),
        Route(f"{PREFIX}/events", event_stream),
        *(board.routes(failures, counted) if board is not None else ()),
        *operation_routes(settings.max_body),
    ]
    guard = Middleware(
        Guard,
        authenticate=settings.authenticate,
        hosts=settings.hosts,
        open_paths=open_paths,
        max_body=settings.max_body,
        body_seconds=settings.body_seconds,
        token_limits=token_limits,
        failures=failures,
        traffic=counted,
        board=board,
    )
    app = Starlette(
        routes=routes,
        middleware=[guard],
        lifespan=lifespan,
        exception_handlers={HTTPException: _no_route, Exception: _fault},
    )
    is_page = board.covers if board is not None else lambda _path: False
    app.state.board = board
    app.state.refuse = ConnectionScreen(settings.authenticate, failures, counted, open_paths, is_page).refusal
    return app


async def _fault(request: Request, error: Exception) -> Response:
    """The answer to an exception that no route has caught; the server goes on."""
    reference = record(request.url.path[:80], error)
    board: Board | None = request.app.state.board
    if board is not None and board.covers(request.url.path):
        return board.fault(request, reference)
    return fault(reference)


async def _no_route(request: Request, error: Exception) -> Response:
    """The answer to an unknown path, or to a method that a path does not take."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    board: Board | None = request.app.state.board
    if board is not None and board.covers(request.url.path):
        return board.no_route(request, status)
    if status == 405:  # noqa: PLR2004 - the status has no name here that says more
        refused = failure(InvalidInput(f"{request.url.path} does not take {request.method}", "see /openapi.json"))
        refused.status_code = status
        refused.headers.update(getattr(error, "headers", None) or {})
        return refused
    return failure(NotFound(f"there is nothing at {request.url.path[:80]}", "see /openapi.json"))


async def _watch(
    fabric: Fabric, settings: HttpSettings, traffic: Traffic, token_limits: TokenLimits, endpoints: tuple[Mounted, ...]
) -> None:
    """End what revoked tokens have begun, and report what was turned away, until cancelled. A failure is tried again.

    Failed authentications become one event per minute at most, however many there were.
    """
    unusable = ""
    while True:
        await anyio.sleep(settings.check_tokens_every)
        try:
            token_limits.end_revoked()
            unusable = ""
            for endpoint in endpoints:
                await endpoint.end_sessions(token_limits.is_gone)
            for report in traffic.due(anyio.current_time()):
                settings.tell(report.action, report.text)
                if report.action != "auth":
                    continue
                payload = {"count": report.total, "addresses": report.addresses}
                try:
                    await anyio.to_thread.run_sync(fabric.remark, "http.authentication.failed", payload)
                except AofError as error:
                    _log.warning("failed authentications are not in the log: %s", error.message)
        except AofError as error:  # tokens.json cannot be used: every request is told so, and the log once
            if error.message != unusable:
                unusable = error.message
                settings.tell("tokens", f"{error.message}; {error.hint}")
        except Exception:  # noqa: BLE001 - what fails here must end neither this loop nor the server around it
            _log.exception("looking after the server failed")
            await anyio.sleep(_AFTER_A_FAULT)
