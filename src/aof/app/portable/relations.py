"""Relations between tasks (parents, dependents, competitors), kept up to date as tasks change. Pure.

Whoever changes a task learns which others now look different, so that nobody else has to be looked at again. What only
time, signs of life or files decide is not known here: `restless` tasks are to be looked at whenever somebody asks.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from aof.app.portable.task_histories import Attempt, Life
from aof.core.model.ids import split_task_id
from aof.core.model.policy import Policy
from aof.core.model.records import Records
from aof.core.model.task import Task

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
    """All tasks of a set of lives, and how they stand to each other."""

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
        _keep(self.restless, task.id, _changes_by_itself(task))
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


def active(life: Life) -> list[Attempt]:
    """The runs that the task is held with."""
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
        tuple(one.run.agent_id for one in active(life)) if task.status == "in-progress" else (),
        task.routing.agent,
    )


def _changes_by_itself(task: Task) -> bool:
    """Whether time or a sign of life alone can make it look different."""
    return task.status == "in-progress" or (task.status == "ready" and task.retry.not_before is not None)


def _by_id(life: Life) -> tuple[str, int]:
    return split_task_id(life.task.id)


def _keep(kept: set[str], one: str, wanted: bool) -> None:  # noqa: FBT001 - like `add` or `discard`
    (kept.add if wanted else kept.discard)(one)


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
