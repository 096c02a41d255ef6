"""How many connections there may be, in total and per address, and which one makes room for a new one.

A connection counts from the moment it is accepted. When there are too many, the oldest one that has sent no complete
request makes room, then the oldest one that is idle; a connection that is being served is never closed for another.
Must not know HTTP.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal

from aof.adapters.http.limits.traffic import LOCAL, Traffic, network_of

State = Literal["waiting", "idle", "busy"]
_RESERVED: Final = 256  # descriptors for the store, the scheduler and the workers' pipes
_FEWEST: Final = 8
_BURST: Final = 32  # connections taken at a time: those that make room for them are closed only afterwards
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def affordable(wanted: int) -> int:
    """How many connections there can be without taking the descriptors that others in this process need."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(min(wanted, soft - min(_RESERVED, soft // 2) - _BURST), _FEWEST)


class Connections:
    """The open connections of one server."""

    def __init__(self, most: int, per_address: int, traffic: Traffic) -> None:
        self._most = affordable(most)
        self._per_address = per_address
        self._traffic = traffic
        self._open: dict[int, Accepted] = {}  # oldest first in its present state
        self._addresses: Counter[str] = Counter()

    def admit(self, connection: Accepted) -> bool:
        """Count a new connection, if there is room or can be made."""
        address = connection.address
        crowded = address != LOCAL and self._addresses[address] >= self._per_address
        if crowded or len(self._open) >= self._most:
            oldest = self._displaceable(address if crowded else None)
            if oldest is None:
                self._traffic.note("refused_connection", address)
                return False
            self._traffic.note("displaced_connection", oldest.address)
            self.forget(oldest)
            oldest.end()
        self._open[connection.fileno()] = connection
        self._addresses[address] += 1
        connection.counted_by = self
        self._traffic.connections = len(self._open)
        return True

    def of(self, fd: int) -> Accepted | None:
        """The connection with this descriptor."""
        return self._open.get(fd)

    def enter(self, connection: Accepted, state: State) -> None:
        """A connection does something else now."""
        if connection.state != state and connection.counted_by is self:
            connection.state = state
            self._open[connection.number] = self._open.pop(connection.number)

    def forget(self, connection: Accepted) -> None:
        """It is closed, or about to be."""
        if connection.counted_by is self:
            connection.counted_by = None
            del self._open[connection.number]
            self._addresses[connection.address] -= 1
            if not self._addresses[connection.address]:
                del self._addresses[connection.address]
            self._traffic.connections = len(self._open)

    def _displaceable(self, address: str | None) -> Accepted | None:
        for state in ("waiting", "idle"):
            for one in self._open.values():
                if one.state == state and address in (None, one.address):
                    return one
        return None


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
        """Before a protocol is there that could close it, as during a TLS handshake."""
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it, and let others have its place."""
        counter = self.counted_by
        if counter is not None:
            counter.forget(self)
        super().close()


class Listener(socket.socket):
    """A listening socket that accepts only what has a place, and does not fail for want of a descriptor.

    asyncio accepts everything that waits at once and shows a traceback for each time that no descriptor is left.
    """

    connections: Connections
    traffic: Traffic
    _spare: int
    _taken: int

    @staticmethod
    def of(bound: socket.socket, connections: Connections, traffic: Traffic) -> Listener:
        """The same socket, with a limit."""
        listener = Listener(bound.family, bound.type, bound.proto, fileno=os.dup(bound.fileno()))
        listener.connections, listener.traffic = connections, traffic
        listener._spare, listener._taken = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), 0
        return listener

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that has a place; raises BlockingIOError when there is none for now."""
        while True:
            self._taken += 1
            if self._taken > _BURST:
                self._taken = 0
                raise BlockingIOError
            try:
                plain, peer = super().accept()
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._drop_one()
                continue
            connection = Accepted.of(plain, network_of(peer[0] if isinstance(peer, tuple) else None))
            if self.connections.admit(connection):
                return connection, peer
            connection.close()

    def _drop_one(self) -> None:
        """Accept with a descriptor kept for this, and close: a connection left waiting would wake us at once again."""
        os.close(self._spare)
        try:
            plain, peer = super().accept()
            plain.close()
            self.traffic.note("out_of_descriptors", network_of(peer[0] if isinstance(peer, tuple) else None))
        except OSError:
            raise BlockingIOError from None
        finally:
            self._spare = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Close it with the descriptor that it kept."""
        if self.fileno() >= 0:
            os.close(self._spare)
        super().close()
