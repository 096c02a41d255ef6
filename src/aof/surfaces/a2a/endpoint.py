"""Agent2Agent over HTTP: the card, JSON-RPC and REST, of revision 1.0 and of 0.3, as an ASGI application to mount.

The protocol's library is loaded with the first request that needs it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate, mktime_tz, parsedate_tz
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from aof.api.async_bridge import Follower
from aof.api.call import Caller
from aof.errors import InvalidInput
from aof.kernel.ports import PushTargets
from aof.support.hashing import hexdigest
from aof.support.nesting import NestedTooDeeply, inspect_body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from a2a.server.context import ServerCallContext

    from aof.surfaces.a2a.content import Revision
    from aof.surfaces.a2a.push import PushHosts, PushSender


CallerOf = Callable[[Request], Caller]
CARD_PATHS: dict[str, Revision] = {"/.well-known/agent-card.json": "1.0", "/.well-known/agent.json": "0.3"}
PATHS = (*CARD_PATHS, "/a2a/{path:path}")
_CARD_SECONDS = 300  # for which a peer need not ask for the card again
_PARSE_ERROR = -32700
_LONGEST = 11_000_000  # bytes of a body, as the server takes them

_SPECIFICATION: Final = "as the Agent2Agent specification 1.0 defines it"
_OBJECT: Final = {"type": "object", "additionalProperties": True, "description": _SPECIFICATION}
_TEXT: Final = {"type": "string"}
_JSON: Final = "application/json"
_STREAM: Final = "text/event-stream"
_PLACES: Final = {"id": "task", "push_id": "configuration"}
_PUSH: Final = "/a2a/tasks/{id}/pushNotificationConfigs"
# path, method, operation, what it does, whether it takes a body, and what it answers with
_ROUTES: Final = (
    ("/.well-known/agent-card.json", "get", "a2a_card", "Who we are, and how we are called.", False, _JSON),
    ("/.well-known/agent.json", "get", "a2a_card_0_3", "The same for peers of revision 0.3.", False, _JSON),
    ("/a2a/rpc", "post", "a2a_rpc", "Any method of the protocol, as JSON-RPC 2.0.", True, _JSON),
    ("/a2a/message:send", "post", "a2a_send", "Give us a task, or say more about one.", True, _JSON),
    ("/a2a/message:stream", "post", "a2a_stream", "The same, and follow the task.", True, _STREAM),
    ("/a2a/tasks", "get", "a2a_tasks", "Tasks that the caller has given us.", False, _JSON),
    ("/a2a/tasks/{id}", "get", "a2a_task", "One of them.", False, _JSON),
    ("/a2a/tasks/{id}:cancel", "post", "a2a_cancel", "Cancel one of them.", True, _JSON),
    ("/a2a/tasks/{id}:subscribe", "get", "a2a_subscribe", "Follow one of them.", False, _STREAM),
    (_PUSH, "get", "a2a_push_list", "Where news of a task is pushed to.", False, _JSON),
    (_PUSH, "post", "a2a_push_set", "Push news of a task to an address.", True, _JSON),
    (f"{_PUSH}/{{push_id}}", "get", "a2a_push_get", "One of these addresses.", False, _JSON),
    (f"{_PUSH}/{{push_id}}", "delete", "a2a_push_delete", "Push no more news there.", False, _JSON),
)


class PushParts(msgspec.Struct, frozen=True, kw_only=True):
    """What push notifications need: the hosts that may be notified, the store, and whether a peer may still call us."""

    hosts: PushHosts
    targets: PushTargets
    is_known: Callable[[str], bool]
    tell: Callable[[str, str], None]


class A2aOverHttp:
    """The endpoint, and the context in which it works."""

    def __init__(self, caller_of: CallerOf, version: str, push: PushParts) -> None:
        self._caller_of = caller_of
        self._version = version
        self._push = push
        self._app: ASGIApp | None = None
        self._follower: Follower | None = None
        self._sender: PushSender | None = None
        self._group: TaskGroup

    @asynccontextmanager
    async def running(self, follower: Follower) -> AsyncIterator[None]:
        """Serve on this fabric until the context ends; what peers wait to be told is sent meanwhile."""
        self._follower = follower
        async with anyio.create_task_group() as self._group:
            waiting = await anyio.to_thread.run_sync(self._push.targets.tasks)
            if waiting and self._push.hosts:
                await anyio.to_thread.run_sync(_load_library)
                self._start_sender()
            yield
            self._group.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._app is None:
            await anyio.to_thread.run_sync(_load_library)
            self._app = self._make_app()
        if scope["method"] == "POST":
            try:  # the library would answer deep nesting with Python's own words
                _, receive = await inspect_body(receive, _LONGEST)
            except NestedTooDeeply as error:
                if not scope["path"].endswith("/rpc"):
                    raise InvalidInput(f"the message is {error}", "keep deep structures in a file") from None
                wrong = {"code": _PARSE_ERROR, "message": f"the message is {error}"}
                await JSONResponse({"jsonrpc": "2.0", "id": None, "error": wrong})(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def end_sessions(self, is_gone: Callable[[Caller], bool]) -> None:
        """Do nothing: there are no sessions. Every request comes with its token, and a stream ends with it."""

    @staticmethod
    def described() -> dict[str, Any]:
        """What the OpenAPI document says of it: the routes by path."""
        found: dict[str, Any] = {}
        for path, method, name, summary, takes_body, answers in _ROUTES:
            route: dict[str, Any] = {
                "operationId": name,
                "tags": ["a2a"],
                "summary": summary,
                "description": f"Requests and answers are {_SPECIFICATION}; revision 0.3 is understood as well.",
                "responses": {
                    "200": {"description": "Done.", "content": {answers: {"schema": _OBJECT}}},
                    "4XX": {"description": "Not done.", "content": {_JSON: {"schema": _OBJECT}}},
                },
            }
            if path.startswith("/."):
                route["security"] = []
            if places := [place for place in _PLACES if f"{{{place}}}" in path]:
                route["parameters"] = [
                    {"name": place, "in": "path", "required": True, "description": _PLACES[place], "schema": _TEXT}
                    for place in places
                ]
            if takes_body:
                required = not path.endswith("cancel")
                route["requestBody"] = {"required": required, "content": {_JSON: {"schema": _OBJECT}}}
            found.setdefault(path, {})[method] = route
        return found

    def _start_sender(self) -> PushSender:
        """The sender of push notifications, which is started with the first use."""
        from aof.surfaces.a2a.push import PushSender

        assert self._follower is not None
        if self._sender is None:
            push = self._push
            self._sender = PushSender(self._follower, push.hosts, push.targets, is_known=push.is_known, tell=push.tell)
            self._group.start_soon(self._sender.run)
        return self._sender

    def _make_app(self) -> ASGIApp:
        from a2a.server.routes import (
            DefaultServerCallContextBuilder,
            create_jsonrpc_routes,
            create_rest_routes,
        )
        from starlette.routing import Route, Router

        from aof.surfaces.a2a import handler as a2a_handler
        from aof.surfaces.a2a.push import PushConfigs

        assert self._follower is not None
        fabric, caller_of, version = self._follower.fabric, self._caller_of, self._version
        project, pushes = fabric.services.environment.policy.project, bool(self._push.hosts)

        class ContextWithCaller(DefaultServerCallContextBuilder):
            """The library's context of a call, with our caller."""

            def build(self, request: Request) -> ServerCallContext:
                context = super().build(request)
                context.state[a2a_handler.CALLER] = caller_of(request)
                return context

        chart, changed = fabric.org, fabric.now()

        def card(request: Request) -> Response:
            nonlocal chart, changed
            if (now := fabric.org) != chart:
                chart, changed = now, fabric.now()
            base, revision = str(request.base_url).rstrip("/"), CARD_PATHS[request.url.path]
            data = a2a_handler.agent_card(base, project, version, chart, push=pushes, revision=revision)
            return _cached(request, msgspec.json.encode(data), changed // 1000)

        configs = PushConfigs(fabric, self._push.hosts, self._push.targets)
        handler = a2a_handler.PeerRequests(self._follower, configs, lambda task_id: self._start_sender().added(task_id))
        context = ContextWithCaller()
        rest = create_rest_routes(handler, context, enable_v0_3_compat=True, path_prefix=a2a_handler.PREFIX)
        return Router([
            *(Route(path, card) for path in CARD_PATHS),
            *(  # some clients end every address with a slash
                route
                for path in (a2a_handler.RPC, f"{a2a_handler.RPC}/")
                for route in create_jsonrpc_routes(handler, path, context, enable_v0_3_compat=True)
            ),
            *(route for route in rest if isinstance(route, Route)),  # what is left out are tenants: there are none
        ])  # fmt: skip


def _cached(request: Request, body: bytes, changed: int) -> Response:
    """An answer that peers may keep for a while; empty (304) where theirs is still right."""
    tag, at = f'"{hexdigest(body)[:32]}"', formatdate(changed, usegmt=True)
    headers = {"Cache-Control": f"public, max-age={_CARD_SECONDS}", "ETag": tag, "Last-Modified": at}
    known, since = request.headers.get("if-none-match"), request.headers.get("if-modified-since")
    if known is not None:
        right = bool({"*", tag} & {one.strip().removeprefix("W/") for one in known.split(",")})
    else:
        right = since is not None and (then := parsedate_tz(since)) is not None and mktime_tz(then) >= changed
    return Response(b"" if right else body, 304 if right else 200, headers, "application/json")


def _load_library() -> None:
    """Load the protocol's library, which takes a while."""
    from aof.surfaces.a2a.handler import record_library_faults

    record_library_faults()
