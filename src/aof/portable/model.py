"""The data behind portable snapshots: references, the history of each task, and relations between tasks.

Must not read anything.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple, NoReturn

from aof.errors import AofError
from aof.handoffs.model import Handoff, evolve_handoff
from aof.kernel.commands import Records
from aof.kernel.events import Event, about_handoff, is_remark
from aof.kernel.evolve import evolve
from aof.kernel.model import FINISHED, Policy, millis, split_task_id
from aof.org.model import OrgChart
from aof.runs.model import Heartbeat, Run, RunResult, evolve_run, lease_end, result_of
from aof.tasks.graph import Normalized, normalized_status, readiness
from aof.tasks.model import Task
from aof.workflows.model import leases


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("this is shared with others and cannot be changed; make a copy first, such as with copy.deepcopy")


class FrozenDict(dict[str, Any]):
    """A dict that stays as it is."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {name: deepcopy(value, memo) for name, value in self.items()}

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that stays as it is."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [deepcopy(value, memo) for value in self]

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        return list, (list(self),)


_EMPTY_DICT, _EMPTY_LIST = FrozenDict(), FrozenList()


def freeze(value: Any) -> Any:
    """The same value, with every dict, list and tuple in it as one that cannot be changed."""
    kind = type(value)
    if kind is dict:
        return FrozenDict({name: freeze(one) for name, one in value.items()}) if value else _EMPTY_DICT
    if kind is list or kind is tuple:
        return FrozenList([freeze(one) for one in value]) if value else _EMPTY_LIST
    return value


SCHEMA_VERSION: Final = "1"
UNKNOWN: Final = "unknown"
NOT_APPLICABLE: Final = "not_applicable"
SHORT: Final = 500  # characters of any text; the whole is where its ref leads


_MISSING: Final = {word: FrozenDict(state=word) for word in (UNKNOWN, NOT_APPLICABLE)}


def missing_object(word: str = UNKNOWN) -> dict[str, Any]:
    """An object that is not there."""
    return _MISSING[word]


def shortened(text: str) -> str:
    """A text for people, cut where it is long."""
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def task_ref(task_id: str, seq: int) -> str:
    """A task as it was after an event."""
    return f"aof://tasks/{task_id}?at={seq}"


def file_ref(task_id: str, path: str) -> str:
    """A file among the task's own, by its path below the task's folder."""
    return f"aof://tasks/{task_id}/{path.removeprefix('./')}"


def run_ref(run_id: str, name: str) -> str:
    """A file of a run."""
    return f"aof://runs/{run_id}/{name}"


def event_ref(seq: int) -> str:
    """An event."""
    return f"aof://log/{seq}"


def log_ref(first: int, last: int) -> str:
    """A range of the log."""
    return f"aof://log/{first}-{last}"


def handoff_ref(handoff_id: str) -> str:
    """A handoff's record."""
    return f"aof://handoffs/{handoff_id}"


def job_ref(job_id: str) -> str:
    """A job's record."""
    return f"aof://jobs/{job_id}"


_MAKING = frozenset({"task.created", "task.restored", "task.updated", "task.dependency.updated"})


class Attempt:
    """One run: the events that it began with and reported by, and the last one to go on from."""

    __slots__ = ("began", "checkpoint", "digests", "output", "reported", "result", "run")

    def __init__(self, run: Run, began: int) -> None:
        self.run = run
        self.began = began
        self.result: RunResult | None = None
        self.reported: int | None = None
        self.checkpoint: int | None = None
        self.output: dict[str, Any] = {}
        self.digests: dict[str, str] = {}


class Review:
    """A verdict on a result: by whom, when and why."""

    __slots__ = ("at", "by", "reason", "seq")

    def __init__(self, event: Event) -> None:
        self.seq = event.seq
        self.at = event.timestamp
        self.by = str(event.payload.get("by") or event.payload.get("agent") or event.agent or event.actor)
        self.reason = str(event.payload.get("reason") or "approved")


class Life:
    """The history of one task, as the log tells it. `since` has the moment at which each edge of the task was made."""

    __slots__ = ("attempts", "first", "handoffs", "reviews", "since", "task")

    def __init__(self, event: Event) -> None:
        self.first = event.seq
        self.task: Task = evolve(None, event)
        self.attempts: list[Attempt] = []
        self.handoffs: dict[str, Handoff] = {}
        self.reviews: list[Review] = []
        self.since: dict[str, str] = dict.fromkeys(_others(self.task), event.timestamp)

    def add(self, event: Event) -> None:  # noqa: C901 - one case per kind of event
        """Apply the next event."""
        before, self.task = self.task, evolve(self.task, event)
        if event.type in _MAKING and _others(before) != _others(self.task):
            self.since = {other: self.since.get(other, event.timestamp) for other in _others(self.task)}
        match event.type:
            case "task.attempt.started":
                self._began(event)
            case "task.attempt.completed" | "task.attempt.failed":
                self._ended(event)
            case "task.superseded":
                self._superseded(event)
            case "task.completed" | "task.progress" | "run.exited":
                self._said(event)
            case "task.hop.approved":
                self.reviews.append(Review(event))
            case "task.transitioned":
                moved = event.payload.get("from"), event.payload.get("to")
                if moved == ("review", "done") and "by" in event.payload:
                    self.reviews.append(Review(event))
            case _ if about_handoff(event):
                name = event.payload["handoffId"]
                handoff = evolve_handoff(self.handoffs.get(name), event)
                if handoff is not None:
                    self.handoffs[name] = handoff

    @property
    def parent(self) -> tuple[str, str] | None:
        """The task that this one is a part of, or that it was handed down from, and since when."""
        above = self.task.parent_id
        if above is not None:
            return above, self.since[f"^{above}"]
        for one in reversed(self.handoffs.values()):
            if one.state != "rejected" and one.parent_task_id is not None:
                return one.parent_task_id, one.created_at
        return None

    def _began(self, event: Event) -> None:
        run = evolve_run(None, event)
        assert run is not None
        self.attempts.append(Attempt(run, event.seq))

    def _ended(self, event: Event) -> None:
        for attempt in reversed(self.attempts):
            if attempt.run.run_id == event.run_id:
                attempt.run = evolve_run(attempt.run, event) or attempt.run
                return

    def _said(self, event: Event) -> None:
        """What a run reports of itself: its result, its progress, or how its process ended."""
        attempt = self._attempt(event.run_id)
        if attempt is None:
            return
        if event.type == "run.exited":
            attempt.output = event.payload.get("output") or {}
        elif event.type == "task.progress":
            attempt.checkpoint = event.seq
        else:
            attempt.result, attempt.reported = result_of(event), event.seq
            attempt.digests = event.payload.get("digests", {})
            if attempt.result.outcome == "partial":
                attempt.checkpoint = event.seq

    def _superseded(self, event: Event) -> None:
        """A run of another clone that does not stand is an attempt all the same."""
        was = event.payload["was"]
        if was == "task.attempt.started":
            self._began(event)
        elif was == "task.completed":
            attempt = self._attempt(event.run_id)
            if attempt is not None and attempt.run.status == "superseded":
                attempt.result, attempt.reported = result_of(event), event.seq
                attempt.digests = event.payload["told"].get("digests", {})
        else:
            self._ended(event)

    def _attempt(self, run_id: str | None) -> Attempt | None:
        return next((one for one in reversed(self.attempts) if one.run.run_id == run_id), None)


def _others(task: Task) -> tuple[str, ...]:
    """The tasks that this one stands below or waits for; the parent is marked, for it may be both."""
    return (f"^{task.parent_id}", *task.depends_on) if task.parent_id else task.depends_on


class Lives:
    """The histories of all tasks up to an event, and that event."""

    __slots__ = ("by_id", "changed", "first_hash", "last_hash", "moment", "seq")

    def __init__(self) -> None:
        self.by_id: dict[str, Life] = {}
        self.seq = 0
        self.moment: str | None = None
        self.first_hash = self.last_hash = ""
        self.changed: set[str] = set()  # the tasks that events were about; whoever has seen to them empties it

    @property
    def session(self) -> str:
        """An ID of this log that is the same in every copy: it is made from the first event."""
        return f"LOG-{self.first_hash[:16]}" if self.first_hash else UNKNOWN

    def add(self, event: Event) -> None:
        """Apply the next event."""
        if not self.seq:
            self.first_hash = event.hash
        self.seq, self.last_hash = event.seq, event.hash
        self.moment = event.timestamp if self.moment is None else max(self.moment, event.timestamp)
        if not event.task_id or is_remark(event):
            return
        self.changed.add(event.task_id)
        life = self.by_id.get(event.task_id)
        if life is None:
            self.by_id[event.task_id] = Life(event)
        else:
            life.add(event)


Above = tuple[str, str]  # a task, and since when


class _Children(dict[str, tuple[str, ...]]):
    """A task that nobody stands below has no children."""

    def __missing__(self, task_id: str) -> tuple[str, ...]:
        return ()


class _Noted(NamedTuple):
    """What the others know of a task."""

    above: Above | None = None
    depends_on: tuple[str, ...] = ()
    parent_id: str | None = None
    looks_at: frozenset[str] = frozenset()
    resource: str | None = None
    occupies: bool = False
    agents: tuple[str, ...] = ()
    routed: str | None = None


_NOTHING = _Noted()
_NOBODY: frozenset[str] = frozenset()


class Relations:
    """The relations between all tasks: parents, children, dependents, and who is meant to do what."""

    def __init__(self, lives: dict[str, Life], policy: Policy) -> None:
        self._lives = lives
        self._noted: dict[str, _Noted] = {}
        self._watchers: dict[str, set[str]] = {}
        self._users: dict[str, set[str]] = {}
        self.ordered: list[Life] = []  # by day and number of their IDs
        self.children: dict[str, list[Life]] = {}  # the tasks below each task, in that order
        self.dependents: dict[str, list[Life]] = {}  # who waits for each task, in that order
        self.roots: dict[str, str] = {}  # the topmost task above each one, itself where nothing is above
        self.routed: dict[str, set[str]] = {}  # the tasks that are meant for each agent
        self.restless: set[str] = set()
        self.load: Counter[str] = Counter()  # how many running tasks each agent holds
        self.records = Records(policy=policy, tasks={}, children=_Children(), resource_holders={})

    def above(self, task_id: str) -> Above | None:
        """The task that this one is a part of, or was handed down from, and since when."""
        return self._noted[task_id].above

    def follow(self, changed: Collection[str]) -> set[str]:
        """Update the relations of these tasks; returns all tasks whose view may have changed, these included."""
        lives = [self._lives[one] for one in sorted(changed, key=split_task_id)]
        new = [life for life in lives if life.task.id not in self._noted]
        touched = set(changed)
        moved = [self._take_in(life, touched) for life in lives]
        if new:
            self._put_in_order(new)
        if any(moved):
            touched |= self._reroot()
        return touched

    def _take_in(self, life: Life, touched: set[str]) -> bool:
        """Whether the tree has another form now: a plain new task at its edge does not count."""
        task = life.task
        self.records.tasks[task.id] = task
        # Time or a sign of life alone can make it look different.
        restless = task.status == "in-progress" or (task.status == "ready" and task.retry.not_before is not None)
        (self.restless.add if restless else self.restless.discard)(task.id)
        before, now = self._noted.get(task.id), _note(life)
        watchers = self._watchers.get(task.id, _NOBODY)
        touched |= watchers
        touched |= now.looks_at
        if before == now:
            return False
        self._noted[task.id] = now
        old = before or _NOTHING
        touched |= old.looks_at
        was, is_now = (one.above[0] if one.above is not None else None for one in (old, now))
        self._relate(life, old, now, was, is_now)
        self._share(task, old, now, touched)
        if before is not None:
            return was != is_now
        self.roots[task.id] = self.roots.get(is_now, task.id) if is_now is not None else task.id
        return bool(watchers)

    def _relate(self, life: Life, old: _Noted, now: _Noted, was: str | None, is_now: str | None) -> None:
        task_id = life.task.id
        for other in old.looks_at - now.looks_at:
            self._watchers[other].discard(task_id)
        for other in now.looks_at - old.looks_at:
            self._watchers.setdefault(other, set()).add(task_id)
        if was != is_now:
            _move(self.children, life, was, is_now)
        if (old.parent_id, was) != (now.parent_id, is_now):
            for parent in {was, is_now} - {None}:
                below = (child.task for child in self.children.get(str(parent), ()))
                self.records.children[str(parent)] = tuple(one.id for one in below if one.parent_id == parent)
        for blocker in old.depends_on:
            if blocker not in now.depends_on:
                _move(self.dependents, life, blocker, None)
        for blocker in now.depends_on:
            if blocker not in old.depends_on:
                _move(self.dependents, life, None, blocker)
                self.records.tasks.setdefault(blocker, None)

    def _share(self, task: Task, old: _Noted, now: _Noted, touched: set[str]) -> None:
        """What tasks have in common that are no relatives: agents and resources."""
        if old.agents != now.agents:
            self.load.subtract(old.agents)
            self.load.update(now.agents)
        if old.routed != now.routed:
            _join(self.routed, task.id, old.routed, now.routed)
        _join(self._users, task.id, old.resource, now.resource)
        for resource in {old.resource, now.resource} - {None}:
            users = self._users[str(resource)]
            touched |= users
            running = (one for one in users if self._lives[one].task.status == "in-progress")
            self.records.resource_holders[str(resource)] = tuple(sorted(running, key=split_task_id))

    def _put_in_order(self, new: list[Life]) -> None:
        last = self.ordered[-1] if self.ordered else None
        self.ordered += new
        if last is not None and _by_id(new[0]) < _by_id(last):
            self.ordered.sort(key=_by_id)

    def _reroot(self) -> set[str]:
        """Walk up from every task; a cycle ends the walk. Returns the tasks whose root has changed."""
        found: dict[str, str] = {}
        for task_id in self._lives:
            trail = [task_id]
            while trail[-1] not in found:
                above = self._noted[trail[-1]].above
                if above is None or above[0] in trail or above[0] not in self._lives:
                    found[trail[-1]] = trail[-1]
                else:
                    trail.append(above[0])
            for one in trail:
                found[one] = found[trail[-1]]
        before, self.roots = self.roots, found
        return {task_id for task_id, root in found.items() if before.get(task_id) != root}


def active_runs(life: Life) -> list[Attempt]:
    """The runs that hold the task now."""
    if life.task.status != "in-progress":
        return []
    return [one for one in life.attempts if one.run.status == "running"]


def _note(life: Life) -> _Noted:
    task, above = life.task, life.parent
    looks_at = {*task.depends_on}
    if above is not None:
        looks_at.add(above[0])
    if task.blocked is not None and task.blocked.dependency is not None:
        looks_at.add(task.blocked.dependency)
    return _Noted(
        above,
        task.depends_on,
        task.parent_id,
        frozenset(looks_at) if looks_at else _NOBODY,
        task.resource,
        task.resource is not None and task.status == "in-progress",
        tuple(one.run.agent_id for one in active_runs(life)) if task.status == "in-progress" else (),
        task.routing.agent,
    )


def _by_id(life: Life) -> tuple[str, int]:
    return split_task_id(life.task.id)


def _join(groups: dict[str, set[str]], member: str, old: str | None, new: str | None) -> None:
    if old is not None:
        groups[old].discard(member)
    if new is not None:
        groups.setdefault(new, set()).add(member)


def _move(groups: dict[str, list[Life]], life: Life, old: str | None, new: str | None) -> None:
    if old is not None:
        groups[old].remove(life)
    if new is not None:
        insort(groups.setdefault(new, []), life, key=_by_id)


class SnapshotInput:
    """All that a snapshot is made from: histories, relations, heartbeats, and files that people have changed.

    A snapshot of the past has neither heartbeats nor files: a lease counts until the log ends it, and the time is that
    of the last event.
    """

    def __init__(
        self,
        lives: Lives,
        relations: Relations,
        policy: Policy,
        *,
        now: int | None = None,
        chart: OrgChart | None = None,
        beats: Mapping[str, Heartbeat] | None = None,
        odd: Mapping[str, str] | None = None,
    ) -> None:
        self.lives = lives
        self.relations = relations
        self.records = relations.records  # all that the ready rule may look at
        self.children = relations.children
        self.dependents = relations.dependents
        self.load = relations.load
        self.roots = relations.roots
        self.policy = policy
        self.chart = chart
        self._live = now is not None
        self.now = now if now is not None else millis(lives.moment) if lives.moment else 0
        self._beats = beats or {}
        self.odd = odd or {}
        self.scope = FrozenDict(project=policy.project)
        self.names: dict[str, FrozenDict] = {}  # who somebody is, once it was found out
        self._status: dict[str, Normalized] = {}
        self._refusals: dict[str, AofError | None] = {}

    def task(self, task_id: str) -> Task | None:
        """A task that may not be there."""
        life = self.lives.by_id.get(task_id)
        return life.task if life is not None else None

    def status(self, task: Task) -> Normalized:
        """The normalized status."""
        known = self._status.get(task.id)
        if known is None:
            known = self._status[task.id] = self._judged(task)
        return known

    def _judged(self, task: Task) -> Normalized:
        odd = self.odd.get(task.id)
        if odd is not None:
            return normalized_status(task if odd == "stale" else None, None, self.now, stale=True)
        if not self._live:
            return as_logged(task, self.now)
        return normalized_status(task, self._last_beat(task) if task.status == "in-progress" else None, self.now)

    def refusal(self, task: Task) -> AofError | None:
        """Why the task may not be run now."""
        try:
            return self._refusals[task.id]
        except KeyError:
            found = self._refusals[task.id] = readiness(self.records, task, self.now)
            return found

    def _last_beat(self, task: Task) -> Heartbeat | None:
        """Of several hops the sign of life that lasts longest speaks for the task."""
        beats = [self._beats[lease.run_id] for lease in leases(task) if lease.run_id in self._beats]
        return max(beats, key=lambda beat: beat.expires_at, default=None)

    def run_status(self, life: Life, attempt: Attempt) -> str:
        """The status of a run that holds the task, by its own lease and heartbeat."""
        run_id = attempt.run.run_id
        lease = next((one for one in leases(life.task) if one.run_id == run_id), None)
        beat = self._beats.get(run_id)
        if self._live and lease is not None and lease_end(lease, beat) <= self.now:
            return "unavailable"
        alive = (beat is not None and beat.beat_count > 0) or attempt.checkpoint is not None
        return "running" if alive else "preparing"


def as_logged(task: Task, moment: int) -> Normalized:
    """The status by the log alone: a lease counts until the log ends it, and a run that is just beginning has none."""
    if task.status != "in-progress":
        return normalized_status(task, None, moment)
    beginning = task.cancel is None and not leases(task)
    return "preparing" if beginning and not task.archived else normalized_status(task, None, 0)


def finished(task: Task) -> bool:
    """Whether the task is over, so that nothing more is to happen with it."""
    return task.archived or task.status in FINISHED
