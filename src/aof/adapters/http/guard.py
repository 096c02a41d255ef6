"""Who gets in: the name that the server was called by, where a page came from, how much is sent, and whose token it is.

A browser can be made to call a server on its own machine, so a foreign Host or Origin is turned away before anything
else. Must not know what is behind it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from aof.adapters.http.answers import failure
from aof.app.calling import Caller
from aof.core.errors import AofError, NotAllowed, PayloadTooLarge, Unauthenticated

CALLER = "aof.caller"
RUN_SECRET = "AOF-Run-Secret"  # noqa: S105 - the name of the header
Authenticate = Callable[[str | None], Caller | None]


class Guard:
    """Stands before the application. `open_paths` need no token."""

    def __init__(
        self,
        app: ASGIApp,
        authenticate: Authenticate,
        hosts: tuple[str, ...],
        open_paths: tuple[str, ...],
        max_body: int,
    ) -> None:
        self._app = app
        self._authenticate = authenticate
        self._hosts = frozenset(hosts)
        self._open = frozenset(open_paths)
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_names(headers)
            if (size := headers.get("content-length", "0")).isdigit() and int(size) > self._max_body:
                raise PayloadTooLarge(f"the body has {size} bytes, the limit is {self._max_body}", "send less at once")
            caller = self._caller(headers)
            if caller is None and scope["path"] not in self._open:
                raise Unauthenticated(
                    "this server needs a token that it knows",
                    "make one with 'aof token create NAME' and send it as 'Authorization: Bearer TOKEN'",
                )
        except AofError as error:
            await failure(error)(scope, receive, send)
            return
        await self._app({**scope, CALLER: caller}, receive, send)

    def _caller(self, headers: Headers) -> Caller | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        caller = self._authenticate(token.strip() if kind.lower() == "bearer" and token.strip() else None)
        secret = headers.get(RUN_SECRET)
        return msgspec.structs.replace(caller, secret=secret) if caller is not None and secret else caller

    def _check_names(self, headers: Headers) -> None:
        host = _without_port(headers.get("host", ""))
        if host not in self._hosts:
            raise NotAllowed(
                f"this server is not called {host[:80]!r}", f"use one of: {', '.join(sorted(self._hosts))}"
            )
        origin = headers.get("origin")
        if origin is not None and _without_port(origin.partition("://")[2]) not in self._hosts:
            raise NotAllowed(f"pages from {origin[:80]!r} may not call this server", "call it from its own pages")


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
