"""Random histories of three clones, merged in every order and grouping: one result, and nothing is lost."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.errors import AofError
from aof.kernel.events import Event, is_remark
from aof.merge.commits import Lanes, in_order, newest
from aof.merge.model import Commit, Lane
from aof.merge.names import Census
from aof.store.fold import Folded, fold
from aof.tasks.model import Task
from aof.workflows.model import leases
from tests.support.forks import GATED, Clone, Repository, sealed

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


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6))
def test_any_order_and_grouping_of_merges_gives_the_same_bytes_and_loses_nothing(seed: int) -> None:
    _assert_same_in_any_order(seed)


@pytest.mark.full
def test_many_histories_in_any_order_meet_every_kind_of_conflict() -> None:
    met: Counter[str] = Counter()
    for seed in range(400):
        met += _assert_same_in_any_order(seed, rounds=4)
    assert all(met[kind] for kind in ("task.superseded", "task.merged", "renumbered", "clashes", "untouched"))
