"""A data directory whose maintainer is `pm`, and the days that pass in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import Policy
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.testing import FakeClock
from tests.support.room import Room


@pytest.fixture
def fabric(room: Room) -> Fabric:
    """Called by `pm`, who is the maintainer; everybody else speaks for itself only."""
    return Fabric(room.fabric.store, room.clock, Policy(maintainers=("pm",), strict=True, project="pilot"), "pm")


@pytest.fixture
def worklog(room: Room) -> Path:
    """Where WORKLOG.md lies."""
    return room.root / "WORKLOG.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data directory of `pm`."""
    return Path(init_data_dir(tmp_path / ".aof", actor="pm")[0])


@pytest.fixture
def opened(root: Path, clock: FakeClock) -> Iterator[Fabric]:
    """A fabric of `pm` over the files of that directory."""
    with open_fabric(root, actor="pm", clock=clock) as fabric:
        yield fabric
