"""What the server's socket promises to those who call."""

from __future__ import annotations

import asyncio
import socket

from aof.adapters.http.serving import listen


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
