"""Reading the news again costs only the news, and is right whatever became of the log in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.store.files.log import chain
from aof.testing import FakeClock
from tests.support.indexes import store_of
from tests.support.room import MONDAY, Room

_COMMIT = 8  # events, or fewer


def _seqs(room: Room, after: int) -> list[int]:
    return [event.seq for event in room.fabric.store.events(after)]


def test_what_was_read_before_is_not_decoded_again(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(50):
        room.task("done")
    head = room.fabric.store.head()
    assert _seqs(room, 0) == list(range(1, head + 1))
    decoded: list[bytes] = []
    decode = chain.decode_event

    def counted(line: bytes) -> object:
        decoded.append(line)
        return decode(line)

    monkeypatch.setattr(chain, "decode_event", counted)
    assert _seqs(room, head) == []
    room.task()
    assert _seqs(room, head) == [head + 1, head + 2, head + 3]
    assert len(decoded) <= 2 * _COMMIT, "the news, and the last commit to see where it ends"
    assert head > 200


def test_any_number_can_be_read_from_in_any_order(room: Room) -> None:
    store = room.fabric.store
    for day in range(3):
        for _ in range(3):
            room.task("done")
        room.clock.sleep(86_400)
        for after in (*range(0, store.head() + 2, 4 + day), 1, store.head()):
            news = store.events(after)
            assert next(news, None) is None or after < store.head()
            del news  # a reader that stops in the middle of a commit
            assert _seqs(room, after) == list(range(after + 1, store.head() + 1))


def test_a_bookmark_in_a_log_that_another_one_has_replaced_is_not_used(room: Room, tmp_path: Path) -> None:
    for _ in range(5):
        room.task()
    assert len(_seqs(room, 0)) == 15
    other = Room(tmp_path / "other", FakeClock(MONDAY))
    for _ in range(7):
        other.task("done")
    (there,), (here,) = ([*one.root.glob("events/*.jsonl")] for one in (other, room))
    here.write_bytes(there.read_bytes())
    reader = store_of(room.fabric).reader
    wanted = list(other.fabric.store.events(9))
    assert list(reader.events(9)) == wanted
    assert list(reader.events(len(wanted) + 9)) == []
