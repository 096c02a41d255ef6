"""While the work of another clone waits to be merged, whoever reads is told so, over HTTP and MCP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import BlockingPortal
from mcp.client.client import Client

from tests.support.clones import Clone, cloned, origin
from tests.surfaces.doors import WHO, http_server, mcp_session, new_token

_SAID = "merge_pending: 2 clones have written, and this shows one of their histories"


@pytest.fixture
def apart(tmp_path: Path) -> Clone:
    """A clone in the middle of a pull, so that no write merges what came with it."""
    first = origin(tmp_path, "one")
    second = cloned(first, "b")
    second.create("of b")
    second.commit()
    first.create("of a")
    first.commit()
    first.pull(second, "--no-commit", "--no-rebase")
    assert (first.path / ".git/MERGE_HEAD").exists()
    return first


def test_http_says_so_in_a_header_until_somebody_merges(apart: Clone) -> None:
    headers = {"Authorization": f"Bearer {new_token(apart.data, WHO, 'admin')}"}
    with http_server(apart.data) as url, httpx.Client(base_url=url, headers=headers, timeout=30) as client:
        for path in ("list", "show?taskId=001", "status"):
            read = client.get(f"/api/v1/{path}")
            assert (read.status_code, read.headers.get("AOF-Warning")) == (200, _SAID)
        written = client.post("/api/v1/create", json={"title": "no", "brief": "no"})
        assert (written.json()["error"]["code"], "AOF-Warning" in written.headers) == ("merge_pending", False)
        assert client.post("/api/v1/merge", json={}).status_code == 200
        read = client.get("/api/v1/list")
        assert (read.status_code, "AOF-Warning" in read.headers) == (200, False)
        assert {task["title"] for task in read.json()["tasks"]} == {"one", "of a", "of b"}


class TestOverMcp:
    """A session on stdio."""

    @pytest.fixture
    def session(self, apart: Clone) -> Iterator[tuple[BlockingPortal, Client]]:
        with mcp_session(apart.data, tools="all") as found:
            yield found

    def test_mcp_says_so_beside_the_result_until_somebody_merges(self, session: tuple[BlockingPortal, Client]) -> None:
        def called(tool: str, arguments: dict[str, Any]) -> Any:
            portal, client = session
            return portal.call(client.call_tool, tool, arguments)

        for tool, arguments in (("aof_status", {}), ("aof_task_show", {"taskId": "001"})):
            read = called(tool, arguments)
            assert not read.is_error
            assert (read.meta or {}).get("aof/warning") == _SAID
            assert "merge_pending" not in read.content[0].text, "the result fits its schema"
        assert not called("aof_merge", {}).is_error
        assert "aof/warning" not in (called("aof_status", {}).meta or {})
