"""Agents of others' frameworks claim, work and complete, though each of their calls is a session of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.interop.agent_frameworks import FRAMEWORKS
from tests.interop.environment import python_with
from tests.surfaces.doors import environment, http_server, new_token

# Most of them are at home with version 1 of the MCP library; some of their current releases need version 2 of it.
PACKAGES = {
    "mcp-1": (
        "langchain-mcp-adapters>=0.3,<0.4",
        "openai-agents>=0.24,<0.25",
        "fastmcp>=3.4,<4",
        "pydantic-ai-slim[mcp]>=2.66,<3",
        "autogen-ext[mcp]>=0.7.5,<0.8",
        "smolagents[mcp]>=1.26,<2",
        "google-adk[mcp]>=2.13,<3",
        "mcp<2",
    ),
    "mcp-2": ("fastmcp>=4.1,<5", "pydantic-ai-slim[mcp]>=2.66,<3", "openai-agents>=0.24,<0.25", "mcp>=2.3,<3"),
    "crewai": ("crewai>=1.15,<2", "mcp<2"),
}
OVER = ("stdio", "http")
CASES = [
    *(("mcp-1", name, over) for name in FRAMEWORKS if name != "crewai" for over in OVER),
    *(("mcp-2", name, over) for name in ("fastmcp", "pydantic_ai", "openai_agents") for over in OVER),
    # A gigabyte, and over HTTP its own client fails when it disconnects ("no running event loop").
    pytest.param("crewai", "crewai", "stdio", marks=pytest.mark.full),
]
QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
SCRIPT = Path(__file__).with_name("agent_frameworks.py")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fabric, Path, str]]:
    """A data directory, and the address of a server on it."""
    root = Path(init_data_dir(tmp_path_factory.mktemp("frameworks") / ".aof")[0])
    with open_fabric(root, actor="pm") as fabric, http_server(root) as url:
        yield fabric, root, url


def _connection(root: Path, url: str, over: str, agent: str) -> dict[str, Any]:
    if over == "http":
        return {
            "url": f"{url}/mcp",
            "headers": {"Authorization": f"Bearer {new_token(root, agent, 'agent')}", "AOF-Keep": "true"},
        }
    return {"command": sys.executable, "args": ["-m", "aof", "mcp", "--keep"], "env": environment(root, agent)}


@pytest.mark.parametrize(("packages", "framework", "over"), CASES)
def test_an_agent_creates_claims_works_and_completes_in_one_session_per_call(
    served: tuple[Fabric, Path, str], packages: str, framework: str, over: str
) -> None:
    fabric, root, url = served
    python = python_with(packages, *PACKAGES[packages])
    agent = framework.replace("_", "-")
    calls = [
        ("aof_dispatch", {"title": f"By {framework} over {over}", "brief": "All of it.", "review": False}),
        ("aof_task_claim", {"taskId": "$task"}),
        ("aof_task_update", {"taskId": "$task", "note": "half of it"}),
        ("aof_task_show", {"taskId": "$task"}),
        ("aof_task_complete", {"taskId": "$task", "summary": "All of it."}),
    ]
    asked = json.dumps({"to": _connection(root, url, over, agent), "calls": calls})
    done = subprocess.run(
        [python, str(SCRIPT), framework],
        input=asked,
        env=os.environ | QUIET,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    made, claimed, updated, shown, completed = map(json.loads, json.loads(done.stdout.splitlines()[-1]))
    task = made["taskId"]
    assert claimed["kept"]
    assert updated["bodyUpdated"]
    assert shown["lease"]["runId"] == claimed["runId"]
    assert completed == {"taskId": task, "status": "done"}
    assert fabric.get(task).last_run == claimed["runId"]
    assert fabric.get(task).created_by == agent
    assert f"{agent}: half of it" in fabric.get(task).body
