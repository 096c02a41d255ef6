"""A request that raises what nobody foresaw is answered with a reference, logged under it, and the server goes on."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from aof.api.async_bridge import Follower
from aof.api.call import Caller
from aof.api.catalogue import OPERATIONS
from aof.surfaces.http import app as http_app
from aof.surfaces.http import routes
from aof.surfaces.http.app import HttpSettings, make_app
from aof.surfaces.http.responses import PREFIX, method_of
from aof.testing import memory_fabric

REFERENCE = re.compile(r"FAULT-[0-9a-f]{8}")


def breaks(*_given: Any, **_named: Any) -> Any:
    raise ZeroDivisionError("our insides")


@pytest.fixture
def client() -> Iterator[TestClient]:
    """A client with a token that counts; what the server raises is for its log, not for the client."""
    settings = HttpSettings(authenticate=lambda _token: Caller("ada"), hosts=("testserver",))
    with TestClient(make_app(memory_fabric, settings), raise_server_exceptions=False) as found:
        yield found


def check(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """An error payload with a reference that the log has too, and nothing of our insides."""
    assert answer.status_code == 500
    error = answer.json()["error"]
    assert (error["code"], error["kind"]) == ("internal", "internal")
    name = error["details"]["reference"]
    assert REFERENCE.fullmatch(name)
    assert name in error["message"]
    assert "our insides" not in answer.text
    logged = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert any(name in text and "ZeroDivisionError: our insides" in text for text in logged)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_fault_in_any_operation_is_an_answer(
    operation: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(routes, "parameters", breaks)
        check(client.request(method_of(operation), f"{PREFIX}/{operation.name}"), caplog)
    assert client.get(f"{PREFIX}/list").status_code == 200


def test_a_fault_outside_of_the_operations_is_an_answer_too(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(routes, "_event_query", breaks)
        check(client.get(f"{PREFIX}/events"), caplog)
    with monkeypatch.context() as broken:
        broken.setattr(http_app, "answer", breaks)
        check(client.get("/health"), caplog)
    assert client.get("/health").status_code == 200


def test_a_fault_while_the_log_is_followed_ends_no_server(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("aof.api.async_bridge._AFTER_A_FAULT", 0.0)
    fabric = memory_fabric()
    calls = 0
    wait = fabric.store.wait

    def broken(*given: Any) -> bool:
        nonlocal calls
        calls += 1
        return breaks() if calls == 1 else wait(*given)

    monkeypatch.setattr(fabric.store, "wait", broken)

    async def scene() -> bool:
        follower = Follower(fabric)
        with anyio.fail_after(20):
            async with follower.running():
                fabric.create("News")
                return await follower.after(0)

    assert anyio.run(scene)
    assert any(REFERENCE.search(record.getMessage()) for record in caplog.records)
