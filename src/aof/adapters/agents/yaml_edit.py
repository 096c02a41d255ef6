"""A server in a client's YAML settings, as one line of its own; every other line stays as it is.

The line is JSON, which is YAML too. Where a client has rewritten it over several lines it is found all the same, and
what comes out is compared with what was there, so that nothing else can have changed. Must not know clients.
"""

from __future__ import annotations

import json
import re
from typing import Any

import ryaml

from aof.core.errors.base import InvalidInput

_INDENT = 2


def server_in(text: str, servers: str, name: str) -> Any:
    """The settings of a server; None for those that there are not."""
    found = _parsed(text).get(servers)
    return found.get(name) if isinstance(found, dict) else None


def with_server(text: str | None, servers: str, name: str, entry: dict[str, Any]) -> str:
    """The text with a server; one of that name is replaced."""
    if not text:
        return f"{servers}:\n{_line(name, entry, _INDENT)}"
    wanted = _parsed(text)
    there = wanted.get(servers) or {}
    if server_in(text, servers, name) == entry:
        return text
    bare = without_server(text, servers, name)
    lines = bare.splitlines(keepends=True)
    at = _header(lines, servers)
    if at is None:
        ended = bare if bare.endswith("\n") or not bare else f"{bare}\n"
        added = f"{ended}{servers}:\n{_line(name, entry, _INDENT)}"
    else:
        lines[at] = re.sub(r":\s*(\{\}|null|~)?\s*$", ":\n", lines[at], count=1)
        indent = next((_depth(line) for line in lines[at + 1 :] if _says(line)), _INDENT) or _INDENT
        lines.insert(at + 1, _line(name, entry, indent))
        added = "".join(lines)
    wanted[servers] = {**there, name: entry} if isinstance(there, dict) else None
    return _checked(added, wanted)


def without_server(text: str, servers: str, name: str) -> str:
    """The text without a server; without the list of servers, too, where that was the last of both."""
    wanted = _parsed(text)
    there = wanted.get(servers)
    if not isinstance(there, dict) or name not in there:
        return text
    lines = text.splitlines(keepends=True)
    at = _header(lines, servers)
    own = re.compile(rf"^ +['\"]?{re.escape(name)}['\"]?\s*:")
    begin = next((n for n, line in enumerate(lines) if at is not None and n > at and own.match(line)), None)
    if at is None or begin is None:
        raise _by_hand(servers)
    end = begin + 1
    while end < len(lines) and (not lines[end].strip() or _depth(lines[end]) > _depth(lines[begin])):
        end += 1
    last = end == len(lines) and begin == at + 1
    del lines[begin:end]
    del there[name]
    if last:
        del lines[at:], wanted[servers]
    elif not there:
        lines[at] = lines[at].rstrip() + " {}\n"
    return _checked("".join(lines), wanted)


def _header(lines: list[str], servers: str) -> int | None:
    """Which line begins the servers; None where there are none yet."""
    for number, line in enumerate(lines):
        if re.match(rf"{re.escape(servers)}\s*:", line):
            if not re.fullmatch(rf"{re.escape(servers)}\s*:\s*(\{{\}}|null|~)?\s*(#.*)?", line.rstrip("\r\n")):
                raise _by_hand(servers)
            return number
    return None


def _checked(text: str, wanted: dict[str, Any]) -> str:
    if _parsed(text) != wanted:
        raise _by_hand("the servers")
    return text


def _by_hand(servers: str) -> InvalidInput:
    return InvalidInput(f"'{servers}' is not written in lines of its own", "change the settings by hand")


def _line(name: str, entry: dict[str, Any], indent: int) -> str:
    return f"{' ' * indent}{name}: {json.dumps(entry, ensure_ascii=False)}\n"


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = ryaml.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        hint = "correct the file, or add the settings by hand"
        raise InvalidInput(f"the settings are not YAML: {error}", hint) from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidInput("the settings are not a mapping", "correct the file, or add the settings by hand")
    return found
