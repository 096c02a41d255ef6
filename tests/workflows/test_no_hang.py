"""No combination of outcomes hangs a workflow: from wherever it got to, somebody can bring it to an end."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from aof.kernel import commands
from aof.kernel.model import Policy
from aof.workflows.outcomes import due_hops
from tests.support.workflows import Gated, templates
from tests.support.world import MINUTE

AGENTS = ("ada", "bob")
OUTCOMES = ("complete", "complete", "needs_review", "blocked")
SLOW = list(HealthCheck)


def _act(world: Gated, data: st.DataObject) -> None:  # noqa: C901 - one case an action
    """Somebody does something, sensible or not."""
    task = world.task_id
    agent = data.draw(st.sampled_from(AGENTS))
    about: dict[str, Any] = {"actor": agent, "task_id": task}
    hops = [hop.id for hop in world.flow.hops]
    hop = data.draw(st.sampled_from([None, *hops]))
    runs = [hop.run_id for hop in world.flow.hops if hop.run_id]
    run = data.draw(st.sampled_from([None, *runs]))
    match data.draw(st.integers(0, 15)):
        case 0 | 1 | 2 | 3:
            world.attempt(
                commands.Claim(**about, hop=hop, worker=data.draw(st.sampled_from(["pull", "pull", "process"])))
            )
        case 4 | 5 | 6 | 7:
            outcome = data.draw(st.sampled_from(OUTCOMES))
            world.attempt(commands.Complete(**about, hop=hop, run=run, outcome=outcome, blockers=("not good",)))
        case 8:
            world.attempt(commands.Fail(**about, run=run, retryable=data.draw(st.booleans())))
        case 9:
            world.later(world.policy.lease_ttl_ms)
            world.attempt(commands.Expire(actor="aof", task_id=task))
        case 10:
            world.later(data.draw(st.sampled_from([MINUTE, 3 * 60 * MINUTE])))
            for late in due_hops(world.tasks[task], world.now):
                world.attempt(commands.TimeOut(actor="aof", task_id=task, hop=late))
        case 11:
            world.attempt(
                data.draw(st.sampled_from([commands.Approve(**about, hop=hop), commands.Release(**about, run=run)]))
            )
        case 12:
            world.attempt(commands.Reject(**about, hop=hop, blockers=("again",)))
        case 13:
            held = (
                commands.Block(**about, reason="wait"),
                commands.Unblock(**about),
                commands.Pause(**about),
                commands.Resume(**about),
            )
            world.attempt(data.draw(st.sampled_from(held)))
        case 14:
            world.attempt(commands.RetryTask(**about, reason="again"))
        case _:
            status: Any = data.draw(
                st.sampled_from(["ready", "in-progress", "review", "done", "deadletter", "backlog"])
            )
            world.attempt(commands.Update(**about, run=run, status=status))


def _assert_some_action_leads_on(data: st.DataObject, steps: int) -> None:
    world = Gated(Policy(max_attempts=data.draw(st.integers(1, 2))))
    risk = data.draw(st.sampled_from(["low", "high"]))
    world.begin(data.draw(templates()), tags=("api",) * data.draw(st.integers(0, 1)), metadata={"risk": risk})
    world.check_flow()
    for _ in range(data.draw(st.integers(0, steps))):
        _act(world, data)
    end = world.goes_on()
    assert end in ("done", "deadletter", "cancelled")
    world.assert_replay_is_the_same()


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_from_every_state_some_action_leads_on_to_an_end(data: st.DataObject) -> None:
    _assert_some_action_leads_on(data, 25)


@pytest.mark.full
@settings(max_examples=1_000, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_from_every_state_of_a_long_walk_some_action_leads_on_to_an_end(data: st.DataObject) -> None:
    _assert_some_action_leads_on(data, 60)


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_whatever_the_hops_say_the_workflow_ends_by_itself(data: st.DataObject) -> None:
    """Only outcomes, failures and silence, no helping hand: it ends, or is held with a reason."""
    world = Gated(Policy(max_attempts=2))
    world.begin(data.draw(templates()))
    for _ in range(400):
        task = world.tasks[world.task_id]
        if task.status in ("done", "deadletter"):
            break
        if task.status == "blocked":
            assert task.blocked is not None
            assert task.blocked.reason
            break
        hops = world.flow.hops
        waiting = next((hop for hop in hops if hop.status == "review"), None)
        if waiting is not None and data.draw(st.booleans()):
            judges: list[type[commands.OnTask]] = [commands.Approve, commands.Reject]
            judge = data.draw(st.sampled_from(judges))
            more = {"blockers": ("again",)} if judge is commands.Reject else {}
            world.act(judge, task.id, "pm", hop=waiting.id, **more)
            continue
        running = next((hop for hop in hops if hop.lease is not None), None)
        if running is not None and data.draw(st.booleans()):
            outcome = data.draw(st.sampled_from(OUTCOMES))
            refused = world.attempt(
                commands.Complete(actor="ada", task_id=task.id, run=running.run_id, outcome=outcome, blockers=("no",))
            )
            if refused is not None:
                world.act(commands.Fail, task.id, "ada", run=running.run_id)
            continue
        world.later(20 * MINUTE)
        world.attempt(commands.Expire(actor="aof", task_id=task.id))
        ready = next((hop.id for hop in hops if hop.status == "ready"), "nobody")
        world.attempt(commands.Claim(actor=data.draw(st.sampled_from([*AGENTS, f"zed-{ready}"])), task_id=task.id))
    else:
        raise AssertionError(f"no end: {world.statuses()}")
    world.assert_replay_is_the_same()
