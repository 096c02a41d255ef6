"""The operations as MCP tools: how they are listed, called and answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from aof.api.async_bridge import Gone, asked
from aof.api.call import Caller, HintReader, Told, error_payload, parameters, perform, warning
from aof.api.catalogue import Operation, Params, input_schema, listed_in
from aof.errors import AofError
from aof.kernel.faults import record
from aof.messages.service import SentMessages
from aof.surfaces.mcp.sessions import Hub, Session

SECRETS = "aof/runSecrets"
WARNING = "aof/warning"
_SECRET_FIELD = "secret"  # noqa: S105 - the field of a result that no model may read
# What differs from the defaults of the protocol, by which a tool may destroy things.
_ANNOTATIONS = {
    "read": ToolAnnotations(read_only_hint=True),
    "append": ToolAnnotations(destructive_hint=False),
    "write": ToolAnnotations(destructive_hint=False),
    "destructive": None,
}


def tools(tiers: tuple[str, ...]) -> list[Tool]:
    """The tools of some tiers. What they answer is not described: it would cost a model more than all the rest."""
    return [
        Tool(
            name=operation.tool,
            description=operation.help,
            input_schema=input_schema(operation, tool=True),
            annotations=_ANNOTATIONS[operation.effect],
        )
        for operation in listed_in(tiers)
    ]


async def call(
    hub: Hub,
    operation: Operation,
    given: dict[str, Any],
    caller: Caller,
    session: Session | None,
    *,
    gone: Gone | None = None,
) -> tuple[Any, list[str], str]:
    """Perform the operation; raises AofError. With the result come secrets that no session keeps, and a warning."""

    def work(params: Params) -> tuple[Any, list[str], str]:
        speaker = session.speaker(operation, params, caller) if session is not None else caller
        whose, named = operation.tool_caller, isinstance(params.actor, str)
        if whose is not None and getattr(params, whose) is msgspec.UNSET and (named or not speaker.default):
            params = msgspec.structs.replace(params, **{whose: params.actor if named else speaker.actor})
        if session is None:
            result, secrets = _without_secrets(perform(hub.fabric, operation, params, speaker))
        else:
            result, kept = _without_secrets(perform(hub.fabric, operation, params, speaker, session.run_of))
            session.note(operation, result, kept)
            secrets = []
        return result, secrets, warning(hub.fabric) if operation.effect == "read" else ""

    return await asked(hub.follower, parameters(operation, given, tool=True), work, gone)


def _without_secrets(result: Any) -> tuple[Any, list[str]]:
    """A result without the secrets of the runs that it has begun, and those secrets."""
    if isinstance(result, SentMessages):
        rows = [{name: value for name, value in row.items() if name != _SECRET_FIELD} for row in result.results]
        return SentMessages(results=rows), [row[_SECRET_FIELD] for row in result.results if _SECRET_FIELD in row]
    secret = getattr(result, _SECRET_FIELD, None)
    if not isinstance(secret, str):
        return result, []
    return msgspec.structs.replace(result, secret=msgspec.UNSET), [secret]


def tool_result(result: Any, secrets: Sequence[str] = (), warning_text: str = "") -> CallToolResult:
    """A result: structured, and the same as text for clients that know only that.

    Secrets are for the client's program, which sends them along, and not for the model that it works for. A warning
    stands beside the result, which has to fit its schema.
    """
    data = msgspec.to_builtins(result)
    text = msgspec.json.encode(result).decode()
    answer = CallToolResult(content=[TextContent(text=text)], structured_content=data)
    meta = ({SECRETS: list(secrets)} if secrets else {}) | ({WARNING: warning_text} if warning_text else {})
    return answer.model_copy(update={"meta": meta}) if meta else answer


def refusal(error: AofError, reader: HintReader) -> CallToolResult:
    """A refused call."""
    return _failure(error_payload(error, spell, reader))


def fault(operation: Operation, error: Exception) -> CallToolResult:
    """A fault of ours, without a word about our insides; the server's log has more under the reference."""
    reference = record(operation.tool, error)
    message = f"{operation.tool} failed (reference {reference})"
    hint = "try again; if it stays, the server's log has more under this reference"
    details = {"reference": reference}
    return _failure(Told(code="internal", kind="internal", message=message, hint=hint, details=details))


def _failure(error: Told) -> CallToolResult:
    """An error as text only: clients hold structured content against the schema of success."""
    text = msgspec.json.encode({"error": error}).decode()
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def spell(operation: Operation, arguments: dict[str, Any]) -> str:
    """A call as a client of this surface makes it."""
    return f"{operation.tool}({msgspec.json.encode(arguments).decode()})"
