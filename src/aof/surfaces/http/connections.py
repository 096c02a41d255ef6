"""HTTP connections with limits: how many there may be, and how long each wait for the other side may take."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from itertools import chain
from typing import Any, Final, Literal

import h11
import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from aof.surfaces.http.guard import LOCAL, Cause, Traffic, network_of

State = Literal["waiting", "idle", "busy"]  # of a connection, for the choice of those that make room for others
Phase = Literal["headers", "body", "rest", "closing", "idle", "answering"]  # of its protocol: each has a deadline
Refuse = Callable[[bytes, str], bytes | None]  # answers the first bytes from an address, or lets them pass
_RESERVED: Final = 256  # descriptors for the store, the scheduler and the workers' pipes
_FEWEST: Final = 8
AT_ONCE: Final = 4  # connections accepted per turn of the loop; each holds up what is being served by 0.3 ms
_PAUSE: Final = 0.005  # seconds between two such turns
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_REST_OF_BODY: Final = 2.0  # seconds for what is left of a body once the response has been sent
_AFTER_BODY: Final = 1.0  # the application says itself that a body is late; this is for when it does not read
_PROGRESS: Final = 4_096  # bytes that a slow reader must take within its time
_LATE: Final = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_quiet = logging.getLogger("aof.http.connection")
_quiet.setLevel(logging.ERROR)  # a line for each broken request would let strangers fill the log


def affordable(wanted: int) -> int:
    """How many connections there can be without taking the descriptors that others in this process need.

    The process asks for more descriptors first: many systems give 1,024 and allow more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    needed = wanted + _RESERVED + AT_ONCE
    if soft < needed:
        more = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
            soft = more
    return max(min(wanted, soft - min(_RESERVED, soft // 2) - AT_ONCE), _FEWEST)


class Connections:
    """The open connections of one server."""

    def __init__(self, most: int, per_address: int, traffic: Traffic) -> None:
        self._most = affordable(most)
        self._per_address = per_address
        self._traffic = traffic
        self._open: dict[int, Accepted] = {}
        self._states: dict[State, dict[int, Accepted]] = {"waiting": {}, "idle": {}, "busy": {}}  # oldest first in each
        self._addresses: Counter[str] = Counter()

    def admit(self, connection: Accepted) -> bool:
        """Count a new connection, if there is room or can be made."""
        address = connection.address
        crowded = address != LOCAL and self._addresses[address] >= self._per_address
        if crowded or len(self._open) >= self._most:
            displaceable = chain(self._states["waiting"].values(), self._states["idle"].values())
            oldest = next((one for one in displaceable if not crowded or one.address == address), None)
            if oldest is None:
                self._traffic.note("refused_connection", address)
                return False
            self._traffic.note("displaced_connection", oldest.address)
            self.forget(oldest)
            oldest.end()
        self._open[connection.number] = self._states[connection.state][connection.number] = connection
        self._addresses[address] += 1
        connection.counted_by = self
        self._traffic.connections = len(self._open)
        return True

    def of(self, fd: int) -> Accepted | None:
        """The connection with this descriptor."""
        return self._open.get(fd)

    def enter(self, connection: Accepted, state: State) -> None:
        """Note what a connection does now."""
        if connection.state != state and connection.counted_by is self:
            self._states[state][connection.number] = self._states[connection.state].pop(connection.number)
            connection.state = state

    def forget(self, connection: Accepted) -> None:
        """Count a connection no longer that is closed, or about to be."""
        if connection.counted_by is self:
            connection.counted_by = None
            del self._open[connection.number], self._states[connection.state][connection.number]
            self._addresses[connection.address] -= 1
            if not self._addresses[connection.address]:
                del self._addresses[connection.address]
            self._traffic.connections = len(self._open)


class Accepted(socket.socket):
    """A connection that is counted until it is closed."""

    address: str
    number: int
    state: State
    counted_by: Connections | None
    end: Callable[[], object]

    @staticmethod
    def of(plain: socket.socket, address: str) -> Accepted:
        """The same connection, counted."""
        counted = Accepted(plain.family, plain.type, plain.proto, fileno=plain.detach())
        counted.address, counted.number = address, counted.fileno()
        counted.state, counted.counted_by, counted.end = "waiting", None, counted._hang_up
        return counted

    def _hang_up(self) -> None:
        """End it while no protocol is there that could close it, as during a TLS handshake."""
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it, and make room for another one."""
        counter = self.counted_by
        if counter is not None:
            counter.forget(self)
        super().close()


class ListeningSocket(socket.socket):
    """A listening socket that accepts only what has a place, and does not fail for want of a descriptor."""

    connections: Connections
    traffic: Traffic
    _spare: int

    @staticmethod
    def of(bound: socket.socket, connections: Connections, traffic: Traffic) -> ListeningSocket:
        """The same socket, with a limit."""
        listener = ListeningSocket(bound.family, bound.type, bound.proto, fileno=os.dup(bound.fileno()))
        listener.settimeout(0)
        listener.connections, listener.traffic = connections, traffic
        listener._spare = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        return listener

    def take(self) -> Accepted | None:
        """The next connection, or None when it had no place; raises BlockingIOError when none is waiting."""
        try:
            plain, peer = self.accept()
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            self._drop_one()
            return None
        connection = Accepted.of(plain, _network_of_peer(peer))
        if self.connections.admit(connection):
            return connection
        connection.close()
        return None

    def _drop_one(self) -> None:
        """Accept with a descriptor kept for this, and close: a connection left waiting would wake us at once again."""
        self._let_spare_go()
        try:
            plain, peer = self.accept()
            plain.close()
            self.traffic.note("out_of_descriptors", _network_of_peer(peer))
        finally:
            with suppress(OSError):  # somebody else took it; there may be one again the next time
                self._spare = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)

    def _let_spare_go(self) -> None:
        """Close the spare descriptor and forget its number, which the next file that is opened gets."""
        spare, self._spare = self._spare, -1
        if spare >= 0:
            os.close(spare)

    def close(self) -> None:
        """Close it together with the spare descriptor."""
        if self.fileno() >= 0:
            self._let_spare_go()
        super().close()


def _network_of_peer(peer: object) -> str:
    return network_of(peer[0] if isinstance(peer, tuple) else None)


class Acceptor:
    """Accepts from one listener, a few connections per turn of the loop, until it is closed.

    asyncio accepts all that are waiting in one turn, and every request in progress waits for that. Here a turn that
    found as many as it may take is followed by a pause; whoever comes meanwhile waits in the kernel's queue.
    """

    def __init__(
        self,
        listener: ListeningSocket,
        serve: Callable[[Accepted], Coroutine[Any, Any, object]],
        *,
        pause: float = _PAUSE,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._serve = serve
        self._pause = pause
        self._pausing: asyncio.TimerHandle | None = None
        self._beginning: set[asyncio.Task[object]] = set()
        self._resume()

    def close(self) -> None:
        """Accept nothing more."""
        if self._pausing is not None:
            self._pausing.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _resume(self) -> None:
        self._pausing = None
        self._loop.add_reader(self._listener, self._take)

    def _take(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection = self._listener.take()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # of the network, which may pass
                break
            if connection is not None:
                task = self._loop.create_task(self._serve(connection))
                self._beginning.add(task)
                task.add_done_callback(self._beginning.discard)
        self._loop.remove_reader(self._listener)
        self._pausing = self._loop.call_later(self._pause, self._resume)


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for each wait."""

    headers: float = 10.0
    body: float = 60.0
    idle: float = 60.0
    stall: float = 30.0


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 connection with a deadline for each phase."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        times: Times,
        connections: Connections,
        traffic: Traffic,
        refuse: Refuse | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.logger = _quiet
        self._times = times
        self._connections = connections
        self._traffic = traffic
        self._counted: Accepted | None = None
        self._phase: tuple[Phase, int] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._unread = 0
        self._asked = False  # whether a first request has come
        self._refuse = refuse  # looks at the first bytes only

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the time for the first headers."""
        super().connection_made(transport)
        self._counted = self._connections.of(transport.get_extra_info("socket").fileno())
        if self._counted is not None:
            self._counted.end = transport.abort
        self._enter("headers", "waiting", self._times.headers)

    def data_received(self, data: bytes) -> None:
        """Read what has come. It does not move the deadline of the phase."""
        refuse, self._refuse = self._refuse, None
        if refuse is not None and (refusal := refuse(data, self._address)) is not None:
            self.transport.write(refusal)
            self.transport.close()
            self._follow()
            return
        if self.transport.is_closing():
            return
        try:
            super().data_received(data)
        except Exception:  # noqa: BLE001 - what the parser cannot read ends this connection, without a traceback
            self._traffic.note("invalid_request", self._address)
            self.transport.abort()
            return
        self._follow()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        super().on_response_complete()
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        """End all waits."""
        super().connection_lost(exc)
        for timer in (self._timer, self._stall):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()

    def pause_writing(self) -> None:
        """Give a reader that is slower than we write its time."""
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._stall = self.loop.call_later(self._times.stall, self._stalled)

    def resume_writing(self) -> None:
        """Go on: the reader has caught up."""
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def timeout_keep_alive_handler(self) -> None:
        """Close, because no further request came."""
        super().timeout_keep_alive_handler()
        self._follow()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, or more of it than we read."""
        self._traffic.note("invalid_request", self._address)
        super().send_400_response(msg)
        self._follow()

    @property
    def _address(self) -> str:
        return network_of(self.client[0] if self.client else None)

    def _follow(self) -> None:
        """Enter the phase that the connection is in now."""
        theirs = self.conn.their_state
        self._asked = self._asked or theirs is not h11.IDLE
        if self.transport.is_closing():
            self._enter("closing", "busy", self._times.stall)
        elif theirs is h11.IDLE and (not self._asked or self.conn.trailing_data[0]):
            self._enter("headers", "waiting", self._times.headers)
        elif theirs is h11.IDLE:
            self._enter("idle", "idle", None)
        elif theirs is h11.SEND_BODY and self.cycle.response_complete:
            self._enter("rest", "waiting", _REST_OF_BODY)
        elif theirs is h11.SEND_BODY:
            self._enter("body", "busy", self._times.body + _AFTER_BODY)
        else:
            self._enter("answering", "busy", None)

    def _enter(self, phase: Phase, state: State, seconds: float | None) -> None:
        key = (phase, id(self.cycle))
        if key == self._phase:
            return
        self._phase = key
        if self._counted is not None:
            self._connections.enter(self._counted, state)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._late, phase) if seconds is not None else None

    def _late(self, phase: Phase) -> None:
        """End a connection whose phase has taken too long."""
        causes: dict[Phase, Cause] = {"headers": "late_headers", "body": "late_body", "closing": "stalled_reader"}
        if phase in causes:
            self._traffic.note(causes[phase], self._address)
        if phase == "headers" and self.conn.trailing_data[0]:
            self.transport.write(_LATE)
            self.transport.close()
            self._follow()
        else:
            self.transport.abort()

    def _stalled(self) -> None:
        """Disconnect a client that does not read; a slow reader gets more time."""
        left = self.transport.get_write_buffer_size()
        if left <= self._unread - _PROGRESS:
            self._unread = left
            self._stall = self.loop.call_later(self._times.stall, self._stalled)
            return
        self._traffic.note("stalled_reader", self._address)
        self.transport.abort()
