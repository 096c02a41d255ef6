"""The page for people: its routes, its views in the order of the navigation, and what keeps open pages up to date.

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
from aof.surfaces.board import access, activity, overview, task, writes
from aof.surfaces.board.access import PREFIX, Access, Sessions
from aof.surfaces.board.rendering import HEADERS, asset, render
from aof.surfaces.board.view import Asker, PageAddress, PageView
from aof.surfaces.http.guard import CALLER
from aof.surfaces.http.limits import Failures, Traffic
from aof.surfaces.http.responses import STATUS_BY_CODE, STATUS_BY_KIND, failure

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
MOVED: Final = {
    "/worklog": "/activity?kind=worklog",
    "/mailbox": "/activity?kind=mail",
    "/handoffs": "/activity?kind=handoff",
    "/timeline": "/insights",
    "/flow": "/insights",
}


Endpoint = Callable[[Request], Awaitable[Response]]
_GONE, _FAULT, _NO_METHOD, _OUT = 499, 500, 405, 401
_PIECE = 5_000  # events that are verified at once
_PART = "aof-part"
_FILTERED = frozenset(f"{PREFIX}{one.path}" for one in VIEWS if one.key)
_PARTS = {"main#view": "view", "dialog#dialog": "dialog"}


class Board:
    """The page of one data directory. `instance` tells its cookie from those of other pages on the same host."""

    max_body = 1_000_000

    def __init__(self, sessions: Sessions, instance: str, project: str, version: str) -> None:
        self.access = Access(sessions, instance)
        self._frame = {"project": project, "version": version, "views": ()}

    def covers(self, path: str) -> bool:
        """Whether a path is one of the page's."""
        return path in ("/", PREFIX) or path.startswith(f"{PREFIX}/")

    def caller(self, headers: Headers) -> Caller | None:
        """Who is in."""
        return self.access.caller(headers)

    def routes(self, failures: Failures, traffic: Traffic) -> list[Route]:
        """Every route; the ways in are open to all, everything else to those who are in."""
        doors = access.Entrance(self.access, failures, traffic, self._frame)
        return [
            Route("/", self._guarded(_front)),
            Route(PREFIX, self._guarded(_front)),
            Route(f"{PREFIX}/static/{{name:path}}", self._guarded(asset)),
            Route(f"{PREFIX}/login", self._guarded(doors.form), methods=["GET"]),
            Route(f"{PREFIX}/login", self._guarded(doors.login), methods=["POST"]),
            Route(f"{PREFIX}/enter", self._guarded(doors.enter), methods=["GET", "POST"]),
            Route(f"{PREFIX}/logout", self._inside(doors.leave), methods=["POST"]),
            Route(f"{PREFIX}/verified", self._inside(_verified)),
            Route(f"{PREFIX}/live", self._inside(live)),
            *(Route(f"{PREFIX}{path}", self._guarded(partial(_moved, to))) for path, to in MOVED.items()),
            *writes.routes(self._inside, self.framed),
            *(Route(f"{PREFIX}{one.path}", self._inside(partial(self._view, one))) for one in VIEWS),
        ]

    def framed(self, request: Request, **more: Any) -> dict[str, Any]:
        """What every template is given."""
        caller = request.scope.get(CALLER)
        own = {"part": _part(request), "me": caller, "view": None, "views": _navigation(request) if caller else ()}
        return self._frame | own | {"place": request.url.path, "live": False, "live_task": None, "head": 0} | more

    async def _view(self, view: PageView, request: Request) -> Response:
        asked = PageAddress(request.path_params, request.query_params, request.url.path)
        ask = Asker(request.app.state.follower.fabric, request.scope[CALLER])

        def shown() -> Response:
            frame = self.framed(request, view=view, title=view.title, live=True, head=ask.head(), now=ask.now())
            return render(view.template, **(frame | {"asked": asked, "ask": ask} | view.context(ask, asked)))

        return await anyio.to_thread.run_sync(shown)

    def _inside(self, endpoint: Endpoint) -> Endpoint:
        """An endpoint for those who are in."""

        async def inside(request: Request) -> Response:
            return await endpoint(request) if request.scope[CALLER] is not None else self._out(request)

        return self._guarded(inside)

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        """An endpoint whose errors are told on a page."""

        async def guarded(request: Request) -> Response:
            try:
                return await endpoint(request)
            except AofError as error:
                return self.refusal(request.scope, error)
            except ClientDisconnect:
                return Response(status_code=_GONE)  # which nobody reads
            except Exception as error:  # noqa: BLE001 - the edge: a fault of ours is told as one, and logged
                return self.fault(request, record(request.url.path[:80], error))

        return guarded

    def _out(self, request: Request) -> Response:
        """A browser with a cookie gets the shell, any other is led in; what the page asks for by itself is refused."""
        if request.method == "GET" and request.headers.get("sec-fetch-mode", "navigate") == "navigate":
            if (shell := self.access.shell(request.headers)) is not None:
                return shell
            onward = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return render("signed_out.html", _OUT, **self.framed(request, title="Sign in", onward=onward))
        return Response("signed out", status_code=_OUT, media_type="text/plain", headers=HEADERS)

    def refusal(self, scope: Scope, error: AofError) -> Response:
        """An error, as a page or as a part of one."""
        request = Request(scope)
        if scope["path"] == "/" and "text/html" not in request.headers.get("accept", ""):
            return failure(error)
        status = STATUS_BY_CODE.get(error.code, STATUS_BY_KIND[error.kind])
        told = {"code": error.code, "message": error.message, "hint": error.hint}
        return self._problem(request, status, told)

    def fault(self, request: Request, reference: str) -> Response:
        """A fault of ours, without a word about our insides."""
        told = {"message": "the server failed", "hint": f"its log says more under the reference {reference}"}
        frame: dict[str, Any] = self._frame | {
            "part": _part(request),
            "me": None,
            "view": None,
            "place": "",
            "head": 0,
        }
        frame |= {
            "live": False,
            "live_task": None,
            "title": "Something went wrong",
            "problem": told | {"code": "internal"},
        }
        return render("error.html", _FAULT, **frame)

    def no_route(self, request: Request, status: int) -> Response:
        """Nothing is there, or it takes no such request."""
        if status == _NO_METHOD:
            error: AofError = InvalidInput(f"this page does not take {request.method[:10]}", "open it from the board")
        else:
            error = NotFound(f"there is no page {request.url.path[:80]}", "go to the board")
        refused = self.refusal(request.scope, error)
        refused.status_code = status
        return refused

    def _problem(self, request: Request, status: int, problem: dict[str, str]) -> Response:
        filtered = request.method == "GET" and request.url.query and request.url.path in _FILTERED
        unfiltered = request.url.path if filtered else None
        frame = self.framed(request, title="That did not work", problem=problem, unfiltered=unfiltered)
        return render("error.html", status, **frame)


def _part(request: Request) -> str:
    """Which part of a page is asked for; nothing: the whole of it."""
    target = request.headers.get("hx-target", "")
    return request.headers.get(_PART) or _PARTS.get(target, "dialog" if target else "")


async def _front(request: Request) -> Response:
    """A browser goes to the page; anybody else is told that nothing is here."""
    if request.url.path == "/" and "text/html" not in request.headers.get("accept", ""):
        raise NotFound("there is nothing at /", "see /openapi.json")
    return RedirectResponse(f"{PREFIX}/", status_code=307, headers=HEADERS)


async def _moved(to: str, request: Request) -> Response:
    """What was a view of its own is a part of another one; the filters stay."""
    query = request.url.query
    where = f"{PREFIX}{to}" + (f"{'&' if '?' in to else '?'}{query}" if query else "")
    return RedirectResponse(where, status_code=308, headers=HEADERS)


def _navigation(request: Request) -> list[PageView]:
    ask = Asker(request.app.state.follower.fabric, request.scope[CALLER])
    return [one for one in VIEWS if one.key and one.wanted(ask)]


async def _verified(request: Request) -> Response:
    """How far the history is verified, a piece further with each call."""
    ask = Asker(request.app.state.follower.fabric, request.scope[CALLER])
    found = await anyio.to_thread.run_sync(partial(ask, "verify", limit=_PIECE))
    return JSONResponse(found, headers=HEADERS)


_PAGE = 500  # events; after more than these a page looks at everything again
_PAUSE = 0.05  # seconds from one message to the next
_BEAT = 0.5  # seconds after which a silent stream says that it lives; a page believes in no server after four of them
_DIGITS = 18
_CONNECTED = b"retry: 1000\n: connected\n\n"
_ALIVE = b"event: alive\ndata: {}\n\n"


class LiveChange(msgspec.Struct, frozen=True):
    """What a page is told: the number of the last event, and whose events these were; None: of more than it tells."""

    head: int
    tasks: list[str] | None


async def live(request: Request) -> Response:
    """The endpoint."""
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
        yield _frame(LiveChange(head, None))
    while True:
        if head <= after:
            news = False
            with anyio.move_on_after(_BEAT):
                news = await follower.after(after)
            if not news:
                yield _ALIVE
                continue
        change = await anyio.to_thread.run_sync(_change, follower.fabric, after)
        head = 0
        if change is None:
            await anyio.sleep(PATIENCE)
            continue
        after = change.head
        yield _frame(change)
        await anyio.sleep(_PAUSE)


def _change(fabric: Fabric, after: int) -> LiveChange | None:
    """What came after an event; None where another log has taken the place of this one, and has not come as far."""
    events = list(islice(fabric.events(after=after), _PAGE + 1))
    if not events:
        return None
    if len(events) > _PAGE:
        return LiveChange(max(fabric.store.head(), events[-1].seq), None)
    return LiveChange(events[-1].seq, sorted({event.task_id for event in events if event.task_id}))


def _frame(change: LiveChange) -> bytes:
    return b"id: %d\nevent: change\ndata: %s\n\n" % (change.head, msgspec.json.encode(change))
