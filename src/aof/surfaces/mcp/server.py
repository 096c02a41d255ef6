"""The MCP server: which request is answered by what. Must not know how bytes arrive; see `stdio` and `http`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import anyio
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CompleteRequestParams,
    CompleteResult,
    GetPromptRequestParams,
    GetPromptResult,
    GetTaskRequestParams,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SetLevelRequestParams,
)

from aof.api.call import HintReader, reader_of
from aof.api.catalogue import BY_TOOL
from aof.errors import AofError, InvalidInput
from aof.kernel.faults import record
from aof.surfaces.mcp import long_calls, prompts, resources, tools
from aof.surfaces.mcp.resources import Changes
from aof.surfaces.mcp.sessions import Hub, Session, session_of
from aof.surfaces.mcp.tools import HELP_TOOL, help_answer, tool_instead

_Context = ServerRequestContext[Any, Any]
_Params = TypeVar("_Params")
_Answer = TypeVar("_Answer")
_WAIT = "wait"  # the argument with which the client of a created task gets a handle to follow it by
INSTRUCTIONS = (
    "AOF holds the tasks that agents share. Claim a task before you work on it (aof_task_claim; without taskId the "
    "next one). Read it with aof_task_show, note what you do with aof_task_update, and finish with aof_task_complete "
    "and a summary. A task in status review is approved by aof_task_complete without a claim. A hop of a workflow that "
    "reviews is claimed like any task; to send the work back, complete with outcome needs_review and blockers. "
    "Ask a person with aof_ask. "
    "If you cannot go on, call aof_task_block with a reason. taskId may be the end of an ID, such as 001. "
    "To delegate a part of your task, call aof_dispatch with parentId and agent; aof_task_show lists what came of it "
    "under children. To wait for it, end your run with aof_task_release (or aof_task_update with status ready) and "
    "waitForChildren, and claim the task again later. "
    "A refused call says which call works. aof_help finds tools for everything else; those that are not listed can be "
    "called, too."
)


def make_server(hub: Hub, alone: Session | None = None, version: str = "") -> Server[Hub]:
    """A server on one fabric; `alone` is the session of a transport that has only one."""
    changes = Changes(hub)

    @asynccontextmanager
    async def lifespan(_server: Server[Hub]) -> AsyncIterator[Hub]:
        async with anyio.create_task_group() as background:
            hub.background = background
            try:
                yield hub
            finally:
                changes.close()
                if alone is not None:
                    with anyio.CancelScope(shield=True):
                        await alone.end()
                background.cancel_scope.cancel()

    async def list_tools(ctx: _Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        caller = alone.caller if alone is not None else hub.caller_of(ctx.request)
        return ListToolsResult(tools=[*tools.tools(hub.tiers_of(caller)), HELP_TOOL])

    async def list_resources(_ctx: _Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=resources.resources())

    async def list_templates(_ctx: _Context, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=resources.templates())

    async def read_resource(ctx: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        caller, _ = session_of(hub, ctx, alone)
        return await resources.read(hub, str(params.uri), caller, ctx.protocol_version)

    async def list_prompts(_ctx: _Context, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=prompts.prompts())

    async def get_prompt(ctx: _Context, params: GetPromptRequestParams) -> GetPromptResult:
        caller, _ = session_of(hub, ctx, alone)
        return await prompts.get_prompt(hub, params.name, dict(params.arguments or {}), caller)

    async def complete(_ctx: _Context, params: CompleteRequestParams) -> CompleteResult:
        return CompleteResult(completion=await prompts.complete(hub, params))

    server: Server[Hub] = Server(
        "aof",
        version=version,
        title="AOF task fabric",
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        get_tool_input_schema=_no_header_repeats_an_argument,
        on_list_tools=_with_errors(list_tools),
        on_list_resources=_with_errors(list_resources),
        on_list_resource_templates=_with_errors(list_templates),
        on_read_resource=_with_errors(read_resource),
        on_subscribe_resource=_with_errors(changes.subscribe),
        on_unsubscribe_resource=_with_errors(changes.unsubscribe),
        on_subscriptions_listen=_with_errors(changes.listen),
        on_list_prompts=_with_errors(list_prompts),
        on_get_prompt=_with_errors(get_prompt),
        on_completion=_with_errors(complete),
    )
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, _with_errors(long_calls.set_level))
    _add_tool_and_task_handlers(server, hub, alone)
    return server


def _with_errors(
    handler: Callable[[_Context, _Params], Awaitable[_Answer]],
) -> Callable[[_Context, _Params], Awaitable[_Answer]]:
    """The handler with its refusals as errors of the protocol; any other exception is logged under a reference."""

    async def handle(ctx: _Context, params: _Params) -> _Answer:
        try:
            return await handler(ctx, params)
        except MCPError:
            raise
        except AofError as error:
            raise MCPError(INVALID_PARAMS, error.message, {"code": error.code}) from None
        except Exception as error:  # noqa: BLE001 - the edge: a fault of ours is told as one, and logged
            reference = record(handler.__name__, error)
            message = f"the server failed (reference {reference})"
            raise MCPError(INTERNAL_ERROR, message, {"reference": reference}) from None

    return handle


def _no_header_repeats_an_argument(_tool: str) -> None:
    """Spares every call the search for arguments that a header must repeat: no tool of ours declares one."""


def _add_tool_and_task_handlers(server: Server[Hub], hub: Hub, alone: Session | None) -> None:
    """Add the calls of tools, and the Tasks extension, under which creating a task may answer with a handle."""

    async def call_tool(ctx: _Context, params: CallToolRequestParams) -> HandlerResult:
        operation = BY_TOOL.get(params.name)  # also one that is not listed: tiers save words, they guard nothing
        given = dict(params.arguments or {})
        if operation is None:
            caller, _ = session_of(hub, ctx, alone)
            return _help_or_unknown_tool(params.name, given, reader_of(caller, hub.tiers_of(caller)))
        reader = HintReader(tiers=hub.tiers)
        wait = given.pop(_WAIT, None) if operation.name == "create" else None
        try:
            caller, session = session_of(hub, ctx, alone)
            reader = reader_of(caller, hub.tiers_of(caller))
            if not isinstance(wait, bool | None):
                hint = f"leave '{_WAIT}' out, or give true to get a handle"
                raise InvalidInput(f"'{_WAIT}' must be true or false", hint, parameter=_WAIT)  # noqa: TRY301
            gone = getattr(ctx.request, "is_disconnected", None)  # on stdio the client's end is the server's
            work = partial(tools.call, hub, operation, given, caller, session, gone=gone)
            seconds = given.get("wait") if operation.name == "claim" else None
            total = float(seconds) if isinstance(seconds, int | float) else None
            result, secrets, warning_text = await long_calls.with_reports(ctx, operation.tool, work, total)
            if wait and long_calls.understands_tasks(ctx):
                return await long_calls.task_handle(hub, result)
        except AofError as error:
            return tools.refusal(error, reader)
        except Exception as error:  # noqa: BLE001 - the edge: a fault of ours is told as one, and logged
            return tools.fault(operation, error)
        return tools.tool_result(result, secrets, warning_text)

    async def get_task(ctx: _Context, params: GetTaskRequestParams) -> HandlerResult:
        long_calls.require_tasks(ctx, params.task_id)
        return await long_calls.get_task(hub, params)

    async def update_task(ctx: _Context, params: long_calls.UpdateTaskRequestParams) -> HandlerResult:
        long_calls.require_tasks(ctx, params.task_id)
        return await long_calls.update_task(hub, params)

    async def cancel_task(ctx: _Context, params: GetTaskRequestParams) -> HandlerResult:
        long_calls.require_tasks(ctx, params.task_id)
        caller, _ = session_of(hub, ctx, alone)
        return await long_calls.cancel_task(hub, params, caller, alone)

    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    server.add_request_handler("tasks/get", GetTaskRequestParams, _with_errors(get_task))
    server.add_request_handler("tasks/update", long_calls.UpdateTaskRequestParams, _with_errors(update_task))
    server.add_request_handler("tasks/cancel", GetTaskRequestParams, _with_errors(cancel_task))
    server.extensions[long_calls.EXTENSION] = {}


def _help_or_unknown_tool(name: str, given: dict[str, Any], reader: HintReader) -> HandlerResult:
    """The answer of `aof_help`, or the error that says what to call instead of an unknown tool."""
    if name != HELP_TOOL.name:
        hint = tool_instead(name, given, reader)
        raise MCPError(INVALID_PARAMS, f"Unknown tool: {name[:80]}; {hint}", {"hint": hint})
    try:
        return help_answer(given, reader)
    except InvalidInput as error:
        return tools.refusal(error, reader)
