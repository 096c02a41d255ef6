"""A data directory of its own on a clock that only the test moves, and the command line on the same directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aof.adapters.cli.main import main
from aof.app.fabric import Fabric
from aof.testing import FakeClock
from tests.support.command_line import Aof, Said
from tests.support.messages import Post
from tests.support.room import MONDAY, Room


@pytest.fixture
def clock() -> FakeClock:
    """A Monday morning that lasts until somebody sleeps."""
    return FakeClock(MONDAY)


@pytest.fixture
def room(tmp_path: Path, clock: FakeClock) -> Iterator[Room]:
    """A new data directory."""
    made = Room(tmp_path / ".aof", clock)
    yield made
    made.fabric.close()


@pytest.fixture
def fabric(room: Room) -> Fabric:
    """The fabric on it; who calls is `pm`."""
    return room.fabric


@pytest.fixture
def aof(room: Room, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Aof:
    """The command on the same directory, always with `--json`; it goes by the real clock."""
    monkeypatch.setenv("AOF_DATA_DIR", str(room.root))
    monkeypatch.delenv("AOF_RUN_ID", raising=False)
    monkeypatch.setenv("AOF_ACTOR", "tester")

    def run(*words: str) -> Said:
        code = main([*words, "--json"])
        out, err = capsysbinary.readouterr()
        return Said(code, out.decode(), err.decode())

    return run


@pytest.fixture
def post(room: Room) -> Post:
    """Sends messages to the room."""
    return Post(room)
