"""The commits of a span again, in canonical order, each event as it stands in the merged history.

Events about tasks that nobody else worked on stay as they are. Of the others, content is merged into what is there,
and life that does not stand becomes `task.superseded`, which keeps what was said and done. Must not know which side
wins, nor what follows for other tasks.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from aof.core.engine.merge import content
from aof.core.engine.merge.commits.census import ANSWERED, BIRTH, Census
from aof.core.engine.merge.commits.naming import Names
from aof.core.engine.merge.commits.order import Original
from aof.core.engine.merge.documents import DocumentStatuses
from aof.core.engine.merge.edges import TYPES as EDGE_TYPES
from aof.core.engine.merge.edges import Edges
from aof.core.engine.merge.life import Verdict, is_step
from aof.core.engine.merge.notes import Notes
from aof.core.engine.merge.rules import rule_of
from aof.core.engine.merge.views import Views
from aof.core.evolve.task import evolve
from aof.core.model.events import SUPERSEDED, Draft, Event
from aof.core.model.ids import OURSELVES
from aof.core.model.task import Task
from aof.core.model.workflow import UNOPENED, workflow_of

_BESIDE: Final = ("workLog", "handoffId", "audit")  # what a superseded event goes on to say in its own name
_LIFE: Final = (
    "status",
    "lease",
    "blocked",
    "cancel",
    "retry",
    "lastError",
    "progress",
    "workflow",
    "validation",
    "delivery",
    "usage",
    "locks",
    "startedAt",
    "endedAt",
    "lastTransitionAt",
    "archived",
)
_replace = msgspec.structs.replace


class SpanFacts(NamedTuple):
    """What was found out about a span before its commits are replayed."""

    census: Census
    names: Names
    verdicts: dict[str, Verdict]
    views: Views
    edges: Edges
    documents: DocumentStatuses
    notes: Notes


class Replay:
    """A merge lane in the making: its commits so far, and the tasks after them."""

    def __init__(self, tasks: dict[str, Task], seq: int, facts: SpanFacts) -> None:
        self.tasks = tasks
        self.seq = seq
        self.commits: list[tuple[Event, ...]] = []
        self._names = facts.names
        self._census = facts.census
        self._verdicts = facts.verdicts
        self._views = facts.views
        self._edges = facts.edges
        self._documents = facts.documents
        self._notes = facts.notes
        self._group: list[Event] = []

    def replay(self, original: Original) -> None:
        """One commit of an author."""
        lane = original.place.lane
        edged: list[Event] = []
        for number, event in enumerate(original.events):
            said = self._names.event(event, lane)
            key = original.keys[number]
            if key is None:
                said = self._documents.settled(said, original.place)
            elif (verdict := self._verdicts.get(key)) is not None:
                said = self._merged(said, event, original, number, verdict)
                if event.type == "context.set":
                    self._documents.share(said, original.place)
                elif event.type == ANSWERED:
                    self._documents.answer(said, original.place)
            if event.hash in self._census.born:  # its own line has another hash now
                said = _replace(said, payload=said.payload | {BIRTH: event.hash})
            self._append(said, changes=key is not None)
            if said.type in EDGE_TYPES:
                edged.append(said)
        for said in edged:
            self._leave_out(said)
        self._close()

    def add(self, drafts: tuple[Draft, ...], timestamp: str) -> None:
        """A commit of the merge's own."""
        for draft in drafts:
            self._append(
                Event(
                    seq=0,
                    type=draft.type,
                    timestamp=timestamp,
                    actor=OURSELVES,
                    task_id=draft.task_id,
                    run_id=draft.run_id,
                    payload=draft.payload,
                    commit=(1, 1),
                )
            )
        self._close()

    def _append(self, event: Event, *, changes: bool = True) -> None:
        self.seq += 1
        event = _replace(event, seq=self.seq, hash="", files={})
        self._group.append(event)
        if changes:
            self.tasks[event.task_id] = evolve(self.tasks.get(event.task_id), event)

    def _close(self) -> None:
        size = len(self._group)
        if self._group[-1].commit != (size, size):
            self._group = [_replace(event, commit=(at, size)) for at, event in enumerate(self._group, 1)]
        self.commits.append(tuple(self._group))
        self._group = []

    def _merged(self, said: Event, event: Event, original: Original, number: int, verdict: Verdict) -> Event:
        """An event about a task that others worked on at the same time."""
        rule = rule_of(event.type)
        if rule in ("life", "handoff"):
            if not verdict.stands(original, event):
                return self._superseded(said)
            return said if not is_step(event) or self._unopened(said) else self._superseded(said)
        base = self._views.before.get((original.place, number))
        if base is None:
            return said
        if event.type == "task.restored":
            after = self._views.restored[original.place, number]
            return self._restored(said, base, after, original, lives=original.rank in verdict.whole.ranks)
        return self._content(said, base, original.place.lane)

    def _superseded(self, said: Event) -> Event:
        told = {name: value for name, value in said.payload.items() if name not in _BESIDE}
        beside = {name: said.payload[name] for name in _BESIDE if name in said.payload}
        self._notes.supersede(said)
        return _replace(said, type=SUPERSEDED, layout=None, payload={"was": said.type, "told": told} | beside)

    def _unopened(self, said: Event) -> bool:
        workflow = workflow_of(self.tasks[said.task_id])
        return workflow.hop(said.payload["hop"]).status in UNOPENED

    def _content(self, said: Event, base: Task, lane: int) -> Event:
        payload = said.payload
        wanted: dict[str, Any] = payload.get("changes") or {}
        if said.type == "task.dependency.updated":
            wanted = {"dependsOn": payload["dependsOn"]} if "dependsOn" in payload else {}
        if not wanted:
            return said
        before = self._names.value(content.fields_of(base), lane)
        here = content.fields_of(self.tasks[said.task_id])
        outcome = content.merge(before, here, wanted)
        self._notes.clash(said.task_id, outcome.clashes)
        if said.type == "task.dependency.updated":
            merged = outcome.changes.get("dependsOn", here.get("dependsOn", []))
            return said if merged == wanted["dependsOn"] else _replace(said, payload=payload | {"dependsOn": merged})
        return said if outcome.changes == wanted else _replace(said, payload=payload | {"changes": outcome.changes})

    def _restored(self, said: Event, base: Task, after: Task, original: Original, *, lives: bool) -> Event:
        """A file that knew more than the log: what it changed, as an update of what others have made of the task."""
        lane = original.place.lane
        before, now = (self._names.value(content.fields_of(task), lane) for task in (base, after))
        names = [name for name in (*before, *(one for one in now if one not in before)) if name not in _NOT_CONTENT]
        wanted = {name: now.get(name) for name in names if now.get(name) != before.get(name)}
        outcome = content.merge(before, content.fields_of(self.tasks[said.task_id]), wanted)
        self._notes.clash(said.task_id, outcome.clashes)
        changes = outcome.changes | (
            {name: now.get(name) for name in _LIFE if name in before or name in now} if lives else {}
        )
        payload = {"changes": changes, "fields": sorted(changes), "reason": said.payload.get("reason", "restored")}
        return _replace(said, type="task.updated", payload=payload)

    def _leave_out(self, said: Event) -> None:
        """The later edge is left out where edges of several clones would close a cycle."""
        for draft in self._edges.after(self.tasks[said.task_id], self._notes):
            self._append(_replace(said, type=draft.type, run_id=None, layout=None, payload=draft.payload))


_NOT_CONTENT: Final = frozenset({*_LIFE, "id", "rev", "updatedAt", "createdAt", "schemaVersion", "layout", "requests"})
