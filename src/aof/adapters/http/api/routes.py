"""One route an operation, made from the catalogue. Must not know any single operation, nor who may call."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio.to_thread
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from aof._support import nesting
from aof.adapters.http.api.responses import PREFIX, answer, failure, fault, method_of
from aof.adapters.http.guard import CALLER
from aof.app.async_bridge import Follower, asked
from aof.app.fabric import Fabric
from aof.app.faults import record
from aof.app.operations.call import Caller, parameters, perform, warning
from aof.app.operations.catalogue import OPERATIONS, Operation, Params
from aof.app.operations.error_payload import reader_of
from aof.app.operations.schemas import input_schema
from aof.core.errors.base import AofError, InvalidInput, PayloadTooLarge

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
        given = nesting.decode(body or b"{}", object)
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
