"""What the guard does while a request goes on: a body must come in time, and a stream ends with its token."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import msgspec
import pytest
from starlette.datastructures import Headers

from aof.api.call import Caller
from aof.errors import NotAllowed
from aof.surfaces.http.guard import Authenticate, FailedAuthentications, Guard, TokenLimits, Traffic, check_names

_BOUND = 20
_LIMITS: Any = {"hosts": ("localhost",), "open_paths": ("/health",), "max_body": 1000, "body_seconds": 0.05}
_ADA = Caller("ada", token="t1")
_STREAM = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
Sent = list[dict[str, Any]]


def _guard(
    app: Any,
    authenticate: Authenticate = lambda _token: _ADA,
    *,
    token_limits: TokenLimits | None = None,
    traffic: Traffic | None = None,
    rate: float = 1000,
) -> Guard:
    counted = traffic or Traffic()
    granted = token_limits or TokenLimits(counted, requests_per_second=rate, streams=1)
    return Guard(
        app, authenticate, **_LIMITS, token_limits=granted, failures=FailedAuthentications(60), traffic=counted
    )


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
        started, body = _through(_guard(reads), _scope("POST", "/x"), receive)
        assert started["status"] == 400
        assert msgspec.json.decode(body["body"])["error"]["code"] == "invalid"


def test_a_request_whose_body_is_there_may_take_its_time() -> None:
    async def whole() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def works(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["body"] == b"{}"
        with anyio.move_on_after(_LIMITS["body_seconds"] * 3):
            await anyio.sleep_forever()
        assert (await receive())["body"] == b"{}"
        await send({"type": "http.response.start", "status": 200})

    (started,) = _through(_guard(works), _scope("POST", "/x"), whole)
    assert started["status"] == 200


def test_a_stream_ends_when_its_token_is_revoked_however_it_was_asked_for() -> None:
    for method in ("GET", "POST"):
        valid = {"t1"}
        token_limits = TokenLimits(Traffic(), requests_per_second=1000, streams=1, valid=partial(frozenset, valid))

        async def streams(
            scope: Any, receive: Any, send: Any, now: set[str] = valid, held: TokenLimits = token_limits
        ) -> None:
            await send(_STREAM)
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            now.clear()
            held.end_revoked()
            await anyio.sleep_forever()

        sent = _through(_guard(streams, token_limits=token_limits), _scope(method, "/stream"))
        assert [message.get("more_body") for message in sent] == [None, True, False]


def test_a_request_that_waits_is_refused_when_its_token_is_revoked() -> None:
    valid = {"t1"}
    token_limits = TokenLimits(Traffic(), requests_per_second=1000, streams=1, valid=lambda: frozenset(valid))

    async def waits(scope: Any, receive: Any, send: Any) -> None:
        valid.clear()
        token_limits.end_revoked()
        await anyio.sleep_forever()

    started, body = _through(_guard(waits, token_limits=token_limits), _scope("POST", "/claim"))
    assert (started["status"], msgspec.json.decode(body["body"])["error"]["code"]) == (401, "unauthenticated")


def test_a_token_has_no_more_streams_than_it_may_and_gets_its_place_back() -> None:
    traffic = Traffic()
    inner: list[Sent] = []

    async def streams(scope: Any, receive: Any, send: Any) -> None:
        await send(_STREAM)
        if not inner:
            inner.append([])

            async def note(message: Any) -> None:
                inner[0].append(message)

            await guard(_scope("GET", "/second"), _for_ever, note)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    guard = _guard(streams, traffic=traffic)
    assert _through(guard, _scope("GET", "/first"))[0]["status"] == 200
    assert inner[0][0]["status"] == 429
    assert (traffic.streams, traffic.totals["too_many_streams"]) == (0, 1)
    assert _through(guard, _scope("GET", "/third"))[0]["status"] == 200


def test_a_token_that_asks_too_often_is_told_to_wait_and_others_are_not() -> None:
    async def answers(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    who = [_ADA]
    guard = _guard(answers, lambda _token: who[0], rate=1)
    statuses = [_through(guard, _scope("GET", "/x"))[0] for _ in range(3)]
    assert [one["status"] for one in statuses] == [200, 200, 429]
    assert (b"retry-after", b"1") in statuses[2]["headers"]
    who[0] = Caller("bert", token="t2")
    assert _through(guard, _scope("GET", "/x"))[0]["status"] == 200


def test_failed_authentications_are_slowed_down_and_then_shed_and_valid_tokens_are_not() -> None:
    traffic = Traffic()
    statuses: list[int] = []
    moments: list[float] = []

    async def answers(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    guard = _guard(answers, lambda token: _ADA if token == "known" else None, traffic=traffic)

    async def call(token: bytes) -> None:
        scope = _scope("GET", "/x")
        scope["headers"][1] = (b"authorization", b"Bearer " + token)

        async def send(message: Any) -> None:
            if "status" in message:
                statuses.append(message["status"])
                moments.append(anyio.current_time())

        await guard(scope, _for_ever, send)

    async def scene() -> None:
        begin = anyio.current_time()
        with anyio.fail_after(_BOUND):
            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(call, b"guess")
                group.start_soon(call, b"known")
        late = [at - begin >= 1 for at in moments]
        assert sum(late) == 32, "the answers that had to wait"

    anyio.run(scene)
    assert (statuses.count(401), statuses.count(429), statuses.count(200)) == (20 + 32, 48, 1)
    assert traffic.totals["failed_authentication"] == 100


def test_an_origin_counts_with_its_port() -> None:
    def asked(host: str, origin: str | None) -> bool:
        headers = {"host": host} | ({"origin": origin} if origin is not None else {})
        try:
            check_names({"server": ("127.0.0.1", 8420)}, Headers(headers), ("127.0.0.1", "localhost", "[::1]"))
        except NotAllowed:
            return False
        return True

    allowed = [
        ("localhost:8420", None),
        ("localhost:8420", "http://localhost:8420"),
        ("127.0.0.1:8420", "http://localhost:8420"),
        ("[::1]:8420", "http://[::1]:8420"),
        ("localhost", "http://localhost"),
        ("localhost", "https://localhost:443"),
    ]
    refused = [
        ("localhost:8420", "http://localhost:3000"),
        ("localhost:8420", "http://localhost"),
        ("localhost", "http://localhost:8420"),
        ("localhost:8420", "http://evil.example:8420"),
        ("localhost:8420", "null"),
        ("localhost:8420", "file://localhost:8420"),
        ("evil.example:8420", None),
    ]
    assert [pair for pair in allowed if not asked(*pair)] == []
    assert [pair for pair in refused if asked(*pair)] == []


def test_a_server_may_be_called_by_the_address_that_the_connection_came_in_on() -> None:
    headers = Headers({"host": "192.0.2.7:8420"})
    check_names({"server": ("192.0.2.7", 8420)}, headers, ("localhost",))
    with pytest.raises(NotAllowed):
        check_names({"server": ("192.0.2.8", 8420)}, headers, ("localhost",))


@pytest.mark.parametrize("twice", [(b"authorization", b"Bearer known"), (b"aof-run-secret", b"RUN-1/ada/00")])
def test_what_proves_who_calls_is_sent_once_or_does_not_count(twice: tuple[bytes, bytes]) -> None:
    async def unreachable(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("nobody can say who calls")

    scope = _scope("GET", "/x")
    scope["headers"] = [*scope["headers"], twice, twice]
    started, _body = _through(_guard(unreachable), scope)
    assert started["status"] == 401


def test_failed_authentications_are_told_at_once_and_then_once_a_minute() -> None:
    traffic = Traffic()
    assert traffic.due(0.0) == []
    told = []
    for second in range(121):
        traffic.note("failed_authentication", "127.0.0.1")
        told += [(second, one.text, one.total, one.addresses) for one in traffic.due(float(second))]
    assert told == [
        (0, "1 failed authentication; from 127.0.0.1 (1)", 1, {"127.0.0.1": 1}),
        (60, "60 failed authentications; from 127.0.0.1 (60)", 60, {"127.0.0.1": 60}),
        (120, "60 failed authentications; from 127.0.0.1 (60)", 60, {"127.0.0.1": 60}),
    ]
    assert "\naof_http_failed_authentications_total 121\n" in traffic.prometheus()
