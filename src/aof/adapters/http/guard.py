"""Admission to the server: checks the Host and Origin headers, the size of the request, and the token.

A browser can be made to call a server on its own machine, so a foreign Host or Origin is turned away before anything
else. A body must come in time, and whatever goes on ends with the token that began it. Must not know what is behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio
import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aof.adapters.http.api.responses import failure
from aof.adapters.http.limits.failures import Failures
from aof.adapters.http.limits.grants import Grants
from aof.adapters.http.limits.screen import bearer, too_many_failures
from aof.adapters.http.limits.traffic import Traffic, network_of
from aof.adapters.http.names import check_names
from aof.app.operations.call import Caller
from aof.core.errors.base import AofError, InvalidInput, PayloadTooLarge
from aof.core.errors.org import Unauthenticated

CALLER = "aof.caller"
RUN_SECRET = "AOF-Run-Secret"  # noqa: S105 - the name of the header
_KEEP = "AOF-Keep"
Authenticate = Callable[[str | None], Caller | None]
_STREAM = b"text/event-stream"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller may do. `open_paths` need no token."""

    hosts: tuple[str, ...]
    open_paths: tuple[str, ...]
    max_body: int
    body_seconds: float


class Pages(Protocol):
    """Pages for people: callers have a cookie instead of a token, and get errors as HTML."""

    max_body: int

    def covers(self, path: str) -> bool:
        """Whether a path is one of theirs."""
        ...

    def caller(self, headers: Headers) -> Caller | None:
        """The owner of the cookie. Without one, the pages themselves show how to sign in."""
        ...

    def refusal(self, scope: Scope, error: AofError) -> Response:
        """What a person is told."""
        ...


class Guard:
    """Stands before the application."""

    def __init__(
        self,
        app: ASGIApp,
        authenticate: Authenticate,
        limits: Limits,
        *,
        grants: Grants,
        failures: Failures,
        traffic: Traffic,
        pages: Pages | None = None,
    ) -> None:
        self._app = app
        self._pages = pages
        self._authenticate = authenticate
        self._limits = limits
        self._grants = grants
        self._failures = failures
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        address = network_of(scope["client"][0] if scope.get("client") else None)
        pages = self._pages if self._pages is not None and self._pages.covers(scope["path"]) else None
        try:
            check_names(scope, headers, self._limits.hosts)
            most = self._limits.max_body if pages is None else pages.max_body
            size = headers.get("content-length", "0")
            if size.isdigit() and (len(size) > len(str(most)) or int(size) > most):
                raise PayloadTooLarge(f"the body has {size[:20]} bytes, the limit is {most}", "send less at once")
            if scope["path"] in self._limits.open_paths:
                await self._app({**scope, CALLER: None}, receive, send)
                return
            caller = self._caller(headers) if pages is None else pages.caller(headers)
            if caller is None and pages is not None:
                await self._app({**scope, CALLER: None}, receive, send)
                return
            if caller is None:
                raise await self._unknown(address)
            self._grants.count(caller, address)
        except AofError as error:
            await self._refusal(scope, error)(scope, receive, send)
            return
        await self._serve({**scope, CALLER: caller}, receive, send, caller, address)

    def _refusal(self, scope: Scope, error: AofError) -> Response:
        pages = self._pages
        return pages.refusal(scope, error) if pages is not None and pages.covers(scope["path"]) else failure(error)

    async def _unknown(self, address: str) -> AofError:
        """What to tell somebody without a valid token, in the time that the address has earned."""
        self._traffic.note("failed_authentication", address)
        if not await self._failures.slowed(address):
            return too_many_failures()
        return Unauthenticated(
            "this server needs a token that it knows",
            "send one as 'Authorization: Bearer TOKEN'; make it with 'aof admin token create NAME'",
        )

    async def _serve(self, scope: Scope, receive: Receive, send: Send, caller: Caller, address: str) -> None:
        """One request: its body must come in time, and it goes on for no longer than its token is valid."""
        answer = _Answer(send, lambda: self._grants.open_stream(caller, address))
        problem: AofError | None = None
        with anyio.CancelScope() as cancelled, self._grants.request(caller, cancelled):
            answer.cancel = cancelled.cancel
            try:
                await self._app(scope, self._in_time(receive), answer.send)
            except AofError as error:
                if answer.begun:
                    raise
                problem = error
            finally:
                answer.end_stream()
        if cancelled.cancelled_caught:
            problem = answer.refusal or Unauthenticated("the token is no longer valid", "use another token")
        if problem is not None and not answer.begun:
            await self._refusal(scope, problem)(scope, receive, send)
        elif cancelled.cancelled_caught and answer.unfinished:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _in_time(self, receive: Receive) -> Receive:
        """Whoever sends a body slowly keeps a connection to himself."""
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

        return in_time

    def _caller(self, headers: Headers) -> Caller | None:
        """Who the token is of. Of two nobody can say which is meant, and a proxy may have looked at the other one."""
        if any(len(headers.getlist(name)) > 1 for name in ("authorization", RUN_SECRET)):
            return None
        caller = self._authenticate(bearer(headers.get("authorization", "")))
        if caller is None:
            return None
        keeps = headers.get(_KEEP, "").strip().lower() == "true"
        return msgspec.structs.replace(caller, secret=headers.get(RUN_SECRET) or None, keeps=keeps)


class _Answer:
    """How far the answer to one request has come. A stream is recognised by what it says that it is."""

    def __init__(self, send: Send, open_stream: Callable[[], Callable[[], None] | AofError]) -> None:
        self._send = send
        self._open_stream = open_stream
        self._close: Callable[[], None] | None = None
        self.begun = self.unfinished = False
        self.refusal: AofError | None = None
        self.cancel: Callable[[], None] = lambda: None

    async def send(self, message: Message) -> None:
        """Pass a part of the answer on."""
        if message["type"] == "http.response.start" and _is_stream(message):
            opened = self._open_stream()
            if isinstance(opened, AofError):
                self.refusal = opened
                self.cancel()
                await anyio.sleep_forever()
                return
            self._close = opened
        self.begun = True
        self.unfinished = message["type"] == "http.response.start" or bool(message.get("more_body"))
        await self._send(message)

    def end_stream(self) -> None:
        """The stream, if it was one, is over."""
        if self._close is not None:
            self._close()


def _is_stream(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(_STREAM) for name, value in message.get("headers", ())
    )
