"""Looking into the past: every task as it was after any event, from the log alone. Must not look at the present."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from aof.core.errors.base import Call, InvalidInput
from aof.core.errors.tasks import TaskNotFound
from aof.core.evolve.task import evolve
from aof.core.model.events import is_remark
from aof.core.model.task import Task
from aof.ports.progress import Say, silent
from aof.ports.store import Store

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
