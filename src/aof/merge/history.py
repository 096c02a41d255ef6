"""`merge`: the history that several tips lead to, as the commits of a merge lane: replay, consequences, closing.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from aof.kernel.commands import Records
from aof.kernel.events import SUPERSEDED, Draft, Event
from aof.kernel.evolve import evolve
from aof.kernel.model import FAILED, OURSELVES, millis
from aof.merge import content
from aof.merge.commits import ROOT, Lanes, Original, Span, chained, in_order, newest, open_tips
from aof.merge.content import EDGE_TYPES, DocumentMerge, Edges
from aof.merge.lives import FOLLOWING, TaskProgress, TaskStates, Verdict, Views, decide_lives, note_lives
from aof.merge.model import GENESIS, RULE, Closing, Lane, Merged, Notes, Renumbered, Report, SupersededRun, rule_of
from aof.merge.names import ANSWERED, BIRTH, Census, Names
from aof.support.typed import uncollected
from aof.tasks import rules as tasks_rules
from aof.tasks.model import Task
from aof.tasks.rules import close_run, to_blocked, transition
from aof.workflows.hops import Walk, next_step, state_of, status_of
from aof.workflows.model import UNOPENED, workflow_of

__all__ = ["merge", "open_tips"]

MERGED: Final = "task.merged"
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
_NOT_CONTENT: Final = frozenset({*_LIFE, "id", "rev", "updatedAt", "createdAt", "schemaVersion", "layout", "requests"})
_WAITING: Final = ("backlog", "ready")
_HELD: Final = (*_WAITING, "in-progress")
_replace = msgspec.structs.replace


@uncollected()
def merge(lanes: Sequence[Lane], tips: Sequence[str]) -> Merged:
    """The merge lane for these tips. Lanes that no tip builds on are not looked at."""
    known = Lanes([lane for lane in lanes if lane.commits])
    heads, fork, span = newest(known, [known.place(tip) for tip in tips])
    order = in_order(known, span)
    census = Census(known, span, order)
    names, notes = Names(known, census), Notes()
    contested = {key for key, touching in census.touching.items() if not chained(span, touching)}
    common = TaskStates({}, {})  # the touched tasks at the fork
    for key in census.touching:
        for event in census.common_events.get(key, ()):
            common.add(event)
    views = Views(known, span, census, contested, common)
    verdicts = {
        key: decide_lives(span, views, key, touching, census.called(key))
        for key, touching in census.touching.items()
        if key in contested
    }
    edges = Edges(census, order, common.tasks)
    facts = SpanFacts(census, names, verdicts, views, edges, DocumentMerge(span, notes), notes)
    seq = known.lanes[fork.lane].commits[fork.at].events[-1].seq if fork != ROOT else 0
    replay = Replay(common.tasks, seq, facts)
    for original in order:
        replay.replay(original)
    note_lives(notes, names, verdicts, views)
    if order:
        stamp = max(event.timestamp for original in order for event in original.events)
        settling = [names.of(key) for key, verdict in verdicts.items() if verdict.hops is not None]
        Consequences(span, facts, replay, stamp).follow(settling)
        notes.forget_standing(replay.tasks)
        closings = close_merge(replay, facts, stamp)
    else:
        closings = ()
    return Merged(
        after=known.hash_of(fork) if fork != ROOT else GENESIS,
        seq=seq,
        heads=tuple(sorted(known.hash_of(head) for head in heads)),
        rule=RULE,
        commits=replay.commits,
        closings=closings,
        report=Report(
            lanes=tuple(sorted(known.lanes[lane].name for lane in span.ends)),
            commits=len(order),
            touched=len(census.touching),
            renumbered=tuple(
                Renumbered(old=birth.name.removeprefix("job:"), new=fresh.removeprefix("job:"), title=birth.title)
                for birth, fresh in names.renumbered
                if not birth.name.startswith("question:")
            ),
            tasks=notes.reports(replay.tasks),
            notes=tuple(notes.general),
        ),
    )


class SpanFacts(NamedTuple):
    """What was found out about a span before its commits are replayed."""

    census: Census
    names: Names
    verdicts: dict[str, Verdict]
    views: Views
    edges: Edges
    documents: DocumentMerge
    notes: Notes


class Replay:
    """A merge lane in the making: its commits so far, and the tasks after them."""

    def __init__(self, tasks: dict[str, Task], seq: int, facts: SpanFacts) -> None:
        self.tasks = tasks
        self.seq = seq
        self.commits: list[tuple[Event, ...]] = []
        self._facts = facts
        self._group: list[Event] = []

    def replay(self, original: Original) -> None:
        """One commit of an author."""
        lane = original.place.lane
        edged: list[Event] = []
        for number, event in enumerate(original.events):
            merged = self._facts.names.event(event, lane)
            key = original.keys[number]
            if key is None:
                merged = self._facts.documents.event(merged, original.place)
            elif (verdict := self._facts.verdicts.get(key)) is not None:
                merged = self._merged(merged, event, original, number, verdict)
                if event.type == "context.set":
                    self._facts.documents.share(merged, original.place)
                elif event.type == ANSWERED:
                    self._facts.documents.answer(merged, original.place)
            if event.hash in self._facts.census.born:  # its own line has another hash now
                merged = _replace(merged, payload=merged.payload | {BIRTH: event.hash})
            self._append(merged, changes=key is not None)
            if merged.type in EDGE_TYPES:
                edged.append(merged)
        for merged in edged:  # of edges of several clones that would close a cycle, the later one is left out
            for draft in self._facts.edges.after(self.tasks[merged.task_id], self._facts.notes):
                self._append(_replace(merged, type=draft.type, run_id=None, layout=None, payload=draft.payload))
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

    def _merged(self, merged: Event, event: Event, original: Original, number: int, verdict: Verdict) -> Event:
        """An event, under its IDs in the merged history, about a task that others worked on at the same time."""
        rule = rule_of(event.type)
        if rule in ("life", "handoff"):
            if not verdict.stands(original, event):
                return self._superseded(merged)
            if event.type not in FOLLOWING:
                return merged
            hop = workflow_of(self.tasks[merged.task_id]).hop(merged.payload["hop"])
            return merged if hop.status in UNOPENED else self._superseded(merged)
        base = self._facts.views.before.get((original.place, number))
        if base is None:
            return merged
        if event.type == "task.restored":
            after = self._facts.views.restored[original.place, number]
            return self._restored(merged, base, after, original, lives=original.rank in verdict.whole.ranks)
        return self._content(merged, base, original.place.lane)

    def _superseded(self, merged: Event) -> Event:
        rest = {name: value for name, value in merged.payload.items() if name not in _BESIDE}
        beside = {name: merged.payload[name] for name in _BESIDE if name in merged.payload}
        self._facts.notes.supersede(merged)
        return _replace(merged, type=SUPERSEDED, layout=None, payload={"was": merged.type, "told": rest} | beside)

    def _content(self, merged: Event, base: Task, lane: int) -> Event:
        payload = merged.payload
        wanted: dict[str, Any] = payload.get("changes") or {}
        if merged.type == "task.dependency.updated":
            wanted = {"dependsOn": payload["dependsOn"]} if "dependsOn" in payload else {}
        if not wanted:
            return merged
        before = self._facts.names.value(content.fields_of(base), lane)
        here = content.fields_of(self.tasks[merged.task_id])
        outcome = content.merge_content(before, here, wanted)
        self._facts.notes.clash(merged.task_id, outcome.clashes)
        if merged.type == "task.dependency.updated":
            edges = outcome.changes.get("dependsOn", here.get("dependsOn", []))
            return merged if edges == wanted["dependsOn"] else _replace(merged, payload=payload | {"dependsOn": edges})
        return merged if outcome.changes == wanted else _replace(merged, payload=payload | {"changes": outcome.changes})

    def _restored(self, merged: Event, base: Task, after: Task, original: Original, *, lives: bool) -> Event:
        """A file that knew more than the log: what it changed, as an update of what others have made of the task."""
        lane = original.place.lane
        before, now = (self._facts.names.value(content.fields_of(task), lane) for task in (base, after))
        names = [name for name in (*before, *(one for one in now if one not in before)) if name not in _NOT_CONTENT]
        wanted = {name: now.get(name) for name in names if now.get(name) != before.get(name)}
        outcome = content.merge_content(before, content.fields_of(self.tasks[merged.task_id]), wanted)
        self._facts.notes.clash(merged.task_id, outcome.clashes)
        changes = outcome.changes | (
            {name: now.get(name) for name in _LIFE if name in before or name in now} if lives else {}
        )
        payload = {"changes": changes, "fields": sorted(changes), "reason": merged.payload.get("reason", "restored")}
        return _replace(merged, type="task.updated", payload=payload)


class Consequences:
    """What follows from the merge for each touched task, in one pass in the order of their IDs."""

    def __init__(self, span: Span, facts: SpanFacts, replay: Replay, stamp: str) -> None:
        self._span = span
        self._census = facts.census
        self._notes = facts.notes
        self._replay = replay
        self._stamp = stamp
        self._now = millis(stamp)
        self._keys = {facts.names.of(key): key for key in facts.census.touching}
        self._ids = sorted(self._keys)

    def follow(self, workflows: Iterable[str]) -> None:
        """Add all consequences; `workflows` are the tasks whose hops several clones worked on."""
        for task_id in sorted(workflows):
            self._settle(self._replay.tasks[task_id])
        for task_id in self._ids:
            self._free(self._replay.tasks[task_id])
        for task_id in self._ids:
            self._block(self._replay.tasks[task_id])
        for task_id in self._ids:
            self._hold(self._replay.tasks[task_id])
        self._warn_of_resources()

    def _add(self, drafts: tuple[Draft, ...]) -> None:
        self._replay.add(drafts, self._stamp)

    def _settle(self, task: Task) -> None:
        if not task.gated or task.cancel is not None or task.archived or task.status in ("cancelled", "backlog"):
            return
        if task.blocked is not None and (task.blocked.kind == "paused" or task.blocked.dependency is not None):
            return
        records = Records(
            tasks={edge: self._replay.tasks.get(edge) for edge in task.depends_on}, dependents={task.id: ()}
        )
        walk = Walk(records, task, self._now)
        if next_step(walk.workflow, task) is None and status_of(state_of(walk.workflow)) == task.status:
            return
        decision = walk.finish("hops of several clones came together")
        self._notes.say(task.id, "hops were worked on in several clones; what follows from them has been done")
        self._add(decision.drafts)

    def _free(self, task: Task) -> None:
        """The dependency that blocked the task in one clone has not been given up after all."""
        if task.blocked is None or task.blocked.dependency is None:
            return
        blocker = self._replay.tasks.get(task.blocked.dependency)
        if blocker is None or blocker.id not in self._keys or blocker.status in FAILED:
            return
        reason = f"dependency {blocker.id} is {blocker.status}"
        self._notes.say(task.id, f"no longer blocked: {reason}")
        self._add((transition(task, task.blocked.was, reason=reason),))

    def _block(self, task: Task) -> None:
        """A dependency was given up where nobody knew of this task."""
        if task.status not in _WAITING or task.cancel is not None:
            return
        for edge in task.depends_on:
            dead = self._replay.tasks.get(edge)
            if dead is not None and dead.status in FAILED and self._unknown(task.id, edge):
                words = f"blocked: its dependency {edge} is {dead.status} in another clone"
                self._notes.hold(task.id, edge, words)
                self._add((tasks_rules.held_by(task, dead, self._now),))
                return

    def _hold(self, task: Task) -> None:
        """The parent was cancelled where nobody knew of this child."""
        parent = self._replay.tasks.get(task.parent_id or "")
        if parent is None or parent.status != "cancelled" or task.status not in _HELD or task.archived:
            return
        if not self._unknown(task.id, parent.id):
            return
        reason = f"its parent {parent.id} was cancelled in another clone"
        self._notes.hold(task.id, parent.id, f"held: {reason}")
        ended = close_run(task, self._now, status="released", code="parent_cancelled", message=reason)
        self._add((*ended, to_blocked(task, self._now, kind="blocked", reason=reason, by=OURSELVES)))

    def _unknown(self, task_id: str, other: str) -> bool:
        """Whether nobody who touched the task had seen that the other one ended."""
        deaths = self._census.deaths.get(self._keys.get(other, other), ())
        if other not in self._keys:
            return False
        last = {original.place.lane: original.place for original in self._census.touching[self._keys[task_id]]}
        return not any(
            place == death.place or self._span.saw(place, death.place) for place in last.values() for death in deaths
        )

    def _warn_of_resources(self) -> None:
        holders: dict[str, list[str]] = {}
        for task_id in self._ids:
            task = self._replay.tasks[task_id]
            if task.status == "in-progress" and task.resource is not None:
                holders.setdefault(task.resource, []).append(task_id)
        for resource, ids in sorted(holders.items()):
            if len(ids) > 1:
                self._notes.general.append(f"resource {resource} is in use by several tasks: {', '.join(ids)}")
                for task_id in ids:
                    others = ", ".join(one for one in ids if one != task_id)
                    self._notes.say(task_id, f"resource {resource} was claimed in another clone too, by {others}")


def close_merge(replay: Replay, facts: SpanFacts, stamp: str) -> tuple[Closing, ...]:
    """One `task.merged` per task, in the order of their IDs."""
    names, notes = facts.names, facts.notes
    standings: dict[str, list[TaskProgress]] = {}
    for (_, key), standing in facts.views.after.items():
        standings.setdefault(names.of(key), []).append(standing)
    closings: list[Closing] = []
    for task_id, key in sorted((names.of(key), key) for key in facts.census.touching):
        payload: dict[str, Any] = _floors(replay.tasks[task_id], standings.get(task_id, []))
        if words := notes.words(task_id):
            payload["conflicts"] = words
        if aliases := names.aliases(key):
            payload["aliases"] = aliases
        payload |= _contested(replay.tasks[task_id], notes.superseded(task_id))
        replay.add((Draft(type=MERGED, task_id=task_id, payload=payload),), stamp)
        closings.append(Closing(len(replay.commits) - 1, 0, replay.tasks[task_id]))
    return tuple(closings)


def _floors(task: Task, standings: list[TaskProgress]) -> dict[str, Any]:
    """The next run of the task, or of a hop, has a greater number than any that a clone has given out."""
    floors: dict[str, Any] = {}
    attempts = max((standing.attempts for standing in standings), default=0)
    if attempts > task.retry.attempts:
        floors["attempts"] = attempts
    epochs = {
        hop["id"]: most
        for hop in task.workflow.get("hops", ())
        if (most := max((one.hops[hop["id"]].epoch for one in standings if hop["id"] in one.hops), default=0))
        > hop.get("epoch", 0)
    }
    return floors | ({"epochs": epochs} if epochs else {})


def _contested(task: Task, runs: Collection[SupersededRun]) -> dict[str, Any]:
    """A lease that was taken in another clone too: names alone do not tell its holder from the other."""
    hops = sorted({run.hop for run in runs if run.hop is not None})
    held = {hop["id"] for hop in task.workflow.get("hops", ()) if "lease" in hop}
    contested: dict[str, Any] = {"contested": True} if task.lease is not None and len(runs) > len(hops) else {}
    return contested | ({"contestedHops": own} if (own := [hop for hop in hops if hop in held]) else {})
