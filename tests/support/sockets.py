"""The HTTP server on a real socket around an application of the test, and a client that reads to the end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aof.surfaces.http.guard import Traffic
from aof.surfaces.http.server import HttpServer, ServerLimits, listen
from tests.support.waiting import BOUND


async def lifespan(receive: Any, send: Any) -> None:
    """What an application does when the server starts and stops."""
    for step in ("startup", "shutdown"):
        assert (await receive())["type"] == f"lifespan.{step}"
        await send({"type": f"lifespan.{step}.complete"})


@contextmanager
def running(app: Any, limits: ServerLimits | None = None, traffic: Traffic | None = None) -> Iterator[tuple[str, int]]:
    """A server that takes connections; its address."""
    started = threading.Event()
    with listen() as bound:
        server = HttpServer(app, bound, started.set, limits=limits, traffic=traffic)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            assert started.wait(BOUND)
            host, port = bound.getsockname()
            yield host, port
        finally:
            server.stop()
            thread.join(BOUND)


def whole(client: socket.socket) -> bytes:
    """Everything until the server hangs up, also while the client still talks."""
    found = b""
    try:
        while part := client.recv(65536):
            found += part
    except (ConnectionResetError, BrokenPipeError):
        pass
    return found
