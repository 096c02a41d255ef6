"""One translation for all followers: the lines after any event, as the log grows, whoever asks and from wherever."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aof.kernel.events import Event
from aof.portable import operations as portable_operations
from aof.portable.operations import PortableFeed
from tests.support.room import Room


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable_operations, "_KEPT", 20)
    monkeypatch.setattr(portable_operations, "_PAGE", 7)


def _all(source: PortableFeed, after: int, head: int) -> list[dict[str, Any]]:
    """Everything after an event, as a follower reads it."""
    found: list[dict[str, Any]] = []
    while after < head:
        page = source.after(after)
        for seen, lines in [page] if page is not None else source.past(after):
            assert seen >= after
            after = seen
            found += lines
    return found


def test_a_follower_gets_every_line_once_from_wherever_it_begins(room: Room) -> None:
    source = PortableFeed(room.fabric.store.events)
    assert source.after(0) == (0, [])
    for _ in range(4):
        room.task("done")
        head = room.fabric.store.head()
        for after in range(head + 1):
            assert _all(source, after, head) == room.fabric.portable_log(after=after)["events"]
    assert source.after(0) is None, "so much is not kept"


def test_an_event_is_translated_once_for_all_followers(room: Room) -> None:
    read: list[int] = []

    def events(after: int) -> Iterator[Event]:
        for event in room.fabric.store.events(after):
            read.append(event.seq)
            yield event

    source = PortableFeed(events)
    for _ in range(3):
        room.task()
    head = room.fabric.store.head()
    for _ in range(10):
        assert source.after(head) == (head, [])
    assert read == [*range(1, head + 1), *[head] * 9], "later only the last one, to see that it is still the same log"


def test_followers_in_many_threads_see_the_same(room: Room) -> None:
    source = PortableFeed(room.fabric.store.events)
    for _ in range(5):
        room.task("done")
    head = room.fabric.store.head()
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda after: _all(source, after, head), [0, 5, 0, head - 3, 11, 0, 2, 7]))
    assert told[0] == told[2] == told[5] == room.fabric.portable_log()["events"]


def test_another_log_in_its_place_is_translated_from_its_beginning(room: Room) -> None:
    for _ in range(3):
        room.task()
    events: list[Event] = list(room.fabric.store.events())
    source = PortableFeed(lambda after: (event for event in events if event.seq > after))
    seen = source.after(0)
    assert seen is not None
    assert [line["sequence"] for line in seen[1]] == list(range(1, 8))
    other = room.task("blocked")
    events[:] = [event for event in room.fabric.store.events() if event.seq < 4 or event.task_id == other][:5]
    again = source.after(0)
    assert again is not None
    assert {line["taskId"] for line in again[1]} == {events[0].task_id, other}
