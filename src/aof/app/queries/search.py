"""What a search answers: the tasks with their best matches first, and for each the part that matched, cut short.

Must not know how a store finds them, nor change anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from aof._support.words import hold, wanted, words
from aof.core.errors.base import InvalidInput
from aof.core.evolve.work_log import parts
from aof.ports import store as ports
from aof.ports.lists import PARTS, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.task import Task
    from aof.ports.store import Store

_SHOWN = 160


def checked(text: str) -> str:
    """What is searched for, if it is something."""
    if not text.strip():
        raise InvalidInput("there is nothing to search for", "give a word of the title or the text", parameter="text")
    return text


def explained(store: Store, rows: Iterable[Row], text: str) -> None:
    """Say of each row where it matched, and show that place."""
    sought = wanted(text)
    for row in rows:
        task = _task(store, row.id)
        if task is not None:
            where, excerpt = _match(task, sought)
            row["where"], row["excerpt"] = where, excerpt


def _task(store: Store, task_id: str) -> Task | None:
    try:
        with store.unit(ports.Scope(read=frozenset({task_id}))) as unit:
            return unit.task(task_id)
    except ports.ScopeTooNarrow:  # somebody is editing its file
        return None


def _match(task: Task, sought: Sequence[str]) -> tuple[str, str]:
    """The part that holds all words, else the one that holds any, and its first line with one of them."""
    texts = dict(zip(PARTS, (task.title, *parts(task.body)), strict=True))
    whole = (name for name, text in texts.items() if sought and hold((text,), sought))
    some = (name for name, text in texts.items() if any(_begins(text, sought)))
    where = next(chain(whole, some), PARTS[0])
    line = next((line for line in texts[where].splitlines() if any(_begins(line, sought))), task.title)
    return where, _cut(" ".join(line.split()), sought)


def _begins(text: str, sought: Sequence[str]) -> Iterator[bool]:
    return (word.startswith(tuple(sought)) for word in words(text)) if sought else iter(())


def _cut(line: str, sought: Sequence[str]) -> str:
    """The part of a long line around the first word that was sought."""
    if len(line) <= _SHOWN:
        return line
    lower = line.casefold()
    first = min((at for one in sought if (at := lower.find(one)) >= 0), default=0)
    start = max(0, min(first - _SHOWN // 4, len(line) - _SHOWN))
    before, after = "…" if start else "", "…" if start + _SHOWN < len(line) else ""
    return f"{before}{line[start : start + _SHOWN]}{after}"
