"""What of the authors' work stands.

Lives, content and edges of tasks, documents; and what people are told about it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NamedTuple

import msgspec

from aof.documents import mail_rules
from aof.handoffs.evolve import evolve_handoff
from aof.handoffs.model import Handoff, HandoffState
from aof.kernel.evolve import evolve
from aof.kernel.model import Draft, Event, about_handoff, is_remark
from aof.merge.commits import ROOT, Census, CommitPlace, Lanes, Original, Span
from aof.merge.model import HOPS, Clash, SupersededRun, TaskReport, rule_of
from aof.tasks import body as tasks_body
from aof.tasks.manual_edits import merge_text
from aof.tasks.model import Task
from aof.workflows.model import leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.merge.commits import Names


_VIEWS_FURTHEST: Final = ("backlog", "ready", "in-progress", "blocked", "deadletter", "review", "cancelled", "done")
_HOPS: Final = (
    "waiting",
    "rejected",
    "ready",
    "running",
    "blocked",
    "timed_out",
    "failed",
    "review",
    "skipped",
    "done",
)
_KEPT: Final = frozenset({"task.updated", "task.dependency.updated", "task.restored"})
_HANDOFFS: Final[tuple[HandoffState, ...]] = (
    "queued",
    "requested",
    "deferred",
    "accepted",
    "rejected",
    "escalated",
    "failed",
    "completed",
)


class HopStanding(NamedTuple):
    """How far a hop was."""

    status: str
    epoch: int
    since: str

    @property
    def order(self) -> tuple[int, int, str]:
        """The furthest first."""
        return -_HOPS.index(self.status), -self.epoch, self.since


class TaskStanding(NamedTuple):
    """How far a task was after a commit, for its author."""

    status: str
    archived: bool
    attempts: int
    since: str
    holder: str | None
    hops: dict[str, HopStanding]
    handoffs: dict[str, int]

    @property
    def order(self) -> tuple[int, int, str]:
        """The furthest first, then more attempts, then the earlier one."""
        return -_VIEWS_FURTHEST.index(self.status), -self.attempts, self.since


class TaskStates(NamedTuple):
    """Tasks and handoffs at one point of a lane."""

    tasks: dict[str, Task]
    handoffs: dict[str, Handoff]

    def copy(self) -> TaskStates:
        """The same, to go on from."""
        return TaskStates({**self.tasks}, {**self.handoffs})

    def add(self, event: Event) -> None:
        """Go on by one event."""
        self.tasks[event.task_id] = evolve(self.tasks.get(event.task_id), event)
        if about_handoff(event):
            name = event.payload["handoffId"]
            handoff = evolve_handoff(self.handoffs.get(name), event)
            if handoff is not None:
                self.handoffs[name] = handoff


class Views:
    """The tasks of `contested`, by their keys, as the authors of a span had them.

    `before` has the task before each event that changes content, `after` how far it was behind each commit, and
    `restored` what came of a task whose file was restored.
    """

    def __init__(
        self, lanes: Lanes, span: Span, census: Census, contested: Collection[str], common: TaskStates
    ) -> None:
        self._lanes = lanes
        self._span = span
        self._census = census
        self._contested = contested
        self.before: dict[tuple[CommitPlace, int], Task] = {}
        self.after: dict[tuple[CommitPlace, str], TaskStanding] = {}
        self.restored: dict[tuple[CommitPlace, int], Task] = {}
        self._branches: dict[CommitPlace, list[int]] = {}
        self._states: dict[int, TaskStates] = {}
        if not contested:
            return
        ends = dict(span.ends)
        inner = census.inner_lanes
        for lane in inner:
            root = self._root_of(lane)
            self._branches.setdefault(root, []).append(lane)
            ends[root.lane] = max(ends.get(root.lane, 0), root.at + 1)
        self._branch(span.fork, common)
        for lane in inner:
            self._fold(lane, ends.get(lane, 0), self._states.pop(lane))

    def _root_of(self, lane: int) -> CommitPlace:
        """The commit that a lane builds on; the fork for those that begin there."""
        fork, after = self._span.fork, self._lanes.after(lane)
        common = lane == fork.lane or after == ROOT or (after.lane == fork.lane and after.at <= fork.at)
        return fork if common else after

    def _branch(self, place: CommitPlace, state: TaskStates) -> None:
        for lane in self._branches.get(place, ()):
            self._states[lane] = state.copy()

    def _fold(self, lane: int, end: int, state: TaskStates) -> None:
        commits = self._lanes.lanes[lane].commits
        for index in range(self._span.begin(lane), end):
            self._add(CommitPlace(lane, index), commits[index].events, state)
            self._branch(CommitPlace(lane, index), state)

    def _add(self, place: CommitPlace, events: tuple[Event, ...], state: TaskStates) -> None:
        touched: dict[str, str] = {}
        for number, event in enumerate(events):
            if not event.task_id or is_remark(event):
                continue
            key = self._census.key(place.lane, event.task_id)
            if key not in self._contested:
                continue
            touched[key] = event.task_id
            before = state.tasks.get(event.task_id)
            if before is not None and event.type in _KEPT:
                self.before[place, number] = before
            state.add(event)
            if before is not None and event.type == "task.restored":
                self.restored[place, number] = state.tasks[event.task_id]
        if not self._lanes.lanes[place.lane].heads:
            for key, name in touched.items():
                self.after[place, key] = _standing(state.tasks[name], state.handoffs)


def _standing(task: Task, handoffs: dict[str, Handoff]) -> TaskStanding:
    hops = {
        hop["id"]: HopStanding(hop["status"], hop.get("epoch", 0), _since(hop)) for hop in task.workflow.get("hops", ())
    }
    states = {link.target_id: handoffs[link.target_id].state for link in task.links if link.target_id in handoffs}
    return TaskStanding(
        status=task.status,
        archived=task.archived,
        attempts=task.retry.attempts,
        since=task.last_transition_at,
        holder=task.lease.agent if task.lease is not None else None,
        hops=hops,
        handoffs={name: -_HANDOFFS.index(state) for name, state in states.items()},
    )


def _since(hop: dict[str, Any]) -> str:
    """When a hop came to its status."""
    if "lease" in hop:
        return str(hop["lease"]["acquiredAt"])
    return str(hop.get("endedAt") or hop.get("openedAt") or "")


_FOLLOWING: Final = frozenset({"task.hop.opened", "task.hop.skipped"})  # what follows from the state of other hops
_RESET: Final = "task.hop.reset"
_LAST: Final = (1,)  # behind every order


_Order = Callable[[Original, list[Original]], tuple[Any, ...]]


class Contest(NamedTuple):
    """One choice between sides: whose life stands, and the others'."""

    best: Original
    losers: tuple[Original, ...]


class Chosen(NamedTuple):
    """The commits that stand, by their numbers in the canonical order, and the choices that led there."""

    ranks: frozenset[int]
    contests: tuple[Contest, ...]


class Verdict:
    """What stands of one task's life."""

    def __init__(self, whole: Chosen, hops: dict[str, Chosen] | None, handoffs: dict[str, Chosen]) -> None:
        self.whole = whole
        self.hops = hops
        self.handoffs = handoffs

    def stands(self, original: Original, event: Event) -> bool:
        """Whether an event about life or about a handoff stands."""
        if rule_of(event.type) == "handoff":
            chosen = self.handoffs.get(event.payload["handoffId"])
            return chosen is None or original.rank in chosen.ranks
        hop = event.payload.get("hop")
        if self.hops is None or hop is None:
            return original.rank in self.whole.ranks
        own = all(original.rank in self.hops[name].ranks for name in own_hops(original, event.task_id))
        if event.type in _FOLLOWING:
            return own
        return original.rank in self.hops[hop].ranks and (own or event.type != _RESET)

    @property
    def contests(self) -> tuple[Contest, ...]:
        """The choices about the task as a whole, or about its hops where each was decided for itself."""
        if self.hops is None:
            return self.whole.contests
        return tuple(contest for chosen in self.hops.values() for contest in chosen.contests)


def own_hops(original: Original, task_id: str) -> set[str]:
    """The hops that a commit is about; others follow from these."""
    return {
        event.payload["hop"]
        for event in original.events
        if event.task_id == task_id
        and "hop" in event.payload
        and event.type not in _FOLLOWING
        and event.type != _RESET
        and rule_of(event.type) == "life"
    }


class _Subjects:
    """The commits about a task's life, about each of its hops, and about each of its handoffs."""

    def __init__(self, touching: list[Original], name_in: Callable[[int], str]) -> None:
        self.alive: list[Original] = []
        self.hops: dict[str, list[Original]] = {}
        self.handoffs: dict[str, list[Original]] = {}
        for original in touching:
            name = name_in(original.place.lane)
            for event in original.events:
                if event.task_id == name:
                    self._add(original, event)

    def _add(self, original: Original, event: Event) -> None:
        rule = rule_of(event.type)
        if rule == "handoff":
            _put(self.handoffs.setdefault(event.payload["handoffId"], []), original)
        elif rule == "life" or event.type == "task.restored":
            _put(self.alive, original)
            if "hop" in event.payload and event.type not in _FOLLOWING:
                _put(self.hops.setdefault(event.payload["hop"], []), original)


def _put(commits: list[Original], original: Original) -> None:
    if not commits or commits[-1] is not original:
        commits.append(original)


def decide_lives(
    span: Span, views: Views, key: str, touching: list[Original], name_in: Callable[[int], str]
) -> Verdict:
    """What stands of a task; `name_in` says what the authors of a lane called it."""
    subjects = _Subjects(touching, name_in)

    def standing(original: Original) -> TaskStanding:
        return views.after[original.place, key]

    def handed(name: str) -> _Order:
        return lambda one, _heads: (standing(one).handoffs.get(name, 1),)

    def hopped(hop: str) -> _Order:
        return lambda one, _heads: standing(one).hops[hop].order

    whole = _life_chosen(span, subjects.alive, lambda one, heads: _order(span, one, heads, subjects.alive, standing))
    handoffs = {name: _life_chosen(span, commits, handed(name)) for name, commits in subjects.handoffs.items()}
    best = whole.contests[0].best if whole.contests else None
    if best is None or not own_hops(best, name_in(best.place.lane)):
        return Verdict(whole, None, handoffs)
    return Verdict(whole, {hop: _life_chosen(span, some, hopped(hop)) for hop, some in subjects.hops.items()}, handoffs)


def _order(
    span: Span,
    one: Original,
    heads: list[Original],
    alive: list[Original],
    standing: Callable[[Original], TaskStanding],
) -> tuple[Any, ...]:
    """The furthest first. What was archived gives way to what others did knowing that it was finished."""
    here = standing(one)
    if not here.archived:
        return here.order
    ended = [
        other
        for other in alive
        if span.saw(one.place, other.place)
        and (there := standing(other)).since == here.since
        and there.status == here.status
        and not there.archived
    ]
    others = [head for head in heads if head is not one]
    known = not ended or all(span.saw(head.place, ended[0].place) for head in others)
    return _LAST if known else here.order


def _life_chosen(span: Span, commits: list[Original], order: _Order) -> Chosen:
    """The commits that stand: the best of those that nobody had seen, then the best of what its author had seen."""
    lanes: dict[int, list[Original]] = {}
    for original in commits:
        lanes.setdefault(original.place.lane, []).append(original)
    ranks: set[int] = set()
    contests: list[Contest] = []
    while tops := [left[-1] for left in lanes.values() if left]:
        if len(tops) == 1:
            ranks.update(original.rank for left in lanes.values() for original in left)
            break
        heads = [
            top for top in tops if not any(other is not top and span.saw(other.place, top.place) for other in tops)
        ]
        best = min(heads, key=lambda one: (*order(one, heads), one.rank))
        if len(heads) > 1:
            losers = sorted((head for head in heads if head is not best), key=lambda one: one.rank)
            contests.append(Contest(best, tuple(losers)))
        ranks.add(best.rank)
        seen = span.base(best.place.lane)
        for lane, left in lanes.items():
            limit = best.place.at if lane == best.place.lane else seen.get(lane, 0)
            while left and left[-1].place.at >= limit:
                left.pop()
    return Chosen(frozenset(ranks), tuple(contests))


def is_step(event: Event) -> bool:
    """Whether the event is a step of a hop that follows from other hops."""
    return event.type in _FOLLOWING and event.type.startswith(HOPS)


_SECTIONS = (tasks_body.COMMENTS, tasks_body.HEADING)


class ContentMerge(NamedTuple):
    """The changes to make, and the fields in which both sides differ."""

    changes: dict[str, Any]
    clashes: list[Clash]


def fields_of(task: Task) -> dict[str, Any]:
    """A task's record as JSON has it; the key of an absent field is absent."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(task))
    return whole


def merge_content(base: dict[str, Any], here: dict[str, Any], changes: dict[str, Any]) -> ContentMerge:
    """An author's changes to a task that was `base` for it and is `here` in the merged history."""
    outcome = ContentMerge({}, [])
    for name, wanted in changes.items():
        before, there = base.get(name), here.get(name)
        if name == "body":
            value = _body(before or "", there or "", wanted or "", outcome.clashes)
        else:
            value = _value(name, before, there, wanted, outcome.clashes)
        if not _same(value, there):
            outcome.changes[name] = value
    return outcome


def merge_list(base: list[Any], here: list[Any], wanted: list[Any]) -> list[Any]:
    """What one side added is added, and what it took out is gone; nothing clashes."""
    kept = [item for item in here if item in wanted or item not in base]
    return kept + [item for item in wanted if item not in base and item not in here]


def _value(name: str, before: Any, there: Any, wanted: Any, clashes: list[Clash]) -> Any:
    if _same(before, there) or _same(there, wanted):
        return wanted
    if _same(before, wanted):
        return there
    if isinstance(wanted, list) and isinstance(there, list | None) and isinstance(before, list | None):
        return merge_list(before or [], there or [], wanted)
    if isinstance(wanted, dict) and isinstance(there, dict | None) and isinstance(before, dict | None):
        return _mapping(name, before or {}, there or {}, wanted, clashes)
    clashes.append(Clash(field=name, kept=wanted, other=there))
    return wanted


def _mapping(
    name: str, before: dict[str, Any], there: dict[str, Any], wanted: dict[str, Any], clashes: list[Clash]
) -> dict[str, Any]:
    merged = dict(there)
    for key in (*before, *(key for key in wanted if key not in before)):
        value = _value(f"{name}.{key}", before.get(key), there.get(key), wanted.get(key), clashes)
        if value is None and key not in wanted:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def _same(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON, where 1, 1.0 and true differ."""
    return one == other and msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def _body(before: str, there: str, wanted: str, clashes: list[Clash]) -> str:
    if before == there:
        return wanted
    old, now, new = (tasks_body.description(text).rstrip() for text in (before, there, wanted))
    text = merge_text(old, now, new)
    if text is None:
        clashes.append(Clash(field="description", kept=new, other=now))
    merged = there if text == now else tasks_body.with_description(there, new if text is None else text)
    for heading in _SECTIONS:
        known = _entries(before, heading)
        merged = _with_entries(merged, heading, [one for one in _entries(wanted, heading) if one not in known])
    return merged


def _entries(body: str, heading: str) -> list[str]:
    """The entries of a section as they stand there; the lines behind a `- ` line belong to it."""
    place = tasks_body.section(body, heading)
    found: list[str] = []
    if place is None:
        return found
    for line in body[place[0] : place[1]].replace("\r\n", "\n").split("\n")[1:]:
        if line.startswith("- ") or (line.strip() and not found):
            found.append(line)
        elif found and line.strip():
            found[-1] += f"\n{line}"
    return found


def _with_entries(body: str, heading: str, entries: list[str]) -> str:
    """The body with entries at the end of a section."""
    known = _entries(body, heading)
    fresh = [entry for entry in entries if entry not in known]
    if not fresh:
        return body
    end = "\r\n" if "\r\n" in body else "\n"
    added = "".join(entry.replace("\n", end) + end for entry in fresh)
    place = tasks_body.section(body, heading)
    if place is None:
        gap = "" if not body else end if body.endswith("\n") else end * 2
        return f"{body}{gap}{heading}{end}{end}{added}"
    kept, after = body[: place[1]].rstrip("\r\n"), body[place[1] :]
    gap = end * 2 if kept[place[0] :].rstrip(" \t") == heading else end
    return f"{kept}{gap}{added}" + (f"{end}{after}" if after else "")


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


SUPERSEDED: Final = "document.superseded"
CHARTER: Final = "document.charter.created"
_DOCUMENTS_FURTHEST: Final = ("unread", "acknowledged", "blocked", "actioned", "closed")
_replace = msgspec.structs.replace


class DocumentStatuses:
    """What the commits so far have said in documents."""

    def __init__(self, span: Span, notes: Notes) -> None:
        self._span = span
        self._notes = notes
        self._statuses: dict[str, str] = {}
        self._charters: list[CommitPlace] = []
        self._variables: dict[tuple[str, str], tuple[CommitPlace, Any]] = {}

    def settled(self, said: Event, place: CommitPlace) -> Event:
        """The event as it stands behind what other clones have said."""
        if said.type == CHARTER:
            return self._charter(said, place)
        if said.type in (mail_rules.CHANGED, mail_rules.CLOSED):
            return self._changed(said)
        return said

    def share(self, said: Event, place: CommitPlace) -> None:
        """A variable of a shared context: the later value stands, and the other one is named."""
        self._set(said.task_id, f"context.{said.payload['name']}", said.payload.get("value"), place)

    def answer(self, said: Event, place: CommitPlace) -> None:
        """An answer to a question: the same holds."""
        self._set(said.task_id, f"question.{said.payload['question']}", said.payload["text"], place)

    def _set(self, task_id: str, field: str, value: Any, place: CommitPlace) -> None:
        last, other = self._variables.get((task_id, field), (None, value))
        if last is not None and not self._span.saw(place, last) and other != value:
            self._notes.clash(task_id, [Clash(field=field, kept=value, other=other)])
        self._variables[task_id, field] = (place, value)

    def _charter(self, said: Event, place: CommitPlace) -> Event:
        unseen = any(not self._span.saw(place, other) for other in self._charters)
        if unseen:
            self._notes.general.append(f"the charter was created twice; that of {said.actor} is in the log only")
            return _replace(said, type=SUPERSEDED, payload={"was": said.type, "told": said.payload})
        self._charters.append(place)
        return said

    def _changed(self, said: Event) -> Event:
        name, wanted = said.payload["messageId"], said.payload["status"]
        here = self._statuses.get(name, said.payload["before"])
        if here != said.payload["before"] and _rank(here) > _rank(wanted):
            if said.type == mail_rules.CHANGED:
                return _replace(said, payload=said.payload | {"status": here})
            return said
        self._statuses[name] = wanted
        return said


def _rank(status: str) -> int:
    return _DOCUMENTS_FURTHEST.index(status) if status in _DOCUMENTS_FURTHEST else -1


_SHORT: Final = 80


class _About:
    """What there is to say of one task."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.was: list[str] = []
        self.runs: dict[str, SupersededRun] = {}
        self.clashes: list[Clash] = []
        self.left_out: list[str] = []
        self.held_by: str | None = None


class Notes:
    """The notes of all tasks, by their IDs in the merged history."""

    def __init__(self) -> None:
        self._tasks: dict[str, _About] = {}
        self.general: list[str] = []

    def _of(self, task_id: str) -> _About:
        if task_id not in self._tasks:
            self._tasks[task_id] = _About()
        return self._tasks[task_id]

    def say(self, task_id: str, words: str) -> None:
        """A sentence about a task; the same one is said once."""
        about = self._of(task_id)
        if words not in about.words:
            about.words.append(words)

    def renumber(self, task_id: str, old: str) -> None:
        """A task that had another number where it was made."""
        self._of(task_id).was.append(old)
        self.say(task_id, f"was {old} where it was made; {old} is another task")

    def supersede(self, said: Event) -> None:
        """An event of a side whose life of the task does not stand."""
        if said.run_id is None:
            return
        runs = self._of(said.task_id).runs
        known = runs.get(said.run_id)
        agent = said.payload.get("agent") or (known.agent if known is not None else said.agent or said.actor)
        run = known or SupersededRun(run_id=said.run_id, agent=str(agent), hop=said.payload.get("hop"))
        if said.type == "task.completed":
            run = msgspec.structs.replace(run, outcome=said.payload["result"]["outcome"])
        runs[said.run_id] = run

    def forget_standing(self, tasks: dict[str, Task]) -> None:
        """A run that goes on is not superseded, though another clone knew less or more of it."""
        for task_id, about in self._tasks.items():
            for lease in leases(tasks[task_id]):
                about.runs.pop(lease.run_id, None)

    def clash(self, task_id: str, clashes: list[Clash]) -> None:
        """Fields that two clones changed in different ways."""
        for clash in clashes:
            self._of(task_id).clashes.append(clash)
            kept, other = shown_value(clash.kept), shown_value(clash.other)
            self.say(task_id, f"{clash.field}: two different changes; {kept} stands, the other was {other}")

    def leave_out(self, task_id: str, edge: str, kind: str = "dependency") -> None:
        """An edge that would have closed a cycle."""
        self._of(task_id).left_out.append(edge)
        what = "dependency on" if kind == "dependency" else "parent"
        self.say(task_id, f"{what} {edge} left out: it would close a cycle with what another clone added")

    def hold(self, task_id: str, by: str, words: str) -> None:
        """A task that waits for a person because of another one."""
        self._of(task_id).held_by = by
        self.say(task_id, words)

    def words(self, task_id: str) -> list[str]:
        """The sentences about a task, those about superseded runs last."""
        about = self._tasks.get(task_id)
        if about is None:
            return []
        return about.words + [_of_run(run) for run in about.runs.values()]

    def superseded(self, task_id: str) -> Collection[SupersededRun]:
        """The runs of a task that do not stand."""
        about = self._tasks.get(task_id)
        return about.runs.values() if about is not None else ()

    def reports(self, tasks: dict[str, Task]) -> tuple[TaskReport, ...]:
        """The tasks that there is something to say about, in the order of their IDs."""
        return tuple(
            TaskReport(
                task_id=task_id,
                title=tasks[task_id].title,
                status="archived" if tasks[task_id].archived else tasks[task_id].status,
                notes=tuple(self.words(task_id)),
                was=tuple(about.was),
                superseded=tuple(about.runs.values()),
                clashes=tuple(about.clashes),
                left_out=tuple(about.left_out),
                held_by=about.held_by,
            )
            for task_id, about in sorted(self._tasks.items())
        )


def note_lives(notes: Notes, names: Names, verdicts: dict[str, Verdict], views: Views) -> None:
    """Say whose life of each task stands, and against whom."""
    for birth, fresh in names.renumbered:
        if birth.name.startswith("TASK-"):
            notes.renumber(fresh, birth.name)
        elif birth.name.startswith("question:"):
            (_, task, old), new = birth.name.split(":"), fresh.rpartition(":")[2]
            notes.say(
                names.of(task),
                f"two questions had the number {old}; the later one is {new}: {shown_value(birth.title)}",
            )
    for key, verdict in verdicts.items():
        task_id = names.of(key)
        for contest in verdict.contests:
            best = views.after[contest.best.place, key]
            for loser in contest.losers:
                other = views.after[loser.place, key]
                if words := _notes_chosen(_side(contest.best, best), _side(loser, other)):
                    notes.say(task_id, words)


class _Side(NamedTuple):
    """One side of a choice: how far it was, and by whom."""

    status: str
    who: str


def _side(original: Original, standing: TaskStanding) -> _Side:
    last = original.events[-1]
    status = "archived" if standing.archived else standing.status
    return _Side(status, standing.holder or last.agent or last.actor)


def _notes_chosen(best: _Side, other: _Side) -> str:
    if best.status == "done" and other.status == "cancelled":
        return f"done by {best.who}; cancelled too late by {other.who}"
    if best.status == other.status == "done":
        return f"done twice: the result of {best.who} stands, that of {other.who} is kept as an attempt"
    if best.status == other.status == "in-progress":
        return f"claimed twice: {best.who} keeps the lease; the run of {other.who} is superseded"
    return f"{best.status} by {best.who} stands; {other.who} had it {other.status} in another clone"


def _of_run(run: SupersededRun) -> str:
    where = f" of hop {run.hop}" if run.hop is not None else ""
    result = f"; its result ({run.outcome}) is kept as an attempt" if run.outcome is not None else ""
    return f"run {run.run_id}{where} by {run.agent} is superseded: it can no longer write{result}"


def shown_value(value: Any) -> str:
    """A value in a sentence."""
    if value is None:
        return "nothing"
    text = msgspec.json.encode(value).decode() if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
