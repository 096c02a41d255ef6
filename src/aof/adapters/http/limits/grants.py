"""What goes on under each token: its requests in progress, its open streams, and how many requests per second it makes.

Whatever goes on ends when its token is revoked or expires. Must not know what is asked for, nor how tokens are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

from aof.adapters.http.limits.rate import Buckets
from aof.adapters.http.limits.traffic import Traffic
from aof.app.operations.call import Caller
from aof.core.errors.base import TooManyRequests

ValidTokens = Callable[[], frozenset[str]]
_BURST_SECONDS = 2


class Grants:
    """The callers that are being served. `valid` names the tokens that are; without it none is ever revoked."""

    def __init__(
        self, traffic: Traffic, *, requests_per_second: float, streams: int, valid: ValidTokens | None = None
    ) -> None:
        self._traffic = traffic
        self._rate = requests_per_second
        self._buckets = Buckets(requests_per_second, max(requests_per_second * _BURST_SECONDS, 1))
        self._most_streams = streams
        self._streams: Counter[str] = Counter()
        self._valid = valid
        self._going_on: dict[anyio.CancelScope, str] = {}

    def count(self, caller: Caller, address: str) -> None:
        """Count a request; raises TooManyRequests when the token has made too many."""
        self._traffic.requests += 1
        if not self._buckets.take(_key(caller), anyio.current_time()):
            self._traffic.note("rate_limited", address)
            raise TooManyRequests(
                f"this token makes more than {self._rate:g} requests per second",
                "wait a second; 'claim' with 'wait' and GET /api/v1/events spare asking again and again",
            )

    @contextmanager
    def request(self, caller: Caller, scope: anyio.CancelScope) -> Iterator[None]:
        """A request in progress, which is cancelled when its token is no longer valid."""
        if caller.token is None:
            yield
            return
        self._going_on[scope] = caller.token
        try:
            yield
        finally:
            del self._going_on[scope]

    def open_stream(self, caller: Caller, address: str) -> Callable[[], None] | TooManyRequests:
        """Count a stream and tell how to count it out again, or why there may be no further one."""
        key = _key(caller)
        if self._streams[key] >= self._most_streams:
            self._traffic.note("too_many_streams", address)
            return TooManyRequests(
                f"this token has {self._most_streams} streams open, which is the limit", "close one of them first"
            )
        self._streams[key] += 1
        self._traffic.streams += 1

        def close() -> None:
            self._streams[key] -= 1
            self._traffic.streams -= 1
            if not self._streams[key]:
                del self._streams[key]

        return close

    def is_gone(self, caller: Caller) -> bool:
        """Whether the caller's token has been revoked or has expired."""
        return caller.token is not None and self._valid is not None and caller.token not in self._valid()

    def end_revoked(self) -> None:
        """Cancel what goes on under tokens that are no longer valid: all of it where the tokens cannot be used."""
        if self._valid is None:
            return
        valid: frozenset[str] = frozenset()
        try:
            valid = self._valid()
        finally:
            for scope, token in list(self._going_on.items()):
                if token not in valid:
                    scope.cancel()


def _key(caller: Caller) -> str:
    return caller.token or f"actor {caller.actor}"
