"""Clients that share one settings file: each acts under the name that the settings give to it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Implementation

from aof.errors import InvalidInput
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.service.serve import actors_by_client
from tests.support.warm import warm
from tests.surfaces.doors import environment


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(("client", "actor"), [("GitHub-Copilot-developer", "copilot"), ("claude-code", "claude")])
def test_the_name_of_the_client_decides_who_acts(tmp_path: Path, client: str, actor: str, mode: str) -> None:
    root, _ = init_data_dir(tmp_path / ".aof")
    variables = environment(Path(root), "claude") | {"AOF_ACTOR_BY_CLIENT": "copilot=copilot"}
    command, *begun = warm()
    transport = stdio_client(StdioServerParameters(command=command, args=[*begun, "aof", "mcp"], env=variables))
    with start_blocking_portal() as portal:
        asking = Client(transport, mode=mode, client_info=Implementation(name=client, version="1"))
        session: AbstractContextManager[Client] = portal.wrap_async_context_manager(asking)
        with session as connected:
            given = {"title": "Add refresh endpoint", "brief": "POST /auth/refresh"}
            answer = portal.call(connected.call_tool, "aof_dispatch", given)
            assert not answer.is_error
    with open_fabric(root) as fabric:
        assert {event.actor for event in fabric.events() if event.type == "task.created"} == {actor}


def test_actors_are_named_by_a_part_of_the_clients_name() -> None:
    assert actors_by_client("copilot=copilot, Claude=ada") == {"copilot": "copilot", "claude": "ada"}
    assert actors_by_client("") == {}


@pytest.mark.parametrize("given", ["copilot", "=ada", "copilot=", "copilot=a b\n"])
def test_actors_that_cannot_be_understood_are_refused(given: str) -> None:
    with pytest.raises(InvalidInput):
        actors_by_client(given)
