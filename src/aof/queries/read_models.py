"""Lists, and one task with all that belongs to it, page by page. Changes nothing, except that it imports edits."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from aof.errors import Call, EditWaits, InvalidInput, UnreadableTask
from aof.kernel import model as kernel_model
from aof.kernel import unit_of_work
from aof.kernel.model import FINISHED, PRIORITIES, STATUSES, is_task_id
from aof.queries import views
from aof.runs import model as runs_model
from aof.store import port
from aof.store.lists import DictAnswer, Query, Row, Rows
from aof.support import nesting
from aof.support.typed import prepare_type
from aof.tasks import body, graph
from aof.workflows import model as workflows_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, TypeVar, Unpack

    from aof.errors import AofError
    from aof.handoffs.model import Handoff
    from aof.kernel.context import Lookup
    from aof.kernel.kinds import Priority, Status
    from aof.kernel.model import Policy
    from aof.org.chart_in_force import ChartInForce
    from aof.queries.operations import Filters
    from aof.runs.model import Heartbeat
    from aof.store.lists import Place, Span
    from aof.store.port import Clock, Store, Unit
    from aof.tasks.model import Task

if TYPE_CHECKING:
    _Item = TypeVar("_Item")


class ShownTask(DictAnswer):
    """One task with all that belongs to it: what every task has as properties, the rest by the names that JSON has."""

    __slots__ = ()

    @property
    def id(self) -> str:
        """The task's ID."""
        return str(self["id"])

    @property
    def title(self) -> str:
        """The task's title."""
        return str(self["title"])

    @property
    def status(self) -> Status:
        """The task's status."""
        status: Status = self["status"]
        return status

    @property
    def priority(self) -> Priority:
        """The task's priority."""
        priority: Priority = self["priority"]
        return priority

    @property
    def rev(self) -> int:
        """The task's revision."""
        rev: int = self["rev"]
        return rev

    @property
    def body(self) -> str:
        """The task's text: description, comments, work log."""
        return str(self.get("body", ""))

    @property
    def waits(self) -> str | None:
        """What a task in `ready` waits for, in words; None where it can be claimed."""
        return self.get("waits")

    @property
    def result(self) -> dict[str, Any] | None:
        """What the last run reported; None where none has."""
        return self.get("result")

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """The runs, the first one first."""
        return list(self.get("attempts", ()))


class Listed(DictAnswer):
    """A page of tasks, how many match in all, and the cursor of the next page where there is one."""

    __slots__ = ()

    def __init__(self, *, total: int, tasks: tuple[Row, ...], next_cursor: str | None = None) -> None:
        super().__init__(total=total, tasks=tasks)
        if next_cursor is not None:
            self["nextCursor"] = next_cursor

    @property
    def total(self) -> int:
        """How many match."""
        count: int = self["total"]
        return count

    @property
    def tasks(self) -> tuple[Row, ...]:
        """The page."""
        rows: tuple[Row, ...] = self["tasks"]
        return rows

    @property
    def next_cursor(self) -> str | None:
        """What the next page is asked for with."""
        return self.get("nextCursor")


class TasksThen(DictAnswer):
    """Every task as it was after an event."""

    __slots__ = ()

    @property
    def seq(self) -> int:
        """The number of the event."""
        seq: int = self["seq"]
        return seq

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """The tasks."""
        tasks: list[dict[str, Any]] = self["tasks"]
        return tasks


class Summary(Listed):
    """The tasks that match, counted by status."""

    __slots__ = ()

    def __init__(
        self, *, total: int, by_status: dict[str, int], tasks: tuple[Row, ...], next_cursor: str | None = None
    ) -> None:
        super().__init__(total=total, tasks=tasks, next_cursor=next_cursor)
        self["byStatus"] = by_status

    @property
    def by_status(self) -> dict[str, int]:
        """How many are in each status that there is."""
        counts: dict[str, int] = self["byStatus"]
        return counts


_WAITING = "waiting"  # what lists call a task that is ready and cannot be claimed yet
_NAMED = 1_000  # tasks that are asked for by their IDs
_READ_MODELS_LONGEST: Final = 500  # characters that can be searched for
# What a list can be sorted by, and the order that this is.
SORTS: Final = {
    "id": "id",
    "priority": "schedule",
    "created": "created",
    "updated": "updated",
    "due": "due",
    "title": "title",
    "status": "status",
    "relevance": "relevance",
}
_EXPLAINED = 200  # rows of a list that say what they wait for; those after them only say that they do


class ReadModels:
    """What lists and views are made of."""

    def __init__(self, store: Store, clock: Clock, policy: Policy, chart: ChartInForce, lookup: Lookup) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._chart = chart
        self._lookup = lookup

    def query(self, **given: Unpack[Filters]) -> Query:
        """The filters that all lists share, checked."""
        status, limit = given.get("status"), given.get("limit")
        wanted = (status,) if isinstance(status, str) else tuple(status or ())
        for name in wanted:
            _status(name)
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InvalidInput(f"limit {limit!r} is not a whole number from zero up", "give a number such as 20")
        if (priority := given.get("priority")) is not None:
            _choice("priority", priority, PRIORITIES)
        if (sort := given.get("sort")) is not None:
            _choice("sort", sort, tuple(SORTS))
        if (search := given.get("search")) is not None and len(search) > _READ_MODELS_LONGEST:
            raise InvalidInput(
                f"the search has {len(search):,} characters, the limit is {_READ_MODELS_LONGEST}", "give a few words"
            )
        if sort == "relevance" and search is None:
            raise InvalidInput("without 'search', nothing is relevant", "sort by something else", parameter="sort")
        parent, cursor = given.get("parent_id"), given.get("cursor")
        order, reverse = SORTS[sort or "id"], given.get("reverse", False)
        return Query(
            status=wanted,
            agent=given.get("agent"),
            tag=given.get("tag"),
            search=search,
            priority=priority,
            parent_id=self._lookup.resolve(parent) if parent is not None else None,
            created=self._span(given, "created_after", "created_before"),
            updated=self._span(given, "updated_after", "updated_before"),
            due=self._due(given),
            unfinished=given.get("overdue", False),
            archived=given.get("archived", False),
            order=order,
            reverse=reverse,
            limit=limit,
            behind=open_cursor(cursor, order, reverse=reverse) if cursor is not None else None,
        )

    def _span(self, given: Filters, since: str, before: str) -> Span:
        return self._moment(since, given.get(since)), self._moment(before, given.get(before))

    def _due(self, given: Filters) -> Span:
        """What is overdue was due before now."""
        before = self._moment("due_before", given.get("due_before"))
        if not given.get("overdue"):
            return None, before
        now = kernel_model.iso(self._clock.now())
        return None, now if before is None else min(now, before)

    def _moment(self, name: str, said: object) -> str | None:
        """A moment as it is compared; a day is its first one."""
        if said is None:
            return None
        from aof.kernel import limits as kernel_limits

        found = kernel_limits.moment(name, str(said), self._clock.now())
        if isinstance(found, InvalidInput):
            raise found
        return kernel_model.iso(kernel_model.millis(found))

    def listed(self, query: Query, *, waits: bool | None = None, full: bool = False) -> Listed:
        """Tasks in the order that was asked for; in full with what a card of a board says.

        With `waits`, only what is ready: what waits for something, or what can be claimed.
        """
        if waits is not None:
            query = query.but(waiting=waits, **self._queued_now())
        page = self.page(query, full=full)
        return Listed(total=page.total, tasks=page.rows, next_cursor=_next(query, page))

    def runnable(self, query: Query) -> Query:
        """The query for tasks that wait for nothing; a queue has an order of its own and is read from its front."""
        own_order = {"order": "schedule", "reverse": False, "behind": None}
        return query.but(unrouted_too=query.agent is not None, **own_order, **self._queued_now())

    def _queued_now(self) -> dict[str, Any]:
        """What tells the tasks apart that can be claimed now and those that wait."""
        slots = self._policy.resource_slots
        used = dict.fromkeys(slots, 0) | self._store.resources_in_use()
        busy = tuple(resource for resource, count in used.items() if count >= slots.get(resource, 1))
        return {"runnable_at": kernel_model.iso(self._clock.now()), "busy_resources": busy}

    def summary(self, query: Query, *, compact: bool = False) -> Summary:
        """Counts by status; the tasks too, unless it should be short."""
        page = self.page(query.but(limit=0) if compact else query)
        cursor = _next(query, page)
        return Summary(total=page.total, by_status=page.by_status, tasks=page.rows, next_cursor=cursor)

    def page(self, query: Query, *, full: bool = False) -> Rows:
        """Rows as the store has them; records are read only where there is something to note of them."""
        if self._chart.noting() is None and not full:
            page = self._store.rows(query)
            self._mark_overdue(page.rows)
        else:
            found = self._store.find(query)
            page = Rows(found.by_status, self.rows(found.tasks), found.end)
            if full:
                below = self._store.child_counts([task.id for task in found.tasks])
                above = {task.parent_id for task in found.tasks if task.parent_id is not None}
                titles = {task.id: task.title for task in self._store.records(above)} if above else {}
                for row, task in zip(page.rows, found.tasks, strict=True):
                    row.update(_card(task, below.get(task.id, {}), titles))
        self._explain(query, page)
        return page

    def _explain(self, query: Query, page: Rows) -> None:
        """Say of each task in `ready` that cannot be claimed what it waits for."""
        queued = [row for row in page.rows if row.status == "ready"]
        if not queued or (query.runnable_at is not None and not query.waiting):
            return
        among = tuple(row.id for row in queued) if len(queued) <= _NAMED else None  # of more, all are asked for
        asked = Query(status=("ready",), among=among, agent=query.agent, counted=False)
        claimable = set() if query.waiting else {row.id for row in self._store.rows(self.runnable(asked)).rows}
        waiting = [row for row in queued if row.id not in claimable]
        if waiting:
            now = self._clock.now()
            told = views.waits(self._store, self._policy, [row.id for row in waiting[:_EXPLAINED]], now)
            for row in waiting:
                row["waits"] = told.get(row.id, "waits")

    def _mark_overdue(self, rows: Iterable[Row]) -> None:
        dated = [row for row in rows if row.due is not None and row.status not in FINISHED]
        now = kernel_model.iso(self._clock.now()) if dated else ""
        for row in dated:
            if kernel_model.end_of(str(row.due)) < now:
                row["overdue"] = True

    def rows(self, tasks: Iterable[Task]) -> tuple[Row, ...]:
        """Tasks as lines, each with why it is blocked or what else is to be noted of it."""
        tasks = tuple(tasks)
        if not tasks:
            return ()
        note = self._chart.noting() or (lambda _task: None)
        files = self._store.working_copy
        rows = tuple(
            Row.of(
                task,
                task.blocked.reason if task.blocked else note(task),
                files.file_status(task) if files is not None else None,
            )
            for task in tasks
        )
        self._mark_overdue(rows)
        return rows

    def show(self, task_id: str) -> dict[str, Any]:
        """The whole of one task; with `problem`, where its file holds something that cannot be imported."""
        task, problem = self._known(task_id)
        own = frozenset({task.id})
        with self._store.unit(port.Scope(read=own) if problem is None else port.Scope(write=own)) as unit:
            heartbeat, result = _last_beat(unit, task), unit.result(task.id)
            ends = {
                held.run_id: runs_model.lease_end(held, unit.heartbeat(at))
                for at, held in workflows_model.held_leases(task)
            }
            relationships = _relationships(task, unit.children(task.id), unit.dependents(task.id))
            handed = unit.handoffs(task.id) if any(link.kind == "handoff" for link in task.links) else ()
        shown: dict[str, Any] = msgspec.to_builtins(task)
        for part in (shown, *shown.get("workflow", {}).get("hops", ())):
            if (held := part.get("lease")) is not None:
                held["expiresAt"] = kernel_model.iso(ends[held["runId"]])
        shown.pop("layout", None)
        shown.pop("archived", None)
        shown |= {"body": task.body, "filePath": self._store.path_of(task)}
        now = self._clock.now()
        shown["normalizedStatus"] = graph.normalized_status(
            task, runs_model.present_heartbeat(heartbeat, now, self._clock.boot()), now
        )
        if said := body.comments_of(task.body):
            shown["comments"] = [msgspec.to_builtins(one) for one in said]
        runs = self._store.attempts(task.id)
        if problem is not None:
            shown |= _problem(problem)
        shown["attempts"] = [msgspec.to_builtins(run) for run in runs]
        if runs and (end := views.end_of(self._store, runs[-1])):
            shown["attempts"][-1]["end"] = end
        if waits := views.waits(self._store, self._policy, (task.id,), now) if task.status == "ready" else {}:
            shown["waits"] = waits[task.id]
        shown["relationships"] = relationships
        if below := [edge["targetId"] for edge in relationships if edge["kind"] == "child"]:
            tasks = self._store.records(below)
            told = [msgspec.to_builtins(one) for one in views.children_standing(self._store, tasks)]
            by_status = dict(Counter(child.status for child in tasks))
            shown["children"] = _counted(by_status) | {"byStatus": by_status, "tasks": told}
        if handed:
            shown["handoffs"] = [_handed(one) for one in handed]
        shown["progress"] = task.progress or {"state": "unknown"}
        if isinstance(result, msgspec.Struct):
            shown["result"] = msgspec.to_builtins(result)
        return shown

    def _known(self, task_id: str) -> tuple[Task, AofError | None]:
        """The task as it is, else as the log has it, with what is wrong about its file, or waits in it."""
        try:
            known = self._lookup.get(task_id)
            return known, self._waiting(known)
        except UnreadableTask as problem:
            name = self._lookup.resolve(task_id)
            with self._store.unit(port.Scope(write=frozenset({name}))) as unit:
                task = unit.task(name)
            if task is None:
                raise
            return task, problem

    def _waiting(self, task: Task) -> AofError | None:
        """The edit of the task's file that waits for a maintainer, where edits may have to."""
        files, binds = self._store.working_copy, self._policy.strict or self._chart.readable() is not None
        if files is None or not binds or files.file_status(task) is None:
            return None
        return unit_of_work.refusal(self._store, self._clock, self._chart.readable_policy, task.id)


def _card(task: Task, below: dict[str, int], titles: dict[str, str]) -> dict[str, Any]:
    """What a card says of a task beside its row; what there is none of is left out."""
    routing, progress = task.routing, task.progress if task.status == "in-progress" else {}
    told = {
        "since": task.blocked.since if task.blocked is not None else task.last_transition_at,
        "parentId": task.parent_id,
        "parentTitle": titles.get(task.parent_id or ""),
        "tags": routing.tags,
        "role": routing.role,
        "team": routing.team,
        "progress": {name: progress[name] for name in ("percent", "text") if progress.get(name) is not None},
        "children": _counted(below) if below else None,
        "authors": _authors(task) if task.status == "review" else (),
        "attempts": task.retry.attempts,
    }
    return {name: value for name, value in told.items() if value}


def _authors(task: Task) -> tuple[str, ...]:
    """The agents whose work waits for a verdict."""
    if task.gated:
        hops = task.workflow["hops"]
        return tuple(dict.fromkeys(hop["agent"] for hop in hops if hop["status"] == "review" and hop.get("agent")))
    return tuple(one for one in task.retry.agents if one in task.retry.ran_by) or task.retry.agents


def _problem(problem: AofError) -> dict[str, Any]:
    """What is wrong about the file; while an edit waits, the task is as the log has it."""
    told = {"problem": {"code": problem.code, "message": problem.message, "hint": problem.hint}}
    if isinstance(problem, EditWaits):
        return told
    return told | {"normalizedStatus": "stale" if "reason" in problem.details else "unknown"}


def _counted(by_status: Mapping[Any, int]) -> dict[str, int]:
    finished = sum(count for status, count in by_status.items() if status in FINISHED)
    return {"total": sum(by_status.values()), "done": by_status.get("done", 0), "finished": finished}


def _status(given: str) -> None:
    if given == _WAITING:
        what = "'waiting' is no status: such a task is ready, and waits for something"
        raise InvalidInput(what, "list what waits", Call("list", {"waits": True}), parameter="status")
    _choice("status", given, STATUSES)


def _choice(name: str, given: object, there: Sequence[str]) -> None:
    if given in there:
        return
    from aof.kernel import limits as kernel_limits  # which only a refusal needs

    problem = kernel_limits.choice(name, given, there)
    assert problem is not None
    raise problem


def _next(query: Query, page: Rows) -> str | None:
    """The cursor of the next page; a page of nothing has no place to go on from."""
    return make_cursor(page.end, query.order, reverse=query.reverse) if page.end is not None else None


def _handed(one: Handoff) -> dict[str, str]:
    """A handoff in short, with why it ended and by whom; its own operation shows the rest."""
    told = {"id": one.id, "type": one.type, "state": one.state, "fromAgent": one.from_agent, "toAgent": one.to_agent}
    answer = one.acceptance if not one.is_open else None
    reason = one.closed_reason or (answer.reason if answer is not None and answer.status == "rejected" else None)
    by = answer.by if answer is not None and answer.status == "rejected" else None
    return told | {name: said for name, said in (("reason", reason), ("by", by)) if said}


def _last_beat(unit: Unit, task: Task) -> Heartbeat | None:
    """The sign of life of its run; of several hops the one that lasts longest."""
    beats = [beat for place in task.run_places if (beat := unit.heartbeat(place)) is not None]
    return max(beats, key=lambda beat: beat.expires_at, default=None)


def _relationships(task: Task, children: tuple[str, ...], dependents: tuple[str, ...]) -> list[dict[str, str]]:
    edges = [("parent", task.parent_id)] if task.parent_id else []
    edges += [("child", child) for child in children]
    edges += [("blocked_by", blocker) for blocker in task.depends_on]
    edges += [("blocks", dependent) for dependent in dependents]
    edges += [(link.kind, link.target_id) for link in task.links]
    return [{"kind": kind, "targetId": target} for kind, target in edges]


_CURSORS_LONGEST = 2_000
_URL_SAFE, _FROM_URL = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
_DIGITS = 15  # of the number of an event
_Cursor = tuple[str, bool, str | int, str]  # order, whether it is reversed, and the place in it


def make_cursor(place: Place, order: str, *, reverse: bool) -> str:
    """The cursor of a place in an order."""
    return _cursor(order, reverse, *place)


def _cursor(*parts: str | int) -> str:
    """A cursor: a list as JSON, in base64. A plain one is written here, because lists load no msgspec."""
    texts = "".join(part for part in parts if isinstance(part, str))
    if texts.isascii() and texts.isprintable() and '"' not in texts and "\\" not in texts:
        words = (f'"{part}"' if isinstance(part, str) else str(part).lower() for part in parts)
        data = f"[{','.join(words)}]".encode()
    else:
        data = msgspec.json.encode(parts)
    return b2a_base64(data, newline=False).translate(_URL_SAFE).decode().rstrip("=")


def _read_cursor(cursor: str) -> bytes:
    """The JSON of a cursor; raises ValueError."""
    word = cursor.encode("ascii") if len(cursor) <= _CURSORS_LONGEST else b""
    return a2b_base64(word.translate(_FROM_URL) + b"=" * (-len(word) % 4))


def open_cursor(cursor: str, order: str, *, reverse: bool) -> Place:
    """The place that a cursor stands for; refused where it is none, or is one of a list in another order."""
    try:
        text = _read_cursor(cursor)
        nesting.refuse_nesting(text)
        found = msgspec.json.decode(text, type=prepare_type(_Cursor))
    except (ValueError, msgspec.DecodeError):
        raise _unknown("this is not a cursor of a list") from None
    made_for, made_reversed, key, task_id = found
    if (made_for, made_reversed) != (order, reverse):
        raise _unknown("this cursor belongs to a list in another order")
    if not is_task_id(task_id) or (isinstance(key, int) and not 0 <= key < _CURSORS_LONGEST):
        raise _unknown("this is not a cursor of a list")
    return key, task_id


def place_in(listing: str, *place: str | int) -> str:
    """The cursor of a place in a list of something else than tasks, such as `inbox`."""
    return _cursor(listing, False, *place)  # noqa: FBT003 - as in a cursor of tasks, which may be reversed


def found_in(listing: str, cursor: str, parts: int) -> tuple[str, ...]:
    """The place in such a list, as so many texts; refused where it is none, or one of another list."""
    try:
        found = nesting.decode_json(_read_cursor(cursor), list[str | bool])
    except (ValueError, msgspec.DecodeError):
        raise _unknown("this is not a cursor of this list", listing) from None
    place = tuple(part for part in found[2:] if isinstance(part, str))
    if found[:2] != [listing, False] or len(place) != parts:
        raise _unknown("this cursor belongs to another list", listing)
    return place


def number_in(listing: str, cursor: str) -> int:
    """The place in a list that is ordered by the numbers of events."""
    (text,) = found_in(listing, cursor, 1)
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise _unknown("this is not a cursor of this list", listing)
    return int(text)


def paged(
    listing: str,
    items: Iterable[_Item],
    place: Callable[[_Item], tuple[str, ...]],
    *,
    limit: int | None,
    cursor: str | None,
    newest_first: bool = False,
) -> tuple[tuple[_Item, ...], str | None]:
    """A page of a list that is at hand, in the order of its places, and the cursor of the next page where there is one.

    The last part of a place is unique, so a page begins behind the same item also when others came or went.
    """
    rest = list(items)
    if cursor is not None and rest:
        behind = found_in(listing, cursor, len(place(rest[0])))
        rest = [one for one in rest if (place(one) < behind if newest_first else place(one) > behind)]
    page = tuple(rest if limit is None else rest[:limit])
    return page, place_in(listing, *place(page[-1])) if page and len(rest) > len(page) else None


def _unknown(what: str, listing: str = "list") -> InvalidInput:
    hint = "give 'nextCursor' of the page before, with the same filters and order; without a cursor, a list begins anew"
    return InvalidInput(what, hint, Call(listing, {"limit": 50}), parameter="cursor")
