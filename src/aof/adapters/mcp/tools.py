"""The operations as tools: how they are listed, called and answered, and how a hint spells a call.

The secrets of runs are kept out of what a model reads: a session holds them, or the client's program gets them apart.
Must not know what an operation does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from aof.adapters.mcp.sessions import Hub, Session
from aof.app.async_bridge import Gone, asked
from aof.app.faults import record
from aof.app.operations.call import Caller, parameters, perform, warning
from aof.app.operations.catalogue import Operation, Params, listed_in
from aof.app.operations.error_payload import HintReader, Told, told
from aof.app.operations.rows.org import SentMessages
from aof.app.operations.schemas import input_schema
from aof.core.errors.base import AofError, InvalidInput

SECRETS = "aof/runSecrets"
WARNING = "aof/warning"
_HIDDEN = "secret"  # the field of a result that no model may read
WAIT = "wait"
# What differs from the defaults of the protocol, by which a tool may destroy things.
_ANNOTATIONS = {
    "read": ToolAnnotations(read_only_hint=True),
    "append": ToolAnnotations(destructive_hint=False),
    "write": ToolAnnotations(destructive_hint=False),
    "destructive": None,
}


def parted(result: Any) -> tuple[Any, list[str]]:
    """A result without its secrets, and those."""
    if isinstance(result, SentMessages):
        rows = [{name: value for name, value in row.items() if name != _HIDDEN} for row in result.results]
        return SentMessages(results=rows), [row[_HIDDEN] for row in result.results if _HIDDEN in row]
    secret = getattr(result, _HIDDEN, None)
    if not isinstance(secret, str):
        return result, []
    return msgspec.structs.replace(result, secret=msgspec.UNSET), [secret]


def tools(tiers: tuple[str, ...]) -> list[Tool]:
    """The tools of some tiers. What they answer is not described: it would cost a model more than all the rest."""
    return [_tool(operation) for operation in listed_in(tiers)]


def can_wait(operation: Operation) -> bool:
    """Whether the tool starts something that can be followed as a task."""
    return operation.name == "create"


def check_wait(wait: object) -> None:
    """Refuse what is neither: it might have been meant for something else."""
    if not isinstance(wait, bool | None):
        hint = f"leave '{WAIT}' out, or give true to get a handle"
        raise InvalidInput(f"'{WAIT}' must be true or false", hint, parameter=WAIT)


def _tool(operation: Operation) -> Tool:
    return Tool(
        name=operation.tool,
        description=operation.help,
        input_schema=input_schema(operation, tool=True),
        annotations=_ANNOTATIONS[operation.effect],
    )


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
    params = parameters(operation, given, tool=True)
    return await asked(hub.follower, params, partial(_warned, hub, operation, caller, session), gone)


def _warned(
    hub: Hub, operation: Operation, caller: Caller, session: Session | None, params: Params
) -> tuple[Any, list[str], str]:
    result, secrets = _perform(hub, operation, caller, session, params)
    return result, secrets, warning(hub.fabric) if operation.effect == "read" else ""


def _perform(
    hub: Hub, operation: Operation, caller: Caller, session: Session | None, params: Params
) -> tuple[Any, list[str]]:
    known = session.speaker(operation, params, caller) if session is not None else caller
    whose, named = operation.tool_caller, isinstance(params.actor, str)
    if whose is not None and getattr(params, whose) is msgspec.UNSET and (named or not known.default):
        params = msgspec.structs.replace(params, **{whose: params.actor if named else known.actor})
    if session is None:
        return parted(perform(hub.fabric, operation, params, known))
    result, secrets = parted(perform(hub.fabric, operation, params, known, session.run_of))
    session.note(operation, result, secrets)
    return result, []


def answered(result: Any, secrets: Sequence[str] = (), said: str = "") -> CallToolResult:
    """A result: structured, and the same as text for clients that know only that.

    Secrets are for the client's program, which sends them along, and not for the model that it works for. What is
    `said` beside the result is a warning: the result itself has to fit its schema.
    """
    data = msgspec.to_builtins(result)
    text = msgspec.json.encode(result).decode()
    answer = CallToolResult(content=[TextContent(text=text)], structured_content=data)
    meta = ({SECRETS: list(secrets)} if secrets else {}) | ({WARNING: said} if said else {})
    return answer.model_copy(update={"meta": meta}) if meta else answer


def refused(error: AofError, reader: HintReader) -> CallToolResult:
    """A refusal. As text only: clients hold structured content against the schema of success."""
    return _failed(told(error, spell, reader))


def broken(operation: Operation, error: Exception) -> CallToolResult:
    """A fault of ours, without a word about our insides; the server's log has more under the reference."""
    reference = record(operation.tool, error)
    message = f"{operation.tool} failed (reference {reference})"
    hint = "try again; if it stays, the server's log has more under this reference"
    details = {"reference": reference}
    return _failed(Told(code="internal", kind="internal", message=message, hint=hint, details=details))


def _failed(error: Told) -> CallToolResult:
    text = msgspec.json.encode({"error": error}).decode()
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def spell(operation: Operation, arguments: dict[str, Any]) -> str:
    """A call as a client of this surface makes it."""
    return f"{operation.tool}({msgspec.json.encode(arguments).decode()})"
