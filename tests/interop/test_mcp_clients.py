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

from aof.app.operations.catalogue import BY_TOOL
from aof.entrypoints.bootstrap import init_data_dir
from tests.interop.node import ended, installed, run
from tests.surfaces.doors import OverHttp, environment, http_door, http_server

CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
SDK = "@modelcontextprotocol/sdk@1.32.2"
# Beside the suite that every server of a revision runs: what it asks of our own resources, headers and lists.
MORE = {"2026-07-28": ("sep-2164-resource-not-found", "http-header-validation", "caching")}
# What applies to long work, beside both: the extension for handles, and questions to the client.
LONG_WORK = (
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "input-required-result-unsupported-methods",
)
_ASKS_NOTHING = "no tool, prompt or task of ours asks the client for input, so there is nothing to be answered"
NOT_OURS = {
    "tasks-required-task-error": "no tool of ours needs the extension: others get the plain answer",
    "tasks-status-notifications": "the suite does not check it yet",
    "tasks-mrtr-input": _ASKS_NOTHING,
    "tasks-mrtr-composition": _ASKS_NOTHING,
    **dict.fromkeys(
        (
            f"input-required-result-{name}"
            for name in (
                "basic-elicitation", "basic-sampling", "basic-list-roots", "request-state", "multiple-input-requests",
                "multi-round", "missing-input-response", "non-tool-request", "result-type", "tampered-state",
                "capability-check", "ignore-extra-params", "validate-input",
            )
        ),
        _ASKS_NOTHING,
    ),
}  # fmt: skip
_LATE = "Scenario timed out"
SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
# Its fixtures that say something before they answer. No tool of ours does, so only a streamed answer could carry it.
TALKATIVE = {
    "2025-11-25": ("tools-call-with-logging", "tools-call-with-progress"),
    "2026-07-28": ("tools-call-with-progress",),
}


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
def test_the_conformance_suite_passes(packages: Path, tmp_path: Path, answers: str, revision: str) -> None:
    root, _ = init_data_dir(tmp_path / ".aof")
    cannot = TALKATIVE[revision] if answers == "fixtures" else ()
    expected = tmp_path / "expected.yaml"  # the suite also fails when one of these passes
    expected.write_text(json.dumps({"server": cannot}), encoding="utf-8")
    with http_server(Path(root), answers) as url:
        asked = ("server", "--url", f"{url}/mcp", "--spec-version", revision)
        whole = (SUITE, *asked, "--expected-failures", str(expected))
        done = ended(*whole, cwd=packages)
        if _LATE in done.stdout:  # it goes by the wall clock, which says little on a busy machine: once more
            done = ended(*whole, cwd=packages)
        said = done.stdout
        assert done.returncode == 0, said[-4000:] + done.stderr[-4000:]
        total = re.search(r"Total: (\d+) passed, (\d+) failed", said)
        assert total is not None, said[-2000:]
        assert int(total.group(1)) >= 40
        assert int(total.group(2)) == len(cannot), said[-4000:]
        for scenario in MORE.get(revision, ()):
            said = run(SUITE, *asked, "--scenario", scenario, cwd=packages).stdout
            assert re.search(r"\b0 failed", said), said[-4000:]


def test_long_work_passes_what_the_suite_asks_of_handles(packages: Path, tmp_path: Path) -> None:
    root, _ = init_data_dir(tmp_path / ".aof")
    with http_server(Path(root), "fixtures") as url:
        asked = ("server", "--url", f"{url}/mcp", "--spec-version", "2026-07-28", "--force", "--scenario")
        for scenario in LONG_WORK:
            said = run(SUITE, *asked, scenario, cwd=packages).stdout
            assert re.search(r"Passed: (\d+)/\1, 0 failed, 0 warnings", said), said[-4000:]
        said = run(SUITE, *asked, "tasks-lifecycle", cwd=packages, code=1).stdout
    checks = dict(re.findall(r"\[([a-z0-9-]+) *\] \S*?(SUCCESS|FAILURE)", said))
    failed = {name for name, status in checks.items() if status != "SUCCESS"}
    assert failed == {"sep-2663-tasks-get-status-failed"}, "no task of ours ends by an error of the protocol"
    assert len(checks) == 9


def test_every_scenario_of_the_suite_about_long_work_is_asked_or_has_a_reason(packages: Path) -> None:
    listed = run(SUITE, "list", "--server", cwd=packages).stdout
    about = set(re.findall(r"- ((?:tasks|input-required)-[a-z-]+)", listed))
    assert about == {*LONG_WORK, "tasks-lifecycle", *NOT_OURS}
    assert not set(LONG_WORK) & NOT_OURS.keys()


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


def test_the_typescript_client_takes_every_schema_and_every_answer(http: OverHttp) -> None:
    folder = installed(SDK, "ajv@8.20.0")
    script = folder / "tool_schemas.mjs"
    shutil.copy(Path(__file__).with_name("tool_schemas.mjs"), script)
    task_id = http.elsewhere.create("Something to tell", brief="All of it.").task_id
    http.elsewhere.claim(task_id, agent="ada")
    words = (task_id, sys.executable, "-m", "aof", "mcp", "--tools", "all")
    said: dict[str, Any] = json.loads(run(str(script), *words, cwd=folder, env=environment(http.root)).stdout)
    assert said["wrong"] == {}
    assert set(said["tools"]) == set(BY_TOOL)
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
