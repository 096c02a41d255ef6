"""One route per operation, made from the catalogue, and the stream of events.

Must not know any single operation, nor who may call.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from itertools import islice
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from aof.api.async_bridge import PATIENCE, Follower, asked
from aof.api.call import Caller, parameters, perform, reader_of, warning
from aof.api.catalogue import OPERATIONS, Operation, Params, input_schema
from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidInput, PayloadTooLarge
from aof.kernel.faults import record
from aof.kernel.model import Event
from aof.portable.operations import Line
from aof.support import nesting
from aof.surfaces.http.guard import CALLER
from aof.surfaces.http.responses import PREFIX, answer, failure, fault, method_of

Endpoint = Callable[[Request], Awaitable[Response]]
_GONE = 499
_EXPECTED = "expectRev"
_REVISION = re.compile(r'"?([0-9]{1,18})"?', re.ASCII)
_LONG = 65_536  # bytes: what takes longer to read holds up nobody else


def operation_routes(follower_of: Callable[[Request], Follower], max_body: int) -> list[Route]:
    """A route for every operation."""
    return [
        Route(f"{PREFIX}/{operation.name}", _endpoint(operation, follower_of, max_body), methods=[method_of(operation)])
        for operation in OPERATIONS
    ]


def _endpoint(operation: Operation, follower_of: Callable[[Request], Follower], max_body: int) -> Endpoint:
    properties = input_schema(operation)["properties"]
    lists = frozenset(name for name, one in properties.items() if one.get("type") == "array")
    conditional = _EXPECTED in properties

    async def endpoint(request: Request) -> Response:
        try:
            if operation.effect == "read":
                params = parameters(operation, _query(request, lists), strict=False)
            else:
                body = await bounded_body(request, max_body)
                given = _object(body) if len(body) < _LONG else await anyio.to_thread.run_sync(_object, body)
                if conditional and (tag := request.headers.get("if-match")) is not None:
                    given = _expecting(given, tag)
                params = parameters(operation, given)
            follower = follower_of(request)
            if operation.effect == "read":
                look = partial(_seen, follower.fabric, operation, request.scope[CALLER])
                return answer(*await asked(follower, params, look, request.is_disconnected))
            work = partial(_done, follower.fabric, operation, request.scope[CALLER])
            return answer(await asked(follower, params, work, request.is_disconnected))
        except AofError as error:
            return failure(error, reader_of(request.scope[CALLER]))
        except ClientDisconnect:
            return Response(status_code=_GONE)  # which nobody reads
        except Exception as error:  # noqa: BLE001 - the edge: a fault of ours is told as one, and logged
            return fault(record(operation.name, error))

    return endpoint


def _done(fabric: Fabric, operation: Operation, caller: Caller, params: Params) -> Any:
    return perform(fabric, operation, params, caller)


def _seen(fabric: Fabric, operation: Operation, caller: Caller, params: Params) -> tuple[Any, str]:
    return perform(fabric, operation, params, caller), warning(fabric)


def _query(request: Request, lists: frozenset[str]) -> dict[str, Any]:
    """The values by name; one that is given twice is a list, also where none is taken."""
    asked = request.query_params
    return {
        name: values if name in lists or len(values) > 1 else values[0]
        for name in asked
        if (values := asked.getlist(name))
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
    """Of two values of one name nobody can say which is meant, and others may read the other one."""
    names: set[str] = set()
    for name, _ in pairs:
        if name in names:
            raise InvalidInput(f"the body names {name[:80]!r} twice", "give each name once")
        names.add(name)


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
