"""Requests of ASGI applications: look at the body of one before it is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from aof.support import nesting

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def inspect_body(receive: Receive, most: int) -> tuple[bytes, Receive]:
    """The body of a request, and a `receive` that yields it once more; raises NestedTooDeeply.

    Of a body with more than `most` bytes only the beginning is read: whoever answers the request refuses it.
    """
    messages: list[MutableMapping[str, Any]] = []
    size, more = 0, True
    while more and size <= most:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = b"".join(message.get("body", b"") for message in messages)
    nesting.refuse_nesting(body)
    messages.reverse()

    async def receive_again() -> MutableMapping[str, Any]:
        return messages.pop() if messages else await receive()

    return body, receive_again
