"""The four doors, opened once for all tests: their processes take a while to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.surfaces.doors import Door, OverHttp, OverMcp, cli_door, http_door, mcp_door, python_door

Doors = dict[str, Door]


@contextmanager
def opened(folder: Callable[[], Path]) -> Iterator[Doors]:
    """Every surface, each on a data directory of its own."""
    with ExitStack() as stack:
        found: list[Door] = [
            stack.enter_context(python_door(folder())),
            stack.enter_context(cli_door(folder())),
            stack.enter_context(mcp_door(folder())),
            stack.enter_context(http_door(folder())),
        ]
        yield {door.name: door for door in found}


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """Every surface, for tests that do not mind what others have left there."""
    with opened(lambda: tmp_path_factory.mktemp("door")) as found:
        yield found


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
