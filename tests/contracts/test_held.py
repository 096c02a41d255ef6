"""What an agent holds, asked under a unit's locks: every store knows it from the moment of the claim to the end."""

from __future__ import annotations

import pytest

from aof.api.fabric import Fabric
from aof.errors import AtCapacity
from aof.kernel.model import Policy
from aof.org.model import Agent, OrgChart
from aof.store.memory import FixedChart, FixedWorkflows
from aof.store.port import Scope, Store
from aof.testing import FakeClock
from tests.support.workflows import hop, template


def test_an_agent_holds_what_it_claimed_until_the_run_ends(fabric: Fabric, store: Store) -> None:
    def held(agent: str) -> tuple[str, ...]:
        with store.unit(Scope(names=frozenset({f"agent:{agent}"}))) as unit:
            return unit.held_by(agent)

    first, second, third = (fabric.create(f"Task {number}").task_id for number in range(3))
    assert held("ada") == ()
    fabric.claim(second, agent="ada")
    fabric.claim(first, agent="ada")
    fabric.claim(third, agent="bob")
    assert (held("ada"), held("bob"), held("cem")) == ((first, second), (third,), ())
    fabric.complete(first, actor="ada")
    fabric.cancel(third)
    assert held("ada") == (second,)
    fabric.release(second, agent="ada")
    assert held("ada") == ()


def test_each_hop_that_an_agent_holds_counts(store: Store, clock: FakeClock) -> None:
    chart = OrgChart(agents=(Agent(id="ada", roles=("worker",), concurrency=2),))
    workflows = FixedWorkflows(template(hop("a"), hop("b"), hop("c")))
    fabric = Fabric(store, clock, Policy(), "pm", org=FixedChart(chart), workflows=workflows)
    first, other = (fabric.create("x", workflow="flow").task_id for _ in range(2))
    fabric.claim(first, agent="ada", hop="a")
    run = fabric.claim(first, agent="ada", hop="b").run_id
    with store.unit(Scope(names=frozenset({"agent:ada"}))) as unit:
        assert unit.held_by("ada") == (first, first)
        assert unit.held_by("a") == ()
    for task in (first, other):
        with pytest.raises(AtCapacity):
            fabric.claim(task, agent="ada")
    fabric.complete(first, run=run, outcome="complete")
    assert fabric.claim(other, agent="ada").hop == "a"
