"""The agents that AOF knows how to connect, as data. A new one is a row here."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from aof.adapters.agents import entries
from aof.adapters.agents.entries import Form

_SHARED = ".agents/skills"
_CLAUDES = ".claude/skills"
_EITHER = (_SHARED, _CLAUDES)
_EACH_CALL = "asks before it calls a tool, until you allow the tool for good"


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
        settings=ClientSettings(paths=(".mcp.json",), form=entries.CLAUDE),
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
        settings=ClientSettings(
            paths=(".codex/config.toml",), form=entries.CODEX, servers="mcp_servers", syntax="toml"
        ),
        asks="reads the project's settings once you trust the folder, which it asks at its start",
        command="codex",
    ),
    Kind(
        name="cursor",
        title="Cursor",
        also=("cursoragent", "cursorcli"),
        signs=(".cursor",),
        settings=ClientSettings(paths=(".cursor/mcp.json",), form=entries.CURSOR),
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
        settings=ClientSettings(paths=(".gemini/settings.json",), form=entries.GEMINI),
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
            form=entries.OPENCODE,
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
        settings=ClientSettings(
            paths=(".mcp.json", ".github/mcp.json"), fresh=".github/mcp.json", form=entries.COPILOT
        ),
        asks="reads the project's servers once you trust the folder, which it asks at its start",
        skills=_EITHER,
        command="copilot",
    ),
    Kind(
        name="vscode",
        title="Visual Studio Code",
        also=("code", "visualstudiocode", "vscodecopilot"),
        signs=(".vscode/mcp.json",),
        settings=ClientSettings(paths=(".vscode/mcp.json",), form=entries.VSCODE, servers="servers"),
        asks="asks whether you trust the server when it is started for the first time",
        skills=_EITHER,
    ),
    Kind(
        name="qwen",
        title="Qwen Code",
        also=("qwencode", "qwencli"),
        signs=(".qwen", "QWEN.md"),
        notes="QWEN.md",
        settings=ClientSettings(paths=(".qwen/settings.json",), form=entries.QWEN),
        asks="waits until you approve the server: qwen mcp approve aof",
        command="qwen",
    ),
    Kind(
        name="amp",
        title="Amp",
        also=("ampcode", "ampcli", "sourcegraphamp"),
        signs=(".amp",),
        settings=ClientSettings(paths=(".amp/settings.json",), form=entries.AMP, servers="amp.mcpServers"),
        asks="waits until you approve the server: amp mcp approve aof",
        skills=_EITHER,
        command="amp",
    ),
    Kind(
        name="windsurf",
        title="Windsurf",
        also=("cascade", "codeium"),
        signs=(".windsurf", ".windsurfrules"),
        settings=ClientSettings(paths=("~/.codeium/windsurf/mcp_config.json",), form=entries.WINDSURF),
        asks="loads the server when you press refresh in its MCP panel; its settings are for all projects, so disable "
        "it there where you do not want it",
    ),
    Kind(
        name="zed",
        title="Zed",
        also=("zededitor",),
        signs=(".zed",),
        settings=ClientSettings(paths=(".zed/settings.json",), form=entries.ZED, servers="context_servers"),
        asks="reads the project's settings once you trust it (Restricted Mode in the title bar)",
    ),
    Kind(
        name="cline",
        title="Cline",
        also=("clinecli", "clinebot"),
        signs=(".clinerules", ".cline"),
        settings=ClientSettings(paths=("~/.cline/data/settings/cline_mcp_settings.json",), form=entries.CLINE),
        asks=f"{_EACH_CALL}; its settings are for all projects",
        skills=_EITHER,
    ),
    Kind(
        name="kiro",
        title="Kiro",
        also=("kirocli", "kiroide", "awskiro"),
        signs=(".kiro",),
        settings=ClientSettings(paths=(".kiro/settings/mcp.json",), form=entries.KIRO),
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
            paths=("~/.config/goose/config.yaml",), form=entries.GOOSE, servers="extensions", syntax="yaml"
        ),
        asks="starts the server without asking, in all projects; 'goose configure' switches it off and on",
        skills=_EITHER,
    ),
    Kind(
        name="jetbrains",
        title="JetBrains Junie",
        also=("junie", "juniecli", "intellij", "idea", "pycharm", "webstorm"),
        signs=(".junie",),
        settings=ClientSettings(paths=(".junie/mcp/mcp.json",), form=entries.JETBRAINS),
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
