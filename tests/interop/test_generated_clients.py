"""What others make of the OpenAPI document: linters find no fault, and generated clients create, show and claim."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.node import ended, installed, run
from tests.surfaces.doors import OverHttp, http_door

REDOCLY = "@redocly/cli@2.77.0"
SPECTRAL = "@stoplight/spectral-cli@6.16.3"
TYPES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@24.10.1")
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverHttp]:
    """A server, and a client with a token."""
    with http_door(tmp_path_factory.mktemp("served")) as opened:
        yield opened


@pytest.fixture
def document(door: OverHttp, tmp_path: Path) -> Path:
    """The document as the server gives it, in a file."""
    path = tmp_path / "openapi.json"
    path.write_bytes(door.client.get("/openapi.json").content)
    return path


def _quiet() -> dict[str, str]:
    return dict(os.environ) | {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}


def test_redocly_finds_no_error(document: Path) -> None:
    folder = installed(REDOCLY)
    script = str(folder / "node_modules/@redocly/cli/bin/cli.js")
    done = ended(script, "lint", str(document), "--format=json", cwd=document.parent, env=_quiet())
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert json.loads(done.stdout)["totals"]["errors"] == 0


def test_spectral_finds_no_error(document: Path) -> None:
    folder = installed(SPECTRAL)
    rules = document.with_name("rules.yaml")
    rules.write_text('extends: ["spectral:oas"]\n', encoding="utf-8")
    script = str(folder / "node_modules/@stoplight/spectral-cli/dist/index.js")
    words = ("lint", str(document), "--ruleset", str(rules), "--format", "json", "--fail-severity", "hint")
    done = ended(script, *words, "--quiet", cwd=document.parent)
    found = [one for one in json.loads(done.stdout or "[]") if one["code"] != "info-contact"]  # whom to write to
    assert found == [], found[:5]


def test_the_document_says_where_it_is_served_and_describes_every_protocol(document: Path) -> None:
    said: dict[str, Any] = json.loads(document.read_text())
    assert said["servers"]
    assert {"/mcp", "/a2a/rpc", "/a2a/tasks/{id}", "/.well-known/agent-card.json"} <= said["paths"].keys()
    stream = said["paths"]["/api/v1/events"]["get"]["responses"]["200"]["content"]
    assert list(stream) == ["text/event-stream"]


def test_a_generated_python_client_creates_shows_and_claims(document: Path, door: OverHttp) -> None:
    folder = document.parent
    commands = Path(sys.executable).parent
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"  # it formats what it writes
    made = subprocess.run(
        [commands / "openapi-python-client", "generate", "--path", document, "--meta", "none",
         "--output-path", folder / "generated", "--fail-on-warning"],
        cwd=folder, env=dict(os.environ) | {"PATH": path}, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout[-4000:] + made.stderr[-4000:]
    done = subprocess.run(
        [sys.executable, HERE / "openapi_client.py", *_address(door)],
        env=dict(os.environ) | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    _assert_done(door, json.loads(done.stdout), "From Python")


def test_a_generated_typescript_client_creates_shows_and_claims(document: Path, door: OverHttp) -> None:
    packages = installed(*TYPES)
    folder = document.parent
    (folder / "node_modules").symlink_to(packages / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    run("node_modules/openapi-typescript/bin/cli.js", str(document), "-o", "api.d.ts", cwd=folder)
    shutil.copy(HERE / "openapi_client.ts", folder / "client.ts")
    strict = ("--strict", "--module", "nodenext", "--target", "es2022", "--types", "node")
    run("node_modules/typescript/bin/tsc", *strict, "client.ts", cwd=folder)
    said = json.loads(run("client.js", *_address(door), cwd=folder).stdout)
    _assert_done(door, said, "From TypeScript")
    assert said["commits"][0][0] == 1
    assert said["runId"] == said["claimed"]["runId"]
    assert door.elsewhere.get(said["made"]["taskId"]).metadata["ticket"] == "X-1"


def _address(door: OverHttp) -> tuple[str, str]:
    return str(door.client.base_url).rstrip("/"), door.client.headers["authorization"].removeprefix("Bearer ")


def _assert_done(door: OverHttp, said: dict[str, Any], title: str) -> None:
    task = door.elsewhere.get(said["made"]["taskId"])
    assert (task.title, task.status) == (title, "in-progress")
    assert said["shown"]["title"] == title
    assert task.lease is not None
    assert said["claimed"]["runId"] == task.lease.run_id
    assert said["refused"]["error"]["code"] == "invalid"
