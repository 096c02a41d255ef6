"""Which clients of sessions over HTTP are there: a session has no connection of its own by which one could tell.

A client that listens on a stream has gone while the stream is cut. One that never opened any is taken to be there until
its session is closed for being idle. Must not know what a session holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

SESSION_HEADER: Final = "mcp-session-id"
_MANY: Final = 1000
_OLD: Final = 3600.0  # seconds: longer than any session stays idle


class Client:
    """What is known of one session's client."""

    def __init__(self) -> None:
        self._requests = 0
        self._listened = False
        self._last = monotonic()

    def is_there(self) -> bool:
        """Whether somebody would notice if the session ended."""
        return self._requests > 0 or not self._listened

    @contextmanager
    def calling(self, *, listens: bool) -> Iterator[None]:
        """One request, for as long as it is answered."""
        self._requests += 1
        self._listened |= listens
        try:
            yield
        finally:
            self._requests -= 1
            self._last = monotonic()

    @property
    def is_old(self) -> bool:
        """Whether it has been silent for longer than any session lasts."""
        return self._requests == 0 and monotonic() - self._last > _OLD


class Presence:
    """The clients of all sessions."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    def of(self, session: str) -> Client:
        """A session's client."""
        if session not in self._clients:
            if len(self._clients) >= _MANY:
                self._clients = {name: client for name, client in self._clients.items() if not client.is_old}
            self._clients[session] = Client()
        return self._clients[session]

    def forget(self, session: str) -> None:
        """The session is over, or there never was one."""
        self._clients.pop(session, None)
