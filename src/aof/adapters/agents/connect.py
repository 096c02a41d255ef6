"""Plans and makes the changes that connect a project's agents, or take the connection away again.

A plan is made from what is on the disk and shown before anything is written. Must not know who asked for it.
"""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from contextlib import suppress
from typing import Any, Literal

import msgspec

from aof.adapters.agents.clients import KINDS, NOTES, NOTES_BEGIN, NOTES_END, TOML_MARKS, Kind, kind_named
from aof.adapters.agents.json_edit import member, with_member, without_member
from aof.adapters.agents.marked_block import with_block, without_block
from aof.core.errors.base import InvalidInput
from aof.core.errors.storage import StorageFailed

Action = Literal["create", "change", "delete"]
_SERVER = ("mcpServers", "aof")


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file that would become another; `after` is None when it would go."""

    path: str
    action: Action
    added: str
    after: str | None


def found(project: str) -> tuple[str, ...]:
    """The kinds of agents that have left signs in a project."""
    return tuple(kind.name for kind in KINDS if any(os.path.lexists(f"{project}/{sign}") for sign in kind.signs))


def plan(project: str, names: tuple[str, ...], command: list[str], *, remove: bool = False) -> list[FileChange]:
    """What has to change for these agents; nothing for what is as it should be."""
    texts: dict[str, str | None] = {}
    before: dict[str, str | None] = {}
    for name in names:
        kind = kind_named(name)
        if kind is None:
            there = ", ".join(known.name for known in KINDS)
            raise InvalidInput(
                f"there is no kind of agent {name[:40]!r}; choose one of {there}",
                "'generic' suits every agent that reads AGENTS.md",
            )
        for path in filter(None, (kind.settings, kind.notes)):
            real = _inside(project, path)
            if real not in texts:
                texts[real] = before[real] = _read(real)
            try:
                texts[real] = _next(texts[real], path, kind, command, remove=remove)
            except InvalidInput as error:
                raise InvalidInput(f"{path}: {error.message}", error.hint) from None
    return [
        _change(os.path.relpath(path, os.path.realpath(project)), before[path], after)
        for path, after in texts.items()
        if after != before[path]
    ]


def make(project: str, changes: list[FileChange]) -> None:
    """Make the changes, each file at once."""
    for change in changes:
        path = os.path.join(os.path.realpath(project), change.path)
        try:
            if change.after is None:
                os.unlink(path)
                if os.path.dirname(change.path):
                    with suppress(OSError):  # a folder that others use as well is not empty
                        os.rmdir(os.path.dirname(path))
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            mode = os.stat(path).st_mode & 0o7777 if os.path.exists(path) else 0o644
            handle, new = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".aof-")
            with open(handle, "w", encoding="utf-8", newline="") as file:
                file.write(change.after)
            os.chmod(new, mode)
            os.replace(new, path)
        except OSError as error:
            raise StorageFailed(f"{change.path} cannot be written: {error.strerror}", "look at its rights") from None


def _next(text: str | None, path: str, kind: Kind, command: list[str], *, remove: bool) -> str | None:
    """The file as it should be; None for no file."""
    if path == kind.notes:
        return _notes(text, remove=remove)
    return (_json if kind.form == "json" else _toml)(text, kind, command, remove=remove)


def _notes(text: str | None, *, remove: bool) -> str | None:
    if not remove:
        return with_block(text, NOTES_BEGIN, NOTES, NOTES_END)
    return without_block(text, NOTES_BEGIN, NOTES_END) if text else text


def _json(text: str | None, kind: Kind, command: list[str], *, remove: bool) -> str | None:
    server = _server(kind, command)
    if not text:
        return text if remove else _fresh(server) if text is None else _fresh(server).rstrip()
    there, present = member(text, _SERVER)
    if there and not _is_ours(present, kind):
        return text
    if not remove:
        return with_member(text, _SERVER, server)
    if text.rstrip() == _fresh(present).rstrip():
        return "" if text == text.rstrip() else None
    return without_member(text, _SERVER)


def _fresh(server: dict[str, Any]) -> str:
    return json.dumps({_SERVER[0]: {_SERVER[1]: server}}, indent=2, ensure_ascii=False) + "\n"


def _is_ours(server: Any, kind: Kind) -> bool:
    """Whether we have written these settings; those that a person wrote stay as they are."""
    if not isinstance(server, dict) or server.keys() != {"command", "args", "env"}:
        return False
    args = server["args"]
    return server["env"] == {"AOF_ACTOR": kind.name} and isinstance(args, list) and args[-1:] == ["mcp"]


def _toml(text: str | None, kind: Kind, command: list[str], *, remove: bool) -> str | None:
    begin, end = TOML_MARKS
    own = without_block(text, begin, end) if text else text
    if remove or "aof" in _servers(own or ""):
        return own if remove else text
    server = _server(kind, command)
    environment = ", ".join(f"{name} = {json.dumps(value)}" for name, value in server["env"].items())
    lines = [
        "[mcp_servers.aof]",
        f"command = {json.dumps(server['command'])}",
        f"args = {json.dumps(server['args'])}",
        f"env = {{ {environment} }}",
    ]
    added = with_block(text, begin, "\n".join(lines), end)
    _servers(added)
    return added


def _servers(text: str) -> dict[str, Any]:
    """The servers that Codex would start."""
    try:
        found = tomllib.loads(text.removeprefix("\ufeff")).get("mcp_servers", {})
    except tomllib.TOMLDecodeError as error:
        hint = "correct the file, or add the settings by hand"
        raise InvalidInput(f"the settings are not TOML, or would be none any more: {error}", hint) from None
    return found if isinstance(found, dict) else {}


def _server(kind: Kind, command: list[str]) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:], "env": {"AOF_ACTOR": kind.name}}


def _inside(project: str, path: str) -> str:
    """The file itself, if it is one of the project: what a link shares with others is not ours to change."""
    real, root = os.path.realpath(f"{project}/{path}"), os.path.realpath(project)
    if os.path.commonpath((real, root)) != root:
        raise InvalidInput(f"{path} is a link out of the project", "change what it leads to by hand, or unlink it")
    return real


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", "correct it, or leave this agent out") from None


def _change(path: str, before: str | None, after: str | None) -> FileChange:
    action: Action = "delete" if after is None else "create" if before is None else "change"
    old, new = (before or "").splitlines(), (after or "").splitlines()
    shown = [f"+ {line}" for line in new if line not in old] + [f"- {line}" for line in old if line not in new]
    return FileChange(path=path, action=action, added="\n".join(shown), after=after)
