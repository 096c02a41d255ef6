"""One HTTP connection with an end: every wait for the other side has a deadline that nothing it sends can move.

uvicorn bounds only the pause between two requests, and any byte begins that again. Here headers, body, an unread
response and the last bytes of a closed connection have a time each. Must not know what is asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Literal

import h11
import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from aof.adapters.http.limits.connections import Accepted, Connections, State
from aof.adapters.http.limits.traffic import Cause, Traffic, network_of

Refuse = Callable[[bytes, str], bytes | None]
Phase = Literal["headers", "body", "rest", "closing", "idle", "answering"]
_REST: Final = 2.0  # seconds for what is left of a body once the response has been sent
_AFTER_BODY: Final = 1.0  # the application says itself that a body is late; this is for when it does not read
_PROGRESS: Final = 4_096  # bytes that a slow reader must take within its time
_LATE: Final = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_quiet = logging.getLogger("aof.http.connection")
_quiet.setLevel(logging.ERROR)  # a line for each broken request would let strangers fill the log


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for each wait."""

    headers: float = 10.0
    body: float = 60.0
    idle: float = 60.0
    stall: float = 30.0


class BoundedProtocol(H11Protocol):
    """uvicorn's connection with deadlines."""

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
        """The time for the first headers begins."""
        super().connection_made(transport)
        self._counted = self._connections.of(transport.get_extra_info("socket").fileno())
        if self._counted is not None:
            self._counted.end = transport.abort
        self._enter("headers", "waiting", self._times.headers)

    def data_received(self, data: bytes) -> None:
        """Whatever comes, the deadline of the phase stays where it is."""
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
        """The next request may begin, or the rest of this one must come to an end."""
        super().on_response_complete()
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is left to wait for."""
        super().connection_lost(exc)
        for timer in (self._timer, self._stall):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()

    def pause_writing(self) -> None:
        """The other side reads more slowly than we write."""
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._stall = self.loop.call_later(self._times.stall, self._stalled)

    def resume_writing(self) -> None:
        """It has read what there was."""
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def timeout_keep_alive_handler(self) -> None:
        """No further request came."""
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
        """Which phase the connection is in now."""
        theirs = self.conn.their_state
        self._asked = self._asked or theirs is not h11.IDLE
        if self.transport.is_closing():
            self._enter("closing", "busy", self._times.stall)
        elif theirs is h11.IDLE and (not self._asked or self.conn.trailing_data[0]):
            self._enter("headers", "waiting", self._times.headers)
        elif theirs is h11.IDLE:
            self._enter("idle", "idle", None)
        elif theirs is h11.SEND_BODY and self.cycle.response_complete:
            self._enter("rest", "waiting", _REST)
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
        """The time is over."""
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
