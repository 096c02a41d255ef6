"""SQL tables for questions about time: runs, waits for answers, moves between statuses, lead times.

Each store keeps them in an SQLite database of its own, which is filled when the first such question is asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Final

from aof.kernel.events import Event
from aof.kernel.model import OURSELVES, millis
from aof.supervision.rules import AgentRuns, FlowFacts, RunSpan, RunWait, SpanPage, SpanQuery

TABLES: Final = """
CREATE TABLE runs (
  seq INTEGER PRIMARY KEY, run TEXT UNIQUE, task TEXT, hop TEXT, agent TEXT, attempt INTEGER, started TEXT, ended TEXT,
  status TEXT
);
CREATE INDEX runs_by_task ON runs (task);
CREATE INDEX runs_by_agent ON runs (agent);
CREATE INDEX runs_by_end ON runs (ended);
CREATE TABLE waits (run TEXT, question TEXT, since TEXT, until TEXT, PRIMARY KEY (run, question, since)) WITHOUT ROWID;
CREATE TABLE moves (day TEXT, source TEXT, target TEXT, tasks INTEGER, PRIMARY KEY (day, source, target)) WITHOUT ROWID;
CREATE TABLE lives (task TEXT PRIMARY KEY, born TEXT, started TEXT) WITHOUT ROWID;
CREATE TABLE leads (task TEXT PRIMARY KEY, day TEXT, lead INTEGER, cycle INTEGER) WITHOUT ROWID;
CREATE INDEX leads_by_day ON leads (day);
CREATE TABLE seen (agent TEXT PRIMARY KEY, at TEXT) WITHOUT ROWID;
"""
_MOVED: Final = """INSERT INTO moves VALUES (?, ?, ?, 1)
  ON CONFLICT (day, source, target) DO UPDATE SET tasks = tasks + 1"""
_DAY: Final = 10  # characters of a moment


def add(database: sqlite3.Connection, events: Iterable[Event]) -> None:
    """Put in what new events tell."""
    seen: dict[str, str] = {}
    for event in events:
        for name in (event.actor, event.agent):
            if name and name != OURSELVES:
                seen[name] = event.timestamp
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            handler(database, event)
    database.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?)", list(seen.items()))


def _born(database: sqlite3.Connection, event: Event) -> None:
    known = database.execute("SELECT 1 FROM lives WHERE task = ?", (event.task_id,)).fetchone()
    if known is not None:  # restored: the log knew it before
        return
    task = event.payload["task"]
    born = task.get("createdAt", event.timestamp)
    database.execute("INSERT INTO lives VALUES (?, ?, NULL)", (event.task_id, born))
    database.execute(_MOVED, (event.timestamp[:_DAY], "", task["status"]))


def _moved(database: sqlite3.Connection, event: Event) -> None:
    source, target = event.payload["from"], event.payload["to"]
    database.execute(_MOVED, (event.timestamp[:_DAY], source, target))
    if target != "done":
        return
    life = database.execute("SELECT born, started FROM lives WHERE task = ?", (event.task_id,)).fetchone()
    if life is not None:
        end = millis(event.timestamp)
        lead = max(end - millis(life[0]), 0)
        cycle = max(end - millis(life[1]), 0) if life[1] else lead
        row = (event.task_id, event.timestamp[:_DAY], lead, cycle)
        database.execute("INSERT OR REPLACE INTO leads VALUES (?, ?, ?, ?)", row)


def _began(database: sqlite3.Connection, event: Event) -> None:
    payload = event.payload
    whose = (payload.get("hop"), payload["agent"], payload["attempt"])
    row = (event.seq, event.run_id, event.task_id, *whose, event.timestamp)
    database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, NULL, 'running')", row)
    first = (event.timestamp, event.task_id)
    database.execute("UPDATE lives SET started = ? WHERE task = ? AND started IS NULL", first)


def _ended(database: sqlite3.Connection, event: Event) -> None:
    status = "completed" if event.type == "task.attempt.completed" else event.payload["status"]
    end = (event.timestamp, status, event.run_id)
    database.execute("UPDATE runs SET ended = ?, status = ? WHERE run = ?", end)
    database.execute("UPDATE waits SET until = ? WHERE run = ? AND until IS NULL", (event.timestamp, event.run_id))


def _asked(database: sqlite3.Connection, event: Event) -> None:
    row = (event.run_id or "", event.payload["question"]["id"], event.timestamp)
    database.execute("INSERT OR REPLACE INTO waits VALUES (?, ?, ?, NULL)", row)


def _answered(database: sqlite3.Connection, event: Event) -> None:
    row = (event.timestamp, event.run_id or "", event.payload["question"])
    database.execute("UPDATE waits SET until = ? WHERE run = ? AND question = ? AND until IS NULL", row)


_HANDLERS: Final[dict[str, Callable[[sqlite3.Connection, Event], None]]] = {
    "task.created": _born,
    "task.restored": _born,
    "task.transitioned": _moved,
    "task.attempt.started": _began,
    "task.attempt.completed": _ended,
    "task.attempt.failed": _ended,
    "task.question.asked": _asked,
    "task.question.answered": _answered,
}


def last_seen(database: sqlite3.Connection) -> dict[str, str]:
    """When each name was last seen in the log."""
    return dict(database.execute("SELECT agent, at FROM seen").fetchall())


def run_spans(database: sqlite3.Connection, query: SpanQuery) -> SpanPage:
    """A page of runs, the last one first."""
    parts: dict[str, Any] = {
        "task = :task": query.task_id,
        "agent = :agent": query.agent,
        "(ended IS NULL OR ended >= :since)": query.since,
        "started < :before": query.before,
    }
    names = dict(zip(parts, ("task", "agent", "since", "before"), strict=True))
    values: dict[str, Any] = {names[part]: value for part, value in parts.items() if value is not None}
    where = [part for part, value in parts.items() if value is not None] or ["1"]
    matching = f"FROM runs WHERE {' AND '.join(where)}"
    (total,) = database.execute(f"SELECT count(*) {matching}", values).fetchone()
    if query.behind is not None:
        matching += " AND seq < :behind"
        values["behind"] = query.behind
    found = database.execute(f"SELECT * {matching} ORDER BY seq DESC LIMIT :limit", values | {"limit": query.limit})
    spans = [RunSpan(*row) for row in found.fetchall()]
    waits = "SELECT since, until FROM waits WHERE run = ? ORDER BY since"
    return SpanPage(
        total,
        tuple(
            one._replace(waits=tuple(RunWait(*row) for row in database.execute(waits, (one.run_id,)))) for one in spans
        ),
    )


def flow_facts(database: sqlite3.Connection, since: str) -> FlowFacts:
    """What moved, was finished and was run; the last two from a day on."""
    moves = database.execute("SELECT day, source, target, tasks FROM moves ORDER BY day").fetchall()
    leads = database.execute("SELECT day, lead, cycle FROM leads WHERE day >= ?", (since,)).fetchall()
    agents: dict[str, dict[str, int]] = {}
    ended = "SELECT agent, status, count(*) FROM runs WHERE ended IS NULL OR ended >= ? GROUP BY 1, 2 ORDER BY 1, 2"
    for agent, status, count in database.execute(ended, (since,)):
        agents.setdefault(agent, {})[status] = count
    stats = tuple(AgentRuns(agent, sum(by.values()), by) for agent, by in agents.items())
    return FlowFacts(tuple(moves), tuple(leads), stats)
