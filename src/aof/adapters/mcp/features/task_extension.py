"""Long work as the protocol's Tasks extension: a handle that both sides may forget and find again.

The handle is the task's own ID, and every answer is read from the fabric, so it survives restarts of both sides.
Must not keep anything of its own.
"""

from __future__ import annotations

from typing import Any

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    GetTaskRequestParams,
    RequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aof.adapters.mcp.sessions import Hub, Session
from aof.adapters.mcp.tools import answered
from aof.app.operations.call import Caller, parameters, perform
from aof.app.operations.catalogue import BY_NAME
from aof.app.operations.results import Created
from aof.core.errors.base import AofError
from aof.core.errors.tasks import InvalidTransition
from aof.core.model.task import Task

EXTENSION = "io.modelcontextprotocol/tasks"
_POLL_MS = 5000


class UpdateTaskRequestParams(RequestParams):
    """What a client answers to a task that asked something. Ours ask nothing."""

    task_id: str
    input_responses: dict[str, Any] | None = None


def understood(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client takes a handle for an answer to this request."""
    wanted = ClientCapabilities(extensions={EXTENSION: {}})
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and ctx.session.check_client_capability(wanted)


def require(ctx: ServerRequestContext[Any, Any], task_id: str) -> None:
    """Refuse who asks for a handle without having said that it takes any, or whose header names another one."""
    headers = getattr(ctx.request, "headers", None)
    named = decode_header_value(headers.get(MCP_NAME_HEADER)) if headers is not None else None
    if named is not None and named != task_id:
        raise MCPError(HEADER_MISMATCH, f"{MCP_NAME_HEADER} says {named[:80]!r}, and the request is about another task")
    if not understood(ctx):
        asked: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, f"this needs a client with the extension {EXTENSION}", asked)


async def handle(hub: Hub, created: Created) -> dict[str, Any]:
    """The answer that stands for a task in the making."""
    task = await hub.ask(hub.fabric.get, created.task_id)
    return {"resultType": "task", **_seen(task)}


async def get(hub: Hub, params: GetTaskRequestParams) -> dict[str, Any]:
    """How the task is, with its result once there is one."""
    task = await _found(hub, params.task_id)
    seen = _seen(task)
    if seen["status"] == "completed":
        path = hub.fabric.store.path_of(task)
        result = answered(Created(task_id=task.id, status=task.status, file_path=path))
        if task.status == "deadletter":
            result = result.model_copy(update={"is_error": True, "structured_content": None})
        seen["result"] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return seen


async def update(hub: Hub, params: UpdateTaskRequestParams) -> dict[str, Any]:
    """Answers to questions that nobody asked are acknowledged and dropped, as the extension wants it."""
    await _found(hub, params.task_id)
    return {}


async def cancel(
    hub: Hub, params: GetTaskRequestParams, caller: Caller, alone: Session | None = None
) -> dict[str, Any]:
    """Cancel the task; one that is over stays as it is."""
    task = await _found(hub, params.task_id)
    operation = BY_NAME["cancel"]
    given = parameters(operation, {"taskId": task.id, "reason": "cancelled by the client that waits for it"})
    speaker = caller if alone is None else alone.speaker(operation, given, caller)
    try:
        await hub.ask(perform, hub.fabric, operation, given, speaker)
    except InvalidTransition:
        return {}
    except AofError as error:
        raise MCPError(INVALID_PARAMS, error.message) from None
    return {}


async def _found(hub: Hub, task_id: str) -> Task:
    try:
        return await hub.ask(hub.fabric.get, task_id)
    except AofError as error:
        raise MCPError(INVALID_PARAMS, error.message, {"code": error.code}) from None


def _seen(task: Task) -> dict[str, Any]:
    """The task in the words of the extension, where `failed` is for errors of the protocol only."""
    ended = {"done": "completed", "deadletter": "completed", "cancelled": "cancelled"}
    seen: dict[str, Any] = {
        "taskId": task.id,
        "status": ended.get(task.status, "working"),
        "statusMessage": _message(task),
        "createdAt": task.created_at,
        "lastUpdatedAt": task.updated_at,
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }
    return seen


def _message(task: Task) -> str:
    if task.blocked is not None:
        return f"blocked: {task.blocked.reason}"
    if task.last_error is not None and task.status == "deadletter":
        return f"deadletter: {task.last_error.code}: {task.last_error.message}"
    said = msgspec.to_builtins(task.progress).get("text") if task.status == "in-progress" else None
    return f"{task.status}: {said}" if said else task.status
