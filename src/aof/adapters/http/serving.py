"""Serves the application on a port of this machine. Must not know what the application does."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from aof.core.errors import Unavailable

_GRACE = 5  # seconds that open streams get when the server stops


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A bound socket; port 0 takes a free one. Bound before anything starts, so that its number can be told.

    It names its protocol, because asyncio sends small answers at once only on a socket that says that it is TCP; on
    any other the end of an answer waits 40 ms for the client's kernel.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        why = error.strerror if isinstance(error, OSError) else "ports go from 0 to 65535"
        raise Unavailable(f"port {port} of {host} cannot be had: {why}", "choose another port") from None
    return bound


class HttpServer:
    """One application on one socket; `run` blocks until `stop` is called from anywhere."""

    def __init__(self, app: ASGIApp, bound: socket.socket, started: Callable[[], None] | None = None) -> None:
        config = uvicorn.Config(
            app,
            http="h11",  # also where a quicker parser is installed: that one bounds no headers and keeps their blanks
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            use_colors=False,  # the command lets no control sequence of others through, and these look like any
            timeout_graceful_shutdown=_GRACE,
        )
        self._server = _Told(config, started)
        self._bound = bound

    def run(self) -> None:
        """Serve until told to stop. In the main thread, SIGINT and SIGTERM tell so too."""
        self._server.run(sockets=[self._bound])

    def stop(self) -> None:
        """End after what is being answered."""
        self._server.should_exit = True


class _Told(uvicorn.Server):
    """Says when it takes requests."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self._started is not None and self.started:
            self._started()
