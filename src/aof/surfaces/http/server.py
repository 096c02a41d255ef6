"""Serves an application on ports and Unix sockets of this machine."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import socket
import ssl
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
import uvicorn
from starlette.types import ASGIApp

from aof.errors import Unavailable
from aof.surfaces.http.connections import (
    Accepted,
    Acceptor,
    BoundedProtocol,
    Connections,
    ListeningSocket,
    Refuse,
    Times,
)
from aof.surfaces.http.guard import Traffic

_GRACE = 5  # seconds that open streams get when the server stops
_BACKLOG = 512
_DEAD = 60_000  # milliseconds after which the kernel gives up on a peer that acknowledges nothing
_STARTUP_FAILED = 3  # exit code, as uvicorn has it
_FIRST_BYTES = 4_096
_SOCKET_MODE = 0o600
_LONGEST_PATH = 107  # bytes of a socket's path that the kernel takes
_PROBE_SECONDS = 2.0  # a living server accepts at once, or its queue is full


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What connections may take: their number in total and per address, and the time of each wait."""

    connections: int = 4096
    per_address: int = 2048
    times: Times = Times()


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A bound socket; port 0 takes a free one. Bound before anything starts, so that its number can be told.

    It names its protocol, because asyncio sends small answers at once only on a socket that says that it is TCP; on
    any other the end of an answer waits 40 ms for the client's kernel.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        why = error.strerror if isinstance(error, OSError) else "ports go from 0 to 65535"
        raise Unavailable(f"port {port} of {host} is not available: {why}", "choose another port") from None
    return bound


def tls(certificate: str, key: str) -> ssl.SSLContext:
    """TLS with the certificate and the key in these files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unavailable(
            f"TLS cannot be used with {certificate} and {key}: {why}",
            "give a certificate and its key as PEM files, without a passphrase: --tls-cert CERT --tls-key KEY",
        ) from None
    return context


class HttpServer(uvicorn.Server):
    """One application on some bound sockets; `run` blocks until `stop` is called from anywhere.

    It is uvicorn's server with a limited listener and bounded connections. `started` is called when it takes requests.
    `refuse` gets the first bytes of each connection, and may answer them in the application's place.
    """

    def __init__(
        self,
        app: ASGIApp,
        bound: socket.socket | Sequence[socket.socket],
        started: Callable[[], None] | None = None,
        *,
        limits: ServerLimits | None = None,
        traffic: Traffic | None = None,
        encrypted: ssl.SSLContext | None = None,
        refuse: Refuse | None = None,
    ) -> None:
        self._limits = limits or ServerLimits()
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            loop="asyncio",
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            use_colors=False,  # the command lets no control sequence of others through, and these look like any
            server_header=False,
            proxy_headers=False,  # anybody on this machine could claim to be another address
            timeout_keep_alive=max(int(self._limits.times.idle), 1),
            timeout_graceful_shutdown=_GRACE,
        )
        super().__init__(config)
        self._bound = [bound] if isinstance(bound, socket.socket) else list(bound)
        self._tell_started = started
        self._traffic = traffic or Traffic()
        self._encrypted = encrypted
        self._refuse = refuse
        self._acceptors: list[Acceptor] = []
        self.servers = []

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop. In the main thread, SIGINT and SIGTERM tell so too."""
        super().run(sockets or self._bound)

    def stop(self) -> None:
        """End after what is being answered."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. uvicorn's own way has no time limit for a TLS handshake and accepts without limit."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(_STARTUP_FAILED)
        connections = Connections(self._limits.connections, self._limits.per_address, self._traffic)
        for bound in sockets or ():
            bound.listen(_BACKLOG)
            encrypted = self._encrypted if bound.family != socket.AF_UNIX else None
            serve = partial(self._begin, connections=connections, encrypted=encrypted)
            self._acceptors.append(Acceptor(ListeningSocket.of(bound, connections, self._traffic), serve))
        self.started = True
        if self._tell_started is not None:
            self._tell_started()

    async def _begin(self, connection: Accepted, *, connections: Connections, encrypted: ssl.SSLContext | None) -> None:
        """Have a connection served; one whose TLS handshake fails is closed, and nobody needs to be told."""

        def protocol() -> asyncio.Protocol:
            return BoundedProtocol(
                self.config,
                self.server_state,
                self.lifespan.state,
                times=self._limits.times,
                connections=connections,
                traffic=self._traffic,
                refuse=self._refuse,
            )

        if encrypted is None and self._refuse is not None and _refused(connection, self._refuse):
            return
        with suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                protocol,
                connection,
                ssl=encrypted,
                ssl_handshake_timeout=self._limits.times.headers if encrypted is not None else None,
            )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and end after what is being answered."""
        for acceptor in self._acceptors:
            acceptor.close()
        await super().shutdown(sockets)


def _refused(connection: Accepted, refuse: Refuse) -> bool:
    """Whether the first bytes of a connection, where they are there already, are refused; then it is answered too.

    That takes neither a transport nor a parser.
    """
    connection.settimeout(0)
    try:
        begun = connection.recv(_FIRST_BYTES, socket.MSG_PEEK)
        refusal = refuse(begun, connection.address)
        if refusal is None:
            return False
        connection.recv(_FIRST_BYTES)  # unread bytes would make the kernel reset the connection, and lose the answer
        connection.send(refusal)
    except OSError:
        return False
    connection.close()
    return True


def listen_unix(given: str) -> socket.socket:
    """A listening socket at this path. One that nobody listens on any more is replaced, anything else is left alone."""
    path = Path(given).absolute()
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise Unavailable(f"the path {path} is too long for a socket", f"use one of at most {_LONGEST_PATH} bytes")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _locked(path.parent):
            _remove_stale(path)
            os.fchmod(bound.fileno(), _SOCKET_MODE)  # before it has a name: at no moment can others open it
            bound.bind(str(path))
            path.chmod(_SOCKET_MODE)  # where the kernel does not take over the mode
            bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise Unavailable(
            f"the socket {path} cannot be made: {error.strerror}", "name a path in a folder that you may write to"
        ) from None
    except Unavailable:
        bound.close()
        raise
    return bound


def remove_unix(bound: socket.socket, given: str, made: os.stat_result) -> None:
    """Close the socket and remove its path, unless another server has taken that over."""
    bound.close()
    path = Path(given)
    with suppress(OSError):
        there = path.lstat()
        if (there.st_dev, there.st_ino) == (made.st_dev, made.st_ino):
            path.unlink()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder: of two servers that start at once, the second checks once the first one listens."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _remove_stale(path: Path) -> None:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(there.st_mode):
        raise Unavailable(f"{path} is there and is not a socket", "name another path, or move that file away")
    if there.st_uid != os.geteuid():
        raise Unavailable(f"{path} belongs to another user", "name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        found = probe.connect_ex(str(path))
    if found != errno.ECONNREFUSED:
        raise Unavailable(f"a server is listening on {path}", "stop it first, or name another path")
    path.unlink()
