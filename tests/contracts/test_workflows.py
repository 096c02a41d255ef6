"""Gated tasks on every store: what is committed comes back, hops are found and held, runs are kept apart."""

from __future__ import annotations

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError, StaleLease
from aof.kernel.model import Policy
from aof.store.fold import fold
from aof.store.memory import FixedWorkflows
from aof.store.port import Store
from aof.testing import FakeClock
from aof.workflows.model import workflow_of
from tests.support.present import present
from tests.support.workflows import DIAMOND, REVIEW


@pytest.fixture
def gated(store: Store, clock: FakeClock) -> Fabric:
    """A fabric with two workflows."""
    return Fabric(store, clock, Policy(), "pm", workflows=FixedWorkflows(REVIEW, DIAMOND))


def test_the_record_and_the_log_agree_after_every_step(gated: Fabric, store: Store) -> None:
    task = gated.create("x", workflow="diamond").task_id
    gated.complete(task, outcome="complete", agent="ada")
    first, second = gated.claim(task, agent="ada", hop="test"), gated.claim(task, agent="bob")
    assert (first.hop, second.hop, second.epoch) == ("test", "audit", 1)
    gated.progress(task, run=first.run_id, percent=50)
    gated.complete(task, run=second.run_id, outcome="complete")
    gated.heartbeat(task, run=first.run_id)
    gated.complete(task, run=first.run_id, outcome="complete")
    gated.claim(task, agent="cem")
    folded = present(fold(store.events(task_id=task))[task].task)
    assert workflow_of(gated.get(task)) == workflow_of(folded)
    assert {run.hop: run.run_id for run in store.attempts(task)}.keys() == {"build", "test", "audit", "ship"}


def test_a_hop_beside_those_that_run_is_ready_and_is_offered_first(gated: Fabric) -> None:
    task = gated.create("x", workflow="diamond").task_id
    gated.create("another", priority="critical")
    gated.complete(task, outcome="complete", agent="ada")
    gated.claim(task, agent="ada")
    assert next(row.id for row in gated.ready().tasks) == task
    assert gated.claim(agent="bob").hop == "audit"
    assert task not in [row.id for row in gated.ready().tasks]
    assert gated.list(agent="ada").total == 1


def test_a_list_names_who_holds_a_hop(gated: Fabric) -> None:
    def agent() -> str | None:
        (row,) = gated.list().tasks
        return row.agent

    task = gated.create("x", workflow="diamond", agent="pat").task_id
    assert agent() is None
    gated.complete(task, outcome="complete", agent="ada")
    bob = gated.claim(task, agent="bob", hop="audit").run_id
    assert agent() == "bob"
    gated.claim(task, agent="ada", hop="test")
    gated.complete(task, run=bob, outcome="complete")
    assert agent() == "ada"


def test_heartbeats_and_leases_of_hops_are_kept_apart(gated: Fabric, clock: FakeClock, store: Store) -> None:
    task = gated.create("x", workflow="diamond").task_id
    gated.complete(task, outcome="complete", agent="ada")
    alive, silent = gated.claim(task, agent="ada"), gated.claim(task, agent="bob")
    clock.sleep(200)
    gated.heartbeat(task, run=alive.run_id)
    clock.sleep(200)
    gated.tick()
    hops = workflow_of(gated.get(task))
    assert (hops.hop("test").status, hops.hop("audit").status) == ("running", "ready")
    with pytest.raises(StaleLease):
        gated.complete(task, run=silent.run_id, outcome="complete")
    found = present(store.heartbeats([f"{task}/hops/test"])[f"{task}/hops/test"])
    assert (found.beat_count, found.hop) == (1, "test")


def test_a_tick_ends_a_hop_whose_time_is_over(store: Store, clock: FakeClock) -> None:
    timed = {"name": "timed", "hops": [{"id": "a", "role": "r", "timeout": "2h", "escalateTo": "lead"}]}
    gated = Fabric(store, clock, Policy(), "pm", workflows=FixedWorkflows(timed))
    task = gated.create("x", workflow="timed").task_id
    assert [action.action for action in gated.tick().actions] == []
    clock.sleep(2 * 3600)
    assert [(action.action, action.hop) for action in gated.tick().actions] == [("hop_timeout", "a")]
    assert workflow_of(gated.get(task)).hop("a").role == "lead"
    clock.sleep(2 * 3600)
    gated.tick()
    assert gated.get(task).status == "deadletter"


def test_a_claim_with_a_key_answers_with_the_same_hop(gated: Fabric) -> None:
    task = gated.create("x", workflow="diamond").task_id
    gated.complete(task, outcome="complete", agent="ada")
    first = gated.claim(agent="bob", key="k")
    again = gated.claim(agent="bob", key="k")
    assert (again.run_id, again.hop) == (first.run_id, first.hop)
    assert gated.claim(task, agent="bob").hop != first.hop


def test_later_edits_of_a_template_leave_running_tasks_alone(store: Store, clock: FakeClock) -> None:
    source = FixedWorkflows(REVIEW)
    gated = Fabric(store, clock, Policy(), "pm", workflows=source)
    task = gated.create("x", workflow="review").task_id
    before = workflow_of(gated.get(task))
    source.documents["review"] = {"name": "review", "hops": REVIEW["hops"][:1]}
    gated.complete(task, outcome="complete", agent="ada")
    after = workflow_of(gated.get(task))
    assert (after.template, after.digest) == (before.template, before.digest)
    assert gated.get(task).status == "ready"
    other = workflow_of(gated.get(gated.create("y", workflow="review").task_id))
    assert other.digest != before.digest


def test_a_session_that_ends_without_a_report_fails_its_hop_only(gated: Fabric) -> None:
    task = gated.create("x", workflow="diamond").task_id
    gated.complete(task, outcome="complete", agent="ada")
    first = gated.claim(task, agent="ada")
    with gated.claim(task, agent="bob"):
        pass
    hops = workflow_of(gated.get(task))
    assert (hops.hop("test").run_id, hops.hop("test").status) == (first.run_id, "running")
    assert (hops.hop("audit").status, hops.hop("audit").failures) == ("ready", 1)


def test_an_unknown_or_unsound_workflow_is_refused_and_no_task_is_made(store: Store, clock: FakeClock) -> None:
    broken = {"name": "broken", "hops": [{"id": "a", "role": "r", "dependsOn": ["a"]}]}
    gated = Fabric(store, clock, Policy(), "pm", workflows=FixedWorkflows(REVIEW, broken))
    for name, code in (("reviw", "workflow_not_found"), ("broken", "invalid_workflow")):
        with pytest.raises(AofError) as refused:
            gated.create("x", workflow=name)
        assert refused.value.code == code
        assert refused.value.hint
    assert gated.list().total == 0
