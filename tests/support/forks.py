"""Clones of one history in memory: real fabrics that fork, work apart, and come together through the pure merge."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from aof.api.fabric import Fabric
from aof.kernel.events import Event
from aof.kernel.model import Policy
from aof.merge.history import merge, open_tips
from aof.merge.model import GENESIS, Commit, Lane, Merged
from aof.store.files import markdown as files_markdown
from aof.store.files.log import chain
from aof.store.files.paths import folder_of
from aof.store.fold import Folded, fold
from aof.store.memory import FixedWorkflows, MemoryStore
from aof.tasks.model import Task
from aof.testing import FakeClock

# A workflow with two hops side by side.
GATED = {
    "name": "gated",
    "hops": [
        {"id": "draft", "role": "writer"},
        {"id": "left", "role": "writer", "dependsOn": ["draft"]},
        {"id": "right", "role": "writer", "dependsOn": ["draft"]},
        {"id": "check", "role": "reviewer", "dependsOn": ["left", "right"], "canReject": True},
    ],
}


class Repository:
    """All lanes that anybody has written, as git would carry them about."""

    def __init__(self, workflows: Sequence[dict[str, Any]] = ()) -> None:
        self.lanes: dict[str, Lane] = {}
        self.clock = FakeClock("2026-11-16T09:00:00Z")
        self.workflows = FixedWorkflows(*workflows)
        self.root = Clone(self, "root", [], owner="")

    def all_lanes(self) -> list[Lane]:
        """Every lane."""
        return list(self.lanes.values())

    def merged(self, tips: Iterable[str], among: Iterable[Lane] | None = None) -> Merged:
        """What the core makes of these tips."""
        return merge(list(among if among is not None else self.lanes.values()), list(tips))

    def write(self, merged: Merged) -> Lane:
        """Seal a merge lane as the store does, and keep it."""
        lane = sealed(merged)
        self.lanes[lane.name] = lane
        return lane

    def tips(self) -> tuple[str, ...]:
        """What still has to come together."""
        return open_tips(self.all_lanes())

    def path(self, tip: str) -> list[Event]:
        """All events from the first one to this."""
        lanes = sorted(self.lanes.values(), key=lambda lane: not lane.heads)  # originals come last, and count
        by_hash = {commit.key: (lane, index) for lane in lanes for index, commit in enumerate(lane.commits)}
        pieces: list[list[Event]] = []
        while tip != GENESIS:
            lane, index = by_hash[tip]
            pieces.append([event for commit in lane.commits[: index + 1] for event in commit.events])
            tip = lane.after
        return [event for piece in reversed(pieces) for event in piece]


class Clone:
    """A fabric on one path of the history, which writes a lane of its own."""

    def __init__(self, repository: Repository, actor: str, path: list[Event], owner: str | None = None) -> None:
        self.repository = repository
        self.actor = actor
        self.store = MemoryStore(repository.clock)
        self.fabric = Fabric(self.store, repository.clock, Policy(), actor, workflows=repository.workflows)
        self._lane = owner
        self._begin(path)

    def _begin(self, path: list[Event]) -> None:
        kept = self.store._state
        with kept.lock:
            kept.log, kept.folded, kept.heartbeats, kept.texts, kept.documents = [], {}, {}, {}, {}
            for _, group in itertools.groupby(path, key=lambda event: event.begins):
                kept.append(list(group))
        self.store._day = ""
        self._path = path

    @property
    def log(self) -> list[Event]:
        """Everything on this clone's path, not yet sealed."""
        return self.store._state.log

    def tip(self) -> str:
        """Write down what was done since, and say where the path ends."""
        fresh = self.log[len(self._path) :]
        digest = self._path[-1].hash if self._path else GENESIS
        if not fresh:
            return digest
        lines: list[Event] = []
        for event in fresh:
            _, digest = chain.seal(event, digest)
            lines.append(msgspec.structs.replace(event, hash=digest))
        commits = [Commit(tuple(group)) for _, group in itertools.groupby(lines, key=lambda event: event.begins)]
        name = self._lane if self._lane is not None else commits[0].events[0].hash[:12]
        known = self.repository.lanes.get(name)
        after = known.after if known is not None else self._path[-1].hash if self._path else GENESIS
        before = known.commits if known is not None else ()
        self.repository.lanes[name] = Lane(name, after, [*before, *commits])
        self._lane = name
        self._path = [*self._path, *lines]
        return digest

    def fork(self, actor: str) -> Clone:
        """Another clone of what is here now."""
        self.tip()
        return Clone(self.repository, actor, list(self._path))

    def adopt(self, tip: str) -> None:
        """Go on from a path that somebody has merged; what comes now is a lane of its own."""
        self.tip()
        self._lane = None
        self._begin(self.repository.path(tip))

    def pull(self, *others: Clone) -> Merged:
        """Merge with others, and go on from there."""
        merged = self.repository.merged([self.tip(), *(other.tip() for other in others)])
        if merged.commits:
            lane = self.repository.write(merged)
            self.adopt(lane.commits[-1].key)
        else:
            self.adopt(merged.heads[0])
        return merged

    def as_run(self, secret: object) -> Fabric:
        """The fabric for who has the secret of a run: a contested lease needs it."""
        return self.fabric.on_behalf_of(self.fabric.services.principal.as_run(str(secret)))

    def task(self, task_id: str) -> Task:
        """The record of a task."""
        task = self.store._state.one(task_id).task
        assert task is not None
        return task

    def folded(self) -> dict[str, Folded]:
        """Everything that the log says."""
        return fold(self.log)


def sealed(merged: Merged) -> Lane:
    """The merge lane with hashes, and with the digests of the tasks' files."""
    closing = {(one.commit, one.event): one.task for one in merged.closings}
    digest, commits = merged.after, list[Commit]()
    for number, events in enumerate(merged.commits):
        lines: list[Event] = []
        for place, event in enumerate(events):
            task = closing.get((number, place))
            whole = event if task is None else msgspec.structs.replace(event, files=_files(task))
            _, digest = chain.seal(whole, digest)
            lines.append(msgspec.structs.replace(whole, hash=digest))
        commits.append(Commit(tuple(lines)))
    name = f"m{sha256('|'.join((merged.after, *merged.heads)).encode()).hexdigest()[:12]}"
    return Lane(name, merged.after, commits, heads=merged.heads, rule=merged.rule)


def _files(task: Task) -> dict[str, str]:
    path = f"{'archive/tasks' if task.archived else f'tasks/{folder_of(task)}'}/{task.id}.md"
    return {path: sha256(files_markdown.render(task)).hexdigest()}
