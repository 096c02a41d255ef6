"""What waits for whose review: never one's own work, and only what the org chart allows."""

from __future__ import annotations

from aof.org.model import Agent, OrgChart
from aof.org.operations import waiting_for
from aof.runs.brief import prime
from aof.testing import memory_fabric

CHART = OrgChart(agents=(Agent(id="ada"), Agent(id="bob"), Agent(id="rita", roles=("reviewer",))))


def test_without_a_chart_everybody_but_the_worker_is_told_of_what_is_in_review() -> None:
    fabric = memory_fabric()
    task = fabric.create("Judge me").task_id
    fabric.complete(task, agent="ada")
    assert [one.id for one in waiting_for(fabric, "bob")] == [task]
    assert not waiting_for(fabric, "ada")
    assert f"Waiting for your review:\n- {task}" in prime(fabric, "bob")
    assert "Waiting for your review" not in prime(fabric, "ada")
    fabric.as_actor("bob").approve(task)
    assert "Waiting for your review" not in prime(fabric, "bob")


def test_with_a_chart_only_those_that_may_judge_are_told() -> None:
    fabric = memory_fabric(org=CHART)
    task = fabric.create("Judge me").task_id
    fabric.complete(task, agent="ada")
    told = {name: [one.id for one in waiting_for(fabric, name)] for name in ("ada", "bob", "rita", "stranger")}
    assert told == {"ada": [], "bob": [], "rita": [task], "stranger": []}


def test_prime_tells_to_append_notes_and_never_to_rewrite_the_body() -> None:
    text = prime(memory_fabric(), "ada")
    assert "aof_task_update with a note" in text
    assert "body" not in text
