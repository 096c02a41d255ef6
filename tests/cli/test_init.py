"""What `aof init` writes, and the skill that it gives to agents."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.service.agents.clients import KINDS
from aof.service.agents.edits import skill
from tests.support.command_line import Aof

# --- `aof init` connects the agents of a project, shows it first, and takes it away again


MINE = {
    "CLAUDE.md": "# Mine\n\nBe kind.",
    ".mcp.json": '{\n  // my own\n  "mcpServers": {\n    "github": {"command": "gh"}\n  }\n}\n',
    ".codex/config.toml": '# my model\nmodel = "o9"\n\n[mcp_servers.github]\ncommand = "gh"\n',
    ".cursor/mcp.json": '{"mcpServers":{}, "x":1}',
    "AGENTS.md": "# Agents\r\n\r\nBe kind.\r\n",
}

SKILLS = (".agents/skills/aof/SKILL.md", ".claude/skills/aof/SKILL.md")


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
    assert {one["path"] for one in written["agents"]} == {one["path"] for one in shown["agents"]}
    assert {one["path"] for one in written["agents"]} == {*MINE, ".claude/settings.json", *SKILLS}
    assert {one["action"] for one in written["agents"]} == {"change", "create"}

    settings = tomllib.loads((tmp_path / ".codex/config.toml").read_text())
    assert settings["mcp_servers"]["aof"]["args"][-3:] == ["mcp", "--tools", "worker"]
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
        (".claude/settings.json", "create"), *((skill, "create") for skill in SKILLS),
    }  # fmt: skip
    server = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["aof"]
    assert server["args"][-3:] == ["mcp", "--tools", "worker"]
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
    assert "there is no kind of agent 'klaude'" in said.err
    assert "agent: one of claude, codex, cursor, gemini, opencode" in said.err
    assert not (tmp_path / "new").exists()


def test_the_help_names_every_kind(aof: Aof) -> None:
    told = aof("init", "--help").out
    assert "claude-code" in told
    assert [kind.name for kind in KINDS if kind.name not in told] == []


def test_init_says_what_the_client_will_ask(aof: Aof) -> None:
    said = aof("init", "--agent", "claude", "--agent", "amp")
    assert "next: Claude Code asks at its next start whether you trust the folder and approve the server" in said.out
    assert "next: Amp waits until you approve the server: amp mcp approve aof" in said.out
    again = aof("init", "--agent", "claude", "--agent", "amp").out
    assert "next:" not in again
    assert again.endswith("claude, amp: connected already\n")


@pytest.mark.usefixtures("no_mcp")
def test_without_the_mcp_library_no_client_is_connected_to_a_command_that_would_fail(aof: Aof, tmp_path: Path) -> None:
    said = aof("--data-dir", "new", "init", "--agent", "claude")
    assert (said.code, "mcp is not installed" in said.err) == (1, True)
    assert "install it with: " in said.err
    assert {path.name for path in tmp_path.iterdir()} == {".aof"}
    assert aof("init", "--agent", "generic").code == 0
    assert aof("init", "--agent", "claude", "--http", "http://127.0.0.1:8420").code == 0
    assert aof("init", "--remove").code == 0


@pytest.fixture
def no_mcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aof.service.agents.connect.find_spec", lambda _name: None)


def test_over_http_clients_get_the_address_and_the_variable_with_the_token(aof: Aof, tmp_path: Path) -> None:
    said = aof("init", "--agent", "claude", "--agent", "codex", "--http", "http://127.0.0.1:8420", "--json")
    server = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["aof"]
    assert server["url"] == "http://127.0.0.1:8420/mcp"
    assert server["headers"] == {"Authorization": "Bearer ${AOF_TOKEN}"}
    codex = tomllib.loads((tmp_path / ".codex/config.toml").read_text())["mcp_servers"]["aof"]
    assert codex == {"url": "http://127.0.0.1:8420/mcp", "bearer_token_env_var": "AOF_TOKEN"}
    assert not (tmp_path / ".claude").exists()
    assert any("aof admin token create codex" in step for step in said.data["next"])
    aof("init", "--remove")
    assert {path.name for path in tmp_path.iterdir()} == {".aof"}


def test_over_http_no_data_directory_is_made_here(aof: Aof, tmp_path: Path) -> None:
    assert aof("--data-dir", "new/.aof", "init", "--agent", "generic", "--http", "https://aof.example.org").code == 0
    assert not (tmp_path / "new/.aof").exists()


@pytest.mark.parametrize(
    "address",
    [
        "8420", "ftp://127.0.0.1/mcp", "http://", "http://aof.example.org", "http://127.0.0.1:99999999",
        "http://u:p@127.0.0.1/", 'http://127.0.0.1/"x', "http://127.0.0.1/\x1b[2J", "http://127.0.0.1/?a=b",
        "http://[::1", "http://127.0.0.1/" + "a" * 3000, "http://127.0.0.1/${HOME}",
    ],
)  # fmt: skip
def test_an_address_that_would_not_do_is_refused_and_nothing_is_written(aof: Aof, tmp_path: Path, address: str) -> None:
    said = aof("init", "--agent", "claude", "--http", address)
    assert said.code == 2
    assert "\x1b" not in said.err
    assert {path.name for path in tmp_path.iterdir()} == {".aof"}


def test_remove_takes_no_address(aof: Aof) -> None:
    assert aof("init", "--remove", "--http", "http://127.0.0.1:8420").code == 2


def test_remove_without_an_agent_removes_everything_in_any_terminal(aof: Aof, tmp_path: Path, home: Path) -> None:
    _write(tmp_path)
    before = _files(tmp_path)
    every = [word for kind in KINDS for word in ("--agent", kind.name)]
    assert aof("init", *every).code == 0
    assert _files(home) != {}
    said = aof("init", "--remove", "--json")
    assert (said.code, said.data["dryRun"]) == (0, False)
    assert _files(tmp_path) == before
    assert _files(home) == {}
    assert "nothing that was written for agents is here" in aof("init", "--remove").out


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_an_entry_that_somebody_changed_is_removed_and_shown(aof: Aof, tmp_path: Path) -> None:
    aof("init", "--agent", "claude")
    path = tmp_path / ".mcp.json"
    settings = json.loads(path.read_text())
    settings["mcpServers"]["aof"]["args"] += ["--tools", "all"]
    settings["mcpServers"]["github"] = {"command": "gh"}
    path.write_text(json.dumps(settings, indent=4))

    kept = path.read_text()
    aof("init", "--agent", "claude")
    assert path.read_text() == kept

    said = aof("init", "--remove")
    assert ".mcp.json: changed, although somebody had edited it:" in said.out
    assert '"--tools"' in said.out
    assert json.loads(path.read_text()) == {"mcpServers": {"github": {"command": "gh"}}}


def test_a_run_may_not_change_the_settings_of_agents(aof: Aof, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOF_RUN_SECRET", "x/y/z")
    assert aof("init", "--remove").code == 1


_OF_A_MACHINE = re.compile(r"/(home|root|tmp|usr|opt|srv|Users|work)/|python")
_OF_A_TASK = re.compile(r"(TASK|RUN|MSG)-\d|aof_[0-9a-f]{8}_")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("place", [".aof", "sub/data", "../{name}-elsewhere/data"])
@pytest.mark.parametrize("path", ["with", "without"])
def test_what_goes_into_a_project_suits_every_machine_and_names_no_task(
    aof: Aof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, path: str
) -> None:
    (tmp_path / "bin").mkdir()
    if path == "with":
        (tmp_path / "bin/aof").write_text("")
        (tmp_path / "bin/aof").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    root = tmp_path / place.format(name=tmp_path.name)
    every = [word for kind in KINDS for word in ("--agent", kind.name)]
    said = aof("--data-dir", str(root), "init", *every, "--json")
    written = {one["path"] for one in said.data["agents"] if not one["path"].startswith("~")}
    assert len(written) > len(KINDS)
    for name in written:
        text = (tmp_path / name).read_text()
        for known in (str(tmp_path), str(Path.home()), sys.prefix, os.uname().nodename, str(root)):
            assert known not in text, name
        assert _OF_A_MACHINE.search(text) is None, name
        assert _OF_A_TASK.search(text) is None, name
    steps = " ".join(said.data["next"])
    assert ("aof is not on the PATH" in steps) == (path == "without")
    assert (f"AOF_DATA_DIR={root.resolve()}" in steps) == place.startswith("..")
    server = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["aof"]
    assert server["command"] == "aof"
    assert ("sub/data" in server["args"]) == (place == "sub/data")


def test_in_a_worktree_the_files_are_the_worktrees_and_find_the_data_that_all_share(
    aof: Aof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (
        ("init", "-q"),
        ("add", "-A"),
        (*who, "commit", "-qm", "x", "--no-verify"),
        ("worktree", "add", "-q", "side"),
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
    worktree = tmp_path / "side"
    monkeypatch.chdir(worktree)
    aof("init", "--agent", "claude", "--agent", "cursor")
    assert not (tmp_path / ".mcp.json").exists()
    assert "--data-dir" not in (worktree / ".mcp.json").read_text()
    words = json.loads((worktree / ".cursor/mcp.json").read_text())["mcpServers"]["aof"]["args"]
    placed = [word.replace("${workspaceFolder}", str(worktree)) for word in words[: words.index("mcp")]]
    assert "TASK-" in aof(*placed, "create", "Seen by all").out
    assert "Seen by all" in aof("list").out
    monkeypatch.chdir(tmp_path)
    assert "Seen by all" in aof("list").out


def test_agents_are_found_by_their_files_and_by_installed_commands(
    aof: Aof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "CLAUDE.md").write_text("# Mine\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/codex").write_text("")
    (tmp_path / "bin/codex").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    said = aof("init", "--dry-run")
    assert "found Claude Code: CLAUDE.md is here\nfound Codex: the command codex is installed\n" in said.out
    assert ".codex/config.toml: would create" in said.out
    assert len(said.out.splitlines()) < 120
    assert not (tmp_path / ".codex").exists()
    assert aof("init", "--agent", "codex", "--dry-run", "--json").data["found"] == []


def test_a_skill_that_somebody_edited_is_kept_and_named(aof: Aof, tmp_path: Path) -> None:
    aof("init", "--agent", "codex")
    path = tmp_path / ".agents/skills/aof/SKILL.md"
    path.write_text(path.read_text() + "Run the linter first.\n")
    assert ".agents/skills/aof/SKILL.md: kept, as somebody has edited it" in aof("init", "--remove").out
    assert path.exists()


# --- the skill is short and well formed, and every command in it works as it is written


REVIEW = """\
name: review
hops:
  - {id: implement, role: developer}
  - {id: code-review, role: reviewer, dependsOn: [implement], canReject: true}
"""
_MOST = 100  # lines


def test_the_skill_is_short_and_says_when_to_use_it() -> None:
    text = skill()
    head = text.split("---\n")[1]
    assert head.startswith("name: aof\ndescription: ")
    assert "Use it when" in head
    assert len(head) < 1024
    assert len(text.splitlines()) <= _MOST + 2


def _commands() -> list[str]:
    """The commands of the skill, without their comments."""
    blocks = re.findall(r"```sh\n(.*?)```", skill(), re.DOTALL)
    return [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]


class Worker:
    """An agent that has the skill and a shell: it fills in its name, the task and the run that its claim printed."""

    def __init__(self, aof: Aof, name: str) -> None:
        self._aof, self.name = aof, name
        self.task = self.run = self.message = ""
        self.used: set[str] = set()

    def do(self, beginning: str, **changes: str) -> str:
        """Run the one command of the skill that begins so; it must succeed."""
        (command,) = [one for one in _commands() if one.startswith(f"aof {beginning}")]
        self.used.add(command)
        words = command
        for old, new in (changes | {"MESSAGE": self.message, "OTHER": "bob"}).items():
            words = words.replace(old, new)
        for old, new in (("NAME", self.name), ("RUN", self.run), ("ID", self.task)):
            words = re.sub(rf"\b{old}\b", new, words)
        said = self._aof(*shlex.split(words)[1:])
        assert said.code == 0, (words, said.out, said.err)
        if beginning.startswith("claim"):
            self.run = re.findall(r"RUN-\S+", said.out)[0].rstrip(",")
        return said.out


@pytest.fixture
def workers(aof: Aof, tmp_path: Path) -> Callable[[str], Worker]:
    (tmp_path / ".aof/workflows").mkdir(exist_ok=True)
    (tmp_path / ".aof/workflows/review.yaml").write_text(REVIEW)
    return lambda name: Worker(aof, name)


def test_every_command_of_the_skill_works_in_the_order_of_a_workers_days(
    aof: Aof, workers: Callable[[str], Worker]
) -> None:
    ada, bob = workers("ada"), workers("bob")
    aof("create", "Add refresh", "--brief", "A new token.", "--actor", "boss")
    ada.task = bob.task = "001"
    ada.do("prime")
    assert "TASK-" in ada.do("ready")
    ada.do("claim")
    assert "A new token." in ada.do("show")
    ada.do("progress")

    ada.do("ask ID 'Which region?' --choice eu --choice us --wait", **{"--wait 10m": "--wait 0"})
    aof("answer", "001", "eu", "--actor", "boss")
    ada.do("ask ID 'Which region?' --leave")
    aof("answer", "001", "us", "--actor", "boss")
    ada.do("claim")
    assert "us (boss)" in ada.do("show")

    ada.do("create")
    ada.do("release ID --wait-for-children")
    bob.task = "002"
    bob.do("claim")
    bob.do("complete ID --agent NAME --run RUN --text")
    ada.task = "002"
    ada.do("approve")
    ada.task = bob.task = "001"
    ada.do("claim")
    ada.do("complete ID --agent NAME --run RUN --text")
    bob.do("reject")
    ada.do("claim")
    assert "no test for expiry" in ada.do("show")
    ada.do("complete ID --agent NAME --run RUN --text")
    bob.do("approve")

    for ending in ("fail", "release ID --agent", "block"):
        ada.task = re.findall(r"TASK-\S+", aof("create", f"Then {ending}").out)[0]
        ada.do("claim")
        ada.do(ending)

    ada.task = bob.task = re.findall(r"TASK-\S+", aof("create", "Gated", "--workflow", "review").out)[0]
    ada.do("claim")
    ada.do("complete ID --agent NAME --run RUN --text")
    bob.do("claim")
    bob.do("complete ID --agent NAME --run RUN --outcome")
    ada.do("claim")
    assert "no test for expiry" in ada.do("show")
    ada.do("complete ID --agent NAME --run RUN --text")
    bob.do("claim")
    assert "done" in bob.do("complete ID --agent NAME --run RUN --text")

    ada.do("mail send")
    bob.message = re.findall(r"MSG-\S+", bob.do("mail inbox"))[0]
    bob.do("mail ack")
    assert {*_commands()} == ada.used | bob.used
