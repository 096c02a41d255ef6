"""Clients and judges that others have written: the protocol's conformance suite, and the TypeScript SDK."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.api.catalogue import BY_TOOL, OPERATIONS, output_schema
from aof.service.bootstrap import init_data_dir
from tests.interop.node import ended, installed, run
from tests.surfaces.doors import OverHttp, environment, http_door, http_server

CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
SDK = "@modelcontextprotocol/sdk@1.32.2"
CLIENTS = {
    "sdk1": (SDK, "@modelcontextprotocol/client@2.4.0"),
    "sdk2": (SDK, "@modelcontextprotocol/client@2.4.0"),
    "vercel": ("ai@7.0.173", "@ai-sdk/mcp@2.0.99", "@mastra/mcp@2.0.0", "@mastra/core@1.71.0"),
    "mastra": ("ai@7.0.173", "@ai-sdk/mcp@2.0.99", "@mastra/mcp@2.0.0", "@mastra/core@1.71.0"),
}
# What the suite runs beside what it scores, and why we do not pass it.
NOT_OURS = {
    "2025-11-25": {"json-schema-2020-12": "the suite's own reference cannot pass it yet"},
    "2026-07-28": {
        "json-schema-2020-12": "the suite's own reference cannot pass it yet",
        "http-custom-header-server-validation": "no tool of ours wants an argument repeated in a header",
        "tasks-lifecycle": "no task of ours ends by an error of the protocol",
        "tasks-required-task-error": "no tool of ours needs the extension: others get the plain answer",
        "tasks-mrtr-input": "no task of ours asks the client for input",
        "tasks-mrtr-composition": "no task of ours asks the client for input",
    },
}
SCORED = {"2025-11-25": 30, "2026-07-28": 37}
_LATE = "Scenario timed out"
SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"


@pytest.fixture(scope="module")
def packages() -> Path:
    """The folder of both packages."""
    return installed(CONFORMANCE, SDK)


@pytest.fixture
def http(tmp_path: Path) -> Iterator[OverHttp]:
    """A server over HTTP, whose data directory a server on stdio may open as well."""
    with http_door(tmp_path) as door:
        yield door


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("answers", ["fixtures", "streamed"])
def test_every_scenario_that_a_revision_requires_passes(
    packages: Path, tmp_path: Path, answers: str, revision: str
) -> None:
    root, _ = init_data_dir(tmp_path / ".aof")
    with http_server(Path(root), answers) as url:
        whole = (SUITE, "server", "--url", f"{url}/mcp", "--requirements", revision)
        done = ended(*whole, cwd=packages)
        if _LATE in done.stdout:  # it goes by the wall clock, which says little on a busy machine: once more
            done = ended(*whole, cwd=packages)
    said = done.stdout
    assert done.returncode == 0, said[-4000:] + done.stderr[-4000:]
    outcomes = {name: mark for mark, name in re.findall(r"^([✓✗]) ([a-z0-9-]+): \d+ passed", said, re.MULTILINE)}
    unscored = set(
        re.findall(r"^  [✓✗] ([a-z0-9-]+) \((?:extension|pending|added-after-release)\)", said, re.MULTILINE)
    )
    assert len(outcomes.keys() - unscored) == SCORED[revision], said[-4000:]
    assert {name for name, mark in outcomes.items() if mark == "✗"} == NOT_OURS[revision].keys()


def test_the_typescript_client_lists_and_calls_over_stdio_and_http(packages: Path, http: OverHttp) -> None:
    script = packages / "client.mjs"
    shutil.copy(Path(__file__).with_name("client.mjs"), script)
    token = http.client.headers["authorization"].removeprefix("Bearer ")
    over = [
        ("stdio", sys.executable, "-m", "aof", "mcp"),
        ("http", f"{http.client.base_url}/mcp", token),
    ]
    for words in over:
        said: dict[str, Any] = json.loads(run(str(script), *words, cwd=packages, env=environment(http.root)).stdout)
        assert {"aof_dispatch", "aof_status", "aof_task_claim"} <= set(said["tools"])
        assert http.elsewhere.get(said["made"]["taskId"]).title == "From TypeScript"
        assert said["refused"]["isError"]
        assert "hint" in json.loads(said["refused"]["content"][0]["text"])["error"]
        assert "aof://tasks/{id}" in said["templates"]


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_in_javascript_lists_creates_claims_and_completes(http: OverHttp, client: str, over: str) -> None:
    folder = installed(*CLIENTS[client])
    script = folder / "tool_clients.mjs"
    shutil.copy(Path(__file__).with_name("tool_clients.mjs"), script)
    token = http.client.headers["authorization"].removeprefix("Bearer ")
    words = {"stdio": (sys.executable, "-m", "aof", "mcp"), "http": (f"{http.client.base_url}/mcp", token)}[over]
    done = run(str(script), client, over, *words, cwd=folder, env=environment(http.root))
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert {"aof_dispatch", "aof_task_claim", "aof_task_complete"} <= set(said["tools"])
    task = said["made"]["taskId"]
    assert said["completed"] == {"taskId": task, "status": "done"}
    kept = http.elsewhere.get(task)
    assert (kept.title, kept.last_run) == (f"By {client}", said["claimed"]["runId"])


def test_the_typescript_client_takes_every_schema_and_every_answer(http: OverHttp, tmp_path: Path) -> None:
    folder = installed(SDK, "ajv@8.20.0")
    script = folder / "tool_schemas.mjs"
    shutil.copy(Path(__file__).with_name("tool_schemas.mjs"), script)
    task_id = http.elsewhere.create("Something to tell", brief="All of it.").task_id
    http.elsewhere.claim(task_id, agent="ada")
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({operation.tool: output_schema(operation) for operation in OPERATIONS}))
    words = (str(answers), task_id, sys.executable, "-m", "aof", "mcp", "--tools", "all")
    done = run(str(script), *words, cwd=folder, env=environment(http.root))
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["wrong"] == {}
    assert set(said["tools"]) == {*BY_TOOL, "aof_help"}
    assert {"aof_log", "aof_task_show", "aof_status", "aof_snapshot", "aof_handoff_list"} <= set(said["called"])


def test_the_inspector_lists_and_calls_over_stdio_and_http(http: OverHttp) -> None:
    folder = installed("@modelcontextprotocol/inspector@2.12.0")
    seen = [
        word for pair in environment(http.root).items() if pair[0].startswith("AOF_") for word in ("-e", "=".join(pair))
    ]
    over = [
        [*seen, sys.executable, "-m", "aof", "mcp"],
        [f"{http.client.base_url}/mcp", "--transport", "http", "--header",
         f"Authorization: {http.client.headers['authorization']}"],
    ]  # fmt: skip
    for words in over:
        inspector = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        listed = json.loads(run(inspector, "--cli", *words, "--method", "tools/list", cwd=folder).stdout)
        assert "aof_dispatch" in {tool["name"] for tool in listed["tools"]}
        call = ("--method", "tools/call", "--tool-name", "aof_status", "--tool-arg", "compact=true")
        called = json.loads(run(inspector, "--cli", *words, *call, cwd=folder).stdout)
        assert called["structuredContent"]["tasks"] == []
