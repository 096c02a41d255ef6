"""Whose life of a task stands, where several clones worked on it without knowing of each other.

Life comes whole from the side that is furthest; then from what that side had seen, in which an earlier merge chose in
the same way. Without that recursion a third clone would undo an earlier merge. Where hops of a workflow were worked on,
each hop is decided for itself; so is each handoff. Must not know how anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from aof.core.engine.merge.commits.lanes import Span
from aof.core.engine.merge.commits.order import Original
from aof.core.engine.merge.rules import HOPS, rule_of
from aof.core.engine.merge.views import TaskStanding, Views
from aof.core.model.events import Event

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


def decide(span: Span, views: Views, key: str, touching: list[Original], name_in: Callable[[int], str]) -> Verdict:
    """What stands of a task; `name_in` says what the authors of a lane called it."""
    subjects = _Subjects(touching, name_in)

    def standing(original: Original) -> TaskStanding:
        return views.after[original.place, key]

    def handed(name: str) -> _Order:
        return lambda one, _heads: (standing(one).handoffs.get(name, 1),)

    def hopped(hop: str) -> _Order:
        return lambda one, _heads: standing(one).hops[hop].order

    whole = _chosen(span, subjects.alive, lambda one, heads: _order(span, one, heads, subjects.alive, standing))
    handoffs = {name: _chosen(span, commits, handed(name)) for name, commits in subjects.handoffs.items()}
    best = whole.contests[0].best if whole.contests else None
    if best is None or not own_hops(best, name_in(best.place.lane)):
        return Verdict(whole, None, handoffs)
    return Verdict(whole, {hop: _chosen(span, some, hopped(hop)) for hop, some in subjects.hops.items()}, handoffs)


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


def _chosen(span: Span, commits: list[Original], order: _Order) -> Chosen:
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
