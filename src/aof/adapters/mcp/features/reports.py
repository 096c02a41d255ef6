"""What a call says before it answers: progress and log messages, to clients that asked for them and to no others.

A client asks with a progress token, with a log level in the request, or, before revision 2026-07-28, with
`logging/setLevel` for its session. Must not know what a tool does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, get_args

import anyio
from mcp.server.context import ServerRequestContext
from mcp_types import (
    LOG_LEVEL_META_KEY,
    EmptyResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    SetLevelRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aof.core.errors.base import AofError

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
