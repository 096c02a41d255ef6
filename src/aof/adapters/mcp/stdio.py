"""MCP on standard input and output: the process is the session, and ends when its client goes. Must not know tools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

import anyio
from anyio import AsyncFile
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from aof.adapters.mcp.server import make_server
from aof.adapters.mcp.server_state import Hub
from aof.adapters.mcp.sessions import Session
from aof.adapters.mcp.stdio_reader import Lines, answering
from aof.app.async_bridge import Follower
from aof.app.fabric import Fabric
from aof.app.operations.call import Caller


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
    caller = Caller(fabric.actor, session=fabric.actor, default=not named)
    if secret:
        caller = Caller(fabric.actor, "agent", proven=True, secret=secret)
        by_client = None
    anyio.run(partial(_serve, fabric, caller, tiers, run=run, version=version, keep=keep, by_client=by_client))


async def _serve(
    fabric: Fabric,
    caller: Caller,
    tiers: tuple[str, ...],
    *,
    run: str | None,
    version: str,
    keep: bool,
    by_client: Mapping[str, str] | None,
) -> None:
    follower = Follower(fabric)
    hub = Hub(follower, lambda _request: caller, tiers, keep=keep)
    server = make_server(hub, Session(hub, caller, run, by_client=by_client), version)
    lines = Lines()
    understood, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with (
        follower.running(),
        stdio_server(stdin=cast("AsyncFile[str]", lines)) as (read, write),
        anyio.create_task_group() as group,
    ):
        group.start_soon(answering, lines, read, write, understood)
        await server.run(messages, write, server.create_initialization_options())
