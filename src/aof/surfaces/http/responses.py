"""How answers and errors look over HTTP. The one place where a kind of error becomes a status."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from aof.api.call import EVERYTHING, HintReader, Told, error_payload
from aof.api.catalogue import Operation
from aof.errors import AofError

STATUS_BY_KIND = {
    "invalid": 400,
    "not_found": 404,
    "conflict": 409,
    "refused": 422,
    "internal": 500,
    "unavailable": 503,
}
STATUS_BY_CODE = {
    "unauthenticated": 401,
    "not_allowed": 403,
    "actor_mismatch": 403,
    "payload_too_large": 413,
    "too_many_requests": 429,
}
_HEADERS = {
    "unauthenticated": {"WWW-Authenticate": "Bearer"},
    "too_many_requests": {"Retry-After": "1", "Connection": "close"},
}
PREFIX = "/api/v1"
WARNING = "AOF-Warning"


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of every answer that is not a success."""

    error: Told


def method_of(operation: Operation) -> str:
    """The method of an operation: GET to read, POST for everything else."""
    return "GET" if operation.effect == "read" else "POST"


def spell(operation: Operation, arguments: dict[str, Any]) -> str:
    """A call as a client of this surface makes it."""
    line = f"{method_of(operation)} {PREFIX}/{operation.name}"
    if operation.effect != "read":
        return f"{line} {msgspec.json.encode(arguments).decode()}"
    given = {name: str(value).lower() if isinstance(value, bool) else value for name, value in arguments.items()}
    return f"{line}?{urlencode(given)}" if given else line


def answer(result: Any, warning: str = "") -> Response:
    """A success; a task comes with its revision as `ETag`, for `If-Match`. A warning is one line of ASCII."""
    rev = result.get("rev") if isinstance(result, dict) else None
    headers = {"ETag": f'"{rev}"'} if isinstance(rev, int) else {}
    if warning:
        headers[WARNING] = warning
    return Response(msgspec.json.encode(result), media_type="application/json", headers=headers)


def status_of(error: AofError) -> int:
    """The status of an answer with this error."""
    return STATUS_BY_CODE.get(error.code, STATUS_BY_KIND[error.kind])


def failure(error: AofError, reader: HintReader = EVERYTHING) -> Response:
    """A refusal or a failure, with its hint in the words of this surface, for those who can follow it."""
    body, headers = msgspec.json.encode(ErrorBody(error_payload(error, spell, reader))), _HEADERS.get(error.code)
    return Response(body, status_code=status_of(error), media_type="application/json", headers=headers)


def fault(reference: str) -> Response:
    """A fault of ours, without a word about our insides; the server's log has more under the reference."""
    message = f"the server failed (reference {reference})"
    hint = "see the server's log under this reference"
    error = Told(code="internal", kind="internal", message=message, hint=hint, details={"reference": reference})
    return Response(msgspec.json.encode(ErrorBody(error)), status_code=500, media_type="application/json")
