"""What clients may ask of the server: requests and streams per token, failed authentications per address.

Also the counters of what was refused, for reports and for Prometheus.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple

import anyio

from aof.api.call import Caller
from aof.errors import TooManyRequests

LOCAL: Final = "local"  # the other end of a Unix socket
_BURST_SECONDS: Final = 2  # of requests that a token may make at once
_MOST_BUCKETS: Final = 4_096  # keys that are remembered; the one that was used least lately is forgotten
_FAILURES_AT_ONCE: Final = 20
_LATE: Final = 1.0  # seconds
_LATE_ANSWERS: Final = 32  # per address at a time
_REPORT_EVERY: Final = 60.0  # seconds between two reports of a kind
_ADDRESSES: Final = 1_000  # kept apart between two reports; further ones are counted together
_NAMED: Final = 5  # addresses in a report
_OTHERS: Final = "others"
_NETWORK_BITS: Final = 64  # an IPv6 host is given a whole network, so its single addresses say nothing

Cause = Literal[
    "failed_authentication",
    "refused_connection",
    "displaced_connection",
    "late_headers",
    "late_body",
    "stalled_reader",
    "invalid_request",
    "rate_limited",
    "too_many_streams",
    "out_of_descriptors",
]
_SENTENCES: Final[dict[Cause, str]] = {
    "failed_authentication": "failed authentication{s}",
    "refused_connection": "connection{s} refused",
    "displaced_connection": "idle connection{s} displaced",
    "late_headers": "connection{s} closed before all headers had come",
    "late_body": "connection{s} closed before the whole body had come",
    "stalled_reader": "connection{s} closed because nobody read the response",
    "invalid_request": "invalid request{s}",
    "rate_limited": "request{s} over a token's rate",
    "too_many_streams": "stream{s} over a token's limit",
    "out_of_descriptors": "connection{s} dropped for want of file descriptors",
}
_AUTHENTICATION: Final = "failed_authentication"

ValidTokens = Callable[[], frozenset[str]]


class TokenLimits:
    """The requests and streams in progress, by token. `valid` gives the valid tokens; without it none is revoked."""

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
        """Count a stream; returns what to call when it ends, or the refusal of a stream too many."""
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
        """Cancel requests whose tokens are no longer valid; all of them where the list of tokens cannot be read."""
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


class FailedAuthentications:
    """The failed authentications of each address: beyond a rate they are answered late, and then not at all."""

    def __init__(self, per_minute: float) -> None:
        self._buckets = Buckets(per_minute / 60, _FAILURES_AT_ONCE)
        self._waiting: Counter[str] = Counter()

    def is_shed(self, address: str) -> bool:
        """Whether so many wait at this address that a further one gets no late answer."""
        return self._waiting[address] >= _LATE_ANSWERS

    async def slowed(self, address: str) -> bool:
        """Count a failure, and wait if the address has had too many; False if too many wait there already."""
        if self._buckets.take(address, anyio.current_time()):
            return True
        if self.is_shed(address):
            return False
        self._waiting[address] += 1
        try:
            await anyio.sleep(_LATE)
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]
        return True


class Buckets:
    """A rate limit for each key, as token buckets."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, now: float) -> bool:
        """Take one, if there is one left."""
        level, at = self._levels.get(key, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._per_second)
        taken = level >= 1
        self._levels[key] = (level - 1 if taken else level, now)
        self._levels.move_to_end(key)
        if len(self._levels) > _MOST_BUCKETS:
            self._levels.popitem(last=False)
        return taken


class TrafficReport(NamedTuple):
    """What was turned away since the last report of its kind."""

    action: Literal["http", "auth"]
    text: str
    total: int
    addresses: dict[str, int]


def network_of(host: str | None) -> str:
    """The key of limits per address: the address, for IPv6 its network."""
    if not host:
        return LOCAL
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> _NETWORK_BITS << _NETWORK_BITS, _NETWORK_BITS)))


class Traffic:
    """The counters of one server."""

    def __init__(self) -> None:
        self.totals: Counter[Cause] = Counter()
        self.requests = 0
        self.connections = 0
        self.streams = 0
        self._since: dict[str, Counter[Cause]] = {"http": Counter(), "auth": Counter()}
        self._from: dict[str, Counter[str]] = {"http": Counter(), "auth": Counter()}
        self._reported: dict[str, float] = {}

    def note(self, cause: Cause, address: str) -> None:
        """Count what was turned away."""
        self.totals[cause] += 1
        kind = "auth" if cause == _AUTHENTICATION else "http"
        self._since[kind][cause] += 1
        known = self._from[kind]
        known[address if address in known or len(known) < _ADDRESSES else _OTHERS] += 1

    def due(self, now: float) -> list[TrafficReport]:
        """The reports that are due: at once when it begins, and then once a minute for as long as it goes on."""
        found: list[TrafficReport] = []
        kinds: tuple[Literal["http", "auth"], ...] = ("http", "auth")
        for kind in kinds:
            since, addresses = self._since[kind], self._from[kind]
            if not since or now < self._reported.get(kind, float("-inf")) + _REPORT_EVERY:
                continue
            what = ", ".join(
                f"{count} {_SENTENCES[cause].format(s='s' * (count != 1))}" for cause, count in since.most_common()
            )
            most = dict(addresses.most_common(_NAMED))
            named = ", ".join(f"{address} ({count})" for address, count in most.items())
            more = f" and {len(addresses) - _NAMED} more" if len(addresses) > _NAMED else ""
            found.append(TrafficReport(kind, f"{what}; from {named}{more}", since.total(), most))
            self._reported[kind] = now
            self._since[kind], self._from[kind] = Counter(), Counter()
        return found

    def prometheus(self) -> str:
        """The counters in the text format that Prometheus reads."""
        failed = self.totals[_AUTHENTICATION]
        causes = {f'{{cause="{cause}"}}': self.totals[cause] for cause in _SENTENCES if cause != _AUTHENTICATION}
        metrics = (
            ("requests_total", "counter", "Requests with a valid token.", {"": self.requests}),
            ("connections", "gauge", "Open connections.", {"": self.connections}),
            ("streams", "gauge", "Open streams of events.", {"": self.streams}),
            ("failed_authentications_total", "counter", "Requests without a valid token.", {"": failed}),
            ("turned_away_total", "counter", "Connections and requests that were refused or cut off.", causes),
        )
        lines: list[str] = []
        for name, kind, text, samples in metrics:
            lines += [f"# HELP aof_http_{name} {text}", f"# TYPE aof_http_{name} {kind}"]
            lines += [f"aof_http_{name}{label} {value}" for label, value in samples.items()]
        return "\n".join(lines) + "\n"
