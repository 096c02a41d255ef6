"""`aof up --http`: agents that pull over the network beside those that the service starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx

from aof.entrypoints import serve
from tests.support.service import Up, directory, scripted

_PATIENCE = 60.0


def _address(up: Up) -> str:
    return str(up.wait("http")["reason"]).split()[0]


def test_who_has_a_token_creates_work_that_the_service_then_does(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("report=done")})
    token = serve.create_token(str(root), "pm", "agent").token
    with Up(root, "--http", "0") as up:
        address = _address(up)
        assert httpx.get(f"{address}/health", timeout=_PATIENCE).status_code == 200
        assert httpx.post(f"{address}/api/v1/create", json={"title": "x"}, timeout=_PATIENCE).status_code == 401
        made = httpx.post(
            f"{address}/api/v1/create",
            json={"title": "Over the wire", "agent": "ada"},
            headers={"Authorization": f"Bearer {token}"},
            timeout=_PATIENCE,
        )
        assert made.status_code == 200, made.text
        up.wait("session_end", made.json()["taskId"])
        assert up.end() == 0
    shown = subprocess.run(
        [
            sys.executable,
            "-m",
            "aof",
            "--data-dir",
            str(root),
            "show",
            made.json()["taskId"],
            "--json",
        ],
        capture_output=True,
        timeout=_PATIENCE,
        check=True,
    )
    assert json.loads(shown.stdout)["data"]["status"] == "review"
