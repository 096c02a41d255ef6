"""MCP on standard input and output: the process is the session, and ends when its client goes.

A line that is not a message is answered as well: a client that asked must not wait. The SDK drops such lines, and reads
bytes that are not UTF-8 as if something else had been sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, cast

import anyio
from anyio import AsyncFile
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import ContextSendStream
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCRequest

from aof.api.async_bridge import Follower
from aof.api.call import Caller
from aof.api.fabric import Fabric
from aof.support import nesting
from aof.surfaces.mcp.server import make_server
from aof.surfaces.mcp.sessions import Hub, Session

_NO_MESSAGE = (
    "this is not a JSON-RPC 2.0 message, or it holds text that is not Unicode or a number of more than 64 bits, or is "
    "nested too deep"
)
_DIGITS = 18  # of a number that surely fits into 64 bits


def serve_stdio(
    fabric: Fabric,
    tiers: tuple[str, ...],
    run: str | None,
    version: str,
    secret: str | None = None,
    *,
    named: bool = False,
    keep: bool = False,
    by_client: Mapping[str, str] | None = None,
) -> None:
    """Serve one client until it disconnects. The caller is the fabric's actor, unless a call names another.

    With the secret of the run that the process was started for, a call cannot. `named` says that somebody has given the
    actor; else it is the operating system's user, and where callers are bound the first name that is used counts. With
    `keep`, claims outlive the process. `by_client` gives the actors of clients that share their settings with others,
    by a part of the client's name.
    """
    caller = Caller(fabric.actor, session=fabric.actor, default=not named, keeps=keep)
    if secret:
        caller = Caller(fabric.actor, "agent", proven=True, secret=secret, keeps=keep)
        by_client = None

    async def serve() -> None:
        follower = Follower(fabric)
        hub = Hub(follower, lambda _request: caller, tiers)
        server = make_server(hub, Session(hub, caller, run, by_client=by_client), version)
        lines = _Lines()
        understood, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with (
            follower.running(),
            stdio_server(stdin=cast("AsyncFile[str]", lines)) as (read, write),
            anyio.create_task_group() as group,
        ):
            group.start_soon(_refuse_invalid_lines, lines, read, write, understood)
            await _serve_either_revision(server, messages, write)

    anyio.run(serve)


class _Lines:
    """Standard input, line by line; `last` is the line that was read last.

    It is read under another number, so that nothing that is started here reads from it as well.
    """

    def __init__(self) -> None:
        own, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        file = open(own, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115 - open until the process ends
        self._file = anyio.wrap_file(file)
        self.last = ""

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._file:
            if line.strip():
                self.last = line
                yield line


async def _refuse_invalid_lines(
    lines: _Lines,
    read: ReadStream[SessionMessage | Exception],
    write: WriteStream[SessionMessage],
    understood: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Pass messages on, and answer lines that are none. The reader stands still until we have looked at its line."""
    async with understood:
        async for item in read:
            if isinstance(item, Exception):
                await write.send(SessionMessage(refusal(lines.last)))
            else:
                await understood.send(item)


def refusal(line: str) -> JSONRPCError:
    """The answer to a line that is not a message, for the request that it was meant to be."""
    request_id: Any = None
    code, why = INVALID_REQUEST, _NO_MESSAGE
    try:
        given = json.loads(line, parse_int=lambda text: int(text) if len(text) <= _DIGITS else float("inf"))
        request_id = given.get("id") if isinstance(given, dict) else None
        line.encode()
        nesting.refuse_nesting(line)
    except UnicodeEncodeError:
        code, why = PARSE_ERROR, "this is not UTF-8"
    except nesting.NestedTooDeeply as error:
        why = str(error)
    except RecursionError:
        code, why = PARSE_ERROR, str(nesting.NestedTooDeeply())
    except ValueError:
        code, why = PARSE_ERROR, "this is not JSON"
    if not isinstance(request_id, str | int) or isinstance(request_id, bool) or request_id == "":
        request_id = None
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=why))


async def _serve_either_revision(
    server: Server[Hub],
    messages: MemoryObjectReceiveStream[SessionMessage | Exception],
    write: ContextSendStream[SessionMessage],
) -> None:
    """Serve with the handshake of earlier revisions or without, as the client begins.

    A client may ask what we speak, not wait for the answer of a process that is still starting, and fall back to the
    handshake. The SDK holds it to what it asked first; here the first request that wants more decides.
    """
    options = server.create_initialization_options()
    opening: SessionMessage | Exception | None = None
    async with server.lifespan(server) as hub, write, anyio.create_task_group() as group:
        while True:
            passed, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            serve = partial(serve_dual_era_loop, lifespan_state=hub, init_options=options)
            group.start_soon(serve, server, received, write.clone())
            async with passed:
                if opening is not None:
                    await passed.send(opening)
                opening = await _relay(messages, passed, undecided=opening is None)
            if opening is None:
                return


async def _relay(
    messages: MemoryObjectReceiveStream[SessionMessage | Exception],
    passed: MemoryObjectSendStream[SessionMessage | Exception],
    *,
    undecided: bool,
) -> SessionMessage | Exception | None:
    """Pass all messages on, or those before the handshake of a client that has only asked what we speak."""
    discovering = False
    async for item in messages:
        if undecided and isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
            if discovering and item.message.method == "initialize":
                return item
            undecided = discovering = item.message.method == "server/discover"
        await passed.send(item)
    return None
