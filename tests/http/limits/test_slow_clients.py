"""Clients that never finish, never read, or send what is not HTTP: each ends within a bound, over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import pytest

from aof.surfaces.http.connections import Times
from aof.surfaces.http.guard import Traffic
from aof.surfaces.http.server import ServerLimits
from tests.support.sockets import lifespan, running, whole
from tests.support.waiting import eventually

_BOUND = 30
_QUICK = Times(headers=0.3, body=0.3, idle=1.0, stall=0.3)
_PATIENT = Times(headers=_BOUND * 2, body=_BOUND * 2, idle=_BOUND * 2, stall=_BOUND * 2)
_GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Served(NamedTuple):
    """A server, what it counts, an event that `/wait` waits for, and the requests that do."""

    port: int
    traffic: Traffic
    released: threading.Event
    waiting: list[str]

    def connect(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=_BOUND)
        client.settimeout(_BOUND)
        return client


@contextmanager
def _served(limits: ServerLimits) -> Iterator[Served]:
    released, traffic, waiting = threading.Event(), Traffic(), list[str]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await lifespan(receive, send)
            return
        if scope["path"] == "/read":
            while (await receive()).get("more_body"):
                pass
        if scope["path"] == "/wait":
            import anyio.to_thread  # noqa: PLC0415 - only here

            waiting.append(scope["path"])
            await anyio.to_thread.run_sync(released.wait, _BOUND)
        size = 30_000_000 if scope["path"] == "/large" else 2
        status = 404 if scope["method"] == "CONNECT" else 200
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": b"x" * size})

    with running(app, limits, traffic) as (_, port):
        try:
            yield Served(port, traffic, released, waiting)
        finally:
            released.set()


def _answer(client: socket.socket) -> bytes:
    found = b""
    while b"\r\n\r\nxx" not in found:
        part = client.recv(65536)
        assert part, found
        found += part
    return found


def _assert_cut_off_while_dripping(client: socket.socket, data: bytes) -> None:
    """Send it again and again, slowly, until the server hangs up or the bound is over."""
    pause = threading.Event()
    for _ in range(_BOUND * 20):
        try:
            client.sendall(data)
        except OSError:
            return
        pause.wait(0.05)
    raise AssertionError("the server took it for ever")


@pytest.fixture(scope="module")
def quick() -> Iterator[Served]:
    with _served(ServerLimits(times=_QUICK)) as served:
        yield served


def test_a_connection_that_says_nothing_is_closed(quick: Served) -> None:
    with quick.connect() as client:
        assert whole(client) == b""


def test_headers_that_do_not_end_are_answered_with_408(quick: Served) -> None:
    before = quick.traffic.totals["late_headers"]
    with quick.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert whole(client).startswith(b"HTTP/1.1 408 ")
    assert quick.traffic.totals["late_headers"] == before + 1


def test_headers_that_trickle_get_no_more_time(quick: Served) -> None:
    with quick.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
        _assert_cut_off_while_dripping(client, b"x")


def test_the_second_request_of_a_connection_has_the_same_bound(quick: Served) -> None:
    with quick.connect() as client:
        client.sendall(_GET)
        _answer(client)
        client.sendall(b"GET / HT")
        assert whole(client).startswith(b"HTTP/1.1 408 ")


def test_a_body_that_trickles_ends_with_its_time_whether_it_is_read_or_not(quick: Served) -> None:
    for path in (b"/read", b"/"):
        with quick.connect() as client:
            client.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            _assert_cut_off_while_dripping(client, b"1\r\nx\r\n")


def test_a_response_that_nobody_reads_is_given_up(quick: Served) -> None:
    before = quick.traffic.totals["stalled_reader"]
    with quick.connect() as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        eventually(lambda: quick.traffic.totals["stalled_reader"] > before, "the server waits for a reader")
        assert len(whole(client)) < 30_000_000


def test_an_idle_connection_is_closed(quick: Served) -> None:
    with quick.connect() as client:
        client.sendall(_GET)
        _answer(client)
        assert whole(client) == b""


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-Huge: " + b"x" * 200_000 + b"\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", b""),
        (b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 "),
        (b"FROBNICATE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 "),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"HTTP/1.1 404 "),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            b"HTTP/1.1 200 ",
        ),
    ],
    ids=["huge header", "TLS on a plain port", "huge length", "HTTP/1.0", "unknown method", "CONNECT", "websocket"],
)
def test_whatever_is_sent_the_connection_ends_and_nothing_is_logged(
    quick: Served, caplog: pytest.LogCaptureFixture, sent: bytes, answer: bytes
) -> None:
    with quick.connect() as client:
        with suppress(OSError):
            client.sendall(sent)
        assert whole(client).startswith(answer)
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []
    with quick.connect() as client:
        client.sendall(_GET)
        _answer(client)


def test_pipelined_requests_are_answered_one_after_the_other(quick: Served) -> None:
    with quick.connect() as client:
        client.sendall(_GET * 50)
        found = b""
        while found.count(b"\r\n\r\nxx") < 50:
            part = client.recv(65536)
            assert part, found.count(b"200 OK")
            found += part


def test_a_new_connection_displaces_the_oldest_one_that_has_asked_nothing() -> None:
    with _served(ServerLimits(connections=100, per_address=10, times=_PATIENT)) as served, ExitStack() as stack:
        silent = [stack.enter_context(served.connect()) for _ in range(10)]
        eventually(lambda: served.traffic.connections == 10, "ten connections")
        honest = stack.enter_context(served.connect())
        honest.sendall(_GET)
        _answer(honest)
        assert whole(silent[0]) == b""
        assert served.traffic.totals["displaced_connection"] == 1
        more = stack.enter_context(served.connect())
        more.sendall(_GET)
        _answer(more)
        assert whole(silent[1]) == b""
        honest.sendall(_GET)
        _answer(honest)


def test_a_connection_that_is_being_served_is_not_closed_for_another() -> None:
    with _served(ServerLimits(connections=9, per_address=9, times=_PATIENT)) as served, ExitStack() as stack:
        busy = [stack.enter_context(served.connect()) for _ in range(9)]
        for one in busy:
            one.sendall(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        eventually(lambda: len(served.waiting) == 9, "nine requests that are being served")
        with served.connect() as refused:
            assert whole(refused) == b""
        assert served.traffic.totals["refused_connection"] == 1
        served.released.set()
        for one in busy:
            _answer(one)
