"""The four doors, opened once for all tests: their processes take a while to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.surfaces.doors import DOORS, Door, OverHttp, OverMcp

Doors = dict[str, Door]


@contextmanager
def opened(folder: Callable[[], Path], settings: str = "") -> Iterator[Doors]:
    """Every surface, each on a data directory of its own."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(door(folder(), settings)) for name, door in DOORS.items()}


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    """A data directory with somebody at work."""
    root, _ = init_data_dir(tmp_path / ".aof")
    with open_fabric(root, actor="pm") as fabric:
        yield fabric


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """Every surface, for tests that do not mind what others have left there."""
    with opened(lambda: tmp_path_factory.mktemp("door")) as found:
        yield found


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest, doors: Doors) -> Door:
    """Each surface in turn."""
    return doors[request.param]


@pytest.fixture(scope="session")
def mcp(doors: Doors) -> OverMcp:
    """The MCP surface."""
    door = doors["mcp"]
    assert isinstance(door, OverMcp)
    return door


@pytest.fixture(scope="session")
def http(doors: Doors) -> OverHttp:
    """The HTTP surface."""
    door = doors["http"]
    assert isinstance(door, OverHttp)
    return door
