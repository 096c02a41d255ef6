"""One route per operation, made from the catalogue, and the stream of events."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import islice
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from aof.api.async_bridge import PATIENCE, Follower, perform_async
from aof.api.call import Caller, parameters, perform, reader_of, warning
from aof.api.catalogue import OPERATIONS, Operation, Params, input_schema
from aof.errors import AofError, InvalidInput, PayloadTooLarge
from aof.kernel.events import Event
from aof.kernel.faults import record
from aof.portable.operations import Line
from aof.support import nesting
from aof.surfaces.http.guard import CALLER
from aof.surfaces.http.responses import PREFIX, answer, failure, fault, method_of

Endpoint = Callable[[Request], Awaitable[Response]]
_GONE = 499
_EXPECTED = "expectRev"
_REVISION = re.compile(r'"?([0-9]{1,18})"?', re.ASCII)
_LONG = 65_536  # bytes: a longer body is read in a thread, where it holds up nobody else
_PAGE = 500  # events
_PORTABLE = "agentruntime"
_FORMATS = ("native", _PORTABLE)
_CONNECTED = b": connected\n\n"
_ALIVE = b": still here\n\n"
_PAUSE = 0.25  # seconds from one page to the next: many events cost a follower as little as a few


def operation_routes(max_body: int) -> list[Route]:
    """A route for every operation."""
    return [
        Route(f"{PREFIX}/{operation.name}", _endpoint(operation, max_body), methods=[method_of(operation)])
        for operation in OPERATIONS
    ]


def _endpoint(operation: Operation, max_body: int) -> Endpoint:
    properties = input_schema(operation)["properties"]
    reads = operation.effect == "read"
    lists = frozenset(name for name, one in properties.items() if one.get("type") == "array")
    conditional = _EXPECTED in properties

    async def endpoint(request: Request) -> Response:
        caller: Caller = request.scope[CALLER]
        follower: Follower = request.app.state.follower

        def work(params: Params) -> tuple[Any, str]:
            result = perform(follower.fabric, operation, params, caller)
            return result, warning(follower.fabric) if reads else ""

        try:
            if reads:
                params = parameters(operation, _query(request, lists), strict=False)
            else:
                body = await bounded_body(request, max_body)
                given = _object(body) if len(body) < _LONG else await anyio.to_thread.run_sync(_object, body)
                if conditional and (tag := request.headers.get("if-match")) is not None:
                    given = _expecting(given, tag)
                params = parameters(operation, given)
            return answer(*await perform_async(follower, params, work, request.is_disconnected))
        except AofError as error:
            return failure(error, reader_of(caller))
        except ClientDisconnect:
            return Response(status_code=_GONE)  # which nobody reads
        except Exception as error:  # noqa: BLE001 - the edge: a fault of ours is told as one, and logged
            return fault(record(operation.name, error))

    return endpoint


def _query(request: Request, lists: frozenset[str]) -> dict[str, Any]:
    """The values by name; one that is given twice is a list, also where none is taken."""
    given = request.query_params
    return {
        name: values if name in lists or len(values) > 1 else values[0]
        for name in given
        if (values := given.getlist(name))
    }


async def bounded_body(request: Request, most: int) -> bytes:
    """The whole body, unless it is more than the server takes."""
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > most:
            raise PayloadTooLarge(f"the body has more than {most} bytes", "send less at once")
    return bytes(parts)


def _object(body: bytes) -> Any:
    try:
        given = nesting.decode_json(body or b"{}", object)
        json.loads(body or b"{}", object_pairs_hook=_named_once)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InvalidInput(f"the body is not JSON: {str(error)[:200]}", "send a JSON object") from None
    if not isinstance(given, dict):
        raise InvalidInput("the body is not a JSON object", "send the parameters as a JSON object")
    return given


def _expecting(given: dict[str, Any], tag: str) -> dict[str, Any]:
    """The parameters with the revision that `If-Match` names; `*` stands for any."""
    if tag.strip() == "*":
        return given
    found = _REVISION.fullmatch(tag.strip())
    if found is None:
        raise InvalidInput(
            f"If-Match must be a revision, not {tag[:80]!r}", 'send the ETag of the task, as in: If-Match: "12"'
        )
    rev = int(found[1])
    if given.get(_EXPECTED) not in (None, rev):
        raise InvalidInput(f"If-Match and '{_EXPECTED}' name different revisions", "give one of them")
    return given | {_EXPECTED: rev}


def _named_once(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object with a name twice: nobody can say which value is meant, and others may read the other one."""
    names: set[str] = set()
    for name, _ in pairs:
        if name in names:
            raise InvalidInput(f"the body names {name[:80]!r} twice", "give each name once")
        names.add(name)


async def event_stream(request: Request) -> Response:
    """The endpoint of the events as they come, as server-sent events."""
    follower: Follower = request.app.state.follower
    try:
        query = await _event_query(follower, request)
    except AofError as error:
        return failure(error)
    stream = _portable(follower, query) if query.portable else _native(follower, query)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


class _EventQuery(msgspec.Struct, frozen=True):
    """After which event (None begins with a snapshot), of which task and type, and in which format."""

    after: int | None
    task_id: str | None
    type: str | None
    portable: bool

    def covers(self, task_id: str | None, event_type: str) -> bool:
        """Whether an event of this task and type is asked for."""
        return self.task_id in (None, task_id) and self.type in (None, event_type)


async def _event_query(follower: Follower, request: Request) -> _EventQuery:
    """What a request asks for. A client that was cut off says in a header what it saw last."""
    given = dict(request.query_params)
    seen = request.headers.get("last-event-id", given.pop("after", None))
    given.pop("after", None)
    task_id, event_type, form = given.pop("taskId", None), given.pop("type", None), given.pop("format", "native")
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
    return _EventQuery(after, full, event_type, form == _PORTABLE)


async def _native(follower: Follower, query: _EventQuery) -> AsyncIterator[bytes]:
    def page_after(seq: int) -> list[Event]:
        return list(islice(follower.fabric.events(after=seq), _PAGE))

    yield _CONNECTED
    after = query.after or 0
    while True:
        if not await follower.after(after):
            yield _ALIVE
            continue
        page = await anyio.to_thread.run_sync(page_after, after)
        yield b"".join(
            _frame(event.seq, event.type, event) for event in page if query.covers(event.task_id, event.type)
        )
        # without a page another log has taken the place of this one, and has not come as far
        after = page[-1].seq if page else after
        await anyio.sleep(_PAUSE if page else PATIENCE)


async def _portable(follower: Follower, query: _EventQuery) -> AsyncIterator[bytes]:
    """A snapshot unless the client has one, then every portable event after it, each once."""
    yield _CONNECTED
    after = query.after
    if after is None:
        view = await anyio.to_thread.run_sync(follower.fabric.snapshot)
        after = view["sequence"]
        yield _frame(after, "snapshot", view)
    async for page in _portable_pages(follower, after):
        yield (
            _ALIVE
            if page is None
            else b"".join(
                _frame(line["sequence"], line["type"], line)
                for line in page
                if query.covers(line["taskId"], line["type"])
            )
        )


async def _portable_pages(follower: Follower, after: int) -> AsyncIterator[list[Line] | None]:
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


def _frame(seq: int, kind: str, data: object) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), msgspec.json.encode(data))
