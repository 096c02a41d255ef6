"""What the tools declare, and what the server may leave out because they declare nothing else."""

from __future__ import annotations

import json

from aof.api.catalogue import TIERS
from aof.surfaces.mcp.tools import tools


def test_no_tool_wants_an_argument_repeated_in_a_header() -> None:
    listed = tools(TIERS)
    assert listed
    assert not [tool.name for tool in listed if "x-mcp-header" in json.dumps(tool.input_schema)]


def test_what_one_client_does_to_a_list_of_tools_is_not_seen_by_the_next() -> None:
    for tool in tools(TIERS):
        tool.input_schema["properties"] = {}
    assert all(tool.input_schema["properties"] for tool in tools(("core",)))
