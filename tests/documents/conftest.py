"""A data directory whose maintainer is `pm`, and the days that pass in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import Policy
from tests.support.room import Room


@pytest.fixture
def fabric(room: Room) -> Fabric:
    """Called by `pm`, who is the maintainer; everybody else speaks for itself only."""
    return Fabric(room.fabric.store, room.clock, Policy(maintainers=("pm",), strict=True, project="pilot"), "pm")


@pytest.fixture
def worklog(room: Room) -> Path:
    """Where WORKLOG.md lies."""
    return room.root / "WORKLOG.md"
