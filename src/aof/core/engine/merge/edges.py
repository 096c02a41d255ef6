"""Edges between tasks while commits of several clones are replayed: what would close a cycle is left out.

No author made a cycle; only edges of several authors together can. So nothing is looked for as long as all edges that
anybody made are free of cycles. Must not know who made an edge.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from aof.core.engine.merge.commits.census import Census
from aof.core.engine.merge.commits.order import Original
from aof.core.engine.merge.notes import Notes
from aof.core.model.events import Draft, Event
from aof.core.model.task import Task

TYPES: Final = frozenset({"task.created", "task.restored", "task.updated", "task.dependency.updated"})


class Edges:
    """The dependencies and the parent of each task, as far as the replay has come."""

    def __init__(self, census: Census, order: list[Original], tasks: dict[str, Task]) -> None:
        self._depends: dict[str, tuple[str, ...]] = {}
        self._parents: dict[str, str | None] = {}
        for name, events in census.common_events.items():
            task = tasks.get(name)
            if task is not None:
                self._depends[name], self._parents[name] = task.depends_on, task.parent_id
            else:
                self._scan(name, events)
        self._suspect = self._circular(census, order)

    def _scan(self, name: str, events: list[Event]) -> None:
        """The edges of a task that nobody has touched, without the rest of it."""
        for event in events:
            if event.type in TYPES:
                told = _told(event)
                if "dependsOn" in told or event.type in ("task.created", "task.restored"):
                    self._depends[name] = tuple(told.get("dependsOn") or ())
                if "parentId" in told or event.type in ("task.created", "task.restored"):
                    self._parents[name] = told.get("parentId")

    def _circular(self, census: Census, order: list[Original]) -> bool:
        """Whether all dependencies that anybody made close a cycle."""
        graph: dict[str, set[str]] = {name: set(edges) for name, edges in self._depends.items() if edges}
        for original in order:
            lane = original.place.lane
            for event in original.events:
                if event.type in TYPES and (edges := _told(event).get("dependsOn")):
                    node = graph.setdefault(census.key(lane, event.task_id), set())
                    node.update(census.key(lane, edge) for edge in edges)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError:
            return True
        return False

    def after(self, task: Task, notes: Notes) -> list[Draft]:
        """Take note of a task's edges after an event; the drafts that take out again what closes a cycle."""
        before, parent = self._depends.get(task.id, ()), self._parents.get(task.id)
        self._depends[task.id], self._parents[task.id] = task.depends_on, task.parent_id
        drafts: list[Draft] = []
        if self._suspect:
            left = task.depends_on
            for edge in task.depends_on:
                if edge not in before and self._reaches(edge, task.id):
                    left = tuple(one for one in left if one != edge)
                    self._depends[task.id] = left
                    notes.leave_out(task.id, edge)
                    payload: dict[str, Any] = {"dependsOn": list(left), "removed": edge}
                    drafts.append(Draft(type="task.dependency.updated", task_id=task.id, payload=payload))
        if task.parent_id is not None and task.parent_id != parent and self._above(task.parent_id, task.id):
            self._parents[task.id] = parent
            notes.leave_out(task.id, task.parent_id, kind="parent")
            payload = {"changes": {"parentId": parent}, "fields": ["parentId"]}
            drafts.append(Draft(type="task.updated", task_id=task.id, payload=payload))
        return drafts

    def _reaches(self, start: str, target: str) -> bool:
        seen, waiting = {start}, [start]
        while waiting:
            here = waiting.pop()
            if here == target:
                return True
            fresh = [edge for edge in self._depends.get(here, ()) if edge not in seen]
            seen.update(fresh)
            waiting += fresh
        return False

    def _above(self, start: str, target: str) -> bool:
        seen: set[str] = set()
        here: str | None = start
        while here is not None and here not in seen:
            if here == target:
                return True
            seen.add(here)
            here = self._parents.get(here)
        return False


def _told(event: Event) -> dict[str, Any]:
    told: dict[str, Any] = event.payload.get("task") or event.payload.get("changes") or event.payload
    return told
