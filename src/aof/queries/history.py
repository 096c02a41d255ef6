"""Every task as it was after any event, from the log alone; and two versions of one task side by side."""

from __future__ import annotations

import os.path
import re
from typing import Any, Final

import msgspec

from aof.errors import AofError, Call, InvalidInput, RevisionConflict, TaskNotFound
from aof.kernel.events import is_remark
from aof.kernel.evolve import evolve
from aof.store.port import Store
from aof.support.printable import Say, silent
from aof.tasks.model import Task

_OFTEN = 1_000  # events
_FEWEST, _MOST = 8, 64  # digits of a hash
_HASH: Final = re.compile(f"[0-9a-f]{{{_FEWEST},{_MOST}}}")
_SHOWN = 16


def known(store: Store, seq: int) -> None:
    """Refuse the number of an event that there is not; zero stands for the time before the first one."""
    last = store.head()
    if not 0 <= seq <= last:
        raise InvalidInput(f"there is no event {seq}; the last one is {last}", "see the events", Call("log", {}))


def number_of(store: Store, at: int | str) -> int:
    """The number of an event that is named by its number or its hash; digits are a number where there is such an event.

    What another clone wrote is found by the hash that it had there, too: it is the event that a merge made of it.
    """
    text = str(at).lower()
    if isinstance(at, int) or _is_number(store, text):
        known(store, int(at))
        return int(at)
    if _HASH.fullmatch(text) is None:
        raise InvalidInput(
            f"{str(at)[:80]!r} is neither the number of an event nor its hash",
            f"give a number, or at least the first {_FEWEST} digits of a hash",
            Call("log", {}),
        )
    found = store.hashed(text)
    if not found:
        raise InvalidInput(
            f"there is no event whose hash begins with {text[:_SHOWN]}", "see the events", Call("log", {})
        )
    if len(found) > 1:
        names = ", ".join(one.hash[: max(_SHOWN, len(text) + 4)] for one in found[:5])
        raise InvalidInput(f"the hashes of {len(found)} events begin with {text}", f"give more digits: {names}")
    if found[0].seq is None:
        where = f"the event {text[:_SHOWN]} is in events/{found[0].file}, which is not part of the history shown here"
        files = store.working_copy
        if files is not None and files.tips() > 1:
            raise InvalidInput(where, "bring the histories together first", Call("merge", {}))
        raise InvalidInput(where, "see the events", Call("log", {}))
    return found[0].seq


def _is_number(store: Store, text: str) -> bool:
    """Whether digits are a number: always where they are too few for a hash, else if there is an event with it."""
    if not (text.isascii() and text.isdigit()):
        return False
    return len(text) < _FEWEST or (len(text) <= _MOST and int(text) <= store.head())


def tasks_at(store: Store, seq: int, say: Say = silent) -> dict[str, Task]:
    """All tasks after the event with this number."""
    known(store, seq)
    tasks: dict[str, Task] = {}
    for event in store.events():
        if event.seq > seq:
            break
        if event.seq % _OFTEN == 0:
            say(f"{event.seq:,} of {seq:,} events")
        if event.task_id and not is_remark(event):
            tasks[event.task_id] = evolve(tasks.get(event.task_id), event)
    return tasks


def task_at(store: Store, task_id: str, seq: int) -> Task:
    """One task after the event with this number."""
    known(store, seq)
    task: Task | None = None
    for event in store.events(task_id=task_id):
        if event.seq > seq:
            break
        if not is_remark(event):
            task = evolve(task, event)
    if task is None:
        raise TaskNotFound(
            f"there was no task {task_id} at event {seq}", "see its events", Call("log", {"task_id": task_id})
        )
    return task


def portrait(task: Task) -> dict[str, Any]:
    """A past task as `show` gives a present one, as far as the log alone tells."""
    shown: dict[str, Any] = msgspec.to_builtins(task)
    for name in ("layout", "archived"):
        shown.pop(name, None)
    return shown | {"body": task.body}


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
        return portrait(task_at(store, task_id, rev))
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
