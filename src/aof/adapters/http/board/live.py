"""What keeps open pages up to date: server-sent events that say how far the log is, and which tasks changed.

A page that was cut off names the last number that it has seen, and is told of everything since. One look at the log
serves all pages (`Follower`). Must not know any view.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import islice

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from aof.adapters.http.board.rendering import HEADERS
from aof.app.async_bridge import PATIENCE, Follower
from aof.app.fabric import Fabric
from aof.core.errors.base import InvalidInput

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
