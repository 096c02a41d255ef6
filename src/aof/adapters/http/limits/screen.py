"""Refuses wrong tokens before a request is parsed, at an address from which too many of them wait for an answer.

It only ever refuses what the guard would refuse: whatever it cannot read with certainty goes the long way. Must not
know how tokens are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from aof.adapters.http.api.responses import failure
from aof.core.errors.base import AofError, TooManyRequests

if TYPE_CHECKING:
    from aof.adapters.http.guard import Authenticate
    from aof.adapters.http.limits.failures import Failures
    from aof.adapters.http.limits.traffic import Traffic

_NAME: Final = b"authorization:"
_FOLDED: Final = (b" ", b"\t")


def bearer(value: str) -> str | None:
    """The token in an Authorization header."""
    kind, _, token = value.partition(" ")
    return token.strip() or None if kind.lower() == "bearer" else None


def too_many_failures() -> TooManyRequests:
    """The answer to an address with too many failed authentications waiting."""
    return TooManyRequests(
        "there were too many failed authentications from this address", "wait, and use a valid token"
    )


class ConnectionScreen:
    """Looks at the first bytes of a connection."""

    def __init__(
        self,
        authenticate: Authenticate,
        failures: Failures,
        traffic: Traffic,
        open_paths: tuple[str, ...],
        is_page: Callable[[str], bool] = lambda _path: False,
    ) -> None:
        self._is_page = is_page
        self._authenticate = authenticate
        self._failures = failures
        self._traffic = traffic
        self._open_paths = frozenset(path.encode() for path in open_paths)
        refused = failure(too_many_failures())
        headers = b"".join(b"%s: %s\r\n" % header for header in refused.raw_headers)
        self._refusal = b"HTTP/1.1 429 Too Many Requests\r\n" + headers + b"\r\n" + bytes(refused.body)

    def refusal(self, data: bytes, address: str) -> bytes | None:
        """The response to a request that has no valid token, or None to have it parsed."""
        if not self._failures.is_shed(address):
            return None
        head, end, _ = data.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        request = first.split(b" ")
        certain = end and len(request) == 3 and head.count(b"\n") == len(lines)  # noqa: PLR2004 - method, path, version
        path = request[1].partition(b"?")[0] if certain else b""
        if not certain or path in self._open_paths or self._is_page(path.decode("latin-1")):
            return None
        if any(line.startswith(_FOLDED) for line in lines):
            return None
        given = [line[len(_NAME) :] for line in lines if line[: len(_NAME)].lower() == _NAME]
        token = bearer(given[0].strip().decode("latin-1")) if given else None
        try:
            if token is not None and self._authenticate(token) is not None:
                return None
        except AofError:
            return None  # the guard tells why
        self._traffic.note("failed_authentication", address)
        return self._refusal
