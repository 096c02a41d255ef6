"""The chain of hashes is verified on from where it was, and from the beginning where the log is another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.errors import LogDamaged
from aof.service.bootstrap import open_fabric


def test_the_whole_history_is_verified(root: Path) -> None:
    with open_fabric(root) as fabric:
        fabric.create("One")
        assert fabric.verify().verified_to == fabric.verify().head == fabric.store.head()


def test_a_long_history_is_verified_piece_by_piece(root: Path) -> None:
    with open_fabric(root) as fabric:
        for number in range(4):
            fabric.create(f"Task {number}")
        pieces = [fabric.verify(limit=3).verified_to for _ in range(8)]
        assert pieces == sorted(pieces)
        assert pieces[0] < fabric.store.head()
        assert pieces[-1] == fabric.store.head()


def test_what_came_since_is_verified_next(root: Path) -> None:
    with open_fabric(root) as fabric:
        before = fabric.verify().verified_to
        fabric.create("One")
        assert fabric.verify().verified_to > before


def test_a_changed_event_is_found(root: Path) -> None:
    with open_fabric(root) as fabric:
        fabric.create("Honest title")
        fabric.create("Another")
    (log,) = (root / "events").glob("*.jsonl")
    log.write_bytes(log.read_bytes().replace(b"Honest title", b"Forged title", 1))
    with open_fabric(root) as fabric, pytest.raises(LogDamaged):
        fabric.verify()


def test_a_log_that_was_replaced_is_verified_from_its_beginning(root: Path) -> None:
    with open_fabric(root) as fabric:
        fabric.create("Honest title")
        fabric.verify()
        fabric.create("Another")
        (log,) = (root / "events").glob("*.jsonl")
        log.write_bytes(log.read_bytes().replace(b'"seq":2,', b'"seq":2, ', 1))
        with pytest.raises(LogDamaged):
            fabric.verify()
