"""Who gets in: the name that the server was called by, where a page came from, how much is sent, and whose token it is.

A browser can be made to call a server on its own machine, so a foreign Host or Origin is turned away before anything
else. A body must come in time, and a stream ends with the token that opened it. Must not know what is behind it.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import msgspec
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aof.adapters.http.answers import failure
from aof.app.calling import Caller
from aof.core.errors import AofError, InvalidInput, NotAllowed, PayloadTooLarge, Unauthenticated

CALLER = "aof.caller"
RUN_SECRET = "AOF-Run-Secret"  # noqa: S105 - the name of the header
Authenticate = Callable[[str | None], Caller | None]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller may do. `open_paths` need no token; `streams` go on for as long as the caller listens."""

    hosts: tuple[str, ...]
    open_paths: tuple[str, ...]
    streams: tuple[str, ...]
    max_body: int
    body_seconds: float
    look_again: float


class Guard:
    """Stands before the application."""

    def __init__(self, app: ASGIApp, authenticate: Authenticate, limits: Limits) -> None:
        self._app = app
        self._authenticate = authenticate
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_names(headers)
            most = self._limits.max_body
            if (size := headers.get("content-length", "0")).isdigit() and int(size) > most:
                raise PayloadTooLarge(f"the body has {size} bytes, the limit is {most}", "send less at once")
            caller = self._caller(headers)
            if caller is None and scope["path"] not in self._limits.open_paths:
                raise Unauthenticated(
                    "this server needs a token that it knows",
                    "make one with 'aof token create NAME' and send it as 'Authorization: Bearer TOKEN'",
                )
        except AofError as error:
            await failure(error)(scope, receive, send)
            return
        known = {**scope, CALLER: caller}
        if scope["method"] == "GET" and scope["path"] in self._limits.streams:
            await self._streamed(known, receive, send, headers)
        else:
            await self._answered(known, receive, send)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request whose body must come in time: whoever sends it slowly keeps a connection to himself."""
        begun = False
        deadline = anyio.current_time() + self._limits.body_seconds
        whole = False

        async def in_time() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            with anyio.move_on_at(deadline):
                message = await receive()
                whole = not message.get("more_body", False)
                return message
            raise InvalidInput(f"the body was not there after {self._limits.body_seconds:g} s", "send it at once")

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, in_time, noted)
        except AofError as error:
            if begun:
                raise
            await failure(error)(scope, receive, send)

    async def _streamed(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """A stream that ends when its token is revoked."""
        open_ = False

        async def noted(message: Message) -> None:
            nonlocal open_
            open_ = message["type"] == "http.response.start" or bool(message.get("more_body"))
            await send(message)

        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while self._caller(headers) is not None:  # noqa: ASYNC110 - nobody tells when a token is revoked
                    await anyio.sleep(self._limits.look_again)
                group.cancel_scope.cancel()

            group.start_soon(watch)
            await self._app(scope, receive, noted)
            group.cancel_scope.cancel()
        if open_:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _caller(self, headers: Headers) -> Caller | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        caller = self._authenticate(token.strip() if kind.lower() == "bearer" and token.strip() else None)
        secret = headers.get(RUN_SECRET)
        return msgspec.structs.replace(caller, secret=secret) if caller is not None and secret else caller

    def _check_names(self, headers: Headers) -> None:
        host = _without_port(headers.get("host", ""))
        if host not in self._limits.hosts:
            raise NotAllowed(
                f"this server is not called {host[:80]!r}", f"use one of: {', '.join(sorted(self._limits.hosts))}"
            )
        origin = headers.get("origin")
        if origin is not None and _without_port(origin.partition("://")[2]) not in self._limits.hosts:
            raise NotAllowed(f"pages from {origin[:80]!r} may not call this server", "call it from its own pages")


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
