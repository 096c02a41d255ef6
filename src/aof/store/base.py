"""What every store does.

It answers queries by looking at every task, keeps tables of what the log tells over time, and lets the files of
documents follow the log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from aof.documents.projection import Facts, PastEvents, Projection
from aof.errors import Unavailable
from aof.kernel.model import FINISHED, OURSELVES, STATUSES, Event, end_of, millis, priority_rank, split_task_id
from aof.store.lists import NEVER, OPEN, PARTS, Query
from aof.supervision.chronicle import AgentRuns, FlowFacts, RunSpan, RunWait, SpanPage, SpanQuery
from aof.support.words import hold, wanted
from aof.tasks.body import parts
from aof.tasks.model import Task
from aof.workflows.model import has_open_hop, leases, waits_at_hop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.lists import Place, Span


_FOLDERS: Final = (*STATUSES, "archive")


def select_tasks(query: Query, tasks: dict[str, Task]) -> list[Task]:
    """All tasks that the query keeps, in its order."""
    kept = (task for task in tasks.values() if _keeps(query, task, tasks))
    return sorted(kept, key=lambda task: _position(place_in_order(query, task)), reverse=query.reverse)


def page_of(query: Query, chosen: list[Task]) -> tuple[list[Task], Place | None]:
    """The part of what was selected that the query asks for, and where it ends if more follows."""
    behind = chosen if query.behind is None else _behind(query, chosen, _position(query.behind))
    if query.limit is None:
        return behind[query.offset :], None
    end = query.offset + query.limit
    shown = behind[query.offset : end]
    return shown, place_in_order(query, shown[-1]) if shown and len(behind) > end else None


def place_in_order(query: Query, task: Task) -> Place:
    """The task's place in the order of the query."""
    if query.order == "relevance":
        return _relevance(task, query.search or ""), task.id
    return _ORDERS[query.order](task), task.id


def _behind(query: Query, chosen: list[Task], behind: tuple[Any, ...]) -> list[Task]:
    positions = ((task, _position(place_in_order(query, task))) for task in chosen)
    return [task for task, here in positions if (here < behind if query.reverse else here > behind)]


def _position(where: Place) -> tuple[Any, ...]:
    return (where[0], *split_task_id(where[1]))


# What tasks are ordered by, then by their IDs. A task that is never due comes last.
_ORDERS: Final[dict[str, Callable[[Task], str | int]]] = {
    "id": lambda _task: 0,
    "schedule": lambda task: f"{priority_rank(task.priority)}{task.created_at}",
    "created": lambda task: task.created_at,
    "updated": lambda task: task.updated_at,
    "due": lambda task: _due(task) or NEVER,
    "title": lambda task: task.title.casefold(),
    "status": lambda task: _FOLDERS.index("archive" if task.archived else task.status),
}


def _due(task: Task) -> str | None:
    return end_of(task.due) if task.due is not None else None


def _keeps(query: Query, task: Task, tasks: dict[str, Task]) -> bool:
    return (
        (query.archived or not task.archived)
        and (query.hidden or task.visibility not in ("internal", "hidden"))
        and (not query.status or task.status in query.status)
        and (query.agent is None or _is_for(query.agent, task, unrouted_too=query.unrouted_too))
        and (query.tag is None or query.tag in task.routing.tags)
        and (query.search is None or _mentions(task, query.search))
        and (query.parent_id is None or task.parent_id == query.parent_id)
        and (query.among is None or task.id in query.among)
        and (query.priority is None or task.priority == query.priority)
        and (not query.unfinished or task.status not in FINISHED)
        and _within(query.created, task.created_at)
        and _within(query.updated, task.updated_at)
        and _within(query.due, _due(task))
        and _is_in_queue(task, tasks, query)
        and task.id not in query.without
        and (not query.at_hops or waits_at_hop(task))
        and (not query.open_hops or (has_open_hop(task) and not _waits_below(task, tasks)))
        and (not query.open_handoffs or bool(task.handoffs))
    )


def _within(span: Span, moment: str | None) -> bool:
    since, before = span
    if moment is None:
        return span == OPEN
    return (since is None or moment >= since) and (before is None or moment < before)


def _is_for(agent: str, task: Task, *, unrouted_too: bool) -> bool:
    holders = leases(task)
    whose = holders[0].agent if holders else None if task.gated else task.routing.agent
    return whose == agent or (unrouted_too and whose is None)


def _mentions(task: Task, text: str) -> bool:
    sought = wanted(text)
    return _is_named(task, text) or bool(sought and hold((task.title, *parts(task.body)), sought))


def _is_named(task: Task, text: str) -> bool:
    said = text.casefold()
    return said in task.title.casefold() or said in task.id.casefold()


def _relevance(task: Task, text: str) -> int:
    """The part that holds all that is sought: title, description, comments, work log, or no single one of them."""
    sought = wanted(text)
    if _is_named(task, text):
        return len(PARTS)
    texts = (task.title, *parts(task.body))
    return next((len(PARTS) - place for place, one in enumerate(texts) if sought and hold((one,), sought)), 0)


def _is_in_queue(task: Task, tasks: dict[str, Task], query: Query) -> bool:
    if query.waiting:
        here = task.status == query.waiting_in and not task.archived
        return here and not _is_in_queue(task, tasks, query.but(waiting=False))
    free = query.runnable_at is None or _waits_for_nothing(task, tasks, query)
    return free and task.resource not in query.busy_resources


def _waits_for_nothing(task: Task, tasks: dict[str, Task], query: Query) -> bool:
    if query.dependent and not task.depends_on:
        return False
    return task.status == query.waiting_in and all(over(task, tasks, query.runnable_at or "") for over in _WAITS)


_WAITS: tuple[Callable[[Task, dict[str, Task], str], bool], ...] = (
    lambda task, _tasks, _moment: task.cancel is None and not task.archived and not task.metadata.get("draft"),
    lambda task, _tasks, _moment: not task.awaits_answer,
    lambda task, _tasks, _moment: _takable(task),
    lambda task, _tasks, moment: task.retry.not_before is None or task.retry.not_before <= moment,
    lambda task, tasks, _moment: all(edge in tasks and tasks[edge].status == "done" for edge in task.depends_on),
    lambda task, tasks, _moment: not _waits_below(task, tasks),
)


def _takable(task: Task) -> bool:
    return not task.gated or any(hop.get("status") == "ready" for hop in task.workflow["hops"])


def _waits_below(task: Task, tasks: dict[str, Task]) -> bool:
    if not task.waits_for_children:
        return False
    return any(child.parent_id == task.id and child.status not in FINISHED for child in tasks.values())


CHRONICLE_TABLES: Final = """
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


def is_chronicled(database: sqlite3.Connection) -> bool:
    """Whether the tables exist; the first query creates them."""
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'lives'").fetchone() is not None


def add_to_chronicle(database: sqlite3.Connection, events: Iterable[Event]) -> None:
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


_TRIES = 20


class DocumentState(msgspec.Struct, frozen=True):
    """Where the log stood and what the file looked like when the document was last written, in the store's words."""

    place: str
    mark: str
    note: str = ""


class Desk(Protocol):
    """What a store offers for one document, under its lock."""

    def state(self) -> DocumentState | None:
        """What was kept last; None where that is lost, or about another log."""
        ...

    def keep(self, state: DocumentState) -> None:
        """Remember it, as far as that is possible: it can be lost at any time."""
        ...

    def intend(self, before: DocumentState | None, after: DocumentState) -> None:
        """Remember both: a file that looks as in the second was replaced, though nobody lived to say so."""
        ...

    def fresh(self, state: DocumentState | None, types: tuple[str, ...]) -> tuple[str, list[Event]]:
        """Where the log ends, and the events of these types behind the state; none where there is no state."""
        ...

    def past(self, place: str, types: tuple[str, ...]) -> Iterator[Event]:
        """The events of these types before a place in the log, newest first."""
        ...

    def mark(self, path: str) -> str:
        """What the file looks like now; it differs after every write."""
        ...

    def read(self, path: str) -> tuple[str, str]:
        """A file's text, and what it looked like before the first byte was read."""
        ...

    def append(self, path: str, mark: str, text: str) -> str | None:
        """Add text to the file if it still looks so, or has a part of this text already; how it looks then."""
        ...

    def replace(
        self, path: str, mark: str, text: str, written: Callable[[str], None], *, flushed: bool = True
    ) -> str | None:
        """Write a file anew, durably, if it still looks so; how it looks then, which `written` is told before."""
        ...


class _News(msgspec.Struct, frozen=True):
    """Where the log ends, and what a document has not been told yet, or not surely."""

    place: str
    fresh: Sequence[Event]
    past: PastEvents | None


class _Files:
    """The files as they were read, so that a change of any of them is noticed."""

    def __init__(self, desk: Desk, note: str) -> None:
        self._desk = desk
        self.note = note
        self._read: dict[str, tuple[str, str]] = {}

    def text(self, path: str) -> str:
        return self._seen(path)[0]

    def mark(self, path: str) -> str:
        return self._seen(path)[1]

    def _seen(self, path: str) -> tuple[str, str]:
        if path not in self._read:
            self._read[path] = self._desk.read(path)
        return self._read[path]


def follow_log(desk: Desk, projection: Projection, facts: Facts) -> None:
    """Let a document catch up. The caller holds its lock."""
    for _ in range(_TRIES):
        if _followed(desk, projection, facts):
            return
    raise Unavailable(
        f"somebody else goes on writing {projection.path}",
        "save it, then try again; the log has everything",
    )


def _followed(desk: Desk, projection: Projection, facts: Facts) -> bool:
    state = desk.state()
    place, fresh = desk.fresh(state, projection.types)
    mark = desk.mark(projection.path)
    ours = state is not None and state.mark == mark
    if state is not None and not fresh and ours:
        if place != state.place:
            desk.keep(DocumentState(place, mark, state.note))
        return True
    if state is not None and fresh and _extended(desk, projection, state, (place, fresh), facts):
        return True
    past = _past(desk, projection, state, place, ours=ours)
    return _rewritten(desk, projection, state, _News(place, fresh, past), facts)


def _past(
    desk: Desk, projection: Projection, state: DocumentState | None, place: str, *, ours: bool
) -> PastEvents | None:
    if ours:
        return None
    before = place if state is None else state.place
    return PastEvents(desk.past(before, projection.types), applied=state is not None)


def _extended(
    desk: Desk, projection: Projection, state: DocumentState, news: tuple[str, Sequence[Event]], facts: Facts
) -> bool:
    place, fresh = news
    more = projection.extend(state.note, fresh, facts)
    if more is None:
        return False
    mark = desk.append(projection.path, state.mark, more.text) if more.text else state.mark
    if mark is None or (not more.text and mark != desk.mark(projection.path)):
        return False
    desk.keep(DocumentState(place, mark, more.note))
    return True


def _rewritten(
    desk: Desk,
    projection: Projection,
    state: DocumentState | None,
    news: _News,
    facts: Facts,
) -> bool:
    place = news.place
    files = _Files(desk, state.note if state is not None and news.past is None else "")
    done = projection.rewrite(files, news.fresh, news.past, facts)
    mark = files.mark(projection.path)
    for path, text in done.texts.items():
        if text == files.text(path):
            continue
        main = path == projection.path
        intend = partial(_intend, desk, state, place, done.note) if main else _nothing
        written = desk.replace(path, files.mark(path), text, intend, flushed=done.flushed)
        if written is None:
            return False
        mark = written if main else mark
    desk.keep(DocumentState(place, mark, done.note))
    return True


def _intend(desk: Desk, state: DocumentState | None, place: str, note: str, written: str) -> None:
    desk.intend(state, DocumentState(place, written, note))


def _nothing(_written: str) -> None:
    """Files beside the document have no state of their own."""
