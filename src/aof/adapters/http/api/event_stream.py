"""Events as they come, as server-sent events that can be resumed after the last one that was seen.

`format=agentruntime` gives them in portable words. Who names no event to begin after gets a snapshot first, and then
everything that has happened since.
"""

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
from aof.app.portable import log
from aof.core.errors.base import AofError, InvalidInput
from aof.core.model.events import Event

_PAGE = 500
_PORTABLE = "agentruntime"
_FORMATS = ("native", _PORTABLE)
_ALIVE = b": still here\n\n"


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
    return _Wanted(None if seen is None else int(seen), full, kind, form == _PORTABLE)


async def _native(follower: Follower, wanted: _Wanted) -> AsyncIterator[bytes]:
    yield b": connected\n\n"
    async for event in _events(follower, wanted.after or 0):
        if event is None:
            yield _ALIVE
        elif wanted.task_id in (None, event.task_id) and wanted.kind in (None, event.type):
            yield _frame(event.seq, event.type, event)


async def _portable(follower: Follower, wanted: _Wanted) -> AsyncIterator[bytes]:
    """A snapshot unless the client has one, then every portable event after it, each once."""
    yield b": connected\n\n"
    after = wanted.after
    if after is None:
        view = await anyio.to_thread.run_sync(follower.fabric.snapshot)
        after = view["sequence"]
        yield _frame(after, "snapshot", view)
    translation = log.Translation()
    start = await anyio.to_thread.run_sync(_translated, follower.fabric, translation, after)
    async for event in _events(follower, start):
        line = None if event is None else translation.line(event)
        if event is None:
            yield _ALIVE
        elif line is not None and wanted.task_id in (None, line["taskId"]) and wanted.kind in (None, line["type"]):
            yield _frame(event.seq, line["type"], line)


def _translated(fabric: Fabric, translation: log.Translation, until: int) -> int:
    """Let it know what came before; the number of the last event that it has read."""
    last = 0
    for event in fabric.events():
        if event.seq > until:
            break
        translation.line(event)
        last = event.seq
    return last


async def _events(follower: Follower, after: int) -> AsyncIterator[Event | None]:
    """Every event after one, as they come; None when nothing has come for a while."""
    while True:
        if not await follower.after(after):
            yield None
            continue
        page = await anyio.to_thread.run_sync(_page, follower.fabric, after)
        for event in page:
            after = event.seq
            yield event
        if not page:  # another log has taken the place of this one, and has not come as far
            await anyio.sleep(PATIENCE)


def _page(fabric: Fabric, after: int) -> list[Event]:
    found: list[Event] = []
    for event in fabric.events(after=after):
        found.append(event)
        if len(found) == _PAGE:
            break
    return found


def _frame(seq: int, kind: str, data: object) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), msgspec.json.encode(data))
