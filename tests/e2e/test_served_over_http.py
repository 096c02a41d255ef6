"""`aof up --http`: agents that pull over the network beside those that the service starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx
import httpx2
from anyio.from_thread import start_blocking_portal
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from aof.api.catalogue import listed_in
from aof.service import serve
from tests.support.service import Up, directory, scripted
from tests.support.warm import warm

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


def _listed(address: str, token: str) -> set[str]:
    """The tools that a client with this token is told about."""
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=_PATIENCE)
    with start_blocking_portal() as portal:
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        with portal.wrap_async_context_manager(Client(transport)) as client:
            return {tool.name for tool in portal.call(client.list_tools).tools}


def test_the_server_lists_the_tools_of_its_tiers_and_of_those_that_a_token_names(tmp_path: Path) -> None:
    root = directory(tmp_path, {})
    usual = serve.create_token(str(root), "pm", None).token
    own = serve.create_token(str(root), "ada", None, tools="mail").token
    for words, tiers in (((), ("core",)), (("--tools", "core,handoff"), ("core", "handoff"))):
        with Up(root, "--http", "0", *words) as up:
            address = _address(up)
            assert _listed(address, usual) == {"aof_help", *(operation.tool for operation in listed_in(tiers))}
            assert _listed(address, own) == {"aof_help", *(operation.tool for operation in listed_in(("mail",)))}
            assert up.end() == 0


def test_tools_without_a_server_and_tools_that_there_are_not_are_refused(tmp_path: Path) -> None:
    root = directory(tmp_path, {})
    for words, said in (
        (("--tools", "all"), "--http 8420"),
        (("--http", "0", "--tools", "most"), "worker, handoff"),
    ):
        done = subprocess.run(
            [*warm(), "aof", "--data-dir", str(root), "up", "--once", *words],
            capture_output=True, text=True, timeout=_PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert said in done.stderr
