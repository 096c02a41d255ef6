"""Our server in a client's settings, whatever their syntax. Must not know what an entry says."""

from __future__ import annotations

import json
from typing import Any

from aof.adapters.agents import toml_edit, yaml_edit
from aof.adapters.agents.clients import ClientSettings
from aof.adapters.agents.json_edit import member, with_member, without_member


def server_in(settings: ClientSettings, text: str, name: str) -> Any:
    """What the settings say about a server; None for nothing."""
    if settings.syntax == "toml":
        return toml_edit.server_in(text, settings.servers, name)
    if settings.syntax == "yaml":
        return yaml_edit.server_in(text, settings.servers, name)
    there, entry = member(text, (settings.servers, name)) if text else (False, None)
    return {} if there and entry is None else entry  # with comments in it, it is a person's


def with_server(settings: ClientSettings, text: str | None, name: str, entry: dict[str, Any]) -> str:
    """The settings with a server."""
    if settings.syntax == "toml":
        return toml_edit.with_server(text, settings.servers, name, entry)
    if settings.syntax == "yaml":
        return yaml_edit.with_server(text, settings.servers, name, entry)
    if not text:
        fresh = _fresh(settings, name, entry)
        return fresh if text is None else fresh.rstrip()
    return with_member(text, (settings.servers, name), entry)


def without_server(settings: ClientSettings, text: str, name: str, entry: dict[str, Any]) -> str | None:
    """The settings as they were before; None for no file at all."""
    if settings.syntax == "toml":
        return toml_edit.without_server(text, settings.servers, name)
    if settings.syntax == "yaml":
        return yaml_edit.without_server(text, settings.servers, name) or None
    if text.rstrip() == _fresh(settings, name, entry).rstrip():
        return "" if text == text.rstrip() else None
    return without_member(text, (settings.servers, name))


def _fresh(settings: ClientSettings, name: str, entry: dict[str, Any]) -> str:
    return json.dumps({**settings.top, settings.servers: {name: entry}}, indent=2, ensure_ascii=False) + "\n"
