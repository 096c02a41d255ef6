"""Events as they come, as server-sent events that can be resumed after the last one that was seen.

`format=agentruntime` gives them in portable words. Who names no event to begin after, or one that this log does not
have, gets a snapshot first, and then everything that has happened since.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from itertools import islice

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from aof.adapters.http.api.responses import failure
from aof.app.async_bridge import PATIENCE, Follower
from aof.app.fabric import Fabric
from aof.app.portable.feed import Line
from aof.core.errors.base import AofError, InvalidInput
from aof.core.model.events import Event

_PAGE = 500
_PORTABLE = "agentruntime"
_FORMATS = ("native", _PORTABLE)
_CONNECTED = b": connected\n\n"
_ALIVE = b": still here\n\n"
_PAUSE = 0.25  # seconds from one page to the next: many events cost a follower as little as a few


def event_stream(follower_of: Callable[[Request], Follower]) -> Callable[[Request], object]:
    """The endpoint."""

    async def endpoint(request: Request) -> Response:
        try:
            wanted = await _wanted(follower_of(request), request)
        except AofError as error:
            return failure(error)
        stream = _portable(follower_of(request), wanted) if wanted.portable else _native(follower_of(request), wanted)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})

    return endpoint


class _Wanted(msgspec.Struct, frozen=True):
    """After which event, of which task and type, and in which words; None begins with a snapshot."""

    after: int | None
    task_id: str | None
    kind: str | None
    portable: bool


async def _wanted(follower: Follower, request: Request) -> _Wanted:
    """Where to begin and what to leave out. A client that was cut off says what it saw last in a header."""
    given = dict(request.query_params)
    seen = request.headers.get("last-event-id", given.pop("after", None))
    given.pop("after", None)
    task_id, kind, form = given.pop("taskId", None), given.pop("type", None), given.pop("format", "native")
    if given:
        raise InvalidInput(f"there is no parameter {next(iter(given))[:40]!r}", "use after, taskId, type or format")
    if form not in _FORMATS:
        raise InvalidInput(f"there is no format {form[:40]!r}", f"use {' or '.join(_FORMATS)}")
    if seen is not None and (not (seen.isascii() and seen.isdigit()) or len(seen) > len(str(2**63))):
        raise InvalidInput(
            f"{seen[:40]!r} is not an event's number", "give the number of the last event that you have seen"
        )
    full = await anyio.to_thread.run_sync(follower.fabric.resolve, task_id) if task_id else None
    after, last = int(seen) if seen is not None else None, await anyio.to_thread.run_sync(follower.fabric.store.head)
    if after is not None and after > last:  # seen in another log: what lies between is not known here
        if form != _PORTABLE:
            raise InvalidInput(f"there is no event {after}; the last one is {last}", "begin anew, without a number")
        after = None
    return _Wanted(after, full, kind, form == _PORTABLE)


async def _native(follower: Follower, wanted: _Wanted) -> AsyncIterator[bytes]:
    yield _CONNECTED
    after = wanted.after or 0
    while True:
        if not await follower.after(after):
            yield _ALIVE
            continue
        page = await anyio.to_thread.run_sync(_page, follower.fabric, after)
        yield b"".join(
            _frame(event.seq, event.type, event)
            for event in page
            if wanted.task_id in (None, event.task_id) and wanted.kind in (None, event.type)
        )
        # without a page another log has taken the place of this one, and has not come as far
        after = page[-1].seq if page else after
        await anyio.sleep(_PAUSE if page else PATIENCE)


async def _portable(follower: Follower, wanted: _Wanted) -> AsyncIterator[bytes]:
    """A snapshot unless the client has one, then every portable event after it, each once."""
    yield _CONNECTED
    after = wanted.after
    if after is None:
        view = await anyio.to_thread.run_sync(follower.fabric.snapshot)
        after = view["sequence"]
        yield _frame(after, "snapshot", view)
    async for page in _lines(follower, after):
        yield (
            _ALIVE
            if page is None
            else b"".join(
                _frame(line["sequence"], line["type"], line)
                for line in page
                if wanted.task_id in (None, line["taskId"]) and wanted.kind in (None, line["type"])
            )
        )


async def _lines(follower: Follower, after: int) -> AsyncIterator[list[Line] | None]:
    """Pages of portable lines after an event, as they come; None when nothing has come for a while."""
    while True:
        found = await anyio.to_thread.run_sync(follower.portable.after, after)
        if found is None:
            pages = follower.portable.past(after)
            while (past := await anyio.to_thread.run_sync(next, pages, None)) is not None:
                after = past[0]
                yield past[1]
            continue
        seen, page = found
        is_still = seen == after
        after = seen
        if page:
            yield page
        if is_still and follower.head > after:  # another log has taken the place of this one
            await anyio.sleep(PATIENCE)
        elif not page and not await follower.after(after):
            yield None
        else:
            await anyio.sleep(_PAUSE)


def _page(fabric: Fabric, after: int) -> list[Event]:
    return list(islice(fabric.events(after=after), _PAGE))


def _frame(seq: int, kind: str, data: object) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), msgspec.json.encode(data))
