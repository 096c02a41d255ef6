"""Calls that take long.

Progress and log messages on the way, and the protocol's Tasks extension for those that outlive their connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, get_args

import anyio
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    LOG_LEVEL_META_KEY,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    EmptyResult,
    GetTaskRequestParams,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    RequestParams,
    SetLevelRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME
from aof.errors import AofError, InvalidTransition
from aof.kernel.results import Created
from aof.surfaces.mcp.sessions import Hub, Session
from aof.surfaces.mcp.tools import tool_result
from aof.tasks.model import Task

_Answer = TypeVar("_Answer")
_Context = ServerRequestContext[Any, Any]
_LEVEL = "aof.log_level"
_LEVELS: Final[tuple[LoggingLevel, ...]] = get_args(LoggingLevel)
_EVERY: Final = 1.0  # seconds from one report of progress to the next
_TOKEN: Final = "progress_token"  # noqa: S105 - the name of a field
_ASKING: Final = (b'"progressToken"', b'"logging/setLevel"', LOG_LEVEL_META_KEY.encode())
EXTENSION: Final = "io.modelcontextprotocol/tasks"
_POLL_MS: Final = 5000


def asks_for_reports(body: bytes) -> bool:
    """Whether a request may be one whose answer needs a stream; one that only looks like it gets a stream as well."""
    return any(mark in body for mark in _ASKING)


async def set_level(ctx: _Context, params: SetLevelRequestParams) -> EmptyResult:
    """Note what a session wants to hear of."""
    ctx.session._connection.state[_LEVEL] = params.level  # noqa: SLF001 - the only way to what lives as long
    return EmptyResult()


async def with_reports(
    ctx: _Context, tool: str, work: Callable[[], Awaitable[_Answer]], total: float | None = None
) -> _Answer:
    """Do the work, with log messages and progress for a client that wants them.

    `total` is how many seconds the work takes at most, where that is known.
    """
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        least = (ctx.meta or {}).get(LOG_LEVEL_META_KEY)
    else:
        least = ctx.session._connection.state.get(_LEVEL)  # noqa: SLF001 - as above
    counts = (ctx.meta or {}).get(_TOKEN) is not None
    if least not in _LEVELS and not counts:
        return await work()

    async def log(level: LoggingLevel, **data: Any) -> None:
        if least not in _LEVELS or _LEVELS.index(level) < _LEVELS.index(least):
            return
        params = LoggingMessageNotificationParams(level=level, logger="aof", data={"tool": tool, **data})
        note = LoggingMessageNotification(params=params)
        await ctx.session.send_notification(note, related_request_id=ctx.request_id)

    await log("debug", event="started")
    begun = anyio.current_time()
    try:
        answer = await _with_progress(ctx, work, total) if counts else await work()
    except AofError as error:
        await log("warning", event="refused", code=error.code, message=error.message)
        raise
    await log("info", event="answered", seconds=round(anyio.current_time() - begun, 3))
    return answer


async def _with_progress(ctx: _Context, work: Callable[[], Awaitable[_Answer]], total: float | None) -> _Answer:
    """Do the work, and report the seconds that it has taken so far."""

    async def tick() -> None:
        done = 0.0
        message = "waiting" if total else "working"
        while True:
            await anyio.sleep(_EVERY)
            done += _EVERY
            await ctx.session.report_progress(min(done, total) if total else done, total, message)

    answers: list[_Answer] = []
    errors: list[Exception] = []
    await ctx.session.report_progress(0, total, "begun")
    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        try:
            answers.append(await work())
        except Exception as error:  # noqa: BLE001 - it is raised again, without the group around it
            errors.append(error)
        group.cancel_scope.cancel()
    if errors:
        raise errors[0]
    return answers[0]


class UpdateTaskRequestParams(RequestParams):
    """A client's answers to the questions of a task. Ours ask none."""

    task_id: str
    input_responses: dict[str, Any] | None = None


def understands_tasks(ctx: _Context) -> bool:
    """Whether the client takes a handle for an answer to this request."""
    wanted = ClientCapabilities(extensions={EXTENSION: {}})
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and ctx.session.check_client_capability(wanted)


def require_tasks(ctx: _Context, task_id: str) -> None:
    """Refuse who asks for a handle without having said that it takes any, or whose header names another one."""
    headers = getattr(ctx.request, "headers", None)
    named = decode_header_value(headers.get(MCP_NAME_HEADER)) if headers is not None else None
    if named is not None and named != task_id:
        raise MCPError(HEADER_MISMATCH, f"{MCP_NAME_HEADER} says {named[:80]!r}, and the request is about another task")
    if not understands_tasks(ctx):
        asked: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, f"this needs a client with the extension {EXTENSION}", asked)


async def task_handle(hub: Hub, created: Created) -> dict[str, Any]:
    """The answer that stands for a created task: a handle to ask for its progress and its result by."""
    task = await hub.ask(hub.fabric.get, created.task_id)
    return {"resultType": "task", **_task_view(task)}


async def get_task(hub: Hub, params: GetTaskRequestParams) -> dict[str, Any]:
    """How the task is, with its result once there is one."""
    task = await _find_task(hub, params.task_id)
    view = _task_view(task)
    if view["status"] == "completed":
        path = hub.fabric.store.path_of(task)
        result = tool_result(Created(task_id=task.id, status=task.status, file_path=path))
        if task.status == "deadletter":
            result = result.model_copy(update={"is_error": True, "structured_content": None})
        view["result"] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return view


async def update_task(hub: Hub, params: UpdateTaskRequestParams) -> dict[str, Any]:
    """Acknowledge answers and drop them, as the extension wants it: nobody has asked."""
    await _find_task(hub, params.task_id)
    return {}


async def cancel_task(
    hub: Hub, params: GetTaskRequestParams, caller: Caller, alone: Session | None = None
) -> dict[str, Any]:
    """Cancel the task; one that is over stays as it is."""
    task = await _find_task(hub, params.task_id)
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


async def _find_task(hub: Hub, task_id: str) -> Task:
    try:
        return await hub.ask(hub.fabric.get, task_id)
    except AofError as error:
        raise MCPError(INVALID_PARAMS, error.message, {"code": error.code}) from None


def _task_view(task: Task) -> dict[str, Any]:
    """The task in the words of the extension, where `failed` is for errors of the protocol only."""
    message: str = task.status
    if task.blocked is not None:
        message = f"blocked: {task.blocked.reason}"
    elif task.last_error is not None and task.status == "deadletter":
        message = f"deadletter: {task.last_error.code}: {task.last_error.message}"
    elif task.status == "in-progress" and (text := msgspec.to_builtins(task.progress).get("text")):
        message = f"{task.status}: {text}"
    return {
        "taskId": task.id,
        "status": {"done": "completed", "deadletter": "completed", "cancelled": "cancelled"}.get(
            task.status, "working"
        ),
        "statusMessage": message,
        "createdAt": task.created_at,
        "lastUpdatedAt": task.updated_at,
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }
