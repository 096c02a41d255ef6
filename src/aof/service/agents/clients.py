"""The agents that AOF can connect, as data, and how each writes down our server. A new one is a row of KINDS."""

from __future__ import annotations

from collections.abc import Callable
from posixpath import join
from typing import Any, Literal

import msgspec

ACTOR = "AOF_ACTOR"  # the name of the variable
BY_CLIENT = "AOF_ACTOR_BY_CLIENT"
TOKEN = "AOF_TOKEN"  # noqa: S105 - the name of the variable
GAP = "<token>"
_DESCRIPTION = "Tasks of this project's agents"
_STARTED = ["mcp", "--tools", "worker"]  # how our commands end; those of earlier versions end with `mcp`
_WORKSPACE = "${workspaceFolder}"
_SECONDS = 300  # that goose waits for an answer
_SHARED = ".agents/skills"
_CLAUDES = ".claude/skills"
_EITHER = (_SHARED, _CLAUDES)
_EACH_CALL = "asks before it calls a tool, until you allow the tool for good"
Entry = dict[str, Any]


class Server(msgspec.Struct, frozen=True):
    """What a client is to use: a command that it starts, or an address."""

    command: tuple[str, ...] = ()
    url: str | None = None


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """How a client writes a server: `started` takes name, command and environment, `remote` takes name and address.

    `gap` says that its settings read no variables, so that a person has to put in the token.
    """

    started: Callable[[str, tuple[str, ...], dict[str, str]], Entry]
    remote: Callable[[str, str], Entry]
    gap: bool = False

    def entry(self, name: str, server: Server, environment: dict[str, str]) -> Entry:
        """The server as this client writes it."""
        if server.url is not None:
            return self.remote(name, server.url)
        return self.started(name, server.command, environment)


def _plain(_name: str, command: tuple[str, ...], environment: dict[str, str]) -> Entry:
    return {"command": command[0], "args": list(command[1:]), "env": environment}


def _typed(kind: str, **more: Any) -> Callable[[str, tuple[str, ...], dict[str, str]], Entry]:
    def started(name: str, command: tuple[str, ...], environment: dict[str, str]) -> Entry:
        return {"type": kind, **_plain(name, command, environment), **more}

    return started


def _bearer(variable: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {variable}"}


def _at(key: str, variable: str, **more: str) -> Callable[[str, str], Entry]:
    """An address under a key of the client's choice, with the token in a header."""
    return lambda _name, url: {**more, key: url, "headers": _bearer(variable)}


def _in_workspace(name: str, command: tuple[str, ...], environment: dict[str, str]) -> Entry:
    """Cursor does not promise where it starts a server, but it puts in the project's folder."""
    words = list(command)
    if "--data-dir" in words:
        place = words.index("--data-dir") + 1
        words[place] = join(_WORKSPACE, words[place])
    else:  # from the folder, so that each worktree finds the directory that all of them share
        words[1:1] = ["--data-dir", _WORKSPACE]
    return {"type": "stdio", **_plain(name, tuple(words), environment)}


def _extension(kind: str, name: str, **more: Any) -> Entry:
    return {"enabled": True, "type": kind, "name": name, "description": _DESCRIPTION, **more, "timeout": _SECONDS}


CLAUDE = Form(started=_typed("stdio"), remote=_at("url", f"${{{TOKEN}}}", type="http"))
CODEX = Form(started=_plain, remote=lambda _name, url: {"url": url, "bearer_token_env_var": TOKEN})
CURSOR = Form(started=_in_workspace, remote=_at("url", f"${{env:{TOKEN}}}"))
GEMINI = Form(started=_plain, remote=_at("url", f"${{{TOKEN}}}", type="http"))
OPENCODE = Form(
    started=lambda _name, command, variables: {"type": "local", "command": list(command), "environment": variables},
    remote=_at("url", f"{{env:{TOKEN}}}", type="remote"),
)
COPILOT = Form(
    started=_typed("local", tools=["*"]),
    remote=lambda name, url: {**CLAUDE.remote(name, url), "tools": ["*"]},
)
VSCODE = Form(started=_typed("stdio"), remote=_at("url", f"${{env:{TOKEN}}}", type="http"))
QWEN = Form(started=_plain, remote=_at("httpUrl", f"${{{TOKEN}}}"))
AMP = Form(started=_plain, remote=_at("url", f"${{{TOKEN}}}"))
WINDSURF = Form(started=_plain, remote=_at("serverUrl", f"${{env:{TOKEN}}}"))
ZED = Form(started=_plain, remote=_at("url", GAP), gap=True)
CLINE = Form(
    started=lambda name, command, variables: {"transport": _typed("stdio")(name, command, variables)},
    remote=lambda name, url: {"transport": _at("url", GAP, type="streamableHttp")(name, url)},
    gap=True,
)
KIRO = Form(started=_plain, remote=_at("url", f"${{{TOKEN}}}"))
GOOSE = Form(
    started=lambda name, command, variables: _extension(
        "stdio", name, cmd=command[0], args=list(command[1:]), envs=variables, env_keys=[]
    ),
    remote=lambda name, url: _extension(
        "streamable_http", name, uri=url, headers=_bearer(f"${{{TOKEN}}}"), envs={}, env_keys=[TOKEN]
    ),
)
JETBRAINS = Form(started=_plain, remote=_at("url", GAP), gap=True)


def _server(entry: object) -> dict[str, Any]:
    """The part of an entry that describes the server; nothing where it is none."""
    inner = entry.get("transport", entry) if isinstance(entry, dict) else None
    return inner if isinstance(inner, dict) else {}


def environment_of(entry: object) -> dict[str, Any]:
    """The variables that an entry sets, under whichever name its client has for them."""
    server = _server(entry)
    return next((server[key] for key in ("env", "environment", "envs") if isinstance(server.get(key), dict)), {})


def words_of(entry: object) -> list[str]:
    """The words that an entry's server is started with."""
    server = _server(entry)
    command, args = server.get("command", server.get("cmd")), server.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    return [word for word in words if isinstance(word, str)]


def with_token_of(entry: Entry, there: object) -> Entry:
    """The entry with the token that a person has put into the one that is there, if both lead to the same address."""
    new, old = _server(entry), _server(there)
    if "url" in new and new["url"] == old.get("url") and "headers" in old:
        new["headers"] = old["headers"]
    return entry


def is_our_entry(entry: object, form: Form) -> bool:
    """Whether we have written an entry, even if somebody has changed it since; those of people name no actor."""
    server = _server(entry)
    if ACTOR in environment_of(entry) or server.get("bearer_token_env_var") == TOKEN:
        return True
    headers = server.get("headers")
    shown = headers.get("Authorization") if isinstance(headers, dict) else None
    return isinstance(shown, str) and (TOKEN in shown or (form.gap and shown.startswith("Bearer ")))


def is_untouched_entry(entry: object, form: Form) -> bool:
    """Whether an entry of ours is as some version of AOF has written it, apart from where things are."""
    if not isinstance(entry, dict) or not is_our_entry(entry, form):
        return False
    words = words_of(entry)
    likely = form.entry("aof", Server(tuple(words) or ("aof", "mcp"), None if words else "-"), {})
    return entry.keys() <= likely.keys() and (not words or words[-1] == "mcp" or words[-3:] == _STARTED)


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a client keeps its servers: of `paths` it reads the first that exists; a new file is made at `fresh`.

    A path that begins with `~/` is for all projects of a person. `servers` is the member that holds the servers, `top`
    what a new file has besides.
    """

    paths: tuple[str, ...]
    form: Form
    servers: str = "mcpServers"
    fresh: str = ""
    syntax: Literal["json", "toml", "yaml"] = "json"
    top: dict[str, Any] = {}

    @property
    def new(self) -> str:
        """Where a new file is made."""
        return self.fresh or self.paths[0]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of agent: how it is recognised, where its settings lie, and which file it reads for notes.

    `also` are other names that people try, in small letters and without what stands between their words. `asks` says
    what the client wants from its user before it works. `hooks` is where it keeps commands for a session's start.
    `skills` are the folders that it reads skills from, the best one first. `command` is what its users start it by.
    """

    name: str
    title: str
    also: tuple[str, ...]
    signs: tuple[str, ...]
    notes: str = "AGENTS.md"
    settings: ClientSettings | None = None
    asks: str = ""
    hooks: str | None = None
    skills: tuple[str, ...] = (_SHARED,)
    command: str | None = None


KINDS: tuple[Kind, ...] = (
    Kind(
        name="claude",
        title="Claude Code",
        also=("claudecode", "claudecli"),
        signs=(".claude", "CLAUDE.md", ".mcp.json"),
        notes="CLAUDE.md",
        settings=ClientSettings(paths=(".mcp.json",), form=CLAUDE),
        asks="asks at its next start whether you trust the folder and approve the server 'aof'",
        hooks=".claude/settings.json",
        skills=(_CLAUDES,),
        command="claude",
    ),
    Kind(
        name="codex",
        title="Codex",
        also=("codexcli", "openaicodex"),
        signs=(".codex",),
        settings=ClientSettings(paths=(".codex/config.toml",), form=CODEX, servers="mcp_servers", syntax="toml"),
        asks="reads the project's settings once you trust the folder, which it asks at its start",
        command="codex",
    ),
    Kind(
        name="cursor",
        title="Cursor",
        also=("cursoragent", "cursorcli"),
        signs=(".cursor",),
        settings=ClientSettings(paths=(".cursor/mcp.json",), form=CURSOR),
        asks="lists the server under Settings > MCP, where you enable it; cursor-agent: 'cursor-agent mcp enable aof'",
        skills=_EITHER,
        command="cursor-agent",
    ),
    Kind(
        name="gemini",
        title="Gemini CLI",
        also=("geminicli", "googlegemini"),
        signs=(".gemini", "GEMINI.md"),
        notes="GEMINI.md",
        settings=ClientSettings(paths=(".gemini/settings.json",), form=GEMINI),
        asks="starts servers of trusted folders only, and asks at its start; it also asks before a tool is called",
        command="gemini",
    ),
    Kind(
        name="opencode",
        title="opencode",
        also=("opencodeai", "opencodecli"),
        signs=("opencode.json", "opencode.jsonc", ".opencode"),
        settings=ClientSettings(
            paths=("opencode.json", "opencode.jsonc"),
            form=OPENCODE,
            servers="mcp",
            top={"$schema": "https://opencode.ai/config.json"},
        ),
        asks="starts the server without asking",
        skills=_EITHER,
        command="opencode",
    ),
    Kind(
        name="copilot",
        title="GitHub Copilot CLI",
        also=("copilotcli", "githubcopilot", "ghcopilot", "githubcopilotcli"),
        signs=(".github/copilot-instructions.md", ".github/mcp.json"),
        settings=ClientSettings(paths=(".mcp.json", ".github/mcp.json"), fresh=".github/mcp.json", form=COPILOT),
        asks="reads the project's servers once you trust the folder, which it asks at its start",
        skills=_EITHER,
        command="copilot",
    ),
    Kind(
        name="vscode",
        title="Visual Studio Code",
        also=("code", "visualstudiocode", "vscodecopilot"),
        signs=(".vscode/mcp.json",),
        settings=ClientSettings(paths=(".vscode/mcp.json",), form=VSCODE, servers="servers"),
        asks="asks whether you trust the server when it is started for the first time",
        skills=_EITHER,
    ),
    Kind(
        name="qwen",
        title="Qwen Code",
        also=("qwencode", "qwencli"),
        signs=(".qwen", "QWEN.md"),
        notes="QWEN.md",
        settings=ClientSettings(paths=(".qwen/settings.json",), form=QWEN),
        asks="waits until you approve the server: qwen mcp approve aof",
        command="qwen",
    ),
    Kind(
        name="amp",
        title="Amp",
        also=("ampcode", "ampcli", "sourcegraphamp"),
        signs=(".amp",),
        settings=ClientSettings(paths=(".amp/settings.json",), form=AMP, servers="amp.mcpServers"),
        asks="waits until you approve the server: amp mcp approve aof",
        skills=_EITHER,
        command="amp",
    ),
    Kind(
        name="windsurf",
        title="Windsurf",
        also=("cascade", "codeium"),
        signs=(".windsurf", ".windsurfrules"),
        settings=ClientSettings(paths=("~/.codeium/windsurf/mcp_config.json",), form=WINDSURF),
        asks="loads the server when you press refresh in its MCP panel; its settings are for all projects, so disable "
        "it there where you do not want it",
    ),
    Kind(
        name="zed",
        title="Zed",
        also=("zededitor",),
        signs=(".zed",),
        settings=ClientSettings(paths=(".zed/settings.json",), form=ZED, servers="context_servers"),
        asks="reads the project's settings once you trust it (Restricted Mode in the title bar)",
    ),
    Kind(
        name="cline",
        title="Cline",
        also=("clinecli", "clinebot"),
        signs=(".clinerules", ".cline"),
        settings=ClientSettings(paths=("~/.cline/data/settings/cline_mcp_settings.json",), form=CLINE),
        asks=f"{_EACH_CALL}; its settings are for all projects",
        skills=_EITHER,
    ),
    Kind(
        name="kiro",
        title="Kiro",
        also=("kirocli", "kiroide", "awskiro"),
        signs=(".kiro",),
        settings=ClientSettings(paths=(".kiro/settings/mcp.json",), form=KIRO),
        asks=f"{_EACH_CALL}; with --http also whether the settings may read AOF_TOKEN",
        skills=(".kiro/skills",),
        command="kiro-cli",
    ),
    Kind(
        name="goose",
        title="goose",
        also=("goosecli", "blockgoose"),
        signs=(".goosehints", ".goose"),
        settings=ClientSettings(
            paths=("~/.config/goose/config.yaml",), form=GOOSE, servers="extensions", syntax="yaml"
        ),
        asks="starts the server without asking, in all projects; 'goose configure' switches it off and on",
        skills=_EITHER,
    ),
    Kind(
        name="jetbrains",
        title="JetBrains Junie",
        also=("junie", "juniecli", "intellij", "idea", "pycharm", "webstorm"),
        signs=(".junie",),
        settings=ClientSettings(paths=(".junie/mcp/mcp.json",), form=JETBRAINS),
        asks="asks before it runs a tool, unless its action allowlist has it; AI Assistant takes the same JSON under "
        "Settings > Tools > AI Assistant > MCP",
        skills=(".junie/skills",),
    ),
    Kind(
        name="generic",
        title="any agent that reads AGENTS.md",
        also=("agentsmd", "any", "other"),
        signs=("AGENTS.md",),
    ),
)
_BY_NAME = {name: kind for kind in KINDS for name in (kind.name, *kind.also)}


def kind_named(name: str) -> Kind | None:
    """The kind that a person means: `Claude-Code` and `claude_code` are the same name."""
    return _BY_NAME.get("".join(one for one in name.lower() if one.isalnum()))


def readers_of(path: str) -> tuple[Kind, ...]:
    """The kinds whose settings may be in that file; the first one's words are used in it."""
    return tuple(kind for kind in KINDS if kind.settings is not None and path in kind.settings.paths)
