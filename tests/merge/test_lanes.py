"""How lanes hang together: tips that are still open, and lanes that do not belong together."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from aof.errors import UnmergeableHistory
from aof.merge.history import merge, open_tips
from aof.merge.model import GENESIS, Commit, Lane
from tests.support.forks import Clone, Repository


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
