"""Tables of the index that are made when they are first asked for and then kept up.

Audit records, the texts of all tasks, and agents' health.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress

import msgspec

from aof.errors import AofError, Call, Unavailable
from aof.handoffs.audit import AUDIT, AuditRecord, audit_record, line_of
from aof.kernel.events import Event
from aof.org.routing import AgentHealth, health_of
from aof.store.directory import AuditQuery
from aof.store.files import markdown
from aof.store.files.disk import read
from aof.store.files.index import schema
from aof.store.files.log.reader import Reader
from aof.store.fold import fold
from aof.support.typed import prepare_type
from aof.support.words import words
from aof.tasks.body import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.store.files.store import FilesystemStore
    from aof.tasks.model import Task


_AUDIT_MARK = f'"{AUDIT}":{{'.encode()
_decoder = msgspec.json.Decoder(prepare_type(AuditRecord))
_KEYS = (("handoff", "handoff_id"), ("task", "task_id"), ("sender", "from_agent"), ("receiver", "to_agent"))
_AUDIT_TABLE = """
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY, day TEXT, handoff TEXT, task TEXT, sender TEXT, receiver TEXT, line TEXT
);
"""
_INDEXES = "".join(f"CREATE INDEX audit_by_{column} ON audit ({column});" for column, _ in _KEYS)
_INSERT = "INSERT OR REPLACE INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)"


def fill_audit(database: sqlite3.Connection, reader: Reader, until: int) -> None:
    """Put in every record up to an event."""
    with database:
        database.executescript(_AUDIT_TABLE)
        database.executemany(_INSERT, _rows(reader.holding(_AUDIT_MARK, until)))
        database.executescript(_INDEXES)


def add_audit(database: sqlite3.Connection, day: str, events: Iterable[Event]) -> None:
    """Put in the records among new events of a day."""
    database.executemany(_INSERT, _rows((day, event) for event in events))


def find_audit(database: sqlite3.Connection, query: AuditQuery) -> list[AuditRecord]:
    """The records that match."""
    given = [(column, value) for column, key in _KEYS if (value := getattr(query, key)) is not None]
    conditions = " AND ".join(["seq > ?", *(f"{column} = ?" for column, _ in given)])
    sql = f"SELECT line FROM audit WHERE {conditions} ORDER BY seq LIMIT ?"
    limit = -1 if query.limit is None else query.limit
    found = database.execute(sql, (query.after, *(value for _, value in given), limit))
    return [_decoder.decode(line) for (line,) in found]


def audit_lines(database: sqlite3.Connection, after: int) -> list[tuple[int, str, str]]:
    """The records behind an event as number, day and line."""
    return database.execute("SELECT seq, day, line FROM audit WHERE seq > ? ORDER BY seq", (after,)).fetchall()


def _rows(events: Iterable[tuple[str, Event]]) -> Iterator[tuple[Any, ...]]:
    for day, event in events:
        try:
            record = audit_record(event)
        except ValueError:  # what a foreign hand has written; whoever verifies the records is told
            continue
        if record is not None:
            task_id = record.context_snapshot.task_id
            whose = (record.handoff_id, task_id, record.from_agent, record.to_agent)
            yield (event.seq, day, *whose, line_of(record).decode())


_MODULE = "fts5"
_TOKENS = "unicode61 remove_diacritics 0"
_TABLES = f"""
CREATE VIRTUAL TABLE texts USING {_MODULE}(title, description, comments, log, tokenize = '{_TOKENS}');
CREATE VIRTUAL TABLE names USING {_MODULE}(title, id, tokenize = 'trigram case_sensitive 1', detail = none);
CREATE TABLE stale_texts (task TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_AT_ONCE = 500
_RUN = 3  # characters that the names are found by
TEXT_COLUMNS = ("title", "description", "comments", "log")


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


def is_text_fresh(database: sqlite3.Connection) -> bool:
    """Whether the table has the text of every task as it is."""
    return (
        schema.has_table(database, "texts") and database.execute("SELECT 1 FROM stale_texts LIMIT 1").fetchone() is None
    )


def note_text(database: sqlite3.Connection, task_ids: Iterable[str]) -> None:
    """Note that these tasks have changed."""
    database.executemany("INSERT OR IGNORE INTO stale_texts VALUES (?)", ((task_id,) for task_id in task_ids))


def refresh_text(store: FilesystemStore, database: sqlite3.Connection) -> None:
    """Read what is stale; where there is no table yet, everything."""
    with database:
        if not schema.has_table(database, "texts"):
            for statement in _TABLES.strip().splitlines():
                database.execute(statement)
            named = database.execute(f"SELECT {schema.name()} FROM tasks")
        else:
            named = database.execute("SELECT task FROM stale_texts")
        stale = [task_id for (task_id,) in named]
        for start in range(0, len(stale), _AT_ONCE):
            some = stale[start : start + _AT_ONCE]
            tasks = list(_read(store, some))
            for table in ("texts", "names"):
                database.executemany(f"DELETE FROM {table} WHERE rowid = ?", ((_number(task_id),) for task_id in some))
            database.executemany(
                "INSERT INTO texts (rowid, title, description, comments, log) VALUES (?, ?, ?, ?, ?)", map(_row, tasks)
            )
            names = ((_number(task.id), task.title.casefold(), task.id.casefold()) for task in tasks)
            database.executemany("INSERT INTO names (rowid, title, id) VALUES (?, ?, ?)", names)
        database.execute("DELETE FROM stale_texts")


def match_text(sought: Sequence[str], column: str = "") -> str:
    """The question for texts that have words which begin like these, in one column or in any."""
    every = " AND ".join(f'"{_token(word)}"*' for word in sought)
    return f"{column} : ({every})" if column else every


def match_part(text: str) -> str:
    """The question for names that have all runs of three characters of this text; empty for a shorter one."""
    runs = dict.fromkeys(text[start : start + _RUN] for start in range(len(text) - _RUN + 1))
    asked = (run for run in runs if "\0" not in run)  # SQLite would take it for the end of the question
    return " AND ".join('"' + run.replace('"', '""') + '"' for run in asked)


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


_HEALTH_MARK = b',"type":"agent.'
_HEALTH_TABLE = "CREATE TABLE health (agent TEXT PRIMARY KEY, available INTEGER, since TEXT, reason TEXT);"


def fill_health(database: sqlite3.Connection, reader: Reader, until: int) -> None:
    """Put in what every event up to one says."""
    with database:
        database.executescript(_HEALTH_TABLE)
        add_health(database, (event for _, event in reader.holding(_HEALTH_MARK, until)))


def add_health(database: sqlite3.Connection, events: Iterable[Event]) -> None:
    """Put in what new events say."""
    found = [one for event in events if (one := health_of(event)) is not None]
    rows = [(one.agent, one.available, one.since, one.reason) for one in found]
    database.executemany("INSERT OR REPLACE INTO health VALUES (?, ?, ?, ?)", rows)


def all_health(database: sqlite3.Connection) -> dict[str, AgentHealth]:
    """Everybody that the log says something of."""
    found = database.execute("SELECT agent, available, since, reason FROM health ORDER BY agent")
    return {
        agent: AgentHealth(agent=agent, available=bool(available), since=since, reason=reason)
        for agent, available, since, reason in found
    }
