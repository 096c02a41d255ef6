"""Wrong tokens from an address that keeps guessing: refused before their request is parsed, and nobody else is."""

from __future__ import annotations

import socket
import threading
from typing import Any

import anyio
import pytest

from aof.api.call import Caller
from aof.errors import InvalidInput
from aof.surfaces.http.guard import ConnectionScreen, FailedAuthentications, Traffic
from aof.surfaces.http.server import HttpServer, listen

_BOUND = 20
_HOME = "127.0.0.1"
_GUESS = b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer guess\r\n\r\n"


def _known(token: str | None) -> Caller | None:
    return Caller("ada") if token == "known" else None


def _screen(authenticate: Any = _known, traffic: Traffic | None = None, *, shed: bool = True) -> ConnectionScreen:
    failures = FailedAuthentications(60)
    failures.is_shed = lambda address: shed and address == _HOME  # type: ignore[method-assign]
    return ConnectionScreen(authenticate, failures, traffic or Traffic(), ("/health",))


def test_a_wrong_token_is_refused_and_counted_once_too_many_wait() -> None:
    traffic = Traffic()
    refused = _screen(traffic=traffic).refusal(_GUESS, _HOME)
    assert refused is not None
    assert refused.startswith(b"HTTP/1.1 429 ")
    assert b"connection: close\r\n" in refused.lower()
    assert b"too_many_requests" in refused
    assert traffic.totals["failed_authentication"] == 1


def test_no_token_at_all_is_a_wrong_one() -> None:
    assert _screen().refusal(b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", _HOME) is not None


def test_before_that_and_at_other_addresses_a_wrong_token_goes_the_long_way() -> None:
    assert _screen(shed=False).refusal(_GUESS, _HOME) is None
    assert _screen().refusal(_GUESS, "192.0.2.1") is None


@pytest.mark.parametrize(
    "request_bytes",
    [
        _GUESS.replace(b"guess", b"known"),
        _GUESS.replace(b"guess", b"known").replace(b"Authorization: Bearer", b"AUTHORIZATION:bearer"),
        _GUESS.replace(b"guess", b"  known\t"),
        _GUESS.replace(b"Bearer guess", b"Bearer\r\n known"),
        _GUESS.replace(b"guess", b"known").replace(b"\r\n", b"\n"),
        _GUESS.replace(b"guess", b"known").replace(b"\r\nA", b"\nA"),
        _GUESS.replace(b"/api/v1/status", b"/health"),
        _GUESS.replace(b"/api/v1/status", b"/health?x=1"),
        _GUESS[:-2],
        b"",
        b"\r\n\r\n",
        b"\x16\x03\x01\x00\r\n\r\n",
    ],
    ids=str,
)
def test_a_valid_token_an_open_path_and_what_is_not_certain_are_never_refused(request_bytes: bytes) -> None:
    assert _screen().refusal(request_bytes, _HOME) is None


def test_where_tokens_cannot_be_read_the_guard_tells_why() -> None:
    def broken(_token: str | None) -> Caller | None:
        raise InvalidInput("tokens.json cannot be read", "correct it")

    assert _screen(broken).refusal(_GUESS, _HOME) is None


def test_an_address_is_shed_while_so_many_late_answers_wait() -> None:
    async def scene() -> tuple[bool, bool, bool]:
        failures = FailedAuthentications(60)
        now = anyio.current_time()
        while failures._buckets.take(_HOME, now):  # at one moment, so that nothing is earned meanwhile
            pass
        before = failures.is_shed(_HOME)
        with anyio.fail_after(_BOUND):
            async with anyio.create_task_group() as group:
                for _ in range(32):
                    group.start_soon(failures.slowed, _HOME)
                await anyio.lowlevel.checkpoint()
                during = failures.is_shed(_HOME)
        return before, during, failures.is_shed(_HOME)

    assert anyio.run(scene) == (False, True, False)


def test_a_refused_connection_is_closed_and_the_application_hears_nothing_of_it() -> None:
    asked: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 204, "headers": [(b"connection", b"close")]})
        await send({"type": "http.response.body", "body": b""})

    def said(port: int, request: bytes) -> bytes:
        found = b""
        with socket.create_connection((_HOME, port), timeout=_BOUND) as client:
            client.sendall(request)
            while part := client.recv(65536):
                found += part
        return found

    running = threading.Event()
    with listen() as bound:
        server = HttpServer(app, bound, running.set, refuse=_screen().refusal)
        thread = threading.Thread(target=server.run)
        port = bound.getsockname()[1]
        thread.start()
        try:
            assert running.wait(_BOUND)
            assert said(port, _GUESS).startswith(b"HTTP/1.1 429 ")
            assert said(port, _GUESS.replace(b"guess", b"known")).startswith(b"HTTP/1.1 204 ")
        finally:
            server.stop()
            thread.join(_BOUND)
    assert asked == ["/api/v1/status"]
