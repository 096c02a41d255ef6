"""Events as they come, as server-sent events that can be resumed after the last one that was seen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from aof.adapters.http.api.responses import failure
from aof.app.async_bridge import PATIENCE, Follower
from aof.app.fabric import Fabric
from aof.core.errors.base import AofError, InvalidInput
from aof.core.model.events import Event

_PAGE = 500


def event_stream(follower_of: Callable[[Request], Follower]) -> Callable[[Request], object]:
    """The endpoint."""

    async def endpoint(request: Request) -> Response:
        try:
            after, task_id, kind = await _wanted(follower_of(request), request)
        except AofError as error:
            return failure(error)
        stream = _frames(follower_of(request), after, task_id, kind)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})

    return endpoint


async def _wanted(follower: Follower, request: Request) -> tuple[int, str | None, str | None]:
    """Where to begin and what to leave out. A client that was cut off says what it saw last in a header."""
    given = dict(request.query_params)
    seen = request.headers.get("last-event-id", given.pop("after", "0"))
    task_id, kind = given.pop("taskId", None), given.pop("type", None)
    if given:
        raise InvalidInput(f"there is no parameter {next(iter(given))[:40]!r}", "use after, taskId or type")
    if not (seen.isascii() and seen.isdigit()) or len(seen) > len(str(2**63)):
        raise InvalidInput(
            f"{seen[:40]!r} is not an event's number", "give the number of the last event that you have seen"
        )
    full = await anyio.to_thread.run_sync(follower.fabric.resolve, task_id) if task_id else None
    return int(seen), full, kind


async def _frames(follower: Follower, after: int, task_id: str | None, kind: str | None) -> AsyncIterator[bytes]:
    yield b": connected\n\n"
    while True:
        if not await follower.after(after):
            yield b": still here\n\n"
            continue
        page = await anyio.to_thread.run_sync(_page, follower.fabric, after)
        for event in page:
            after = event.seq
            if task_id in (None, event.task_id) and kind in (None, event.type):
                yield _frame(event)
        if not page:  # another log has taken the place of this one, and has not come as far
            await anyio.sleep(PATIENCE)


def _page(fabric: Fabric, after: int) -> list[Event]:
    found: list[Event] = []
    for event in fabric.events(after=after):
        found.append(event)
        if len(found) == _PAGE:
            break
    return found


def _frame(event: Event) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.type.encode(), msgspec.json.encode(event))
