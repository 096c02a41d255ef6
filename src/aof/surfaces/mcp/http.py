"""MCP as streamable HTTP: an ASGI application to mount. The application around it authenticates callers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, ClassVar

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import SERVER_INFO_META_KEY
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from aof.api.async_bridge import Follower
from aof.api.call import Caller
from aof.errors import InvalidInput
from aof.support.nesting import NestedTooDeeply, inspect_body
from aof.surfaces.mcp.direct import answer, direct_call
from aof.surfaces.mcp.long_calls import asks_for_reports
from aof.surfaces.mcp.server import make_server
from aof.surfaces.mcp.sessions import SESSION_HEADER, CallerOf, Hub, Presence

_NO_SESSION = 404
_WANTS_STREAM: ContextVar[bool] = ContextVar("the answer must be a stream", default=False)


class McpOverHttp:
    """The endpoint for MCP over HTTP; it works within the context `running`.

    An answer is one JSON document, because as a stream of one event it costs a session's client half as much again. A
    client that asks for progress or log messages gets streams: from revision 2026-07-28 on for that request, before it
    for the session from then on. `streamed` gives them to everybody. Changes are told on streams of their own.
    """

    streamed: ClassVar[bool] = False

    def __init__(self, caller_of: CallerOf, tiers: tuple[str, ...], version: str, max_body: int) -> None:
        self._caller_of = caller_of
        self._tiers = tiers
        self._version = version
        self._max_body = max_body
        self._presence = Presence()
        self._manager: _Manager | None = None
        self._hub: Hub | None = None

    @asynccontextmanager
    async def running(self, follower: Follower) -> AsyncIterator[None]:
        """Serve on this fabric until the context ends."""
        hub = self._hub = Hub(follower, self._caller_of, self._tiers, self._presence)
        server = self.server(hub)
        hub.stamp = {SERVER_INFO_META_KEY: server.server_info_stamp}
        self._manager = _Manager(server, json_response=not self.streamed, max_request_body_size=self._max_body)
        async with self._manager.run():
            try:
                yield
            finally:
                hub.stopping = True

    def server(self, hub: Hub) -> Server[Hub]:
        """The server that is mounted."""
        return make_server(hub, version=self._version)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. A session is only for the caller that has opened it."""
        assert self._manager is not None
        request = Request(scope)
        caller = self._caller_of(request)
        known = {**scope, "user": _owner(caller)}
        session = request.headers.get(SESSION_HEADER)
        if request.method == "POST":
            body, receive, may_be_direct = await self._manager.inspect_body(receive, session)
            transport = self._manager.transport(session)
            assert self._hub is not None
            call = direct_call(self._hub, request, body, caller, transport) if may_be_direct else None
            if call is not None:
                with self._presence.of(session).calling(listens=False) if session is not None else nullcontext():
                    await (await answer(self._hub, call, transport))(scope, receive, send)
                return
        if session is None:
            await self._manager.handle_request(known, receive, send)
            return

        async def send_and_forget(message: Message) -> None:
            if message.get("status") == _NO_SESSION:
                self._presence.forget(session)
            await send(message)

        with self._presence.of(session).calling(listens=request.method == "GET"):
            await self._manager.handle_request(known, receive, send_and_forget)

    def described(self) -> dict[str, Any]:
        """What the OpenAPI document says of it."""
        message = {"type": "object", "additionalProperties": True, "description": "a message of JSON-RPC 2.0"}
        json, stream = {"application/json": {"schema": message}}, {"text/event-stream": {"schema": message}}
        session = {
            "name": "Mcp-Session-Id",
            "in": "header",
            "description": "the session that the server opened; the newest revision has none",
            "schema": {"type": "string"},
        }
        text = "See the Model Context Protocol, streamable HTTP. Any client of it can be given this address."
        common = {"tags": ["mcp"], "description": text, "parameters": [session]}
        failed = {"4XX": {"description": "Not done.", "content": json}}
        body = {"required": True, "content": json}
        answers = {"200": {"description": "The answer.", "content": json | stream}, "202": {"description": "Taken."}}
        return {
            "/mcp": {
                "post": {"operationId": "mcp_send", "summary": "Send a message.", "requestBody": body}
                | common
                | {"responses": answers | failed},
                "get": {"operationId": "mcp_listen", "summary": "Listen to the messages of a session."}
                | common
                | {"responses": {"200": {"description": "A stream that goes on.", "content": stream}} | failed},
                "delete": {"operationId": "mcp_end", "summary": "End a session."}
                | common
                | {"responses": {"200": {"description": "It has ended."}} | failed},
            }
        }

    async def end_sessions(self, is_gone: Callable[[Caller], bool]) -> None:
        """End the sessions of callers that may no longer call, as their clients would."""
        assert self._manager is not None
        assert self._hub is not None
        for session in [one for one in self._hub.sessions if one.name is not None and is_gone(one.caller)]:
            headers = [(SESSION_HEADER.encode(), str(session.name).encode())]
            scope = {
                "type": "http",
                "http_version": "1.1",
                "method": "DELETE",
                "path": "/mcp",
                "query_string": b"",
                "headers": headers,
                "user": _owner(session.caller),
            }
            await self._manager.handle_request(scope, _nothing, _nowhere)


class _Manager(StreamableHTTPSessionManager):
    """Sessions that answer with a document or with a stream, as each client needs it."""

    def transport(self, session: str | None) -> StreamableHTTPServerTransport | None:
        """The transport of a session."""
        return self._server_instances.get(session) if session is not None else None

    async def inspect_body(self, receive: Receive, session: str | None) -> tuple[bytes, Receive, bool]:
        """Read the body, what yields it again, and whether it is whole and answered with a document, not a stream."""
        try:
            body, again = await inspect_body(receive, self.max_request_body_size)
        except NestedTooDeeply as error:
            raise InvalidInput(f"the message is {error}", "keep deep structures in a file of the task") from None
        wants_stream = asks_for_reports(body)
        _WANTS_STREAM.set(wants_stream)
        transport = self.transport(session)
        if wants_stream and transport is not None:
            transport.is_json_response_enabled = False
        whole = len(body) <= self.max_request_body_size  # of a longer one only the beginning has been read
        return body, again, whole and self.json_response

    @property
    def json_response(self) -> bool:
        """Whether the request at hand, or the session that it opens, is answered with documents."""
        return self._documents and not _WANTS_STREAM.get()

    @json_response.setter
    def json_response(self, documents: bool) -> None:
        self._documents = documents


def _owner(caller: Caller) -> AuthenticatedUser:
    """The owner of a session: one token, not everybody with a token for the same actor."""
    return AuthenticatedUser(
        AccessToken(token="", client_id=caller.actor, scopes=[], subject=f"{caller.role}/{caller.token or ''}")
    )


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nowhere(_message: Message) -> None:
    """Drop a message: its receiver has gone."""
