"""What holds for every test: a slow machine is no reason to fail one that draws its cases at random.

Whatever is trusted is trusted in a state folder that goes with the tests, never in the user's own. Compiled modules are
kept even where the environment forbids it: hundreds of tests start a process, and each would compile AOF once more.

Fixtures for tests of one subject: a data directory of its own on a clock that only the test moves, and the command line
on the same directory.
Temporary folders lie in memory where there is enough of it: thousands of tests make a data directory, and a disk spends
more time on its files than the test does on its question. TMPDIR says otherwise.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from aof.api.fabric import Fabric
from aof.surfaces.cli.main import main
from aof.testing import FakeClock
from tests.support.command_line import Aof, Said
from tests.support.messages import Post
from tests.support.room import MONDAY, Room

_MEMORY, _ENOUGH = "/dev/shm", 2 << 30  # containers often have 64 MB there

for name, examples in (("quick", 50), ("full", 300)):
    settings.register_profile(name, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])

if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ENOUGH:
    os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="aof-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure(config: pytest.Config) -> None:
    """What draws its cases draws more of them where the long sweeps run, too."""
    settings.load_profile("quick" if config.option.markexpr else "full")


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
