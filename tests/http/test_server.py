"""What the server's socket promises to those who call."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aof.surfaces.http.guard import Traffic
from aof.surfaces.http.server import ServerLimits, listen
from tests.support.sockets import lifespan, running, whole

_BOUND = 20


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """Says what it was sent as `x-said`."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    said = dict(scope["headers"])[b"x-said"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(said))]})
    await send({"type": "http.response.body", "body": said})


@contextmanager
def _connected(limits: ServerLimits | None = None, traffic: Traffic | None = None) -> Iterator[socket.socket]:
    with running(_app, limits, traffic) as address, socket.create_connection(address, timeout=_BOUND) as client:
        yield client


def test_blanks_around_a_header_are_no_part_of_it() -> None:
    with _connected() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Said: \t hello \t \r\n\r\n")
        assert whole(client).endswith(b"\r\n\r\nhello")


def test_headers_without_an_end_are_cut_off() -> None:
    with _connected() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        try:
            for _ in range(1000):
                client.sendall(b"X-Said: %s\r\n" % (b"x" * 8000))
        except (BrokenPipeError, ConnectionResetError):
            return
        raise AssertionError("the server took eight megabytes of headers")


def test_a_small_answer_is_sent_at_once() -> None:
    async def option() -> int:
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def accepted(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            told.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listen() as bound:
            async with await asyncio.start_server(accepted, sock=bound):
                _, writer = await asyncio.open_connection(*bound.getsockname()[:2])
                found = await asyncio.wait_for(told, 20)
                writer.close()
                return found

    assert asyncio.run(option()) != 0
