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
from aof.surfaces.mcp.tools import answered
from aof.tasks.model import Task

_Answer = TypeVar("_Answer")
_Context = ServerRequestContext[Any, Any]
_LEVEL = "aof.log_level"
_LEVELS: Final[tuple[LoggingLevel, ...]] = get_args(LoggingLevel)
_EVERY: Final = 1.0  # seconds from one report of progress to the next
_TOKEN: Final = "progress_token"  # noqa: S105 - the name of a field
_ASKING: Final = (b'"progressToken"', b'"logging/setLevel"', LOG_LEVEL_META_KEY.encode())


def asks_for_reports(body: bytes) -> bool:
    """Whether a request may be one whose answer needs a stream; one that only looks like it gets a stream as well."""
    return any(mark in body for mark in _ASKING)


async def set_level(ctx: _Context, params: SetLevelRequestParams) -> EmptyResult:
    """Note what a session wants to hear of."""
    ctx.session._connection.state[_LEVEL] = params.level  # noqa: SLF001 - the only way to what lives as long
    return EmptyResult()


async def reported(
    ctx: _Context, tool: str, work: Callable[[], Awaitable[_Answer]], total: float | None = None
) -> _Answer:
    """Do the work, and say how it goes. `total` is how many seconds it takes at most, where that is known."""
    level, counts = _level(ctx), (ctx.meta or {}).get(_TOKEN) is not None
    if level is None and not counts:
        return await work()
    said = _Reports(ctx, level)
    await said.log("debug", {"tool": tool, "event": "started"})
    begun = anyio.current_time()
    try:
        answer = await _counted(said, work, total) if counts else await work()
    except AofError as error:
        await said.log("warning", {"tool": tool, "event": "refused", "code": error.code, "message": error.message})
        raise
    seconds = round(anyio.current_time() - begun, 3)
    await said.log("info", {"tool": tool, "event": "answered", "seconds": seconds})
    return answer


def _level(ctx: _Context) -> LoggingLevel | None:
    """The least that the client wants to hear of; None where it asked for nothing when the call began."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        asked = (ctx.meta or {}).get(LOG_LEVEL_META_KEY)
    else:
        asked = ctx.session._connection.state.get(_LEVEL)  # noqa: SLF001 - as above
    return asked if asked in _LEVELS else None


class _Reports:
    """The way back to one client, for as long as its call takes."""

    def __init__(self, ctx: _Context, level: LoggingLevel | None) -> None:
        self._ctx = ctx
        self._level = level

    async def log(self, level: LoggingLevel, data: dict[str, Any]) -> None:
        """One log message, if the client wants to hear of such."""
        if self._level is None or _LEVELS.index(level) < _LEVELS.index(self._level):
            return
        params = LoggingMessageNotificationParams(level=level, logger="aof", data=data)
        note = LoggingMessageNotification(params=params)
        await self._ctx.session.send_notification(note, related_request_id=self._ctx.request_id)

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """One report of progress."""
        await self._ctx.session.report_progress(done, total, message)


async def _counted(said: _Reports, work: Callable[[], Awaitable[_Answer]], total: float | None) -> _Answer:
    """Do the work while the seconds are counted."""
    answers: list[_Answer] = []
    errors: list[Exception] = []
    await said.progress(0, total, "begun")
    async with anyio.create_task_group() as group:
        group.start_soon(_tick, said, total)
        try:
            answers.append(await work())
        except Exception as error:  # noqa: BLE001 - it is raised again, without the group around it
            errors.append(error)
        group.cancel_scope.cancel()
    if errors:
        raise errors[0]
    return answers[0]


async def _tick(said: _Reports, total: float | None) -> None:
    done = 0.0
    message = "waiting" if total else "working"
    while True:
        await anyio.sleep(_EVERY)
        done += _EVERY
        await said.progress(min(done, total) if total else done, total, message)


EXTENSION = "io.modelcontextprotocol/tasks"
_POLL_MS = 5000


class UpdateTaskRequestParams(RequestParams):
    """What a client answers to a task that asked something. Ours ask nothing."""

    task_id: str
    input_responses: dict[str, Any] | None = None


def understands_tasks(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client takes a handle for an answer to this request."""
    wanted = ClientCapabilities(extensions={EXTENSION: {}})
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and ctx.session.check_client_capability(wanted)


def require_tasks(ctx: ServerRequestContext[Any, Any], task_id: str) -> None:
    """Refuse who asks for a handle without having said that it takes any, or whose header names another one."""
    headers = getattr(ctx.request, "headers", None)
    named = decode_header_value(headers.get(MCP_NAME_HEADER)) if headers is not None else None
    if named is not None and named != task_id:
        raise MCPError(HEADER_MISMATCH, f"{MCP_NAME_HEADER} says {named[:80]!r}, and the request is about another task")
    if not understands_tasks(ctx):
        asked: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, f"this needs a client with the extension {EXTENSION}", asked)


async def task_handle(hub: Hub, created: Created) -> dict[str, Any]:
    """The answer that stands for a task in the making."""
    task = await hub.ask(hub.fabric.get, created.task_id)
    return {"resultType": "task", **_seen(task)}


async def get_task(hub: Hub, params: GetTaskRequestParams) -> dict[str, Any]:
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


async def update_task(hub: Hub, params: UpdateTaskRequestParams) -> dict[str, Any]:
    """Answers to questions that nobody asked are acknowledged and dropped, as the extension wants it."""
    await _found(hub, params.task_id)
    return {}


async def cancel_task(
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
