"""A server in a client's TOML settings, as a marked block: put there, and taken away whoever has moved it.

Clients that rewrite their settings may drop the marks, so the tables are found without them, too. Must not know who
reads them.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from aof.adapters.agents.marked_block import with_block, without_block
from aof.core.errors.base import InvalidInput

BEGIN, END = "# aof: begin (written by 'aof init', taken away by 'aof init --remove')", "# aof: end"
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def server_in(text: str, servers: str, name: str) -> Any:
    """The settings of a server; None for those that there are not."""
    return _servers(text, servers).get(name)


def with_server(text: str | None, servers: str, name: str, entry: dict[str, Any]) -> str:
    """The text with a server in a block of its own; one that a person has written outside of it stays."""
    own = without_block(text, BEGIN, END) if text else text
    if text and name in _servers(own or "", servers):
        return text
    lines = [f"[{servers}.{name}]", *(f"{key} = {_value(value)}" for key, value in entry.items())]
    added = with_block(text, BEGIN, "\n".join(lines), END)
    _servers(added, servers)
    return added


def without_server(text: str, servers: str, name: str) -> str | None:
    """The text as it was before; None for no file at all."""
    own = without_block(text, BEGIN, END)
    if own is None or name not in _servers(own, servers):
        return own
    kept, wanted = own, _parsed(own)
    del wanted[servers][name]
    header = re.compile(
        rf"^[ \t]*\[{re.escape(servers)}\.{re.escape(name)}(?:\.[^\]]+)?\][ \t]*(?:#.*)?\r?$", re.MULTILINE
    )
    while found := header.search(kept):
        after = _TABLE.search(kept, found.end())
        kept = kept[: found.start()] + (kept[after.start() :] if after else "")
    left = _parsed(kept)
    left.setdefault(servers, {})
    if left != wanted:
        hint = f"remove [{servers}.{name}] by hand"
        raise InvalidInput(f"the settings of {name} are not in a table of their own", hint)
    return kept


def _servers(text: str, servers: str) -> dict[str, Any]:
    found = _parsed(text).get(servers, {})
    return found if isinstance(found, dict) else {}


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        hint = "correct the file, or add the settings by hand"
        raise InvalidInput(f"the settings are not TOML, or would be none any more: {error}", hint) from None


def _value(value: Any) -> str:
    """A value as TOML; its strings and lists are written as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {json.dumps(text)}" for key, text in value.items()) + " }"
    return json.dumps(value)
