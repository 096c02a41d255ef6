"""What `aof init` writes for a client is what the client itself writes, and the client finds the server in it.

The clients run without a network, in a home of their own. They are large, so only the full run installs them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aof.service.agents.clients import ACTOR, Server, kind_named
from tests.interop.node import NODE, installed
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode != 0
        if shutil.which("unshare")
        else True,
        reason="the clients must not reach a network, and nothing here can take it from them",
    ),
]
URL = "http://127.0.0.1:8420/mcp"
VALUE = f"{ACTOR}="


class Client(NamedTuple):
    """A client on npm: how it adds servers, where it then keeps them, and how it lists those of a project."""

    package: str
    command: str
    add: tuple[str, ...]
    add_remote: tuple[str, ...]
    keeps: str
    lists: tuple[str, ...] = ("mcp", "list")
    trust: tuple[str, Callable[[str], str]] | None = None
    scripts: bool = False
    approve: tuple[str, ...] = ()


_HEADER = "Authorization: Bearer x"
_APPROVED = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["aof"]}
CLIENTS = {
    "claude": Client(
        "@anthropic-ai/claude-code@2.1.326",
        "claude",
        ("mcp", "add", "-s", "project", "aof", "-e", f"{VALUE}claude", "--", "aof", "mcp"),
        ("mcp", "add", "-s", "project", "--transport", "http", "aof", URL, "-H", _HEADER),
        "project/.mcp.json",
        trust=(".claude.json", lambda project: json.dumps({"projects": {project: _APPROVED}})),
        scripts=True,
    ),
    "codex": Client(
        "@openai/codex@0.169.0",
        "codex",
        ("mcp", "add", "aof", "--env", f"{VALUE}codex", "--", "aof", "mcp"),
        ("mcp", "add", "aof", "--url", URL, "--bearer-token-env-var", "AOF_TOKEN"),
        "home/.codex/config.toml",
        trust=(".codex/config.toml", lambda project: f'[projects."{project}"]\ntrust_level = "trusted"\n'),
    ),
    "gemini": Client(
        "@google/gemini-cli@0.61.0",
        "gemini",
        ("mcp", "add", "-s", "project", "-e", f"{VALUE}gemini", "aof", "aof", "mcp"),
        ("mcp", "add", "-s", "project", "-t", "http", "-H", _HEADER, "aof", URL),
        "project/.gemini/settings.json",
        trust=(".gemini/trustedFolders.json", lambda project: json.dumps({project: "TRUST_FOLDER"})),
    ),
    "qwen": Client(
        "@qwen-code/qwen-code@0.24.4",
        "qwen",
        ("mcp", "add", "-s", "project", "-e", f"{VALUE}qwen", "aof", "aof", "mcp"),
        ("mcp", "add", "-s", "project", "-t", "http", "-H", _HEADER, "aof", URL),
        "project/.qwen/settings.json",
        approve=("mcp", "approve", "aof"),
    ),
    "opencode": Client(
        "opencode-ai@1.18.33",
        "opencode",
        ("mcp", "add", "aof", "--env", f"{VALUE}opencode", "--", "aof", "mcp"),
        ("mcp", "add", "aof", "--url", URL, "--header", "Authorization=Bearer x"),
        "home/.config/opencode/opencode.jsonc",
        scripts=True,
    ),
    "amp": Client(
        "@sourcegraph/amp@0.0.1790142911-g7618fb",
        "amp",
        ("mcp", "add", "aof", "--workspace", "--env", f"{VALUE}amp", "--", "aof", "mcp"),
        ("mcp", "add", "aof", "--workspace", "--header", "Authorization=Bearer x", URL),
        "project/.amp/settings.json",
        scripts=True,
    ),
    "copilot": Client(
        "@github/copilot@1.0.102",
        "copilot",
        ("mcp", "add", "aof", "--env", f"{VALUE}copilot", "--", "aof", "mcp"),
        ("mcp", "add", "aof", "--transport", "http", "--header", _HEADER, URL),
        "home/.copilot/mcp-config.json",
        trust=(".copilot/config.json", lambda project: json.dumps({"trustedFolders": [project]})),
    ),
}


class Room:
    """A project, and a home that is nobody's."""

    def __init__(self, folder: Path, client: Client) -> None:
        self.project, self.home = folder / "project", folder / "home"
        for path in (self.project, self.home):
            path.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", "."], cwd=self.project, check=True, timeout=60)
        self._client = installed(client.package, scripts=client.scripts) / "node_modules" / ".bin" / client.command
        if client.trust is not None:
            trusted, text = self.home / client.trust[0], client.trust[1]
            trusted.parent.mkdir(parents=True, exist_ok=True)
            trusted.write_text(text(str(self.project)))

    def run(self, *words: str) -> str:
        """What the client says; it has no network."""
        return self._ended("unshare", "-rn", str(self._client), *words)

    def init(self, name: str, *words: str) -> None:
        """`aof init` for this client."""
        self._ended(sys.executable, "-m", "aof", "init", "--agent", name, *words)

    def _ended(self, *words: str) -> str:
        found = f"{Path(sys.executable).parent}:{Path(NODE).parent}:{os.environ['PATH']}"
        seen = {"PATH": found, "HOME": str(self.home), "TERM": "dumb"}
        done = subprocess.run(
            words, cwd=self.project, env=seen, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout + done.stderr


def _entry(path: Path, servers: str) -> Any:
    text = path.read_text()
    settings = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    return settings[servers]["aof"]


def _unsigned(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without the token: each side has its own."""
    return entry | ({"headers": sorted(entry["headers"])} if "headers" in entry else {})


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_writes_the_same_as_we_do(tmp_path: Path, name: str) -> None:
    client, kind = CLIENTS[name], kind_named(name)
    assert kind is not None
    assert kind.settings is not None
    form, servers = kind.settings.form, kind.settings.servers
    started, remote = Room(tmp_path / "started", client), Room(tmp_path / "remote", client)
    started.run(*client.add)
    ours = form.entry("aof", Server(("aof", "mcp")), {ACTOR: name})
    assert _entry(tmp_path / "started" / client.keeps, servers) == ours
    remote.run(*client.add_remote)
    theirs = _entry(tmp_path / "remote" / client.keeps, servers)
    assert _unsigned(theirs) == _unsigned(form.entry("aof", Server(url=URL), {}))


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("words", [(), ("--http", URL)])
def test_a_client_finds_the_server_that_we_wrote(tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    client = CLIENTS[name]
    room = Room(tmp_path, client)
    room.init(name, *words)
    assert "aof" in room.run(*client.lists)


@pytest.mark.parametrize("name", ["claude", "gemini", "qwen", "opencode"])
def test_a_client_that_tries_its_servers_is_connected(tmp_path: Path, name: str) -> None:
    client = CLIENTS[name]
    room = Room(tmp_path, client)
    room.init(name)
    if client.approve:
        room.run(*client.approve)

    def is_connected() -> bool:
        """Clients give up after seconds, and a busy machine may need more to start a server."""
        return "connected" in room.run(*client.lists).lower().replace("disconnected", "")

    eventually(is_connected, "connection")
