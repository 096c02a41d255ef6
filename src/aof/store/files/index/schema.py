"""The index's database: its tables, a task as a row of them, how its file is opened, and how far it has come.

A row's key is its place: folder, day and number in one integer. So the tasks of a folder lie together in the order of
their IDs, a list can stop at its limit, and neither the ID nor the status needs an index of its own. Must not know
queries, nor when the index is read or written.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable

from aof.kernel.model import FINISHED, PRIORITIES, STATUSES, end_of, split_task_id
from aof.store.files import markdown
from aof.store.files.paths import Position
from aof.support.confined_folder import LinkInTheWay, is_link
from aof.workflows import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aof.tasks.model import Task

VERSION: Final = 12
FOLDERS: Final = (*STATUSES, "archive")
BETWEEN: Final = "\n"  # between the tags of a task: none holds a line break
_NUMBER_BITS, _ID_BITS = 30, 57  # a number has at most nine digits, a day has eight
DAY: Final = 1 << _NUMBER_BITS  # places that a day of IDs has
OVER: Final = FINISHED | {"archive"}
_FIRST: Final = {folder: number << _ID_BITS for number, folder in enumerate(FOLDERS)}
_TURNS: Final = {priority: str(rank) for rank, priority in enumerate(PRIORITIES)}
_FREE, _MUST_NOT_START = 0, 2

# `whose` and `resource` are 0 where there is none. An unfinished task is held: 0 by nothing, 1 by other tasks,
# 2 for it must not start. `hops` of a gated task that runs: who holds one, after a + where another could be taken;
# of one in `ready` a = where a hop could be taken.
# `due` is the moment at which a due date is over.
# `handed` of a task with open handoffs: who has accepted one and works under it without a lease.
# `tallies` says how many tasks are alike in all that its columns name.
TABLES: Final = """
CREATE TABLE meta (version INTEGER, day TEXT, position INTEGER, seq INTEGER, digest TEXT);
CREATE TABLE tasks (
  place INTEGER PRIMARY KEY, status TEXT, turn TEXT, words TEXT, whose, tags TEXT, parent TEXT, resource,
  waits_until TEXT, key TEXT, waits_for_children INTEGER, held INTEGER, hidden INTEGER, record TEXT, hops TEXT,
  handed TEXT, due TEXT
);
CREATE INDEX by_wait ON tasks (waits_until) WHERE held IS NOT NULL AND waits_until IS NOT NULL;
CREATE INDEX by_whose ON tasks (whose) WHERE whose <> 0;
CREATE INDEX by_parent ON tasks (parent) WHERE parent IS NOT NULL;
CREATE INDEX by_hops ON tasks (hops) WHERE hops IS NOT NULL;
CREATE INDEX by_handed ON tasks (handed) WHERE handed IS NOT NULL;
CREATE INDEX by_due ON tasks (due) WHERE due IS NOT NULL;
CREATE INDEX by_key ON tasks (key) WHERE key IS NOT NULL;
CREATE TABLE edges (task TEXT, blocker TEXT, PRIMARY KEY (task, blocker)) WITHOUT ROWID;
CREATE TABLE aliases (old TEXT, task TEXT, PRIMARY KEY (old, task)) WITHOUT ROWID;
CREATE TABLE tallies (
  status TEXT, archived INTEGER, hidden INTEGER, whose, resource, held INTEGER, waits INTEGER, tasks INTEGER,
  PRIMARY KEY (status, archived, hidden, whose, resource, held, waits)
) WITHOUT ROWID;
"""
# Binding a None is slow in Python's sqlite3, so 0 is bound where a value is rarely there.
INSERT: Final = """INSERT INTO tasks VALUES
  (?, ?, ?, ?, ?, nullif(?, 0), nullif(?, 0), ?, nullif(?, 0), nullif(?, 0), nullif(?, 0), nullif(?, -1), ?, ?,
   nullif(?, 0), nullif(?, 0), nullif(?, 0))"""
TALLY: Final = "INSERT INTO tallies VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


def _alike(row: str) -> str:
    archived, waits = f"{row}.place >= {_FIRST['archive']}", f"{row}.waits_until IS NOT NULL"
    return f"{row}.status, {archived}, {row}.hidden, {row}.whose, {row}.resource, ifnull({row}.held, -1), {waits}"


_SAME = f"(status, archived, hidden, whose, resource, held, waits) = ({_alike('old')})"
_OUT = f"UPDATE tallies SET tasks = tasks - 1 WHERE {_SAME}; DELETE FROM tallies WHERE {_SAME} AND tasks = 0;"
_IN = f"INSERT INTO tallies VALUES ({_alike('new')}, 1) ON CONFLICT DO UPDATE SET tasks = tasks + 1;"
UPDATED: Final = "json_extract(record, '$.updatedAt')"


def folder_number() -> str:
    """The expression for the number of a row's folder."""
    return f"place >> {_ID_BITS}"


# What is made when the rows are there: one sort is cheaper than as many searches.
INDEXES: Final = f"""
CREATE INDEX by_turn ON tasks (status, held, turn, place, waits_until, resource, whose, hidden) WHERE held IS NOT NULL;
CREATE INDEX by_updated ON tasks ({folder_number()}, {UPDATED});
CREATE INDEX by_blocker ON edges (blocker);
CREATE TRIGGER gone AFTER DELETE ON tasks BEGIN {_OUT} END;
CREATE TRIGGER come AFTER INSERT ON tasks BEGIN {_IN} END;
CREATE TRIGGER held AFTER UPDATE OF held ON tasks BEGIN {_OUT} {_IN} END;
"""


class _Days(dict[str, int]):
    """The place of a day's tasks in any folder."""

    def __missing__(self, day: str) -> int:
        found = self[day] = int(day.replace("-", "")) << _NUMBER_BITS
        return found


_days = _Days()


def place(folder: str, task_id: str) -> int:
    """The key of a task's row."""
    return _FIRST[folder] | _in_any_folder(task_id)


def places(task_id: str) -> list[int]:
    """Every key that the task's row may have."""
    own = _in_any_folder(task_id)
    return [first | own for first in _FIRST.values()]


def _in_any_folder(task_id: str) -> int:
    day, number = split_task_id(task_id)
    return _days[day] | number


def within(folder: str) -> str:
    """The condition for the rows of a folder."""
    first = _FIRST[folder]
    return f"place BETWEEN {first} AND {first | (1 << _ID_BITS) - 1}"


def place_of_number(folder: str, column: str) -> str:
    """The expression for the place in a folder of a task whose place without the folder is known."""
    return f"{_FIRST[folder]} | {column}"


def number(column: str = "place") -> str:
    """The expression for a place without its folder: orders tasks by their IDs."""
    return f"{column} & {(1 << _ID_BITS) - 1}"


def in_folder(folder: str) -> str:
    """The condition for the rows of a folder as the index `by_updated` has them."""
    return f"{folder_number()} = {FOLDERS.index(folder)}"


def name(column: str = "place") -> str:
    """The expression for a task's ID."""
    day = f"({column} >> {_NUMBER_BITS} & {(1 << _ID_BITS - _NUMBER_BITS) - 1})"
    last = f"{column} & {(1 << _NUMBER_BITS) - 1}"
    return f"printf('TASK-%04d-%02d-%02d-%03d', {day} / 10000, {day} / 100 % 100, {day} % 100, {last})"


def found(column: str, folder: str) -> str:
    """The expression for the place in a folder of the task that an ID names."""
    day = f"(CAST(replace(substr({column}, 6, 10), '-', '') AS INTEGER) << {_NUMBER_BITS})"
    return f"({_FIRST[folder]} | {day} | CAST(substr({column}, 17) AS INTEGER))"


def row(task: Task, record: bytes | None = None) -> tuple[Any, ...]:
    """A task as a row, held by nothing yet; its record as JSON may be at hand already."""
    routing, tags, metadata = task.routing, task.routing.tags, task.metadata
    whose = task.lease.agent if task.lease is not None else routing.agent
    hops: str | int = 0
    folder = "archive" if task.archived else task.status
    may_start = task.cancel is None and not metadata.get("draft") and not (task.handoffs and task.awaits_answer)
    held = -1 if folder in OVER else _FREE if may_start else _MUST_NOT_START
    task_id = task.id
    if task.gated:
        whose, hops, takable = _of_hops(task)
        held = held if takable or held < 0 else _MUST_NOT_START
    return (
        _FIRST[folder] | _days[task_id[5:15]] | int(task_id[16:]),
        task.status,
        _TURNS[task.priority] + task.created_at,
        task.title.casefold(),
        0 if whose is None else whose,
        BETWEEN.join(("", *tags, "")) if tags else 0,
        0 if task.parent_id is None else task.parent_id,
        0 if task.resource is None else task.resource,
        task.retry.not_before or 0,
        task.key.value if task.key is not None else 0,
        1 if task.waits_for_children else 0,
        held,
        1 if task.visibility in ("internal", "hidden") else 0,
        (record or markdown.encode_task(task)).decode(),
        hops,
        BETWEEN.join(("", *model.takers(task), "")) if task.handoffs else 0,
        end_of(task.due) if task.due is not None else 0,
    )


def _of_hops(task: Task) -> tuple[str | None, str | int, bool]:
    """Of a gated task: its first holder, the column `hops`, and whether a hop could be taken were nothing else."""
    states = task.workflow["hops"]
    holders = [hop["lease"]["agent"] for hop in states if "lease" in hop]
    takable = any(hop["status"] == "ready" for hop in states)
    beside = "+" if takable and task.cancel is None else ""
    running = BETWEEN.join((beside, *holders, "")) if holders and task.status == "in-progress" else 0
    waits = "=" if model.waits_at_hop(task) else 0
    return holders[0] if holders else None, running or waits, takable


def tally(made: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """How many of these rows are alike."""
    archive = _FIRST["archive"]
    return Counter(
        [
            (status, place >= archive, hidden, whose, resource, held, until != 0)
            for place, status, _, _, whose, _, _, resource, until, _, _, held, hidden, _, _, _, _ in made
        ]
    )


def record(text: str) -> Task:
    """The task of a row, without its body."""
    return markdown.decode_record(text)


def connect(path: str) -> sqlite3.Connection:
    """Open a database that other means protect and that may be lost."""
    if is_link(path):
        raise LinkInTheWay(path)
    database = sqlite3.connect(path, timeout=10, isolation_level="DEFERRED", check_same_thread=False)
    database.execute("PRAGMA page_size = 8192")
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA temp_store = MEMORY")
    database.execute("PRAGMA cell_size_check = ON")
    return database


def has_table(database: sqlite3.Connection, table: str) -> bool:
    """Whether a table is there that is only made when somebody asks for it: `audit`, `texts`, or `lives`."""
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is not None


def applied_end(database: sqlite3.Connection) -> tuple[str, int] | None:
    """The log file and offset up to which the tables are filled; None where another version of AOF has filled them."""
    found = database.execute("SELECT version, day, position FROM meta").fetchone()
    return None if found is None or found[0] != VERSION else (found[1], found[2])


def applied_position(database: sqlite3.Connection) -> Position | None:
    """The log position up to which the tables are filled; None where another version of AOF has filled them."""
    found = database.execute("SELECT version, day, position, seq, digest FROM meta").fetchone()
    if found is None or found[0] != VERSION:
        return None
    return Position(*found[1:])
