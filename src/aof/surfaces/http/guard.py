"""Admission to the server: the names it is called by, Host and Origin headers, the size of the request, the token.

What clients may ask of it is bounded: requests and streams per token, failed authentications per address. Wrong tokens
are refused before a request is parsed where too many of them come from one address. What was refused is counted, for
reports and for Prometheus.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple

import anyio
import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aof.api.call import Caller
from aof.errors import AofError, InvalidInput, NotAllowed, PayloadTooLarge, TooManyRequests, Unauthenticated
from aof.surfaces.http.responses import failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.surfaces.board.app import Board


CALLER: Final = "aof.caller"  # where the guard puts the caller in the scope of a request
RUN_SECRET: Final = "AOF-Run-Secret"  # noqa: S105 - the name of the header
_KEEP: Final = "AOF-Keep"
_STREAM: Final = b"text/event-stream"
_PORTS: Final = {"http": "80", "https": "443"}
_AUTHORIZATION: Final = b"authorization:"
_FOLDED: Final = (b" ", b"\t")  # a line that begins so goes on with the header before it

Authenticate = Callable[[str | None], Caller | None]


class Guard:
    """ASGI middleware that lets only callers with a valid token in, and holds them to their limits.

    `open_paths` need no token. On the paths of the board, callers have a cookie instead, and get errors as HTML.
    """

    def __init__(
        self,
        app: ASGIApp,
        authenticate: Authenticate,
        *,
        hosts: tuple[str, ...],
        open_paths: tuple[str, ...],
        max_body: int,
        body_seconds: float,
        token_limits: TokenLimits,
        failures: FailedAuthentications,
        traffic: Traffic,
        board: Board | None = None,
    ) -> None:
        self._app = app
        self._board = board
        self._authenticate = authenticate
        self._hosts = hosts
        self._open_paths = open_paths
        self._max_body = max_body
        self._body_seconds = body_seconds
        self._token_limits = token_limits
        self._failures = failures
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        address = network_of(scope["client"][0] if scope.get("client") else None)
        board = self._board_at(scope)
        try:
            check_names(scope, headers, self._hosts)
            most = self._max_body if board is None else board.max_body
            size = headers.get("content-length", "0")
            if size.isdigit() and (len(size) > len(str(most)) or int(size) > most):
                raise PayloadTooLarge(f"the body has {size[:20]} bytes, the limit is {most}", "send less at once")
            is_open = scope["path"] in self._open_paths
            caller = None if is_open else self._caller(headers) if board is None else board.caller(headers)
            if caller is None:
                if not is_open and board is None:
                    raise await self._unauthenticated(address)
                await self._app({**scope, CALLER: None}, receive, send)
                return
            self._token_limits.count(caller, address)
        except AofError as error:
            await self._refusal(scope, error)(scope, receive, send)
            return
        await self._serve({**scope, CALLER: caller}, receive, send, caller, address)

    def _board_at(self, scope: Scope) -> Board | None:
        return self._board if self._board is not None and self._board.covers(scope["path"]) else None

    def _refusal(self, scope: Scope, error: AofError) -> Response:
        board = self._board_at(scope)
        return board.refusal(scope, error) if board is not None else failure(error)

    async def _unauthenticated(self, address: str) -> AofError:
        """The refusal of a call without a valid token: late, where many such calls come from the address."""
        self._traffic.note("failed_authentication", address)
        if not await self._failures.slowed(address):
            return too_many_failures()
        return Unauthenticated(
            "this server needs a token that it knows",
            "send one as 'Authorization: Bearer TOKEN'; make it with 'aof admin token create NAME'",
        )

    async def _serve(self, scope: Scope, receive: Receive, send: Send, caller: Caller, address: str) -> None:
        """Serve one request: its body must come in time, and it is cancelled when its token is no longer valid."""
        answer = _TrackedAnswer(send, lambda: self._token_limits.open_stream(caller, address))
        problem: AofError | None = None
        with anyio.CancelScope() as cancelled, self._token_limits.request(caller, cancelled):
            answer.cancel = cancelled.cancel
            try:
                await self._app(scope, self._in_time(receive), answer.send)
            except AofError as error:
                if answer.begun:
                    raise
                problem = error
            finally:
                answer.end_stream()
        if cancelled.cancelled_caught:
            problem = answer.refusal or Unauthenticated("the token is no longer valid", "use another token")
        if problem is not None and not answer.begun:
            await self._refusal(scope, problem)(scope, receive, send)
        elif cancelled.cancelled_caught and answer.unfinished:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _in_time(self, receive: Receive) -> Receive:
        """The same body, or an error when it is not there in time: a slow sender would hold a connection for long."""
        deadline = anyio.current_time() + self._body_seconds
        whole = False

        async def in_time() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            with anyio.move_on_at(deadline):
                message = await receive()
                whole = not message.get("more_body", False)
                return message
            raise InvalidInput(f"the body was not there after {self._body_seconds:g} s", "send it at once")

        return in_time

    def _caller(self, headers: Headers) -> Caller | None:
        """The owner of the token. Of two tokens nobody can say which is meant; a proxy may have checked the other."""
        if any(len(headers.getlist(name)) > 1 for name in ("authorization", RUN_SECRET)):
            return None
        caller = self._authenticate(bearer(headers.get("authorization", "")))
        if caller is None:
            return None
        keeps = headers.get(_KEEP, "").strip().lower() == "true"
        return msgspec.structs.replace(caller, secret=headers.get(RUN_SECRET) or None, keeps=keeps)


class _TrackedAnswer:
    """How far the answer to one request has come. A stream is recognised by its content type, and counted."""

    def __init__(self, send: Send, open_stream: Callable[[], Callable[[], None] | AofError]) -> None:
        self._send = send
        self._open_stream = open_stream
        self._close: Callable[[], None] | None = None
        self.begun = self.unfinished = False
        self.refusal: AofError | None = None
        self.cancel: Callable[[], None] = lambda: None

    async def send(self, message: Message) -> None:
        """Pass a part of the answer on."""
        starts = message["type"] == "http.response.start"
        if starts and any(
            name.lower() == b"content-type" and value.startswith(_STREAM) for name, value in message.get("headers", ())
        ):
            opened = self._open_stream()
            if isinstance(opened, AofError):
                self.refusal = opened
                self.cancel()
                await anyio.sleep_forever()
                return
            self._close = opened
        self.begun = True
        self.unfinished = starts or bool(message.get("more_body"))
        await self._send(message)

    def end_stream(self) -> None:
        """Count the stream, if it was one, no longer."""
        if self._close is not None:
            self._close()


def check_names(scope: Scope, headers: Headers, hosts: tuple[str, ...]) -> None:
    """Refuse a foreign Host, and a page of another Origin; raises NotAllowed.

    The address that a connection came in on counts as a name: only a page from there can make a browser send it.
    """
    host, port = _parts(headers.get("host", ""))
    server = scope.get("server")
    own = str(server[0]) if server and server[1] is not None else None
    known = (*hosts, f"[{own}]" if own and ":" in own else own or hosts[0])
    if host not in known:
        raise NotAllowed(
            f"this server is not called {host[:80]!r}",
            f"use one of: {', '.join(sorted(set(known)))}; [http] hosts in aof.toml adds names",
        )
    origin = headers.get("origin")
    if origin is None:
        return
    scheme, _, place = origin.partition("://")
    page, page_port = _parts(place)
    default = _PORTS.get(scheme.lower())
    if default is None or page not in known or (page_port or default) != (port or default):
        raise NotAllowed(f"pages from {origin[:80]!r} may not call this server", "call it from its own pages")


def _parts(host: str) -> tuple[str, str]:
    """The name in lower case, and the port or nothing."""
    name, colon, port = host.rpartition(":")
    return (name.lower(), port) if colon and port.isascii() and port.isdigit() else (host.lower(), "")


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
    """Refuses requests without a valid token before they are parsed, at addresses with too many of them."""

    def __init__(
        self,
        authenticate: Authenticate,
        failures: FailedAuthentications,
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
        given = [line[len(_AUTHORIZATION) :] for line in lines if line[: len(_AUTHORIZATION)].lower() == _AUTHORIZATION]
        token = bearer(given[0].strip().decode("latin-1")) if given else None
        try:
            if token is not None and self._authenticate(token) is not None:
                return None
        except AofError:
            return None  # the guard tells why
        self._traffic.note("failed_authentication", address)
        return self._refusal


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
