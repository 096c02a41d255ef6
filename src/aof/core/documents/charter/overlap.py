"""Patterns of files, such as `src/**` and `src/api/*`: which paths they take, and in which path two of them meet.

`*` and `?` stay within a folder, `**` crosses folders, and a name without any of them takes everything below it.
Must not know what the files are.
"""

from __future__ import annotations

from functools import cache
from typing import Final

ANY: Final = "**"
_MOST: Final = 200  # characters of a pattern that count
_DEEPEST: Final = 40  # folders
_SOME: Final = "x"
_REMEMBERED: Final = 50_000


def takes(pattern: str, path: str) -> bool:
    """Whether a path belongs to a pattern."""
    return common_path(pattern, path, literal=True) is not None


def common_path(one: str, other: str, *, literal: bool = False) -> str | None:
    """A path that both take, if there is one; `literal` says that the other is a path and no pattern."""
    first, second = _segments(one), _segments(other)
    if not first or not second:
        return None
    if literal:
        second = tuple(_literal(segment) for segment in second)
    ways = [(first, second)]
    if _is_plain(first[-1]):
        ways.append(((*first, ANY), second))
    if not literal and _is_plain(second[-1]):
        ways.append((first, (*second, ANY)))
    met = next((found for a, b in ways if (found := _meet(a, b))), None)
    for remembered in (_meet, _name):
        if remembered.cache_info().currsize > _REMEMBERED:
            remembered.cache_clear()
    return None if met is None else "/".join(met)


def _is_plain(segment: str) -> bool:
    return "*" not in segment and "?" not in segment


def _segments(pattern: str) -> tuple[str, ...]:
    """The folders and the name that a pattern is made of; a slash at its end means everything below."""
    text = pattern.strip()[:_MOST].removeprefix("./")
    parts = [part for part in text.split("/") if part and part != "."]
    if text.endswith("/"):
        parts.append(ANY)
    return tuple(parts[:_DEEPEST])


def _literal(segment: str) -> str:
    return segment.replace("*", "\0").replace("?", "\1")


@cache
def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...] | None:
    """The segments of a path that both take."""
    if not one or not other:
        left = one or other
        return () if all(part == ANY for part in left) else None
    if one[0] == ANY:
        return _across(one, other)
    if other[0] == ANY:
        return _across(other, one)
    name = _name(one[0], other[0])
    rest = _meet(one[1:], other[1:]) if name is not None else None
    return None if rest is None or name is None else (name or _SOME, *rest)


def _across(crossing: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...] | None:
    """`**` stands for no folder, or takes one more of the other's."""
    if len(crossing) == 1 and other == (ANY,):
        return (_SOME,)
    if other[0] == ANY:
        dropped = _meet(crossing[1:], other) if len(crossing) > 1 else None
        return dropped or _meet(crossing, other[1:])
    if (found := _meet(crossing[1:], other)) is not None:
        return found
    rest = _meet(crossing, other[1:])
    return None if rest is None else (_name(other[0], "*") or _SOME, *rest)


@cache
def _name(one: str, other: str) -> str | None:
    """A name that two patterns of names take."""
    if not one or not other:
        return "" if all(char == "*" for char in one or other) else None
    if one[0] == "*" or other[0] == "*":
        star, rest = (one, other) if one[0] == "*" else (other, one)
        if (found := _name(star[1:], rest)) is not None:
            return found if found or star[1:] or rest else ""
        behind = _name(star, rest[1:])
        return None if behind is None else _char(rest[0]) + behind
    if one[0] == other[0] or "?" in (one[0], other[0]):
        rest_of = _name(one[1:], other[1:])
        char = other[0] if one[0] == "?" else one[0]
        return None if rest_of is None else _char(char) + rest_of
    return None


def _char(char: str) -> str:
    return "" if char == "*" else _SOME if char == "?" else char
