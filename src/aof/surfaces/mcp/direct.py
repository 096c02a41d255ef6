"""Tool calls over HTTP that need no more of the protocol than their answer: from bytes to operation to bytes.

They are what agents send most, and the protocol's own machinery takes several times as long for one as the operation
itself. What is odd about a message in any way, waits, or wants reports is left to that machinery, so it alone says
what is refused and how.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import anyio
import msgspec
from mcp.server.streamable_http import StreamableHTTPServerTransport, check_accept_headers
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request, find_duplicated_routing_header
from mcp_types import CallToolResult
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response

from aof.api.call import Caller, reader_of
from aof.api.catalogue import BY_TOOL, Operation
from aof.errors import AofError
from aof.support.typed import prepare_type
from aof.surfaces.mcp import tools
from aof.surfaces.mcp.sessions import SESSION_HEADER, Hub, Session

_VERSION_HEADER: Final = "mcp-protocol-version"
_JSON: Final = "application/json"
_WAIT: Final = "wait"


class _Params(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}
    meta: dict[str, Any] | msgspec.UnsetType = msgspec.field(name="_meta", default=msgspec.UNSET)


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: _Params


_decoder: Final = msgspec.json.Decoder(prepare_type(_Call))


class DirectCall(NamedTuple):
    """A message that is such a call, and the session that it belongs to; the newest revision has none."""

    message: _Call
    operation: Operation
    caller: Caller
    session: Session | None


def direct_call(
    hub: Hub, request: Request, body: bytes, caller: Caller, transport: StreamableHTTPServerTransport | None
) -> DirectCall | None:
    """The call that a request makes; None where it is anything else, or is not as it should be."""
    try:
        message = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    operation = BY_TOOL.get(message.params.name)
    if operation is None or _WAIT in message.params.arguments or not _is_plain(request):
        return None
    version = request.headers.get(_VERSION_HEADER)
    if version in MODERN_PROTOCOL_VERSIONS:
        return DirectCall(message, operation, caller, None) if _is_newest(request, message) else None
    session = hub.named.get(request.headers.get(SESSION_HEADER, ""))
    if session is None or transport is None or not (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS):
        return None
    opened = session.caller
    is_owner = (opened.actor, opened.role, opened.token) == (caller.actor, caller.role, caller.token)
    usable = is_owner and transport.is_json_response_enabled and not transport.is_terminated
    return DirectCall(message, operation, caller, session) if usable else None


def _is_plain(request: Request) -> bool:
    has_json, _ = check_accept_headers(request)
    return has_json and request.headers.get("content-type", "").partition(";")[0].strip() == _JSON


def _is_newest(request: Request, message: _Call) -> bool:
    """Whether headers and message agree, as the newest revision wants it."""
    if find_duplicated_routing_header(request.headers.items()) is not None:
        return False
    body = {"method": message.method, "params": {"name": message.params.name, "_meta": message.params.meta}}
    return isinstance(classify_inbound_request(body, headers=request.headers), InboundModernRoute)


async def answer(hub: Hub, call: DirectCall, transport: StreamableHTTPServerTransport | None) -> Response:
    """Perform the call; the answer is the one that the protocol's own machinery would give."""
    if transport is not None:
        _keep_open(transport)
    message, session = call.message, call.session
    headers = {SESSION_HEADER: session.name} if session is not None and session.name is not None else None
    try:
        result, secrets, warning = await tools.call(hub, call.operation, message.params.arguments, call.caller, session)
    except AofError as error:
        shown = _of_model(tools.refusal(error, reader_of(call.caller, hub.tiers_of(call.caller))))
    except Exception as error:  # noqa: BLE001 - the edge: a fault of ours is told as one, and logged
        shown = _of_model(tools.fault(call.operation, error))
    else:
        text = msgspec.json.encode(result)
        shown = {"content": [{"type": "text", "text": text.decode()}], "structuredContent": msgspec.Raw(text)}
        shown["isError"] = False
        if meta := tools.meta(secrets, warning):
            shown["_meta"] = meta
    if session is None:
        shown["resultType"] = "complete"
        shown["_meta"] = shown.get("_meta", {}) | hub.stamp
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, "result": shown})
    return Response(body, media_type=_JSON, headers=headers)


def _of_model(result: CallToolResult) -> dict[str, Any]:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"result_type"})


def _keep_open(transport: StreamableHTTPServerTransport) -> None:
    """Let the session's idle time begin anew, where it runs."""
    scope, timeout = transport.idle_scope, transport._idle_timeout  # noqa: SLF001 - it has no public name
    if scope is not None and timeout is not None and not transport._requests_in_flight:  # noqa: SLF001 - as above
        scope.deadline = anyio.current_time() + timeout
