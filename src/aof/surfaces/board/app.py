"""The board, the page for people: its routes, its views in the order of the navigation, and the stream of changes.

A new view is a function, a template and a line in VIEWS.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from itertools import islice
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Scope

from aof.api.async_bridge import PATIENCE, Follower
from aof.api.call import Caller
from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidInput, NotFound
from aof.kernel.faults import record
from aof.maintenance.tokens import PageSessions
from aof.surfaces.board import access, activity, overview, task, writes
from aof.surfaces.board.access import PREFIX, Access
from aof.surfaces.board.view import HEADERS, Operations, PageAddress, PageView, asset, problem_of, render
from aof.surfaces.http.guard import CALLER, FailedAuthentications, Traffic
from aof.surfaces.http.responses import failure, status_of

VIEWS: Final[tuple[PageView, ...]] = (
    overview.NEEDS,
    overview.BOARD,
    overview.AGENTS,
    overview.GRAPH,
    activity.ACTIVITY,
    activity.INSIGHTS,
    task.WORKFLOWS,
    task.TASK,
    task.WORKFLOW,
    overview.AROUND,
    task.PAST,
)
_MOVED: Final = {
    "/worklog": "/activity?kind=worklog",
    "/mailbox": "/activity?kind=mail",
    "/handoffs": "/activity?kind=handoff",
    "/timeline": "/insights",
    "/flow": "/insights",
}
_GONE, _FAULT, _NO_METHOD, _SIGNED_OUT = 499, 500, 405, 401
_VERIFIED_AT_ONCE: Final = 5_000  # events
_PART: Final = "aof-part"
_PARTS: Final = {"main#view": "view", "dialog#dialog": "dialog"}
_FILTERED: Final = frozenset(f"{PREFIX}{one.path}" for one in VIEWS if one.key)
_MOST_EVENTS: Final = 500  # after more than these a page reads everything again
_PAUSE: Final = 0.05  # seconds from one message to the next
_BEAT: Final = 0.5  # seconds after which a silent stream says that it lives; a page believes in no server after four
_DIGITS: Final = 18
_CONNECTED: Final = b"retry: 1000\n: connected\n\n"
_ALIVE: Final = b"event: alive\ndata: {}\n\n"

Endpoint = Callable[[Request], Awaitable[Response]]


class Board:
    """The board of one data directory. `instance` tells its cookie from those of other boards on the same host."""

    max_body = 1_000_000

    def __init__(self, sessions: PageSessions, instance: str, project: str, version: str) -> None:
        self.access = Access(sessions, instance)
        self._frame = {"project": project, "version": version, "views": ()}

    def covers(self, path: str) -> bool:
        """Whether a path is one of the board's."""
        return path in ("/", PREFIX) or path.startswith(f"{PREFIX}/")

    def caller(self, headers: Headers) -> Caller | None:
        """Who is signed in."""
        return self.access.caller(headers)

    def routes(self, failures: FailedAuthentications, traffic: Traffic) -> list[Route]:
        """Every route; those for signing in are open to all, everything else to those who are signed in."""
        entrance = access.Entrance(self.access, failures, traffic, self._frame)
        return [
            Route("/", self._with_errors(_front)),
            Route(PREFIX, self._with_errors(_front)),
            Route(f"{PREFIX}/static/{{name:path}}", self._with_errors(asset)),
            Route(f"{PREFIX}/login", self._with_errors(entrance.form), methods=["GET"]),
            Route(f"{PREFIX}/login", self._with_errors(entrance.login), methods=["POST"]),
            Route(f"{PREFIX}/enter", self._with_errors(entrance.enter), methods=["GET", "POST"]),
            Route(f"{PREFIX}/logout", self._signed_in(entrance.leave), methods=["POST"]),
            Route(f"{PREFIX}/verified", self._signed_in(_verified)),
            Route(f"{PREFIX}/live", self._signed_in(_live)),
            *(Route(f"{PREFIX}{path}", self._with_errors(partial(_moved, to))) for path, to in _MOVED.items()),
            *writes.routes(self._signed_in, self.frame),
            *(Route(f"{PREFIX}{one.path}", self._signed_in(partial(self._view, one))) for one in VIEWS),
        ]

    def frame(self, request: Request, **more: Any) -> dict[str, Any]:
        """What every template is given."""
        caller = request.scope.get(CALLER)
        views: list[PageView] = []
        if caller:
            ask = Operations(request.app.state.follower.fabric, caller)
            views = [one for one in VIEWS if one.key and one.wanted(ask)]
        own = {"part": _part(request), "me": caller, "view": None, "views": views}
        return self._frame | own | {"place": request.url.path, "live": False, "live_task": None, "head": 0} | more

    async def _view(self, view: PageView, request: Request) -> Response:
        page = PageAddress(request.path_params, request.query_params, request.url.path)
        ask = Operations(request.app.state.follower.fabric, request.scope[CALLER])

        def respond() -> Response:
            frame = self.frame(request, view=view, title=view.title, live=True, head=ask.head(), now=ask.now())
            return render(view.template, **(frame | {"page": page, "ask": ask} | view.context(ask, page)))

        return await anyio.to_thread.run_sync(respond)

    def _signed_in(self, endpoint: Endpoint) -> Endpoint:
        """An endpoint for those who are signed in."""

        async def signed_in(request: Request) -> Response:
            return await endpoint(request) if request.scope[CALLER] is not None else self._signed_out(request)

        return self._with_errors(signed_in)

    def _with_errors(self, endpoint: Endpoint) -> Endpoint:
        """An endpoint whose errors are shown on a page."""

        async def with_errors(request: Request) -> Response:
            try:
                return await endpoint(request)
            except AofError as error:
                return self.refusal(request.scope, error)
            except ClientDisconnect:
                return Response(status_code=_GONE)  # which nobody reads
            except Exception as error:  # noqa: BLE001 - the edge: a fault of ours is told as one, and logged
                return self.fault(request, record(request.url.path[:80], error))

        return with_errors

    def _signed_out(self, request: Request) -> Response:
        """The shell for a browser with a cookie, the way to sign in for any other; scripts of the page are refused."""
        if request.method == "GET" and request.headers.get("sec-fetch-mode", "navigate") == "navigate":
            if (shell := self.access.shell(request.headers)) is not None:
                return shell
            onward = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return render("signed_out.html", _SIGNED_OUT, **self.frame(request, title="Sign in", onward=onward))
        return Response("signed out", status_code=_SIGNED_OUT, media_type="text/plain", headers=HEADERS)

    def refusal(self, scope: Scope, error: AofError) -> Response:
        """An error, as a page or as a part of one."""
        request = Request(scope)
        if scope["path"] == "/" and "text/html" not in request.headers.get("accept", ""):
            return failure(error)
        filtered = request.method == "GET" and request.url.query and request.url.path in _FILTERED
        unfiltered = request.url.path if filtered else None
        frame = self.frame(request, title="That did not work", problem=problem_of(error), unfiltered=unfiltered)
        return render("error.html", status_of(error), **frame)

    def fault(self, request: Request, reference: str) -> Response:
        """A fault of ours, without a word about our insides. It asks the store nothing, which may be at fault."""
        hint = f"its log says more under the reference {reference}"
        problem = {"code": "internal", "message": "the server failed", "hint": hint}
        own = {"part": _part(request), "title": "Something went wrong", "problem": problem}
        empty = {"me": None, "view": None, "place": "", "head": 0, "live": False, "live_task": None}
        return render("error.html", _FAULT, **(self._frame | own | empty))

    def no_route(self, request: Request, status: int) -> Response:
        """The answer to an unknown path, or to a method that a path does not take."""
        if status == _NO_METHOD:
            error: AofError = InvalidInput(f"this page does not take {request.method[:10]}", "open it from the board")
        else:
            error = NotFound(f"there is no page {request.url.path[:80]}", "go to the board")
        refused = self.refusal(request.scope, error)
        refused.status_code = status
        return refused


def _part(request: Request) -> str:
    """Which part of a page is asked for; nothing: the whole of it."""
    target = request.headers.get("hx-target", "")
    return request.headers.get(_PART) or _PARTS.get(target, "dialog" if target else "")


async def _front(request: Request) -> Response:
    """Lead a browser to the page; anybody else is told that nothing is here."""
    if request.url.path == "/" and "text/html" not in request.headers.get("accept", ""):
        raise NotFound("there is nothing at /", "see /openapi.json")
    return RedirectResponse(f"{PREFIX}/", status_code=307, headers=HEADERS)


async def _moved(to: str, request: Request) -> Response:
    """Lead to the view that an earlier one has become a part of; the filters stay."""
    query = request.url.query
    where = f"{PREFIX}{to}" + (f"{'&' if '?' in to else '?'}{query}" if query else "")
    return RedirectResponse(where, status_code=308, headers=HEADERS)


async def _verified(request: Request) -> Response:
    """How far the history is verified, a piece further with each call."""
    ask = Operations(request.app.state.follower.fabric, request.scope[CALLER])
    found = await anyio.to_thread.run_sync(partial(ask, "verify", limit=_VERIFIED_AT_ONCE))
    return JSONResponse(found, headers=HEADERS)


async def _live(request: Request) -> Response:
    """The stream that keeps an open page up to date."""
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    if given and not (given.isascii() and given.isdigit() and len(given) <= _DIGITS):
        raise InvalidInput(f"{given[:40]!r} is not an event's number", "reload the page")
    follower: Follower = request.app.state.follower
    after = int(given) if given else await anyio.to_thread.run_sync(follower.fabric.store.head)
    headers = HEADERS | {"X-Accel-Buffering": "no"}
    return StreamingResponse(changes(follower, after), media_type="text/event-stream", headers=headers)


async def changes(follower: Follower, after: int) -> AsyncIterator[bytes]:
    """The messages to a page that has seen everything up to an event."""
    head = await anyio.to_thread.run_sync(follower.fabric.store.head)
    yield _CONNECTED
    if head < after:  # another log has taken the place of the one that the page knows
        after = head
        yield _change_message(head, None)
    while True:
        if head <= after:
            has_events = False
            with anyio.move_on_after(_BEAT):
                has_events = await follower.after(after)
            if not has_events:
                yield _ALIVE
                continue
        after, message = await anyio.to_thread.run_sync(_changes_after, follower.fabric, after)
        head = 0
        if message:
            yield message
        await anyio.sleep(_PAUSE if message else PATIENCE)


def _changes_after(fabric: Fabric, after: int) -> tuple[int, bytes]:
    """The number of the last event, and the message about those after one.

    It is empty where another log has taken the place of this one, and has not come as far.
    """
    events = list(islice(fabric.events(after=after), _MOST_EVENTS + 1))
    if not events:
        return after, b""
    if len(events) > _MOST_EVENTS:
        head = max(fabric.store.head(), events[-1].seq)
        return head, _change_message(head, None)
    return events[-1].seq, _change_message(events[-1].seq, sorted({event.task_id for event in events if event.task_id}))


def _change_message(head: int, tasks: list[str] | None) -> bytes:
    """The number of the last event, and the tasks whose events these were; None stands for too many to name."""
    return b"id: %d\nevent: change\ndata: %s\n\n" % (head, msgspec.json.encode({"head": head, "tasks": tasks}))
