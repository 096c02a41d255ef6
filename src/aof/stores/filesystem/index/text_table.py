"""The texts of all tasks in the index: a full-text table that is made when somebody searches, and then kept up.

What changes a task only notes that its text is stale; the next search reads it anew. So lists and writers pay nothing
for it. The table holds the words as `words` finds them, so nothing in a text or in a question is an operator.
Must not know queries over other tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress

from aof._support.words import words
from aof.core.errors.base import AofError, Call, Unavailable
from aof.core.evolve.work_log import parts
from aof.stores.base.fold import fold
from aof.stores.filesystem.index import schema
from aof.stores.filesystem.index.schema import is_searched
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.working_copy import markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.task import Task
    from aof.stores.filesystem.store import FilesystemStore

_MODULE = "fts5"
_TOKENS = "unicode61 remove_diacritics 0"
_TABLES = f"""
CREATE VIRTUAL TABLE texts USING {_MODULE}(title, description, comments, log, tokenize = '{_TOKENS}');
CREATE TABLE stale_texts (task TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_AT_ONCE = 500
COLUMNS = ("title", "description", "comments", "log")


def require_full_text() -> None:
    """Refuse a search where this Python's SQLite was built without the module for it."""
    with closing(sqlite3.connect(":memory:")) as database:
        known = database.execute("SELECT 1 FROM pragma_module_list WHERE name = ?", (_MODULE,)).fetchone()
    if known is None:
        raise Unavailable(
            f"the SQLite {sqlite3.sqlite_version} of this Python has no full-text search ({_MODULE.upper()})",
            "run AOF with a Python whose SQLite has it; all filters but the search work without it",
            Call("list", {}),
        )


def is_fresh(database: sqlite3.Connection) -> bool:
    """Whether the table has the text of every task as it is."""
    return is_searched(database) and database.execute("SELECT 1 FROM stale_texts LIMIT 1").fetchone() is None


def note(database: sqlite3.Connection, task_ids: Iterable[str]) -> None:
    """Note that these tasks have changed."""
    database.executemany("INSERT OR IGNORE INTO stale_texts VALUES (?)", ((task_id,) for task_id in task_ids))


def refresh(store: FilesystemStore, database: sqlite3.Connection) -> None:
    """Read what is stale; where there is no table yet, everything."""
    with database:
        if not is_searched(database):
            for statement in _TABLES.strip().splitlines():
                database.execute(statement)
            named = database.execute(f"SELECT {schema.name()} FROM tasks")
        else:
            named = database.execute("SELECT task FROM stale_texts")
        stale = [task_id for (task_id,) in named]
        for start in range(0, len(stale), _AT_ONCE):
            some = stale[start : start + _AT_ONCE]
            database.executemany("DELETE FROM texts WHERE rowid = ?", ((_number(task_id),) for task_id in some))
            database.executemany(
                "INSERT INTO texts (rowid, title, description, comments, log) VALUES (?, ?, ?, ?, ?)",
                map(_row, _read(store, some)),
            )
        database.execute("DELETE FROM stale_texts")


def match(sought: Sequence[str], column: str = "") -> str:
    """The question for texts that have words which begin like these, in one column or in any."""
    every = " AND ".join(f'"{_token(word)}"*' for word in sought)
    return f"{column} : ({every})" if column else every


def _token(word: str) -> str:
    """A word as the table has it; for SQLite a symbol is no part of a word, so an emoji is spelled by its number."""
    return word if word.isalnum() else "".join(f"\ue000{ord(one):x}" for one in word)


def _number(task_id: str) -> int:
    return schema.place(schema.FOLDERS[0], task_id)


def _row(task: Task) -> tuple[int, str, str, str, str]:
    title, description, comments, log = (" ".join(map(_token, words(text))) for text in (task.title, *parts(task.body)))
    return _number(task.id), title, description, comments, log


def _read(store: FilesystemStore, task_ids: Sequence[str]) -> Iterator[Task]:
    """The tasks from their files; from the log where a file is not what the log wrote."""
    odd: list[str] = []
    for task_id in task_ids:
        task = _from_file(store, task_id)
        if task is None:
            odd.append(task_id)
        else:
            yield task
    if odd:
        folded = fold(store.reader.of_tasks(set(odd)))
        yield from (one.task for one in folded.values() if one.task is not None)


def _from_file(store: FilesystemStore, task_id: str) -> Task | None:
    head = store.heads.get(task_id)
    if head is None:
        return None
    with suppress(OSError, AofError):
        data = read(store.paths.task(head.folder, task_id))
        if data is not None and head.matches(data):
            return markdown.parse(data)
    return None
