"""Which clone's work on a task counts where several worked on it: its status and runs, its hops, its handoffs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

from aof.handoffs.model import Handoff, HandoffState, evolve_handoff
from aof.kernel.events import Event, about_handoff, is_remark
from aof.kernel.evolve import evolve
from aof.merge.commits import ROOT, CommitPlace, Lanes, Original, Span
from aof.merge.model import Notes, rule_of, shown_value
from aof.merge.names import Census, Names
from aof.tasks.model import Task

# Statuses of tasks, hops and handoffs, the furthest last.
_STATUSES: Final = ("backlog", "ready", "in-progress", "blocked", "deadletter", "review", "cancelled", "done")
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
_CHANGING_CONTENT: Final = frozenset({"task.updated", "task.dependency.updated", "task.restored"})
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
FOLLOWING: Final = frozenset({"task.hop.opened", "task.hop.skipped"})  # what follows from the state of other hops
_RESET: Final = "task.hop.reset"
_LAST: Final = (1,)  # sorts behind every order

# Sorts the commits that compete, the one that stands first; it also gets all of them.
Order = Callable[[Original, list[Original]], tuple[Any, ...]]


class HopProgress(NamedTuple):
    """How far a hop was."""

    status: str
    epoch: int
    since: str

    @property
    def order(self) -> tuple[int, int, str]:
        """The furthest first."""
        return -_HOPS.index(self.status), -self.epoch, self.since


class TaskProgress(NamedTuple):
    """How far a task was after a commit, for its author."""

    status: str
    archived: bool
    attempts: int
    since: str
    holder: str | None
    hops: dict[str, HopProgress]
    handoffs: dict[str, int]

    @property
    def order(self) -> tuple[int, int, str]:
        """The furthest first, then more attempts, then the earlier one."""
        return -_STATUSES.index(self.status), -self.attempts, self.since


class TaskStates(NamedTuple):
    """Tasks and handoffs at one point of a lane."""

    tasks: dict[str, Task]
    handoffs: dict[str, Handoff]

    def copy(self) -> TaskStates:
        """A copy that can go on independently."""
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
        self.after: dict[tuple[CommitPlace, str], TaskProgress] = {}
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
            state, commits = self._states.pop(lane), lanes.lanes[lane].commits
            for index in range(span.begin(lane), ends.get(lane, 0)):
                self._add(CommitPlace(lane, index), commits[index].events, state)
                self._branch(CommitPlace(lane, index), state)

    def _root_of(self, lane: int) -> CommitPlace:
        """The commit that a lane builds on; the fork for those that begin there."""
        fork, after = self._span.fork, self._lanes.after(lane)
        common = lane == fork.lane or after == ROOT or (after.lane == fork.lane and after.at <= fork.at)
        return fork if common else after

    def _branch(self, place: CommitPlace, state: TaskStates) -> None:
        for lane in self._branches.get(place, ()):
            self._states[lane] = state.copy()

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
            if before is not None and event.type in _CHANGING_CONTENT:
                self.before[place, number] = before
            state.add(event)
            if before is not None and event.type == "task.restored":
                self.restored[place, number] = state.tasks[event.task_id]
        if not self._lanes.lanes[place.lane].heads:
            for key, name in touched.items():
                self.after[place, key] = _progress_of(state.tasks[name], state.handoffs)


def _progress_of(task: Task, handoffs: dict[str, Handoff]) -> TaskProgress:
    hops = {
        hop["id"]: HopProgress(hop["status"], hop.get("epoch", 0), _since(hop)) for hop in task.workflow.get("hops", ())
    }
    states = {link.target_id: handoffs[link.target_id].state for link in task.links if link.target_id in handoffs}
    return TaskProgress(
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


class Contest(NamedTuple):
    """One choice between sides: whose work counts, and whose does not."""

    best: Original
    losers: tuple[Original, ...]


class Chosen(NamedTuple):
    """The commits that stand, by their numbers in the canonical order, and the choices that led there."""

    ranks: frozenset[int]
    contests: tuple[Contest, ...]


class Verdict:
    """Which commits count for a task: as a whole, by hops, and by handoffs."""

    def __init__(self, whole: Chosen, hops: dict[str, Chosen] | None, handoffs: dict[str, Chosen]) -> None:
        self.whole = whole
        self.hops = hops
        self.handoffs = handoffs

    def stands(self, original: Original, event: Event) -> bool:
        """Whether an event about the life or a handoff of the task counts."""
        if rule_of(event.type) == "handoff":
            chosen = self.handoffs.get(event.payload["handoffId"])
            return chosen is None or original.rank in chosen.ranks
        hop = event.payload.get("hop")
        if self.hops is None or hop is None:
            return original.rank in self.whole.ranks
        own = all(original.rank in self.hops[name].ranks for name in own_hops(original, event.task_id))
        if event.type in FOLLOWING:
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
        and event.type not in FOLLOWING
        and event.type != _RESET
        and rule_of(event.type) == "life"
    }


def _put(commits: list[Original], original: Original) -> None:
    if not commits or commits[-1] is not original:
        commits.append(original)


def decide_lives(
    span: Span, views: Views, key: str, touching: list[Original], name_in: Callable[[int], str]
) -> Verdict:
    """Decide which commits count for a task; `name_in` gives its ID in a lane."""
    alive: list[Original] = []
    of_hops: dict[str, list[Original]] = {}
    of_handoffs: dict[str, list[Original]] = {}
    for original in touching:
        name = name_in(original.place.lane)
        for event in original.events:
            rule = rule_of(event.type) if event.task_id == name else ""
            if rule == "handoff":
                _put(of_handoffs.setdefault(event.payload["handoffId"], []), original)
            elif rule == "life" or (rule and event.type == "task.restored"):
                _put(alive, original)
                if "hop" in event.payload and event.type not in FOLLOWING:
                    _put(of_hops.setdefault(event.payload["hop"], []), original)

    def standing(original: Original) -> TaskProgress:
        return views.after[original.place, key]

    def handed(name: str) -> Order:
        return lambda one, _heads: (standing(one).handoffs.get(name, 1),)

    def hopped(hop: str) -> Order:
        return lambda one, _heads: standing(one).hops[hop].order

    whole = _chosen(span, alive, lambda one, heads: _order(span, one, heads, alive, standing))
    handoffs = {name: _chosen(span, commits, handed(name)) for name, commits in of_handoffs.items()}
    best = whole.contests[0].best if whole.contests else None
    if best is None or not own_hops(best, name_in(best.place.lane)):
        return Verdict(whole, None, handoffs)
    return Verdict(whole, {hop: _chosen(span, some, hopped(hop)) for hop, some in of_hops.items()}, handoffs)


def _order(
    span: Span,
    one: Original,
    heads: list[Original],
    alive: list[Original],
    standing: Callable[[Original], TaskProgress],
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


def _chosen(span: Span, commits: list[Original], order: Order) -> Chosen:
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


def note_lives(notes: Notes, names: Names, verdicts: dict[str, Verdict], views: Views) -> None:
    """Note for each task whose work counts, and whose does not."""
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
            best = _status_and_agent(contest.best, views.after[contest.best.place, key])
            for loser in contest.losers:
                other = _status_and_agent(loser, views.after[loser.place, key])
                notes.say(task_id, _words_of_contest(best, other))


def _status_and_agent(original: Original, standing: TaskProgress) -> tuple[str, str]:
    last = original.events[-1]
    return "archived" if standing.archived else standing.status, standing.holder or last.agent or last.actor


def _words_of_contest(best: tuple[str, str], other: tuple[str, str]) -> str:
    (status, agent), (lost, loser) = best, other
    if status == "done" and lost == "cancelled":
        return f"done by {agent}; cancelled too late by {loser}"
    if status == lost == "done":
        return f"done twice: the result of {agent} stands, that of {loser} is kept as an attempt"
    if status == lost == "in-progress":
        return f"claimed twice: {agent} keeps the lease; the run of {loser} is superseded"
    return f"{status} by {agent} stands; {loser} had it {lost} in another clone"
