"""Agents of others' frameworks claim, work and complete, though each of their calls is a session of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.app.fabric import Fabric
from aof.entrypoints.bootstrap import init_data_dir, open_fabric
from tests.interop.agent_frameworks import FRAMEWORKS
from tests.interop.environment import python_with
from tests.surfaces.doors import environment, http_server, new_token

PACKAGES = (
    "langchain-mcp-adapters>=0.3,<0.4",
    "openai-agents>=0.24,<0.25",
    "fastmcp>=3.4,<4",
    "pydantic-ai-slim[mcp]>=2.66,<3",
)
SCRIPT = Path(__file__).with_name("agent_frameworks.py")


@pytest.fixture(scope="module")
def python() -> str:
    """The interpreter of the environment that has the frameworks."""
    return python_with("agent-frameworks", *PACKAGES)


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


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_agent_claims_works_and_completes_in_one_session_per_call(
    served: tuple[Fabric, Path, str], python: str, framework: str, over: str
) -> None:
    fabric, root, url = served
    agent = framework.replace("_", "-")
    task = fabric.create(f"By {framework} over {over}", review=False).task_id
    fabric.release(task, run=fabric.claim(task, agent=agent).run_id)  # its name alone would not be enough
    calls = [
        ("aof_task_claim", {"taskId": task}),
        ("aof_task_update", {"taskId": task, "note": "half of it"}),
        ("aof_task_show", {"taskId": task}),
        ("aof_task_complete", {"taskId": task, "summary": "All of it."}),
    ]
    asked = json.dumps({"to": _connection(root, url, over, agent), "calls": calls})
    done = subprocess.run(
        [python, str(SCRIPT), framework], input=asked, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    claimed, updated, shown, completed = map(json.loads, json.loads(done.stdout))
    assert claimed["kept"]
    assert updated["bodyUpdated"]
    assert shown["lease"]["runId"] == claimed["runId"]
    assert completed == {"taskId": task, "status": "done"}
    assert fabric.get(task).last_run == claimed["runId"]
    assert f"{agent}: half of it" in fabric.get(task).body
