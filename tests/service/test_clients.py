"""Each client gets our server in its own words. The words are what the clients' own `mcp add` and pages have."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ryaml

from aof.errors import InvalidInput
from aof.service.agents.clients import KINDS, Server, kind_named
from aof.service.agents.connect import Workplace, make_changes, plan_connection, plan_removal
from aof.support.hashing import hexdigest
from tests.support.present import present

START = Server(command=("aof", "mcp"))
AFAR = Server(url="https://aof.example.org/mcp")
PLAIN = {"command": "aof", "args": ["mcp"]}
WITH_SETTINGS = [kind.name for kind in KINDS if kind.settings is not None]
SHARED, CLAUDES = ".agents/skills/aof/SKILL.md", ".claude/skills/aof/SKILL.md"
HOME = ("windsurf", "cline", "goose")


def _bearer(variable: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {variable}"}


def _elsewhere(root: str) -> list[str]:
    return ["--data-dir", root, "mcp"]


# kind: file, where in it, started, over HTTP
EXPECTED: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "claude": (
        ".mcp.json", "mcpServers", {"type": "stdio", **PLAIN}, {"type": "http", "headers": _bearer("${AOF_TOKEN}")},
    ),
    "codex": (".codex/config.toml", "mcp_servers", PLAIN, {"bearer_token_env_var": "AOF_TOKEN"}),
    "cursor": (
        ".cursor/mcp.json",
        "mcpServers",
        {"type": "stdio", "command": "aof", "args": ["--data-dir", "${workspaceFolder}", "mcp"]},
        {"headers": _bearer("${env:AOF_TOKEN}")},
    ),
    "gemini": (
        ".gemini/settings.json", "mcpServers", PLAIN, {"type": "http", "headers": _bearer("${AOF_TOKEN}")},
    ),
    "copilot": (
        ".github/mcp.json",
        "mcpServers",
        {"type": "local", **PLAIN, "tools": ["*"]},
        {"type": "http", "headers": _bearer("${AOF_TOKEN}"), "tools": ["*"]},
    ),
    "vscode": (
        ".vscode/mcp.json",
        "servers",
        {"type": "stdio", **PLAIN},
        {"type": "http", "headers": _bearer("${env:AOF_TOKEN}")},
    ),
    "amp": (".amp/settings.json", "amp.mcpServers", PLAIN, {"headers": _bearer("${AOF_TOKEN}")}),
    "zed": (".zed/settings.json", "context_servers", PLAIN, {"headers": _bearer("<token>")}),
    "kiro": (".kiro/settings/mcp.json", "mcpServers", PLAIN, {"headers": _bearer("${AOF_TOKEN}")}),
    "jetbrains": (".junie/mcp/mcp.json", "mcpServers", PLAIN, {"headers": _bearer("<token>")}),
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    for name in ("My Project", "home"):
        (tmp_path / name).mkdir()
    return Workplace(str(tmp_path / "My Project"), str(tmp_path / "home"), str(tmp_path / "My Project" / ".aof"))


def _connect(place: Workplace, *names: str, server: Server = START) -> set[str]:
    changes = plan_connection(place, names, server)
    make_changes(changes)
    return {change.path for change in changes}


def _disconnect(place: Workplace, *names: str) -> set[str]:
    changes = plan_removal(place, names or None)
    make_changes(changes)
    return {change.path for change in changes}


def _files(place: Workplace) -> dict[str, bytes]:
    folders = Path(place.project), Path(place.home)
    return {str(path): path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


def _read(path: Path) -> Any:
    loads: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".yaml": ryaml.loads}
    return loads.get(path.suffix, json.loads)(path.read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_client_gets_its_server_where_it_looks_and_in_its_own_words(place: Workplace, name: str) -> None:
    path, servers, started, afar = EXPECTED[name]
    _connect(place, name)
    assert _read(Path(place.project, path))[servers]["aof"] == {**started, "env": {"AOF_ACTOR": name}}
    _connect(place, name, server=AFAR)
    assert _read(Path(place.project, path))[servers]["aof"] == {**afar, "url": AFAR.url}


def test_opencode_names_command_and_variables_in_its_own_way(place: Workplace) -> None:
    path = Path(place.project, "opencode.json")
    _connect(place, "opencode")
    assert _read(path) == {
        "$schema": "https://opencode.ai/config.json",
        "mcp": {"aof": {"type": "local", "command": ["aof", "mcp"], "environment": {"AOF_ACTOR": "opencode"}}},
    }
    _connect(place, "opencode", server=AFAR)
    headers = _bearer("{env:AOF_TOKEN}")
    assert _read(path)["mcp"]["aof"] == {"type": "remote", "url": AFAR.url, "headers": headers}


def test_opencodes_other_file_is_used_where_it_is_there(place: Workplace) -> None:
    path = Path(place.project, "opencode.jsonc")
    path.write_text('{\n  // mine\n  "model": "x"\n}\n')
    assert _connect(place, "opencode") == {"opencode.jsonc", "AGENTS.md", SHARED}
    assert "// mine" in path.read_text()


def test_qwen_has_its_own_key_for_an_address(place: Workplace) -> None:
    _connect(place, "qwen", server=AFAR)
    server = _read(Path(place.project, ".qwen/settings.json"))["mcpServers"]["aof"]
    assert server == {"httpUrl": AFAR.url, "headers": _bearer("${AOF_TOKEN}")}


def test_windsurf_cline_and_goose_keep_one_file_for_all_projects(place: Workplace) -> None:
    _connect(place, *HOME)
    name, words = "aof-my-project", _elsewhere(place.root)
    windsurf = _read(Path(place.home, ".codeium/windsurf/mcp_config.json"))["mcpServers"]
    assert windsurf == {name: {"command": "aof", "args": words, "env": {"AOF_ACTOR": "windsurf"}}}
    cline = _read(Path(place.home, ".cline/data/settings/cline_mcp_settings.json"))["mcpServers"]
    transport = {"type": "stdio", "command": "aof", "args": words, "env": {"AOF_ACTOR": "cline"}}
    assert cline == {name: {"transport": transport}}
    goose = _read(Path(place.home, ".config/goose/config.yaml"))["extensions"][name]
    assert (goose["type"], goose["enabled"], goose["name"]) == ("stdio", True, name)
    assert (goose["cmd"], goose["args"], goose["envs"]) == ("aof", words, {"AOF_ACTOR": "goose"})

    _connect(place, *HOME, server=AFAR)
    assert _read(Path(place.home, ".codeium/windsurf/mcp_config.json"))["mcpServers"][name]["serverUrl"] == AFAR.url
    cline = _read(Path(place.home, ".cline/data/settings/cline_mcp_settings.json"))["mcpServers"]
    assert cline[name]["transport"]["type"] == "streamableHttp"
    goose = _read(Path(place.home, ".config/goose/config.yaml"))["extensions"][name]
    assert (goose["type"], goose["uri"], goose["env_keys"]) == ("streamable_http", AFAR.url, ["AOF_TOKEN"])
    _disconnect(place)
    assert _files(place) == {}


def test_two_projects_of_one_name_have_a_server_each(place: Workplace, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "My Project"
    other.mkdir(parents=True)
    second = Workplace(str(other), place.home, str(other / ".aof"))
    _connect(place, "windsurf")
    _connect(second, "windsurf")
    path = Path(place.home, ".codeium/windsurf/mcp_config.json")
    roots = [server["args"][1] for server in _read(path)["mcpServers"].values()]
    assert sorted(roots) == sorted([place.root, second.root])
    _disconnect(place)
    assert [server["args"][1] for server in _read(path)["mcpServers"].values()] == [second.root]
    assert _connect(second, "windsurf") == set()
    _disconnect(second)
    assert not path.exists()


@pytest.mark.parametrize("name", [kind.name for kind in KINDS])
@pytest.mark.parametrize("server", [START, AFAR])
def test_what_a_client_gets_is_written_once_and_goes_without_a_trace(
    place: Workplace, name: str, server: Server
) -> None:
    assert _connect(place, name, server=server) != set()
    assert _connect(place, name, server=server) == set()
    _disconnect(place, name)
    assert [*Path(place.project).rglob("*"), *Path(place.home).rglob("*")] == []


def test_clients_that_read_one_file_each_have_their_own_actor(place: Workplace) -> None:
    _connect(place, "copilot", "claude")
    assert not Path(place.project, ".github").exists()
    assert _environment(place) == {"AOF_ACTOR": "claude", "AOF_ACTOR_BY_CLIENT": "copilot=copilot"}
    _disconnect(place, "claude")
    assert _environment(place) == {"AOF_ACTOR": "copilot"}
    _connect(place, "claude")
    _disconnect(place, "copilot")
    assert _environment(place) == {"AOF_ACTOR": "claude"}


def _environment(place: Workplace) -> Any:
    return _read(Path(place.project, ".mcp.json"))["mcpServers"]["aof"]["env"]


def test_a_client_keeps_its_actor_when_another_brings_the_file_that_it_reads_first(place: Workplace) -> None:
    _connect(place, "copilot")
    assert Path(place.project, ".github/mcp.json").exists()
    _connect(place, "claude")
    assert _environment(place) == {"AOF_ACTOR": "claude", "AOF_ACTOR_BY_CLIENT": "copilot=copilot"}
    _disconnect(place)
    assert _files(place) == {}


def test_an_entry_of_an_earlier_version_is_renewed_where_it_is(place: Workplace) -> None:
    path = Path(place.project, ".mcp.json")
    old = {"command": "/old/aof", "args": ["mcp"], "env": {"AOF_ACTOR": "claude"}}
    path.write_text(json.dumps({"mcpServers": {"x": {}, "aof": old}}))
    _connect(place, "claude")
    assert list(_read(path)["mcpServers"]) == ["x", "aof"]
    assert _read(path)["mcpServers"]["aof"] == {"type": "stdio", **PLAIN, "env": {"AOF_ACTOR": "claude"}}


def test_a_token_that_somebody_put_in_by_hand_is_kept_and_goes_with_the_entry(place: Workplace) -> None:
    path = Path(place.project, ".zed/settings.json")
    _connect(place, "zed", server=AFAR)
    path.write_text(path.read_text().replace("<token>", "aof_0123"))
    assert _connect(place, "zed", server=AFAR) == set()
    assert "aof_0123" not in "".join(change.added for change in plan_removal(place, None))
    assert _disconnect(place) == {".zed/settings.json", "AGENTS.md"}
    assert not path.exists()


def test_notes_stay_until_nobody_needs_them(place: Workplace) -> None:
    path = Path(place.project, "AGENTS.md")
    _connect(place, "codex", "cursor", "generic")
    assert path.read_text().count("aof: begin") == 1
    for name in ("codex", "cursor"):
        _disconnect(place, name)
        assert "aof: begin" in path.read_text()
    _disconnect(place, "generic")
    assert not path.exists()


def test_notes_of_an_earlier_version_stay_while_a_client_is_connected(place: Workplace) -> None:
    path = Path(place.project, "AGENTS.md")
    _connect(place, "codex", "cursor")
    path.write_text(path.read_text().replace("<!-- for codex, cursor -->\n", ""))
    _disconnect(place, "codex")
    assert "<!-- for cursor -->" in path.read_text()
    path.write_text(path.read_text().replace("<!-- for cursor -->\n", ""))
    _disconnect(place, "cursor")
    assert not path.exists()


def test_notes_that_somebody_wrote_into_are_shown_when_they_go(place: Workplace) -> None:
    path = Path(place.project, "AGENTS.md")
    _connect(place, "codex")
    path.write_text(path.read_text().replace("## Tasks", "## Our tasks"))
    (change,) = [one for one in plan_removal(place, None) if one.path == "AGENTS.md"]
    assert change.edited
    assert "- ## Our tasks" in change.added


def test_a_server_that_codex_has_rewritten_without_our_marks_is_found(place: Workplace) -> None:
    path = Path(place.project, ".codex/config.toml")
    path.parent.mkdir()
    rewritten = (
        'model = "o9"\n\n[mcp_servers.aof]\ncommand = "aof"\nargs = ["mcp", "--tools", "all"]\n\n'
        '[mcp_servers.aof.env]\nAOF_ACTOR = "codex"\n\n[mcp_servers.other]\ncommand = "x"\n'
    )
    path.write_text(rewritten)
    assert _connect(place, "codex") == {"AGENTS.md", SHARED}
    assert _disconnect(place) == {".codex/config.toml", "AGENTS.md", SHARED}
    assert path.read_text() == 'model = "o9"\n\n[mcp_servers.other]\ncommand = "x"\n'


def test_settings_that_are_broken_do_not_stop_the_removal_of_others(place: Workplace) -> None:
    _connect(place, "claude")
    for name in (".cursor/mcp.json", ".zed/settings.json"):
        Path(place.project, name).parent.mkdir()
        Path(place.project, name).write_text("{ nonsense")
    assert ".mcp.json" in _disconnect(place)


def test_links_out_of_project_and_home_are_left_alone_by_a_removal(place: Workplace, tmp_path: Path) -> None:
    _connect(place, "cursor")
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "CLAUDE.md").write_text("# Everybody's\n")
    Path(place.project, "CLAUDE.md").symlink_to(shared / "CLAUDE.md")
    Path(place.home, ".config").symlink_to(shared)
    assert _disconnect(place) == {".cursor/mcp.json", "AGENTS.md", SHARED}
    assert (shared / "CLAUDE.md").read_text() == "# Everybody's\n"
    with pytest.raises(InvalidInput, match="link out of your home"):
        _connect(place, "goose")


def test_other_spellings_of_every_kind_are_its_own() -> None:
    names = [name for kind in KINDS for name in (kind.name, *kind.also)]
    assert len(set(names)) == len(names)
    assert present(kind_named("Junie")).name == "jetbrains"


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_every_client_says_what_it_asks(name: str) -> None:
    assert present(kind_named(name)).asks != ""


@pytest.mark.parametrize(
    ("names", "skills"),
    [
        (("claude",), {CLAUDES}),
        (("codex",), {SHARED}),
        (("claude", "codex"), {CLAUDES, SHARED}),
        (("cursor",), {SHARED}),
        (("claude", "cursor", "opencode"), {CLAUDES}),  # they read Claude's folder as well
        (("kiro", "jetbrains"), {".kiro/skills/aof/SKILL.md", ".junie/skills/aof/SKILL.md"}),
    ],
)
def test_each_client_finds_the_skill_and_none_of_them_twice(
    place: Workplace, names: tuple[str, ...], skills: set[str]
) -> None:
    _connect(place, *names)
    assert _skills(place) == skills
    for name in names:
        _connect(place, name)
    assert _skills(place) == skills


def test_the_skill_moves_to_where_the_clients_that_are_left_look(place: Workplace) -> None:
    _connect(place, "cursor")
    assert _skills(place) == {SHARED}
    _connect(place, "claude")
    assert _skills(place) == {CLAUDES}
    _disconnect(place, "cursor")
    assert _skills(place) == {CLAUDES}
    _disconnect(place, "claude")
    assert _skills(place) == set()


def test_a_client_over_http_gets_no_skill_for_a_command_that_would_find_no_data(place: Workplace) -> None:
    _connect(place, "claude", "codex", server=AFAR)
    assert _skills(place) == set()


def test_a_skill_that_somebody_edited_is_theirs(place: Workplace) -> None:
    path = Path(place.project, SHARED)
    _connect(place, "codex")
    mine = path.read_text() + "\nRun the linter first.\n"
    path.write_text(mine)
    assert _connect(place, "codex") == set()
    (kept,) = [one for one in plan_removal(place, None) if one.path == SHARED]
    assert (kept.action, kept.edited) == ("keep", True)
    _disconnect(place)
    assert path.read_text() == mine


def test_a_skill_of_an_earlier_version_is_renewed(place: Workplace) -> None:
    path = Path(place.project, SHARED)
    _connect(place, "codex")
    now = path.read_text()
    earlier = "---\nname: aof\ndescription: Earlier.\n---\n"
    digest = hexdigest(earlier.encode())[:12]
    path.write_text(f"{earlier}\n<!-- aof: {digest}, written by 'aof init', taken away by 'aof init --remove' -->\n")
    assert _connect(place, "codex") == {SHARED}
    assert path.read_text() == now
    path.write_bytes(now.replace("\n", "\r\n").encode())
    _disconnect(place)
    assert not path.exists()


def _skills(place: Workplace) -> set[str]:
    return {path.relative_to(place.project).as_posix() for path in Path(place.project).rglob("SKILL.md")}
