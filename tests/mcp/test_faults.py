"""A request over MCP that raises what nobody foresaw is answered with a reference, and logged under it."""

from __future__ import annotations

import json
import re
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, TextContent

from aof.api.catalogue import OPERATIONS
from aof.errors import InvalidInput
from aof.surfaces.mcp import server as mcp_server
from aof.surfaces.mcp.tools import fault

REFERENCE = re.compile(r"FAULT-[0-9a-f]{8}")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_fault_in_any_tool_is_an_answer(operation: Any, caplog: pytest.LogCaptureFixture) -> None:
    result = fault(operation, ZeroDivisionError("our insides"))
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, TextContent)
    error = json.loads(content.text)["error"]
    assert REFERENCE.fullmatch(error["details"]["reference"])
    assert "our insides" not in content.text
    assert error["details"]["reference"] in caplog.text


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (ZeroDivisionError("our insides"), INTERNAL_ERROR),
        (InvalidInput("wrong", "right"), INVALID_PARAMS),
        (MCPError(-1, "own"), -1),
    ],
)
def test_a_fault_in_any_other_request_is_an_error_of_the_protocol(raised: Exception, code: int) -> None:
    async def handler(_ctx: Any, _params: Any) -> Any:
        raise raised

    edged: Any = mcp_server._with_errors(handler)
    with pytest.raises(MCPError) as caught:
        anyio.run(edged, None, None)
    assert caught.value.error.code == code
    assert "our insides" not in caught.value.error.message
    if code == INTERNAL_ERROR:
        assert REFERENCE.search(caught.value.error.message)
