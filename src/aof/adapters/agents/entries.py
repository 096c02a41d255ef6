"""How each client writes down our server: every one has its own words for the same few facts.

A server is started by the client, or has an address and wants a token. The token itself is never written: the settings
name the variable that holds it, or leave a gap where the client cannot read variables. Must not know files.
"""

from __future__ import annotations

from collections.abc import Callable
from posixpath import join
from typing import Any

import msgspec

ACTOR = "AOF_ACTOR"
BY_CLIENT = "AOF_ACTOR_BY_CLIENT"
TOKEN = "AOF_TOKEN"  # noqa: S105 - the name of the variable
GAP = "<token>"
_DESCRIPTION = "Tasks of this project's agents"
_STARTED = ["mcp", "--tools", "worker"]  # how our commands end; those of earlier versions end with `mcp`
_WORKSPACE = "${workspaceFolder}"
_SECONDS = 300  # that goose waits for an answer
Entry = dict[str, Any]


class Server(msgspec.Struct, frozen=True):
    """What a client is to use: a command that it starts, or an address."""

    command: tuple[str, ...] = ()
    url: str | None = None


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A client's words: `started` takes name, command and environment, `remote` takes name and address.

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


def _opencode(_name: str, command: tuple[str, ...], environment: dict[str, str]) -> Entry:
    return {"type": "local", "command": list(command), "environment": environment}


def _cline(name: str, command: tuple[str, ...], environment: dict[str, str]) -> Entry:
    return {"transport": {"type": "stdio", **_plain(name, command, environment)}}


def _goose(name: str, command: tuple[str, ...], environment: dict[str, str]) -> Entry:
    return _extension("stdio", name, cmd=command[0], args=list(command[1:]), envs=environment, env_keys=[])


def _goose_remote(name: str, url: str) -> Entry:
    headers = _bearer(f"${{{TOKEN}}}")
    return _extension("streamable_http", name, uri=url, headers=headers, envs={}, env_keys=[TOKEN])


def _extension(kind: str, name: str, **more: Any) -> Entry:
    return {"enabled": True, "type": kind, "name": name, "description": _DESCRIPTION, **more, "timeout": _SECONDS}


CLAUDE = Form(started=_typed("stdio"), remote=_at("url", f"${{{TOKEN}}}", type="http"))
CODEX = Form(started=_plain, remote=lambda _name, url: {"url": url, "bearer_token_env_var": TOKEN})
CURSOR = Form(started=_in_workspace, remote=_at("url", f"${{env:{TOKEN}}}"))
GEMINI = Form(started=_plain, remote=_at("url", f"${{{TOKEN}}}", type="http"))
OPENCODE = Form(started=_opencode, remote=_at("url", f"{{env:{TOKEN}}}", type="remote"))
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
    started=_cline,
    remote=lambda name, url: {"transport": _at("url", GAP, type="streamableHttp")(name, url)},
    gap=True,
)
KIRO = Form(started=_plain, remote=_at("url", f"${{{TOKEN}}}"))
GOOSE = Form(started=_goose, remote=_goose_remote)
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


def is_ours(entry: object, form: Form) -> bool:
    """Whether we have written an entry, even if somebody has changed it since; those of people name no actor."""
    server = _server(entry)
    if ACTOR in environment_of(entry) or server.get("bearer_token_env_var") == TOKEN:
        return True
    headers = server.get("headers")
    shown = headers.get("Authorization") if isinstance(headers, dict) else None
    return isinstance(shown, str) and (TOKEN in shown or (form.gap and shown.startswith("Bearer ")))


def is_untouched(entry: object, form: Form) -> bool:
    """Whether an entry of ours is as some version of AOF has written it, apart from where things are."""
    if not isinstance(entry, dict) or not is_ours(entry, form):
        return False
    words = words_of(entry)
    likely = form.entry("aof", Server(tuple(words) or ("aof", "mcp"), None if words else "-"), {})
    return entry.keys() <= likely.keys() and (not words or words[-1] == "mcp" or words[-3:] == _STARTED)
