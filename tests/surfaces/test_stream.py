"""Events as they come over HTTP: in order, from any point on, without gaps."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from aof.api.fabric import Fabric
from aof.surfaces.http.responses import PREFIX
from tests.support.portable import EVENTS
from tests.surfaces.doors import OverHttp


@contextmanager
def _listening(http: OverHttp, **given: Any) -> Iterator[Iterator[dict[str, Any]]]:
    with http.client.stream("GET", f"{PREFIX}/events", **given) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield _events(response)


def _events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    for number, kind, event in _frames(response):
        assert (number, kind) == (event["seq"], event["type"])
        yield event


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


@pytest.mark.parametrize(
    "given", [{"after": "-1"}, {"after": "x"}, {"after": "999999"}, {"taskId": "999"}, {"until": "5"}, {"format": "x"}]
)
def test_a_stream_that_cannot_be_is_refused(http: OverHttp, given: dict[str, str]) -> None:
    response = http.client.get(f"{PREFIX}/events", params=given)
    assert response.status_code in (400, 404)
    assert response.json()["error"]["hint"]


def _frames(response: httpx.Response) -> Iterator[tuple[int, str, dict[str, Any]]]:
    frame: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            frame[name] = value
        elif not line and "data" in frame:
            yield int(frame["id"]), frame["event"], json.loads(frame["data"])
            frame = {}


def test_a_portable_stream_begins_with_a_snapshot_and_has_neither_gap_nor_repeat_however_often_it_is_cut(
    http: OverHttp,
) -> None:
    fabric = http.elsewhere
    before = fabric.create("Before").task_id
    writers = [threading.Thread(target=_lives_of_many, args=(fabric, number)) for number in range(3)]
    lines: list[dict[str, Any]] = []
    last = 0
    with http.client.stream("GET", f"{PREFIX}/events", params={"format": "agentruntime"}) as response:
        frames = _frames(response)
        last, kind, view = next(frames)
        assert (kind, view["sequence"]) == ("snapshot", last)
        assert before in [one["taskId"] for one in view["tasks"]]
        for writer in writers:
            writer.start()
        for _ in range(7):
            last, _, line = next(frames)
            lines.append(line)
    for writer in writers:
        writer.join(60)
        assert not writer.is_alive()
    end = max(one["sequence"] for one in fabric.portable_log()["events"])
    for cut in itertools.cycle((5, 11, 3)):  # each connection is killed after some events
        headers, asked = {"Last-Event-ID": str(last)}, {"format": "agentruntime"}
        with http.client.stream("GET", f"{PREFIX}/events", headers=headers, params=asked) as response:
            for last, _, line in itertools.islice(_frames(response), cut):
                lines.append(line)
                if last == end:
                    break
        if last == end:
            break
    assert lines == fabric.portable_log(after=view["sequence"])["events"]
    assert all(line["type"] in EVENTS for line in lines)


def test_a_client_that_has_seen_more_than_this_log_has_begins_with_a_new_snapshot(http: OverHttp) -> None:
    task_id = http.elsewhere.create("Restored from a backup").task_id
    headers, asked = {"Last-Event-ID": "999999"}, {"format": "agentruntime"}
    with http.client.stream("GET", f"{PREFIX}/events", headers=headers, params=asked) as response:
        frames = _frames(response)
        last, kind, view = next(frames)
        assert (kind, view["sequence"]) == ("snapshot", last)
        http.elsewhere.block(task_id, reason="x")
        assert [kind for _, kind, _ in itertools.islice(frames, 1)] == ["task.blocked"]


def _lives_of_many(fabric: Fabric, number: int) -> None:
    for one in range(4):
        task_id = fabric.create(f"Task {number}-{one}", review=False).task_id
        fabric.complete(task_id, run=fabric.claim(task_id, agent=f"agent-{number}").run_id)
