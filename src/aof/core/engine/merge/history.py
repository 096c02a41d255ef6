"""`merge`: the history that several tips lead to, as the commits of a merge lane. Pure.

The result depends on the set of original commits only: not on the order of lanes or tips, nor on which of them were
merged before. Must not know files, git or clocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from aof.core.engine.merge import life
from aof.core.engine.merge.closing import close
from aof.core.engine.merge.commits.census import Census, chained
from aof.core.engine.merge.commits.lanes import ROOT, CommitPlace, Lanes, Span, newest, open_tips
from aof.core.engine.merge.commits.naming import Names
from aof.core.engine.merge.commits.order import in_order
from aof.core.engine.merge.consequences import Consequences
from aof.core.engine.merge.documents import DocumentStatuses
from aof.core.engine.merge.edges import Edges
from aof.core.engine.merge.model import GENESIS, RULE, Lane, Merged, Renumbered, Report
from aof.core.engine.merge.notes import Notes, tell
from aof.core.engine.merge.replay import Replay, SpanFacts
from aof.core.engine.merge.views import TaskStates, Views
from aof.core.model.task import Task

__all__ = ["merge", "open_tips"]


def merge(lanes: Sequence[Lane], tips: Sequence[str]) -> Merged:
    """The merge lane for these tips. Lanes that no tip builds on are not looked at."""
    known = Lanes([lane for lane in lanes if lane.commits])
    heads, fork, span = newest(known, [known.place(tip) for tip in tips])
    order = in_order(known, span)
    census = Census(known, span, order)
    names, notes = Names(known, census), Notes()
    contested = {key for key, touching in census.touching.items() if not chained(span, touching)}
    common = _common(census)
    views = Views(known, span, census, contested, common)
    verdicts = _verdicts(span, census, views, contested)
    edges = Edges(census, order, common.tasks)
    facts = SpanFacts(census, names, verdicts, views, edges, DocumentStatuses(span, notes), notes)
    replay = Replay(common.tasks, _seq(known, fork), facts)
    for original in order:
        replay.replay(original)
    tell(notes, names, verdicts, views)
    if order:
        stamp = max(event.timestamp for original in order for event in original.events)
        settling = [names.of(key) for key, verdict in verdicts.items() if verdict.hops is not None]
        Consequences(span, facts, replay, stamp).follow(settling)
        notes.forget_standing(replay.tasks)
        closings = close(replay, facts, stamp)
    else:
        closings = ()
    return Merged(
        after=known.hash_of(fork) if fork != ROOT else GENESIS,
        seq=_seq(known, fork),
        heads=tuple(sorted(known.hash_of(head) for head in heads)),
        rule=RULE,
        commits=replay.commits,
        closings=closings,
        report=_report([known.lanes[lane].name for lane in span.ends], len(order), facts, replay.tasks),
    )


def _seq(lanes: Lanes, fork: CommitPlace) -> int:
    return lanes.lanes[fork.lane].commits[fork.at].events[-1].seq if fork != ROOT else 0


def _common(census: Census) -> TaskStates:
    """The touched tasks at the fork."""
    state = TaskStates({}, {})
    for key in census.touching:
        for event in census.common_events.get(key, ()):
            state.add(event)
    return state


def _verdicts(span: Span, census: Census, views: Views, contested: set[str]) -> dict[str, life.Verdict]:
    return {
        key: life.decide(span, views, key, touching, census.called(key))
        for key, touching in census.touching.items()
        if key in contested
    }


def _report(lanes: list[str], commits: int, facts: SpanFacts, tasks: dict[str, Task]) -> Report:
    return Report(
        lanes=tuple(sorted(lanes)),
        commits=commits,
        touched=len(facts.census.touching),
        renumbered=tuple(
            Renumbered(old=birth.name.removeprefix("job:"), new=fresh.removeprefix("job:"), title=birth.title)
            for birth, fresh in facts.names.renumbered
            if not birth.name.startswith("question:")
        ),
        tasks=facts.notes.reports(tasks),
        notes=tuple(facts.notes.general),
    )
