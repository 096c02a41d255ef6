"""Histories of several clones become one, in whatever order they meet."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.errors import AofError, StaleLease, UnmergeableHistory
from aof.kernel.events import Event, is_remark
from aof.kernel.kinds import Outcome
from aof.merge.commits import Lanes, in_order, newest
from aof.merge.history import merge, open_tips
from aof.merge.model import GENESIS, Commit, Lane
from aof.merge.names import Census
from aof.store.fold import Folded, fold
from aof.tasks.model import Task
from aof.workflows.model import leases, workflow_of
from tests.support.forks import GATED, Clone, Repository, sealed

# --- random histories of three clones, merged in every order and grouping: one result, and nothing is lost


_AGENTS = ("ann", "ben", "cas")
_TEXTS = {
    "ann": "ONE\n\ntwo\n\nthree\n",
    "ben": "one\n\ntwo\n\nTHREE\n",
    "cas": "one\n\ntwo\n\nthree\n\nfour\n",
}


class Histories:
    """Clones that do something at random, and sometimes pull from each other."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.repository = Repository([GATED])
        root = self.repository.root
        for number in range(3):
            root.fabric.create(f"base {number}", review=False, brief="one\n\ntwo\n\nthree\n")
        root.fabric.create("gated", workflow="gated")
        root.fabric.mail_send("ann", "a subject", from_agent="ben")
        self.clones = [root, root.fork("bob"), root.fork("cyd")]

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            for clone in self.clones:
                for _ in range(self.dice.randint(0, 8)):
                    self.repository.clock.sleep(self.dice.choice((0, 1, 60)))
                    with suppress(AofError):
                        self.act(clone)
            if self.dice.random() < 0.6:
                one, two = self.dice.sample(self.clones, 2)
                one.pull(two)
                if self.dice.random() < 0.5:
                    two.adopt(one.tip())

    def act(self, clone: Clone) -> None:
        dice = self.dice
        ids = sorted(clone.folded())
        word = f"w{dice.randrange(10**9)}"
        one = dice.choice(ids[:4] if dice.random() < 0.5 else ids)  # what all clones know is worked on most
        dice.choice(_ACTIONS)(clone, one, dice.choice(ids), dice.choice(_AGENTS), word)


_Action = Callable[[Clone, str, str, str, str], object]
_ACTIONS: tuple[_Action, ...] = (
    lambda clone, one, _two, _who, word: clone.fabric.create(word, review=False, depends_on=[one]),
    lambda clone, one, _two, _who, word: clone.fabric.create(word, depends_on=[one]),
    lambda clone, one, _two, _who, word: clone.fabric.create(word, parent_id=one, review=False),
    lambda clone, one, _two, _who, word: clone.fabric.edit(one, title=word),
    lambda clone, one, _two, who, word: clone.fabric.edit(one, metadata={who: word}),
    lambda clone, one, _two, who, _word: clone.fabric.edit(one, priority="low" if who == "ann" else "high"),
    lambda clone, one, _two, who, _word: clone.fabric.claim(one, agent=who),
    lambda clone, one, _two, who, _word: clone.fabric.claim(one, agent=who),
    lambda clone, _one, _two, who, _word: clone.fabric.claim(agent=who),
    lambda clone, one, _two, who, word: clone.fabric.progress(
        one, **_holder(clone, one, who), text=word, note=f"{word} progress"
    ),
    lambda clone, one, _two, who, word: _complete(clone, one, who, word),
    lambda clone, one, _two, who, word: _complete(clone, one, who, word),
    lambda clone, one, _two, who, word: _complete(clone, one, who, word),
    lambda clone, one, _two, who, word: clone.fabric.fail(one, **_holder(clone, one, who), message=word),
    lambda clone, one, _two, who, _word: clone.fabric.release(one, **_holder(clone, one, who)),
    lambda clone, one, _two, _who, word: clone.fabric.cancel(one, reason=word),
    lambda clone, one, _two, _who, word: clone.fabric.block(one, reason=word),
    lambda clone, one, _two, _who, _word: clone.fabric.unblock(one),
    lambda clone, one, two, _who, _word: clone.fabric.dep_add(one, two),
    lambda clone, one, two, _who, _word: clone.fabric.dep_remove(one, two),
    lambda clone, one, two, _who, _word: clone.fabric.edit(one, parent_id=two),
    lambda clone, one, two, _who, _word: clone.fabric.link(one, "source_task", two),
    lambda clone, one, _two, _who, _word: clone.fabric.archive(one),
    lambda clone, one, _two, _who, word: clone.fabric.retry(one, reason=word),
    lambda clone, one, _two, _who, word: clone.fabric.comment(one, f"{word} comment"),
    lambda clone, one, _two, who, word: clone.fabric.edit(one, description=_TEXTS[who].replace("two", word)),
    lambda clone, _one, _two, who, word: clone.fabric.mail_send(who, word, from_agent="root"),
    lambda clone, one, _two, _who, _word: clone.fabric.approve(one),
    lambda clone, _one, _two, _who, word: _answer_mail(clone, word, "mail_ack"),
    lambda clone, _one, _two, _who, word: _answer_mail(clone, word, "mail_action"),
    lambda clone, one, _two, who, word: clone.fabric.handoff_new(
        type="delegation", task_id=one, reason=word, from_agent="root", to=[who], timeout="1h"
    ),
    lambda clone, one, _two, _who, word: _answer_handoff(clone, one, word, "handoff_accept"),
    lambda clone, one, _two, _who, word: _answer_handoff(clone, one, word, "handoff_reject"),
    lambda clone, one, _two, _who, word: _answer_handoff(clone, one, word, "handoff_defer"),
)


def _holder(clone: Clone, task_id: str, who: str) -> dict[str, Any]:
    """Who has the task acts for its run; nobody else could."""
    held = leases(clone.task(task_id))
    return {"agent": held[-1].agent, "run": held[-1].run_id} if held else {"agent": who}


def _complete(clone: Clone, task_id: str, who: str, word: str) -> None:
    given = _holder(clone, task_id, who)
    if clone.task(task_id).gated:
        given |= {"outcome": "needs_review" if word.endswith("7") else "complete"}
    clone.fabric.complete(task_id, **given, summary=word, blockers=[word] if "needs_review" in given.values() else ())


def _answer_mail(clone: Clone, word: str, verb: str) -> None:
    sent = [event.payload["message"] for event in clone.log if event.type == "document.mail.sent"]
    message = sent[int(word[1:]) % len(sent)]
    getattr(clone.fabric, verb)(message["messageId"], agent=message["to"], reason=word)


def _answer_handoff(clone: Clone, task_id: str, word: str, verb: str) -> None:
    for handoff in clone.folded()[task_id].handoffs.values():
        getattr(clone.fabric, verb)(handoff.id, agent=handoff.to_agent, reason=word)


def _assert_same_in_any_order(seed: int, rounds: int = 3) -> Counter[str]:
    dice = random.Random(seed)
    with patch("os.urandom", dice.randbytes):  # the same history whenever the same seed is tried
        histories = Histories(dice)
        histories.run(rounds)
    return check(histories.repository, [clone.tip() for clone in histories.clones])


def check(repository: Repository, tips: list[str]) -> Counter[str]:
    """Everything that must hold of a merge of these tips; what was met on the way, counted."""
    lanes = repository.all_lanes()
    results = {
        _bytes(sealed(repository.merged(order, among)))
        for order in itertools.permutations(tips)
        for among in (lanes, lanes[::-1])
    }
    for order in itertools.permutations(tips):
        results.add(_bytes(_one_by_one(repository, list(order))))
    assert len(results) == 1, f"{len(results)} different results"
    merged = repository.merged(tips)
    lane = repository.write(merged)
    counted = Counter({"merged": bool(merged.commits)})
    if not merged.commits:
        return counted
    after = fold(repository.path(lane.commits[-1].key))
    _nothing_lost(lanes, tips, lane, after)
    for tip in tips:
        counted += _untouched(repository, lanes, tips, tip, lane.commits[-1].key)
    counted.update(
        event.type for commit in merged.commits for event in commit if event.type.startswith(("task.s", "task.m"))
    )
    counted["renumbered"] = len(merged.report.renumbered)
    counted["clashes"] = sum(len(one.clashes) for one in merged.report.tasks)
    return counted


def _bytes(lane: Lane) -> tuple[str, ...]:
    return (lane.name, lane.after, *lane.heads, *(event.hash for commit in lane.commits for event in commit.events))


def _one_by_one(repository: Repository, order: list[str]) -> Lane:
    """Each merge lane is kept for the next merge, as it would be in somebody's clone."""
    among = {lane.name: lane for lane in repository.all_lanes()}
    tip = order[0]
    for other in order[1:]:
        merged = repository.merged([tip, other], among.values())
        lane = sealed(merged)
        if merged.commits:
            among[lane.name] = lane
        tip = lane.commits[-1].key if merged.commits else merged.heads[0]
    return lane


def _originals(lanes: list[Lane], tips: list[str]) -> list[Commit]:
    known = Lanes(lanes)
    _, _, span = newest(known, [known.place(tip) for tip in tips])
    return [Commit(original.events) for original in in_order(known, span)]


def _nothing_lost(lanes: list[Lane], tips: list[str], lane: Lane, after: dict[str, Folded]) -> None:
    """Every commit is there with all its events, and what it said; one birth is one task."""
    originals = _originals(lanes, tips)
    said = [commit.events for commit in lane.commits]
    assert len(said) >= len(originals)
    for commit, replayed in zip(originals, said, strict=False):
        assert len(replayed) >= len(commit.events)
        for event, now in zip(commit.events, replayed, strict=False):
            assert now.timestamp == event.timestamp
            assert now.type in (event.type, "task.superseded", "task.updated", "document.superseded")
            if event.task_id and not is_remark(event):
                folded = after[now.task_id]
                assert folded.task is not None
                _said(event, now, folded, folded.task)


def _births(path: list[Event]) -> dict[str, str]:
    """The birth of each task on a path; no two of them have the same one."""
    begun = [event for event in path if event.type == "task.created"]
    found = {event.task_id: str(event.payload.get("birth", event.hash)) for event in begun}
    assert len(found) == len(set(found.values())) == len(begun)
    return found


def _said(event: Event, now: Event, folded: Folded, task: Task) -> None:
    payload = event.payload
    if entry := payload.get("workLog"):
        assert str(entry).splitlines()[0] in task.body
    if event.type == "task.commented":
        assert payload["text"] in task.body
    if event.type == "task.created":
        assert (task.created_at, task.created_by) == (event.timestamp, payload["task"]["createdBy"])
    if event.type == "task.attempt.started":
        assert now.run_id in {run.run_id for run in folded.runs}
    if event.type == "task.completed":
        results = folded.results | folded.late
        stands = now.type == event.type
        assert not stands or results[now.run_id or ""].notes == payload["result"].get("notes")
        assert now.run_id in results


def _untouched(repository: Repository, lanes: list[Lane], tips: list[str], tip: str, end: str) -> Counter[str]:
    """What nobody else has touched is as it was here, and its runs too."""
    counted: Counter[str] = Counter()
    mine, now = repository.path(tip), repository.path(end)
    births, names = _births(mine), {birth: name for name, birth in _births(now).items()}
    assert set(births.values()) <= names.keys()
    after, busy = fold(now), _foreign(lanes, tips, tip)
    if busy is None:
        return counted
    for task_id, folded in fold(mine).items():
        if births[task_id] in busy or task_id in busy or folded.task is None:
            counted["touched"] += 1
            continue
        counted["untouched"] += 1
        there = after[names[births[task_id]]]
        assert there.task is not None
        assert (there.task.title, there.task.body) == (folded.task.title, folded.task.body)
        assert there.task.retry.attempts == folded.task.retry.attempts
        if there.task.status != folded.task.status:  # what follows from what others did to its parent or dependencies
            assert there.task.blocked is not None or folded.task.blocked is not None
            continue
        assert [(run.attempt, run.agent_id, run.status) for run in there.runs] == [
            (run.attempt, run.agent_id, run.status) for run in folded.runs
        ]
    return counted


def _foreign(lanes: list[Lane], tips: list[str], tip: str) -> set[str] | None:
    """The tasks, by birth or settled ID, that somebody touched whose commit is not on the way to this tip.

    None where the tip lies before the fork: what was merged since is not looked at.
    """
    known = Lanes(lanes)
    _, _, span = newest(known, [known.place(one) for one in tips])
    order = in_order(known, span)
    own = known.heads(known.place(tip))
    if any(head.lane not in span.ends or head.at < span.begin(head.lane) for head in own):
        return None
    census = Census(known, span, order)
    return {
        census.key(original.place.lane, event.task_id)
        for original in order
        if not any(head == original.place or span.saw(head, original.place) for head in own)
        for event in original.events
    }


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6))
def test_any_order_and_grouping_of_merges_gives_the_same_bytes_and_loses_nothing(seed: int) -> None:
    _assert_same_in_any_order(seed)


@pytest.mark.full
def test_many_histories_in_any_order_meet_every_kind_of_conflict() -> None:
    met: Counter[str] = Counter()
    for seed in range(400):
        met += _assert_same_in_any_order(seed, rounds=4)
    assert all(met[kind] for kind in ("task.superseded", "task.merged", "renumbered", "clashes", "untouched"))


# --- how lanes hang together: tips that are still open, and lanes that do not belong together


@pytest.fixture
def repository() -> Repository:
    made = Repository()
    made.root.fabric.create("shared")
    return made


def _work(clone: Clone, *titles: str) -> str:
    for title in titles:
        clone.repository.clock.sleep(1)
        clone.fabric.create(title)
    return clone.tip()


def test_one_clone_has_one_open_tip_and_nothing_to_merge(repository: Repository) -> None:
    tip = _work(repository.root, "one")
    assert repository.tips() == (tip,)
    merged = repository.merged([tip])
    assert (merged.commits, merged.after, merged.heads) == ([], tip, (tip,))


def test_a_tip_that_another_one_builds_on_is_not_open(repository: Repository) -> None:
    old = repository.root.tip()
    bob = repository.root.fork("bob")
    tip = _work(bob, "one", "two")
    assert repository.tips() == (tip,)
    merged = repository.merged([old, tip])
    assert (merged.commits, merged.heads) == ([], (tip,))


def test_after_a_merge_its_lane_is_the_only_open_tip(repository: Repository) -> None:
    bob = repository.root.fork("bob")
    tips = sorted((_work(repository.root, "mine"), _work(bob, "theirs")))
    assert repository.tips() == tuple(tips)
    repository.root.pull(bob)
    assert repository.tips() == (repository.root.tip(),)


def test_a_merge_lane_that_another_merge_lane_has_overtaken_is_not_open(repository: Repository) -> None:
    bob, cyd = repository.root.fork("bob"), repository.root.fork("cyd")
    for clone in (repository.root, bob, cyd):
        _work(clone, clone.actor)
    bob.pull(repository.root)
    cyd.pull(bob, repository.root)
    assert repository.tips() == (cyd.tip(),)


def test_two_merge_lanes_of_different_commits_are_both_open(repository: Repository) -> None:
    bob, cyd = repository.root.fork("bob"), repository.root.fork("cyd")
    for clone in (repository.root, bob, cyd):
        _work(clone, clone.actor)
    apart = repository.root.fork("dan")
    bob.pull(repository.root)
    cyd.pull(apart)
    assert repository.tips() == tuple(sorted((bob.tip(), cyd.tip())))


def test_a_merge_begins_behind_the_longest_path_that_its_tips_share(repository: Repository) -> None:
    bob = repository.root.fork("bob")
    _work(repository.root, "mine")
    _work(bob, "theirs")
    repository.root.pull(bob)
    bob.adopt(repository.root.tip())
    fork = bob.tip()
    tips = [_work(repository.root, "again mine"), _work(bob, "again theirs")]
    merged = repository.merged(tips)
    assert merged.after == fork
    assert merged.heads == tuple(sorted(tips))
    assert merged.report.commits == 2


def test_a_merge_lane_is_computed_anew_from_its_originals(repository: Repository) -> None:
    bob = repository.root.fork("bob")
    _work(repository.root, "mine")
    _work(bob, "theirs")
    merged = repository.root.pull(bob)
    again = merge(repository.all_lanes(), merged.heads)
    assert again == merged


@pytest.mark.parametrize("lie", ["heads", "after", "unknown"])
def test_a_merge_lane_whose_header_lies_is_refused(repository: Repository, lie: str) -> None:
    bob, cyd = repository.root.fork("bob"), repository.root.fork("cyd")
    for clone in (repository.root, bob, cyd):
        _work(clone, clone.actor, f"{clone.actor} again")
    bob.pull(repository.root)
    own = _work(bob, "on top")
    (lane,) = [one for one in repository.all_lanes() if one.heads]
    wrong: dict[str, Lane] = {
        "heads": lane._replace(heads=(lane.heads[0],)),
        "after": lane._replace(after=GENESIS),
        "unknown": lane._replace(heads=("f" * 64, *lane.heads)),
    }
    given = [one for one in repository.all_lanes() if not one.heads] + [wrong[lie]]
    with pytest.raises(UnmergeableHistory) as refused:
        merge(given, [own, cyd.tip()])
    assert refused.value.hint


def test_a_lane_of_another_data_directory_is_refused(repository: Repository) -> None:
    other = Repository()
    other.root.fabric.create("a stranger")
    stranger = other.root.fork("eve")
    _work(stranger, "more")
    lanes = [*repository.all_lanes(), *(lane for lane in other.all_lanes() if lane.name)]
    with pytest.raises(UnmergeableHistory, match="no lane has"):
        open_tips(lanes)


def test_an_event_that_this_version_does_not_know_is_refused(repository: Repository) -> None:
    bob = repository.root.fork("bob")
    mine = _work(repository.root, "mine")
    theirs = _work(bob, "theirs")
    lanes = {lane.name: lane for lane in repository.all_lanes()}
    own = next(lane for name, lane in lanes.items() if name)
    event = own.commits[-1].events[-1]
    strange = own.commits[-1]._replace(
        events=(*own.commits[-1].events[:-1], msgspec.structs.replace(event, type="task.invented"))
    )
    lanes[own.name] = own._replace(commits=[*own.commits[:-1], strange])
    with pytest.raises(UnmergeableHistory, match=r"task\.invented"):
        merge(list(lanes.values()), [mine, theirs])


def _title(commit: Commit) -> str:
    title: str = commit.events[0].payload["task"]["title"]
    return title


def test_commits_of_one_moment_are_ordered_by_their_hashes_whoever_merges(repository: Repository) -> None:
    clones = [repository.root, *(repository.root.fork(f"clone{number}") for number in range(3))]
    for clone in clones:
        for number in range(3):
            clone.fabric.create(f"{clone.actor} {number}")  # the clock stands still
    tips = [clone.tip() for clone in clones]
    lanes = repository.all_lanes()
    results = [
        merge(order, some)
        for some in itertools.permutations(tips)
        for order in (lanes, lanes[::-1], [*lanes[2:], *lanes[:2]])
    ]
    assert all(one == results[0] for one in results)
    said = [commit[0].payload["task"]["title"] for commit in results[0].commits if commit[0].type == "task.created"]
    assert len(said) == 12
    waiting = [[one for one in lane.commits if _title(one) != "shared"] for lane in lanes]
    expected = []
    while waiting := [commits for commits in waiting if commits]:
        first = min(waiting, key=lambda commits: commits[0].key)  # of those whose turn it could be, the least hash
        expected.append(_title(first.pop(0)))
    assert said == expected


# --- workflows whose hops go on in several clones: different hops both count, and of one hop the furthest


class Gated:
    """Two clones of a task whose first hop is done."""

    def __init__(self) -> None:
        self.repository = Repository([GATED])
        self.a: Clone = self.repository.root
        self.task = self.a.fabric.create("gated", workflow="gated").task_id
        self.do(self.a, "draft", "ann")
        self.b = self.a.fork("bob")

    def do(self, clone: Clone, hop: str, agent: str, outcome: Outcome = "complete") -> str:
        self.repository.clock.sleep(60)
        run = clone.fabric.claim(self.task, agent=agent, hop=hop).run_id
        blockers = ["not yet"] if outcome != "complete" else []
        clone.fabric.complete(
            self.task, run=run, hop=hop, outcome=outcome, summary=f"{hop} by {agent}", blockers=blockers
        )
        return run

    def hops(self) -> dict[str, str]:
        return dict(workflow_of(self.a.task(self.task)).statuses())


@pytest.fixture
def gated() -> Gated:
    return Gated()


def test_different_hops_that_were_done_in_two_clones_are_both_done_and_the_next_one_opens(gated: Gated) -> None:
    gated.do(gated.a, "left", "ann")
    gated.do(gated.b, "right", "ben")
    merged = gated.a.pull(gated.b)
    assert gated.hops() == {"draft": "done", "left": "done", "right": "done", "check": "ready"}
    assert gated.a.task(gated.task).status == "ready"
    assert not merged.report.tasks[0].superseded
    gated.do(gated.a, "check", "cas")
    assert gated.a.task(gated.task).status == "done"


def test_of_one_hop_that_was_done_twice_the_earlier_result_stands(gated: Gated) -> None:
    first = gated.do(gated.a, "left", "ann")
    second = gated.do(gated.b, "left", "ben")
    merged = gated.a.pull(gated.b)
    assert gated.hops()["left"] == "done"
    runs = {run.run_id: (run.status, run.hop) for run in gated.a.folded()[gated.task].runs}
    assert runs[first] == ("completed", "left")
    assert runs[second] == ("superseded", "left")
    assert [(run.agent, run.hop) for run in merged.report.tasks[0].superseded] == [("ben", "left")]


def test_a_hop_that_was_claimed_twice_has_one_holder_and_the_other_is_stale(gated: Gated) -> None:
    kept = gated.a.fabric.claim(gated.task, agent="ann", hop="left")
    gated.repository.clock.sleep(60)
    lost = gated.b.fabric.claim(gated.task, agent="ben", hop="left")
    gated.a.pull(gated.b)
    lease = workflow_of(gated.a.task(gated.task)).hop("left").lease
    assert lease is not None
    assert (lease.run_id, lease.contested) == (kept.run_id, True)
    with pytest.raises(StaleLease):
        gated.a.fabric.complete(gated.task, run=lost.run_id, hop="left", outcome="complete")
    gated.a.as_run(kept.secret).complete(gated.task, run=kept.run_id, hop="left", outcome="complete")
    gated.a.fabric.claim(gated.task, agent="ben", hop="right")


def test_a_running_hop_goes_on_beside_one_that_was_done_elsewhere(gated: Gated) -> None:
    run = gated.a.fabric.claim(gated.task, agent="ann", hop="left").run_id
    gated.do(gated.b, "right", "ben")
    gated.a.pull(gated.b)
    assert gated.hops() == {"draft": "done", "left": "running", "right": "done", "check": "waiting"}
    assert gated.a.task(gated.task).status == "in-progress"
    gated.a.fabric.complete(gated.task, run=run, hop="left", outcome="complete")
    assert gated.hops()["check"] == "ready"


def test_a_task_that_was_cancelled_elsewhere_ends_its_hops(gated: Gated) -> None:
    gated.a.fabric.claim(gated.task, agent="ann", hop="left")
    gated.repository.clock.sleep(60)
    gated.b.fabric.cancel(gated.task, reason="stop")
    merged = gated.a.pull(gated.b)
    after = gated.a.task(gated.task)
    assert after.status == "cancelled"
    assert not workflow_of(after).running()
    assert [run.agent for run in merged.report.tasks[0].superseded] == ["ann"]


def test_a_rejection_gives_way_to_an_approval_of_the_same_hop(gated: Gated) -> None:
    gated.do(gated.a, "left", "ann")
    gated.do(gated.a, "right", "ann")
    gated.b.adopt(gated.a.tip())
    gated.do(gated.a, "check", "cas", outcome="needs_review")
    gated.do(gated.b, "check", "dan")
    gated.a.pull(gated.b)
    assert gated.hops() == {"draft": "done", "left": "done", "right": "done", "check": "done"}
    assert gated.a.task(gated.task).status == "done"


def test_the_next_run_of_a_hop_has_a_greater_epoch_than_any_clone_has_given_out(gated: Gated) -> None:
    for _ in range(2):
        gated.a.fabric.release(gated.task, run=gated.a.fabric.claim(gated.task, agent="ann", hop="left").run_id)
    gated.repository.clock.sleep(60)
    gated.do(gated.b, "left", "ben", outcome="blocked")
    gated.a.pull(gated.b)
    hop = workflow_of(gated.a.task(gated.task)).hop("left")
    assert hop.epoch == 2
    assert gated.a.task(gated.task).retry.attempts == 3
