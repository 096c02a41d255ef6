"""What a call says before it answers: progress and log messages, on stdio and over HTTP, to clients that ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import LoggingMessageNotificationParams

from aof.service.bootstrap import init_data_dir
from tests.surfaces.doors import http_server, mcp_process, new_token


class Heard:
    """What a client was told beside its answers."""

    def __init__(self) -> None:
        self.progress: list[tuple[float, float | None]] = []
        self.logged: list[tuple[str, dict[str, Any]]] = []
        self.media: list[str] = []

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, total))

    async def on_log(self, params: LoggingMessageNotificationParams) -> None:
        self.logged.append((params.level, params.data))

    async def on_response(self, response: httpx2.Response) -> None:
        if response.request.method == "POST" and response.status_code == 200:
            self.media.append(response.headers["content-type"].partition(";")[0])


@asynccontextmanager
async def _client(root: Path, over: str, mode: str, heard: Heard, level: Any) -> AsyncIterator[Client]:
    more: dict[str, Any] = {"mode": mode, "logging_callback": heard.on_log}
    if mode == "auto" and level is not None:
        more["log_level"] = level
    if over == "stdio":
        async with Client(mcp_process(root, actor="ada"), **more) as client:
            yield client
        return
    with http_server(root) as url:
        headers = {"Authorization": f"Bearer {new_token(root, 'ada', 'agent')}"}
        http = httpx2.AsyncClient(headers=headers, event_hooks={"response": [heard.on_response]}, timeout=60)
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http), **more) as client:
            yield client


@pytest.mark.filterwarnings("ignore:.*logging capability is deprecated")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("over", ["stdio", "http"])
def test_progress_and_log_messages_come_before_the_answer_to_clients_that_ask(
    tmp_path: Path, over: str, mode: str
) -> None:
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    heard = Heard()

    async def talk() -> None:
        async with _client(root, over, mode, heard, "warning") as client:
            if mode == "legacy":
                await client.call_tool("aof_status", {})
                assert (heard.progress, heard.logged) == ([], []), "nobody asked yet"
                if over == "http":
                    assert {*heard.media} == {"application/json"}
                await client.set_logging_level("warning")
            waited = await client.call_tool("aof_task_claim", {"wait": 2}, progress_callback=heard.on_progress)
            assert waited.is_error
            await client.call_tool("aof_dispatch", {"title": "x", "brief": "y"})

    anyio.run(talk)
    assert heard.progress[0] == (0, 2)
    assert (1, 2) in heard.progress
    assert [(level, data["tool"], data["code"]) for level, data in heard.logged] == [
        ("warning", "aof_task_claim", "nothing_ready")
    ]
    if over == "http":
        assert "text/event-stream" in heard.media


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_a_client_that_asks_for_nothing_gets_one_document(tmp_path: Path, over: str) -> None:
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    heard = Heard()

    async def talk() -> None:
        async with _client(root, over, "auto", heard, None) as client:
            await client.call_tool("aof_task_claim", {"wait": 1})

    anyio.run(talk)
    assert (heard.progress, heard.logged) == ([], [])
    assert {*heard.media} <= {"application/json"}
