"""Workflows whose hops go on in several clones: different hops both count, and of one hop the furthest."""

from __future__ import annotations

import pytest

from aof.errors import StaleLease
from aof.kernel.kinds import Outcome
from aof.workflows.model import workflow_of
from tests.support.forks import GATED, Clone, Repository


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
