"""What the guard does while a request goes on: a body must come in time, and a stream ends with its token."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec

from aof.adapters.http.guard import Guard, Limits
from aof.app.calling import Caller

_BOUND = 20
_LIMITS = Limits(
    hosts=("localhost",), open_paths=(), streams=("/stream",), max_body=1000, body_seconds=0.05, look_again=0.01
)
Sent = list[dict[str, Any]]


def _scope(method: str, path: str) -> dict[str, Any]:
    headers = [(b"host", b"localhost"), (b"authorization", b"Bearer known")]
    return {"type": "http", "method": method, "path": path, "headers": headers}


async def _for_ever() -> dict[str, Any]:
    await anyio.sleep_forever()
    raise AssertionError


def _through(guard: Guard, scope: dict[str, Any], receive: Any = _for_ever) -> Sent:
    """What is sent back."""
    sent: Sent = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def scene() -> None:
        with anyio.fail_after(_BOUND):
            await guard(scope, receive, send)

    anyio.run(scene)
    return sent


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def reads(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        raise AssertionError("there is no whole body")

    async def slowly() -> dict[str, Any]:
        await anyio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    for receive in (_for_ever, slowly):
        started, body = _through(Guard(reads, lambda _token: Caller("ada"), _LIMITS), _scope("POST", "/x"), receive)
        assert started["status"] == 400
        assert msgspec.json.decode(body["body"])["error"]["code"] == "invalid"


def test_a_request_whose_body_is_there_may_take_its_time() -> None:
    async def whole() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def works(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["body"] == b"{}"
        with anyio.move_on_after(_LIMITS.body_seconds * 3):
            await anyio.sleep_forever()
        assert (await receive())["body"] == b"{}"
        await send({"type": "http.response.start", "status": 200})

    (started,) = _through(Guard(works, lambda _token: Caller("ada"), _LIMITS), _scope("POST", "/x"), whole)
    assert started["status"] == 200


def test_a_stream_ends_when_its_token_is_revoked() -> None:
    known = ["known"]

    async def streams(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        known.clear()
        await anyio.sleep_forever()

    def authenticate(token: str | None) -> Caller | None:
        return Caller("ada") if token in known else None

    sent = _through(Guard(streams, authenticate, _LIMITS), _scope("GET", "/stream"))
    assert [message.get("more_body") for message in sent] == [None, True, False]
