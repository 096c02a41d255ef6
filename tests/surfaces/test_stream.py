"""Events as they come over HTTP: in order, from any point on, without gaps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from aof.adapters.http.api.responses import PREFIX
from tests.surfaces.doors import OverHttp


@contextmanager
def _listening(http: OverHttp, **given: Any) -> Iterator[Iterator[dict[str, Any]]]:
    with http.client.stream("GET", f"{PREFIX}/events", **given) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield _events(response)


def _events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    frame: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            frame[name] = value
        elif not line and "data" in frame:
            event = json.loads(frame["data"])
            assert (frame["id"], frame["event"]) == (str(event["seq"]), event["type"])
            yield event
            frame = {}


def test_events_arrive_as_they_happen(http: OverHttp) -> None:
    head = http.elsewhere.store.head()
    with _listening(http, params={"after": head}) as events:
        task_id = http.elsewhere.create("News").task_id
        seen = [next(events) for _ in range(3)]
    assert [event["seq"] for event in seen] == [head + 1, head + 2, head + 3]
    assert {event["taskId"] for event in seen} == {task_id}


def test_a_client_that_was_cut_off_goes_on_after_the_last_event_that_it_saw(http: OverHttp) -> None:
    http.elsewhere.create("Before")
    head = http.elsewhere.store.head()
    with _listening(http, headers={"Last-Event-ID": str(head - 2)}, params={"after": "0"}) as events:
        assert [next(events)["seq"] for _ in range(2)] == [head - 1, head]


def test_a_stream_may_be_of_one_task_and_one_type(http: OverHttp) -> None:
    other, mine = (http.elsewhere.create(title).task_id for title in ("Other", "Mine"))
    http.elsewhere.block(other, reason="x")
    http.elsewhere.block(mine, reason="x")
    with _listening(http, params={"taskId": mine[5:], "type": "task.transitioned"}) as events:
        event = next(events)
    assert (event["taskId"], event["payload"]["to"]) == (mine, "blocked")


@pytest.mark.parametrize("given", [{"after": "-1"}, {"after": "x"}, {"taskId": "999"}, {"until": "5"}])
def test_a_stream_that_cannot_be_is_refused(http: OverHttp, given: dict[str, str]) -> None:
    response = http.client.get(f"{PREFIX}/events", params=given)
    assert response.status_code in (400, 404)
    assert response.json()["error"]["hint"]
