"""The portable view and the portable log as operations; the log is translated once for many followers.

Must not change anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from threading import Lock
from typing import Annotated, Any, Final

from aof.errors import InvalidInput
from aof.kernel import model as kernel_model
from aof.kernel.declarations import At, param
from aof.kernel.events import DELEGATED, Event
from aof.kernel.model import millis
from aof.kernel.operation import Spelling, method, operation
from aof.portable import schemas
from aof.portable.model import SCHEMA_VERSION, UNKNOWN, Life, Lives, SnapshotInput, active_runs, as_logged
from aof.portable.snapshot import KeptView
from aof.queries import history as queries_history
from aof.runs import model as runs_model
from aof.store import port
from aof.store.lists import DictAnswer
from aof.support import typed
from aof.support.printable import Say, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import CallContext, Environment
    from aof.runs.model import Heartbeat
    from aof.tasks.model import Task


class PortableSnapshot(DictAnswer):
    """The portable view: a document in the shape of the agent task contract."""

    __slots__ = ()

    @property
    def session_id(self) -> str:
        """The session that it is of."""
        return str(self["sessionId"])

    @property
    def sequence(self) -> int:
        """The event that it is after."""
        sequence: int = self["sequence"]
        return sequence

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """The tasks."""
        tasks: list[dict[str, Any]] = self["tasks"]
        return tasks

    @property
    def threads(self) -> list[dict[str, Any]]:
        """The conversations."""
        threads: list[dict[str, Any]] = self["threads"]
        return threads

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """The runs that are under way, and those that ended last."""
        attempts: list[dict[str, Any]] = self["attempts"]
        return attempts

    @property
    def blocked_tasks(self) -> list[dict[str, Any]]:
        """The tasks that are held, and why."""
        blocked_tasks: list[dict[str, Any]] = self["blockedTasks"]
        return blocked_tasks

    @property
    def task_summary(self) -> dict[str, Any]:
        """How many tasks are in which status."""
        task_summary: dict[str, Any] = self["taskSummary"]
        return task_summary

    @property
    def task_graph(self) -> dict[str, Any]:
        """How the tasks are connected."""
        task_graph: dict[str, Any] = self["taskGraph"]
        return task_graph


class PortableLog(DictAnswer):
    """What happened, in the words of the agent task contract."""

    __slots__ = ()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events in order."""
        events: list[dict[str, Any]] = self["events"]
        return events


Named = tuple[str, dict[str, Any]] | None
_HIDDEN = ("workLog", "key", "layout", "secretDigest", "keptBy")
_WAITS = {"waiting_input": "input", "waiting_permission": "permission", "waiting_resource": "resource"}


class Translation:
    """Translates a log, event by event from its beginning: what an event means depends on what came before it."""

    def __init__(self) -> None:
        self._lives = Lives()

    def line(self, event: Event) -> dict[str, Any] | None:
        """The portable line of the next event; None where that has no portable meaning."""
        named = _named(self._lives.by_id.get(event.task_id), event)
        self._lives.add(event)
        life = self._lives.by_id.get(event.task_id)
        return _line(self._lives, life, event, named) if named is not None and life is not None else None


def lines(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """The portable lines of a log that is read from its beginning."""
    translation = Translation()
    return (line for event in events if (line := translation.line(event)) is not None)


def _line(lives: Lives, life: Life, event: Event, named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    name, payload = named
    life = lives.by_id.get(payload.get("parentTaskId", ""), life) if name == DELEGATED else life
    line: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "type": name,
        "eventId": f"EVT-{event.seq}",
        "timestamp": event.timestamp,
        "sequence": event.seq,
        "sessionId": lives.session,
        "taskId": life.task.id,
    }
    if event.run_id is not None:
        line |= {"runId": event.run_id, "attemptId": event.run_id}
    native = "archive" if life.task.archived else life.task.status
    status = as_logged(life.task, millis(event.timestamp))
    return line | {"status": status, "nativeStatus": native, "payload": payload}


# These have their portable name already.
_SAME = frozenset({
    "task.accepted", "task.queued", "task.progress", "task.retrying", "task.cancel_requested", "task.timed_out",
    "task.lost", "task.archived", "task.dependency.updated", DELEGATED, "task.attempt.started",
    "task.attempt.completed", "task.attempt.failed",
})  # fmt: skip


def _named(life: Life | None, event: Event) -> Named:  # noqa: C901, PLR0911, PLR0912 - one case per type of event
    """The portable name of an event and what it tells; None where it has no portable meaning."""
    payload, by = event.payload, event.agent or event.actor
    if event.type in ("task.created", "task.restored"):
        if life is not None:
            return None
        task = payload["task"]
        told = {"title": task["title"], "parentTaskId": task.get("parentId"), "requestedBy": task.get("createdBy")}
        return "task.created", {name: value for name, value in told.items() if value is not None}
    if life is None:
        return None
    if event.type in _SAME:
        return event.type, _plain(event)
    match event.type:
        case "task.transitioned":
            return _moved(life, event)
        case "task.updated":
            return _updated(life, event)
        case "task.unarchived":
            return "task.updated", {"changed": ["archived"], "by": by}
        case "task.merged" if said := payload.get("conflicts"):  # else there is nothing to report of the merge
            return "task.updated", {"changed": ["merged"], "by": event.actor, "conflicts": said}
        case "task.link.added" | "task.link.removed":
            return "task.dependency.updated", _plain(event) | {"change": event.type.rpartition(".")[2]}
        case "task.delivery.updated":
            return "task.progress", {"deliveryState": _plain(event)}
        case "task.question.asked":
            asked = payload["question"]
            told = {"waitsFor": "input", "by": asked["by"], "questionId": asked["id"], "reason": asked["text"]}
            return "task.waiting", told
        case "task.question.answered" if life.task.status == "in-progress":
            # A run that waited goes on; a task that nobody runs is queued by another event.
            return "task.resumed", {"by": payload["by"], "questionId": payload["question"]}
        case "delegation.requested" if "handoffId" in payload and isinstance(payload.get("request"), dict):
            # By a message: the parent hands a child over.
            request = payload["request"]
            told = {"kind": "handoff", "targetId": event.task_id, "handoffId": payload["handoffId"]}
            return DELEGATED, told | {"agent": request["toAgent"], "parentTaskId": request["parentTaskId"]}
        case "handoff.initiated":  # by the engine: the task itself goes to another agent
            handoff = payload["handoff"]
            told = {"kind": "handoff", "targetId": handoff["to_agent"], "handoffId": payload["handoffId"]}
            return DELEGATED, told | {"handoffType": handoff["type"]}
    return None


def _plain(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.payload.items() if name not in _HIDDEN}


def _updated(life: Life, event: Event) -> Named:
    """What was changed, by name only: bodies are not for events. A task that came to be at a peer is one to name."""
    changed = list(event.payload.get("fields", ()))
    if changed == ["metadata"]:
        for name, value in (event.payload["changes"]["metadata"] or {}).items():
            if name.partition(":")[0] == "remote" and isinstance(value, dict) and value.get("remoteTaskId"):
                before = life.task.metadata.get(name)
                if not isinstance(before, dict) or before.get("remoteTaskId") != value["remoteTaskId"]:
                    agent = value.get("remoteAgentRef", UNKNOWN)
                    return DELEGATED, {"kind": "peer", "targetId": value["remoteTaskId"], "agent": agent}
    if changed == ["parentId"]:
        parent = event.payload["changes"]["parentId"] or UNKNOWN
        return "task.dependency.updated", {"kind": "parent", "targetId": parent}
    return ("task.updated", {"changed": changed, "by": event.agent or event.actor}) if changed else None


def _moved(life: Life, event: Event) -> Named:  # noqa: PLR0911 - one case per status
    """A transition, by the status that the task has come to."""
    payload = event.payload
    told: dict[str, Any] = {"from": payload["from"], "to": payload["to"]}
    told |= {"reason": payload["reason"]} if payload.get("reason") is not None else {}
    paused = life.task.blocked is not None and life.task.blocked.kind == "paused"
    match payload["to"]:
        case "ready":  # from a pause the task is resumed; from anywhere else it waits for a run again
            return ("task.resumed" if paused else "task.queued"), told
        case "backlog" if paused:
            return "task.resumed", told
        case "in-progress" if not life.attempts:  # later runs show as attempts only
            return "task.started", told
        case "review":
            return "task.waiting", told | {"waitsFor": "permission"}
        case "blocked":
            held = payload["blocked"]
            if held["kind"] in _WAITS:
                return "task.waiting", told | {"waitsFor": _WAITS[held["kind"]], "by": held["by"]}
            blocker = {"blockerId": held["dependency"]} if held.get("dependency") is not None else {}
            return ("task.paused" if held["kind"] == "paused" else "task.blocked"), told | {"by": held["by"]} | blocker
        case "done":
            return "task.completed", told | ({"by": payload["by"]} if payload.get("by") is not None else {})
        case "cancelled":
            return "task.cancelled", told
        case "deadletter":  # a limit that fired and a worker that vanished have events of their own
            error = payload.get("error") or {}
            return ("task.failed", told | {"error": error}) if error.get("cause", "failed") == "failed" else None
    return None


_OFTEN = 1_000  # events
_MOST_KEPT = 20_000  # tasks; each takes about 5 KB


@operation(
    effect="read",
    verb="admin snapshot",
    answer=schemas.snapshot_schema,
    section="data",
    order=110,
    former=("snapshot",),
    example="aof admin snapshot --json",
    python_only=("say",),
)
def snapshot(
    context: CallContext,
    *,
    at: At | None = None,
    archived: Annotated[bool, param("also what was archived")] = False,
    say: Say = silent,
) -> PortableSnapshot:
    """All tasks, their graph and what is blocked, in a portable form.

    As they are, or `at` an event: as they were then, by the log alone.
    """
    return PortableSnapshot(context.environment.portable.snapshot(at=at, archived=archived, say=say))


@operation(
    effect="read",
    verb="log --format agentruntime",
    answer=schemas.events_schema,
    wire_types={"return": "aof.queries.results.PortableEvents"},
)
def portable_log(
    context: CallContext,
    task_id: Annotated[str, param("only this task", Spelling(place="ID"))] | None = None,
    *,
    after: Annotated[int, param("only events with a greater number", Spelling(metavar="SEQ"), ge=0)] = 0,
    type: Annotated[str, param("only events of this type")] | None = None,  # noqa: A002 - what it is called everywhere
    limit: Annotated[int, param("only the last N events", ge=0)] | None = None,
) -> PortableLog:
    """What happened, as portable events.

    In the words of the agent task contract; what has no such word is left out.
    """
    fits = _wanted(context.environment, task_id, after, type, limit)
    with typed.uncollected():
        found = deque(filter(fits, lines(context.environment.store.events())), maxlen=limit)
    return PortableLog({"events": list(found)})


@method
def portable_follow(
    context: CallContext,
    task_id: str | None = None,
    *,
    after: int = 0,
    type: str | None = None,  # noqa: A002 - as above
    limit: int | None = None,
    timeout: float = 60.0,
) -> Iterator[dict[str, Any]]:
    """The same, of the past no more than `limit`, and then as it comes; ends when nothing came for so long."""
    store = context.environment.store
    fits, translation, seen = _wanted(context.environment, task_id, after, type, limit), Translation(), 0
    past: deque[dict[str, Any]] = deque(maxlen=limit)
    for event in store.events():
        line, seen = translation.line(event), event.seq
        if line is not None and fits(line):
            past.append(line)
        if limit is None and past:
            yield past.pop()
    yield from past
    while store.wait(seen, timeout):
        for event in store.events(seen):
            line, seen = translation.line(event), event.seq
            if line is not None and fits(line):
                yield line


def _wanted(
    environment: Environment, task_id: str | None, after: int, kind: str | None, limit: int | None
) -> Callable[[dict[str, Any]], bool]:
    """Which lines are asked for; refuses a limit that is none, and a task that is not there."""
    if limit is not None and limit < 0:
        raise InvalidInput(f"limit {limit} is not a whole number from zero up", "give a number such as 20")
    wanted = environment.lookup.get(task_id).id if task_id is not None else None
    return lambda line: line["sequence"] > after and wanted in (None, line["taskId"]) and kind in (None, line["type"])


class PortableService:
    """Makes portable snapshots, and keeps what it has read for the next one."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._store = environment.store
        self._turn = Lock()
        self._kept: KeptView | None = None

    def snapshot(self, *, at: int | str | None = None, archived: bool = False, say: Say = silent) -> dict[str, Any]:
        """The portable view of all tasks as they are, or `at` an event: as they were then, by the log alone."""
        if at is not None:
            seq = queries_history.number_of(self._store, at)
            with typed.uncollected():
                return self._past(seq, archived, say)
        with self._turn, typed.uncollected():
            return self._present(archived, say)

    def _past(self, at: int, archived: bool, say: Say) -> dict[str, Any]:  # noqa: FBT001 - passed on
        view = KeptView(self._environment.policy)
        self._tell(view, takewhile(lambda event: event.seq <= at, self._store.events()), say)
        given = SnapshotInput(
            view.lives, view.relations, self._environment.policy, chart=self._environment.chart.readable()
        )
        return view.snapshot(given, view.shown(archived=archived))

    def _present(self, archived: bool, say: Say) -> dict[str, Any]:  # noqa: FBT001 - passed on
        """The tasks as they are; what was kept is given back only whole, so that a fault on the way costs only time."""
        kept, self._kept = self._kept, None
        view = self._caught_up(kept, say)
        now, shown = self._environment.clock.now(), view.shown(archived=archived)
        given = SnapshotInput(
            view.lives,
            view.relations,
            self._environment.policy,
            now=now,
            chart=self._environment.chart.readable(),
            beats=self._beats(view, now),
            odd=self._odd(life.task for life in shown),
        )
        answer = view.snapshot(given, shown)
        if len(view.lives.by_id) <= _MOST_KEPT:
            self._kept = view
        return answer

    def _caught_up(self, kept: KeptView | None, say: Say) -> KeptView:
        """What was kept, with the news; a log that another one took the place of is read from its beginning."""
        if kept is not None and kept.lives.seq:
            news = self._store.events(kept.lives.seq - 1)
            last = next(news, None)
            if last is not None and (last.seq, last.hash) == (kept.lives.seq, kept.lives.last_hash):
                return self._tell(kept, news, say)
        return self._tell(KeptView(self._environment.policy), self._store.events(), say)

    @staticmethod
    def _tell(view: KeptView, events: Iterable[Event], say: Say) -> KeptView:
        add = view.lives.add
        for event in events:
            if event.seq % _OFTEN == 0:
                say(f"{event.seq:,} events")
            add(event)
        view.follow()
        return view

    def _beats(self, view: KeptView, now: int) -> dict[str, Heartbeat]:
        """The last sign of life of each run that goes on."""
        boot, lives = self._environment.clock.boot(), view.lives.by_id
        running = [one.run for task_id in view.relations.restless for one in active_runs(lives[task_id])]
        read = self._store.heartbeats([kernel_model.run_place(run.task_id, run.hop) for run in running])
        beats = (runs_model.present_heartbeat(beat, now, boot) for beat in read.values())
        return {beat.run_id: beat for beat in beats if beat is not None}

    def _odd(self, tasks: Iterable[Task]) -> dict[str, str]:
        """What people did to files. A file that somebody is writing right now is looked at again when that is over."""
        found: dict[str, str] = {}
        files = self._store.working_copy
        if files is None:
            return found
        for task in files.odd_files(tasks):
            with self._store.unit(port.Scope(read=frozenset({task.id}))):
                odd = files.file_status(task)
            if odd is not None:
                found[task.id] = odd
        return found


Line = dict[str, Any]
Page = tuple[int, list[Line]]  # the last event that was looked at, and what is portable up to it
_KEPT: Final = 2_000  # lines
_PAGE: Final = 500  # lines


class PortableFeed:
    """The lines after any event. Several threads may ask at once."""

    def __init__(self, events: Callable[[int], Iterator[Event]]) -> None:
        self._events = events
        self._lock = Lock()
        self._begin_again()

    def _begin_again(self) -> None:
        self._translation = Translation()
        self._last: Event | None = None
        self._kept: deque[Line] = deque(maxlen=_KEPT)
        self._from = 0  # every line after this event is kept

    def after(self, seq: int) -> Page | None:
        """A page of lines after the event; None where they are not kept any more."""
        with self._lock:
            self._catch_up()
            if seq < self._from:
                return None
            page = list(islice((line for line in self._kept if line["sequence"] > seq), _PAGE))
            head = self._last.seq if self._last is not None else 0
        return page[-1]["sequence"] if len(page) == _PAGE else max(head, seq), page

    def past(self, seq: int) -> Iterator[Page]:
        """Pages of lines after the event, up to where the last lines are kept from."""
        until = self._from
        found = (line for line in lines(self._until(until)) if line["sequence"] > seq)
        while page := list(islice(found, _PAGE)):
            yield page[-1]["sequence"], page
        yield until, []

    def _until(self, seq: int) -> Iterator[Event]:
        for event in self._events(0):
            if event.seq > seq:
                return
            yield event

    def _catch_up(self) -> None:
        """Translate what has come. A log that another one has taken the place of is read from its beginning."""
        last = self._last
        news = self._events(last.seq - 1 if last is not None else 0)
        if last is not None and next(news, None) != last:
            self._begin_again()
            news = self._events(0)
        with typed.uncollected():
            for event in news:
                self._add(event)

    def _add(self, event: Event) -> None:
        line = self._translation.line(event)
        self._last = event
        if line is None:
            return
        if len(self._kept) == _KEPT:
            self._from = self._kept[0]["sequence"]
        self._kept.append(line)
