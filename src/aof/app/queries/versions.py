"""Two versions of one task side by side: the one that a caller has seen, and the one that there is now.

Must not decide anything.
"""

from __future__ import annotations

import os.path
from typing import Any, Final

import msgspec

from aof.app.queries import history
from aof.core.errors.base import AofError
from aof.core.errors.tasks import RevisionConflict
from aof.ports.store import Store

_LONG: Final = 500  # characters of a text that an error repeats
_WORDS: Final = 40  # characters of a value in its message
_NAMED: Final = 3  # fields that its message names
_ALWAYS: Final = ("rev", "updatedAt", "title", "status")
_NOT_TOLD: Final = frozenset({"lease", "key", "requests"})


def compared(store: Store, outdated: RevisionConflict) -> RevisionConflict:
    """The refusal with both versions: what is always of interest, and the fields that differ."""
    task_id, details = outdated.details["task_id"], outdated.details
    now = _version(store, task_id, details["current_rev"])
    seen = _version(store, task_id, details["expected_rev"])
    if now is None or seen is None or seen["rev"] != details["expected_rev"]:
        expected: dict[str, Any] = {"rev": details["expected_rev"], "state": "unknown"}
        shown = {name: now[name] for name in _ALWAYS} if now is not None else {"rev": details["current_rev"]}
        message = f"{outdated.message}, which never was a revision of it"
        return _refusal(outdated, message, expected, shown)
    differ = [name for name in (seen | now) if name not in _NOT_TOLD and seen.get(name) != now.get(name)]
    names = list(dict.fromkeys((*_ALWAYS, *differ)))
    changed = [name for name in differ if name not in ("rev", "updatedAt", "lastTransitionAt")]
    told = "; ".join(_sentence(name, seen.get(name), now.get(name)) for name in changed[:_NAMED])
    message = f"{outdated.message}{f': {told}' if told else ''}"
    return _refusal(outdated, message, _part(seen, names), _part(now, names))


def _refusal(
    outdated: RevisionConflict, message: str, expected: dict[str, Any], current: dict[str, Any]
) -> RevisionConflict:
    return RevisionConflict(
        message,
        outdated.hint,
        outdated.call,
        task_id=outdated.details["task_id"],
        expected=expected,
        current=current,
    )


def _version(store: Store, task_id: str, rev: int) -> dict[str, Any] | None:
    try:
        return history.portrait(history.task_at(store, task_id, rev))
    except AofError:
        return None


def _part(version: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: _bounded(version.get(name)) for name in names}


def _bounded(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONG:
        return f"{value[:_LONG]}… ({len(value):,} characters)"
    shown = _json(value)
    return value if len(shown) <= _LONG else f"{shown[:_LONG]}…"


def _sentence(name: str, before: Any, after: Any) -> str:
    was, is_now = excerpts(before, after, _WORDS)
    return f"{name} was {was}, is {is_now}"


def excerpts(before: Any, after: Any, length: int) -> tuple[str, str]:
    """Two values on one line each; of long ones, so many characters from shortly before where they differ."""
    was, is_now = _words(before), _words(after)
    if max(len(was), len(is_now)) > length:
        common = len(os.path.commonprefix((was, is_now)))  # noqa: RUF071 - texts, not paths
        begin = max(common - length // 2, 0)
        was, is_now = _cut(was, begin, length), _cut(is_now, begin, length)
    return was, is_now


def _words(value: Any) -> str:
    if value in (None, "", [], (), {}):
        return "nothing"
    return " ".join((value if isinstance(value, str) else _json(value)).split())


def _cut(text: str, begin: int, length: int) -> str:
    if begin >= len(text):  # it ends where the other one goes on
        begin = max(len(text) - length, 0)
    shown = text[begin : begin + length]
    return f"{'…' if begin else ''}{shown}{'…' if begin + length < len(text) else ''}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
