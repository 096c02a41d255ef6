"""Adds a member to an object or a list in a JSON text, or takes it out, and leaves every other byte as it is.

The text may have comments, as editors allow in settings. Must not know what the members mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from aof.core.errors.base import InvalidInput

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\],:]|[^\s{}\[\],:"/]+|/', re.DOTALL)


class Member:
    """One member of an object: where its name begins, and where its value begins and ends."""

    def __init__(self, start: int, value: int, end: int) -> None:
        self.start = start
        self.value = value
        self.end = end


def with_member(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with the value under the path; objects that are missing on the way are made."""
    inside, members, depth = _innermost(text, path)
    if depth < len(path):
        return text[:inside] + _added(text, path, depth, value, alone=not members) + text[inside:]
    found = members[path[-1]]
    same = _plain(text[found.value : found.end]) == value
    return text if same else text[: found.value] + _shown(value, path, text) + text[found.end :]


def member(text: str, path: tuple[str, ...]) -> tuple[bool, Any]:
    """Whether there is something under the path, and what; None for what is not plain JSON."""
    _, members, depth = _innermost(text, path)
    if depth < len(path):
        return False, None
    found = members[path[-1]]
    return True, _plain(text[found.value : found.end])


def without_member(text: str, path: tuple[str, ...]) -> str:
    """The text without what is under the path: as it was before that came, unless people have changed the place."""
    _, members, depth = _innermost(text, path)
    if depth < len(path):
        return text
    found = members[path[-1]]
    return _undone(text, path, _plain(text[found.value : found.end])) or _cut(text, found.start, found.end)


def with_item(text: str, path: tuple[str, ...], item: Any) -> str:
    """The text with the item first in the list under the path; what is missing on the way is made."""
    start, there = _items(text, path)
    if start < 0:
        return with_member(text, path, [item])
    if any(_plain(text[one.start : one.end]) == item for one in there):
        return text
    return text[:start] + _first_item(text, path, item, alone=not there) + text[start:]


def without_items(text: str, path: tuple[str, ...], ours: Callable[[Any], bool]) -> str:
    """The text without the items that are ours, and without the list if we have made it."""
    while True:
        start, there = _items(text, path)
        found = next((one for one in there if ours(_plain(text[one.start : one.end]))), None)
        if found is None:
            return text
        item = _plain(text[found.start : found.end])
        added = _first_item(text, path, item, alone=len(there) == 1)
        whole = _undone(text, path, [item]) if len(there) == 1 else None
        if whole is None and text.startswith(added, start):
            whole = text[:start] + text[start + len(added) :]
        text = whole or _cut(text, found.start, found.end)


def _undone(text: str, path: tuple[str, ...], value: Any) -> str | None:
    """The text without what we have put under the path: all of the path, or only its end. None if it was not us."""
    for above in range(len(path)):
        inside, there, _ = _innermost(text, (*path[:above], ""))
        ours = _added(text, path, above, value, alone=len(there) == 1)
        if text.startswith(ours, inside):
            return text[:inside] + text[inside + len(ours) :]
    return None


def _cut(text: str, start: int, end: int) -> str:
    """The text without a member or item, and without the comma that it leaves behind."""
    before, after = text[:start].rstrip(), text[end:]
    if after.lstrip().startswith(","):
        return before + after[after.index(",") + 1 :]
    return before[:-1] + after if before.endswith(",") else before + after.lstrip()


def _first_item(text: str, path: tuple[str, ...], item: Any, *, alone: bool) -> str:
    shown = _shown(item, (*path, ""), text)
    return shown if alone else f"{_newline(text)}{'  ' * (len(path) + 1)}{shown},"


def _items(text: str, path: tuple[str, ...]) -> tuple[int, list[Member]]:
    """Where the inside of a list begins, and its items; -1 where there is none."""
    _, members, depth = _innermost(text, path)
    if depth < len(path):
        return -1, []
    begin, end = members[path[-1]].value, members[path[-1]].end
    if text[begin] != "[":
        raise InvalidInput(f"'{'.'.join(path)}' is not a list", "correct the file, or add the settings by hand")
    found: list[Member] = []
    depth, first, last = 0, -1, begin
    for token in _TOKEN.finditer(text, begin, end):
        word = token.group()
        if word.startswith(("//", "/*")):
            continue
        if depth == 1 and word in (",", "]"):
            found += [Member(first, first, last)] if first >= 0 else []
            first = -1
        elif depth == 1 and first < 0:
            first = token.start()
        depth += (word in ("{", "[")) - (word in ("}", "]"))
        last = token.end()
    return begin + 1, found


def _added(text: str, path: tuple[str, ...], depth: int, value: Any, *, alone: bool) -> str:
    """What is put at the beginning of an object. Each case looks different, so that it can be told which one it was."""
    shown = _shown(value, path, text)
    for name in reversed(path[depth + 1 :]):
        shown = f"{{ {json.dumps(name)}: {shown} }}"
    written = f"{json.dumps(path[depth])}: {shown}"
    return written if alone else f"{_newline(text)}{'  ' * (depth + 1)}{written},"


def _innermost(text: str, path: tuple[str, ...]) -> tuple[int, dict[str, Member], int]:
    """As deep as the path exists: where that object's inside begins, its members, and how many names were found."""
    _check(text)
    inside, members = _members(text, _first(text))
    for depth, name in enumerate(path):
        if name not in members:
            return inside, members, depth
        if depth == len(path) - 1:
            return inside, members, depth + 1
        inside, members = _members(text, members[name].value)
    raise AssertionError


def _check(text: str) -> None:
    """Refuse what is not JSON even without its comments and last commas."""
    words, end = [""], 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        if text[end : token.start()].strip():
            break
        end = token.end()
        if word.startswith(("//", "/*", "\ufeff")):
            continue
        if word in ("}", "]") and words[-1] == ",":
            words.pop()
        words.append(word)
    try:
        json.loads(" ".join(words))
    except (ValueError, RecursionError):
        whole = False
    else:
        whole = not text[end:].strip()
    if not whole:
        raise InvalidInput("the settings are not JSON", "correct the file, or add the settings by hand")


def _first(text: str) -> int:
    found = next(
        (token for token in _TOKEN.finditer(text) if not token.group().startswith(("//", "/*", "\ufeff"))), None
    )
    return found.start() if found is not None else 0


def _members(text: str, start: int) -> tuple[int, dict[str, Member]]:
    if text[start : start + 1] != "{":
        raise InvalidInput("the settings are not a JSON object", "correct the file, or add the settings by hand")
    members: dict[str, Member] = {}
    depth, last, name, name_at, value_at = 0, start, "", -1, -1
    for token in _TOKEN.finditer(text, start):
        word, place = token.group(), token.start()
        if word.startswith(("//", "/*")):
            continue
        if depth == 1 and word in (",", "}"):
            if value_at >= 0:
                members[name] = Member(name_at, value_at, last)
            name_at = value_at = -1
        elif depth == 1 and name_at < 0:
            name, name_at = json.loads(word), place
        elif depth == 1 and word != ":" and value_at < 0:
            value_at = place
        depth += (word in ("{", "[")) - (word in ("}", "]"))
        last = token.end()
        if depth == 0:
            return start + 1, members
    raise InvalidInput("the settings are cut off", "correct the file, or add the settings by hand")


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _shown(value: Any, path: tuple[str, ...], text: str) -> str:
    newline = _newline(text)
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", newline + "  " * len(path))
