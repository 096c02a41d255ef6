"""Counts what the server turned away or cut off, and puts it into words once a minute.

Everything here runs in the server's one thread. Must not know why something is turned away.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

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
WORDS: Final[dict[Cause, str]] = {
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
AUTHENTICATION: Final = "failed_authentication"
_EVERY: Final = 60.0  # seconds between two reports of a kind
_ADDRESSES: Final = 1_000  # kept apart between two reports; further ones are counted together
_NAMED: Final = 5
_OTHERS: Final = "others"
_NETWORK_BITS: Final = 64  # an IPv6 host is given a whole network, so its single addresses say nothing
LOCAL: Final = "local"  # the other end of a Unix socket


class TrafficReport(NamedTuple):
    """What happened since the last report of its kind."""

    action: Literal["http", "auth"]
    text: str
    total: int
    addresses: dict[str, int]


def network_of(host: str | None) -> str:
    """What limits per address are counted by: the address, for IPv6 its network."""
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
        self._told: dict[str, float] = {}

    def note(self, cause: Cause, address: str) -> None:
        """Something was turned away."""
        self.totals[cause] += 1
        kind = "auth" if cause == AUTHENTICATION else "http"
        self._since[kind][cause] += 1
        known = self._from[kind]
        known[address if address in known or len(known) < _ADDRESSES else _OTHERS] += 1

    def due(self, now: float) -> list[TrafficReport]:
        """What is to be told now: at once when it begins, and then once a minute for as long as it goes on."""
        found: list[TrafficReport] = []
        for kind in ("http", "auth"):
            since = self._since[kind]
            if not since or now < self._told.get(kind, float("-inf")) + _EVERY:
                continue
            addresses = dict(self._from[kind].most_common(_NAMED))
            text = _text(since, self._from[kind])
            found.append(TrafficReport("auth" if kind == "auth" else "http", text, since.total(), addresses))
            self._told[kind] = now
            self._since[kind], self._from[kind] = Counter(), Counter()
        return found

    def prometheus(self) -> str:
        """The counters in the text format that Prometheus reads."""
        lines = [
            *_metric("aof_http_requests_total", "counter", "Requests with a valid token.", [("", self.requests)]),
            *_metric("aof_http_connections", "gauge", "Open connections.", [("", self.connections)]),
            *_metric("aof_http_streams", "gauge", "Open streams of events.", [("", self.streams)]),
            *_metric(
                "aof_http_failed_authentications_total",
                "counter",
                "Requests without a valid token.",
                [("", self.totals[AUTHENTICATION])],
            ),
            *_metric(
                "aof_http_turned_away_total",
                "counter",
                "Connections and requests that were refused or cut off.",
                [(f'{{cause="{cause}"}}', self.totals[cause]) for cause in WORDS if cause != AUTHENTICATION],
            ),
        ]
        return "\n".join(lines) + "\n"


def _text(since: Counter[Cause], addresses: Counter[str]) -> str:
    what = ", ".join(f"{count} {WORDS[cause].format(s='s' * (count != 1))}" for cause, count in since.most_common())
    named = ", ".join(f"{address} ({count})" for address, count in addresses.most_common(_NAMED))
    more = len(addresses) - _NAMED
    return f"{what}; from {named}" + (f" and {more} more" if more > 0 else "")


def _metric(name: str, kind: str, text: str, samples: Iterable[tuple[str, int]]) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *(f"{name}{label} {value}" for label, value in samples)]
