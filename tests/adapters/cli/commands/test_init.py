"""`aof init` connects the agents of a project, shows it first, and takes it away again."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.command_line import Aof

MINE = {
    "CLAUDE.md": "# Mine\n\nBe kind.",
    ".mcp.json": '{\n  // my own\n  "mcpServers": {\n    "github": {"command": "gh"}\n  }\n}\n',
    ".codex/config.toml": '# my model\nmodel = "o9"\n\n[mcp_servers.github]\ncommand = "gh"\n',
    ".cursor/mcp.json": '{"mcpServers":{}, "x":1}',
    "AGENTS.md": "# Agents\r\n\r\nBe kind.\r\n",
}


def _write(folder: Path) -> None:
    for name, text in MINE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text.encode())


def _files(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and ".aof" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_what_init_writes_for_named_agents_is_complete_and_can_be_taken_away(aof: Aof, tmp_path: Path) -> None:
    _write(tmp_path)
    before = _files(tmp_path)
    named = ("--agent", "claude", "--agent", "codex", "--agent", "cursor", "--agent", "generic")
    shown = aof("init", *named, "--dry-run", "--json").data
    assert _files(tmp_path) == before
    written = aof("init", *named, "--json").data
    assert {one["path"] for one in written["agents"]} == {one["path"] for one in shown["agents"]} == set(MINE)
    assert {one["action"] for one in written["agents"]} == {"change"}

    settings = tomllib.loads((tmp_path / ".codex/config.toml").read_text())
    assert settings["mcp_servers"]["aof"]["args"][-1] == "mcp"
    assert (settings["model"], settings["mcp_servers"]["github"]) == ("o9", {"command": "gh"})
    cursor = json.loads((tmp_path / ".cursor/mcp.json").read_text())
    assert (cursor["x"], cursor["mcpServers"]["aof"]["env"]) == (1, {"AOF_ACTOR": "cursor"})
    assert "// my own" in (tmp_path / ".mcp.json").read_text()
    for notes in ("CLAUDE.md", "AGENTS.md"):
        assert (tmp_path / notes).read_bytes().startswith(before[notes])
        assert (tmp_path / notes).read_text().count("aof: begin") == 1

    after = _files(tmp_path)
    assert aof("init", *named, "--json").data["agents"] == []
    assert _files(tmp_path) == after
    aof("init", "--remove", *named)
    assert _files(tmp_path) == before


def test_files_that_init_made_are_gone_after_remove(aof: Aof, tmp_path: Path) -> None:
    made = aof("init", "--agent", "claude", "--agent", "codex", "--json").data["agents"]
    assert {(one["path"], one["action"]) for one in made} == {
        (".mcp.json", "create"), ("CLAUDE.md", "create"), (".codex/config.toml", "create"), ("AGENTS.md", "create"),
    }  # fmt: skip
    server = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["aof"]
    assert server["args"][-1] == "mcp"
    aof("init", "--remove", "--agent", "claude", "--agent", "codex")
    assert {path.name for path in tmp_path.iterdir()} == {".aof"}


def test_without_a_terminal_nothing_is_written_for_agents_that_nobody_named(aof: Aof, tmp_path: Path) -> None:
    _write(tmp_path)
    before = _files(tmp_path)
    assert aof("init", "--json").data["agents"] == []
    assert aof("init").code == 0
    assert _files(tmp_path) == before


@pytest.mark.parametrize(
    ("kind", "path", "text"),
    [
        ("codex", ".codex/config.toml", '[mcp_servers.aof]\ncommand = "/opt/aof"\n'),
        ("codex", ".codex/config.toml", '[mcp_servers]\naof = { command = "/opt/aof" }\n'),
        ("codex", ".codex/config.toml", 'mcp_servers.aof.command = "/opt/aof"\n'),
        ("claude", ".mcp.json", '{"mcpServers": {"aof": {"command": "/opt/aof", "args": ["mcp"]}}}'),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"aof": {"url": "http://127.0.0.1:4711/mcp"}}}'),
    ],
)
def test_settings_that_a_person_made_for_aof_stay(aof: Aof, tmp_path: Path, kind: str, path: str, text: str) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(text)
    for words in (("init",), ("init", "--remove")):
        assert aof(*words, "--agent", kind).code == 0
        assert (tmp_path / path).read_text() == text


@pytest.mark.parametrize("text", [b"", b"{}\n", b'{\n  "mcpServers": {}\n}\n', b'{"mcpServers": {/* none */}}'])
def test_settings_that_held_nothing_are_the_same_after_remove(aof: Aof, tmp_path: Path, text: bytes) -> None:
    paths = [tmp_path / name for name in (".mcp.json", "CLAUDE.md", "AGENTS.md", ".codex/config.toml")]
    paths[-1].parent.mkdir()
    for path in paths:
        path.write_bytes(text if path.suffix == ".json" else b"")
    before = _files(tmp_path)
    assert aof("init", "--agent", "claude", "--agent", "codex").code == 0
    assert all(b"aof" in content for content in _files(tmp_path).values())
    assert aof("init", "--remove", "--agent", "claude", "--agent", "codex").code == 0
    assert _files(tmp_path) == before


@pytest.mark.parametrize(
    ("path", "text"),
    [(".mcp.json", "{'a': 1}"), (".mcp.json", '{"a": 1} x'), (".codex/config.toml", "a = [\n"),
     (".codex/config.toml", "mcp_servers = { x = { command = 'y' } }\n")],
)  # fmt: skip
def test_settings_that_cannot_be_understood_are_named_and_nothing_is_written(
    aof: Aof, tmp_path: Path, path: str, text: str
) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(text)
    before = _files(tmp_path)
    refused = aof("init", "--agent", "claude", "--agent", "codex", "--json")
    assert (refused.code, refused.error["code"], path in refused.error["message"]) == (2, "invalid", True)
    assert _files(tmp_path) == before


def test_a_link_out_of_the_project_is_not_followed(aof: Aof, tmp_path: Path) -> None:
    shared = tmp_path.parent / f"{tmp_path.name}-shared.md"
    shared.write_text("# Everybody's\n")
    (tmp_path / "CLAUDE.md").symlink_to(shared)
    refused = aof("init", "--agent", "claude", "--json")
    assert (refused.code, "CLAUDE.md" in refused.error["message"]) == (2, True)
    assert shared.read_text() == "# Everybody's\n"
    assert not (tmp_path / ".mcp.json").exists()


def test_two_names_of_one_file_get_one_block(aof: Aof, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("# Mine\n")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    aof("init", "--agent", "claude", "--agent", "generic")
    assert (tmp_path / "AGENTS.md").read_text().count("aof: begin") == 1
    assert (tmp_path / "CLAUDE.md").is_symlink()


def test_an_unknown_agent_is_refused_with_the_known_ones(aof: Aof, tmp_path: Path) -> None:
    refused = aof("init", "--agent", "clippy", "--json")
    assert (refused.code, "claude" in refused.error["message"]) == (2, True)


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_on_a_terminal_a_person_is_shown_the_changes_and_asked(tmp_path: Path, answer: str, written: bool) -> None:  # noqa: FBT001
    (tmp_path / "CLAUDE.md").write_text("# Mine\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "aof", "init"],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(ours, 4096)
    assert b"CLAUDE.md" in said
    assert (tmp_path / "CLAUDE.md").read_text() == "# Mine\n"
    os.write(ours, answer.encode())
    assert process.wait(timeout=60) == 0
    os.close(ours)
    assert ("aof: begin" in (tmp_path / "CLAUDE.md").read_text()) == written


def test_prime_fits_into_800_tokens_also_with_much_to_do(aof: Aof) -> None:
    for number in range(12):
        aof("create", f"{number} " + "a long title " * 30, "--agent", "ada")
        if number < 6:
            aof("claim", "--agent", "ada")
    text = aof("prime", "--agent", "ada").out
    # Text has about four characters a token; three is on the safe side.
    assert len(text) / 3 < 800
    assert "You hold:" in text
    assert "Ready for you:" in text
    assert aof("prime", "--agent", "ada", "--json").data["text"] == text


@pytest.mark.parametrize(
    ("guess", "settings"),
    [
        ("claude-code", ".mcp.json"),
        ("claude_code", ".mcp.json"),
        ("ClaudeCode", ".mcp.json"),
        ("codex-cli", ".codex/config.toml"),
        ("cursor-agent", ".cursor/mcp.json"),
        ("AGENTS.md", "AGENTS.md"),
    ],
)
def test_an_agent_may_be_called_as_people_call_it(aof: Aof, tmp_path: Path, guess: str, settings: str) -> None:
    written = aof("init", "--agent", guess, "--json").data["agents"]

    assert settings in {one["path"] for one in written}


def test_init_with_an_agent_that_nobody_knows_makes_nothing(aof: Aof, tmp_path: Path) -> None:
    said = aof("--data-dir", "new", "init", "--agent", "klaude")

    assert said.code == 2
    assert "there is no kind of agent 'klaude'; choose one of claude, codex, cursor, generic" in said.err
    assert not (tmp_path / "new").exists()


def test_the_help_says_the_other_names(aof: Aof) -> None:
    assert "claude-code" in aof("init", "--help").out
