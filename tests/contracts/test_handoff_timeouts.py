"""What time does to handoffs, on every store: the commands that the scheduler's timers give."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.handoffs.answers import Deliver, FailHandoff, Remind, TimeOutHandoff
from aof.handoffs.model import Handoff
from aof.service.clock import SystemClock
from aof.store.port import Store
from aof.testing import FakeClock
from tests.support.handoffs import audited, broadcast, charted, held, shown, start, told
from tests.support.present import present
from tests.support.requirements import requirement
from tests.support.waiting import eventually


@pytest.fixture
def team(store: Store, clock: FakeClock) -> Fabric:
    """A fabric with the chart of the handoff tests."""
    return charted(store, clock)


def give(fabric: Fabric, kind: type[Any], one: Handoff, **given: Any) -> Handoff:
    """Carry out a command of the scheduler, and tell how the handoff stands."""
    command = kind(actor="aof", task_id=one.task_id, handoff_id=one.id, **given)
    fabric.services.dispatcher.dispatch_trusted(command)
    return shown(fabric, one)


def late(fabric: Fabric, one: Handoff) -> Handoff:
    """The time of the handoff in its state is over."""
    return give(fabric, TimeOutHandoff, one, state=shown(fabric, one).state, reason="5m are over")


def accepted(fabric: Fabric, target: str, on_timeout: str, **given: Any) -> Handoff:
    """An accepted delegation with that policy."""
    task_id = fabric.create("W", **given).task_id
    one = start(fabric, "delegation", task_id, "boss", target, on_timeout=on_timeout, capabilities=["python"])
    return fabric.handoff_accept(one.id, agent=target).handoff


def test_a_receiver_is_reminded_once_and_may_still_return(team: Fabric) -> None:
    one = accepted(team, "bea", "fail")
    first = give(team, Remind, one)
    assert first.reminded_at is not None
    assert give(team, Remind, one) == first
    team.handoff_return(one.id, agent="bea", status="success")
    assert late(team, one).outcome == "success", "what was returned in the meantime is left alone"
    assert "timeout" not in audited(team, one.id)


@requirement("handoff.delegation.return-with-timeout")
def test_a_retry_goes_to_the_same_agent_three_times_and_then_up(team: Fabric) -> None:
    one = accepted(team, "bea", "retry")
    for count in (1, 2, 3):
        again = late(team, one)
        assert (again.resends, again.state, again.to_agent) == (count, "accepted", "bea")
    over = late(team, one)
    assert (over.state, over.resends, over.timeouts) == ("escalated", 3, 4)
    assert audited(team, one.id) == ["initiated", "accepted", *["timeout"] * 4, "escalated"]
    following = team.handoff_show(str(over.forwarded_to))
    assert (following.context, following.reason, following.from_agent) == (one.context, one.reason, one.from_agent)


def test_an_escalation_by_timeout_says_why(team: Fabric) -> None:
    one = accepted(team, "bea", "escalate")
    following = team.handoff_show(str(late(team, one).forwarded_to))
    assert present(following.routing).reason == "5m are over"
    (event,) = told(team, one.id, "handoff.escalated")
    assert event.payload["reason"] == "5m are over"


def test_a_failure_asks_a_person_and_tells_the_orchestrator(team: Fabric) -> None:
    one = accepted(team, "bea", "fail")
    over = late(team, one)
    assert (over.state, over.closed_reason) == ("failed", "5m are over")
    assert team.handoff_show(str(over.forwarded_to)).to_agent == "human"
    (event,) = told(team, one.id, "handoff.failed")
    assert event.payload["notify"] == "boss"
    other = accepted(team, "bea", "retry")
    assert give(team, FailHandoff, other, reason="its worker died").state == "failed"


def test_what_nobody_answers_is_rejected_for_it_and_goes_on(team: Fabric) -> None:
    one = start(team, "delegation", team.create("W").task_id, "boss", "bea", capabilities=["python"])
    over = late(team, one)
    assert (over.state, present(over.acceptance).reason) == ("rejected", "unavailable")
    assert audited(team, one.id) == ["initiated", "timeout", "rejected"]
    assert team.handoff_show(str(over.forwarded_to)).to_agent != "bea"

    urgent = start(team, "delegation", team.create("W", priority="critical").task_id, "boss", "bea")
    assert audited(team, late(team, urgent).id) == ["initiated", "timeout", "rejected", "escalated"]


def test_a_member_of_a_broadcast_fails_alone(fabric: Fabric) -> None:
    task_id = held(fabric, "ada")
    first, second = broadcast(fabric, task_id, "b", "c", aggregation="any", wait=True)
    for one in (first, second):
        fabric.handoff_accept(one.id, agent=one.to_agent)
    assert give(fabric, FailHandoff, first, reason="gone").forwarded_to is None
    assert (fabric.handoff_group(second.id).state, fabric.get(task_id).status) == ("open", "blocked")
    fabric.handoff_return(second.id, agent="c", status="success")
    assert (fabric.handoff_group(second.id).state, fabric.get(task_id).status) == ("success", "ready")


def test_a_queued_handoff_is_delivered_when_its_receiver_is_free(store: Store, clock: FakeClock) -> None:
    fabric = charted(store, clock, {"schemaVersion": 1, "agents": [{"id": "wes", "concurrency": 1}]})
    busy = held(fabric, "wes")
    one = start(fabric, "delegation", fabric.create("W").task_id, "boss", "wes")
    assert (one.state, give(fabric, Deliver, one).state) == ("queued", "queued")
    fabric.release(busy, agent="wes")
    assert give(fabric, Deliver, one).state == "requested"


@requirement("handoff.lifecycle.timers-planned")
def test_due_timers_are_planned_with_a_reason_and_done_once_by_two_schedulers(live_store: Store) -> None:
    clock = SystemClock()
    runner = {"kind": "pull", "ackTimeout": "1ms"}
    agents = [{"id": "bea", "runner": runner, "capabilities": ["python"]}, {"id": "cai", "capabilities": ["python"]}]
    fabric = charted(live_store, clock, {"schemaVersion": 1, "agents": agents})
    silent = start(fabric, "delegation", fabric.create("A").task_id, "boss", "bea", capabilities=["python"])
    other = start(fabric, "delegation", fabric.create("B").task_id, "boss", "cai", timeout="1ms", on_timeout="fail")
    fabric.handoff_accept(other.id, agent="cai")
    due: dict[str, str] = {}

    def is_due() -> bool:
        due.update({str(one.handoff_id): one.reason for one in fabric.tick(dry_run=True).actions if one.handoff_id})
        return due.keys() == {silent.id, other.id}

    eventually(is_due)
    assert all(due.values())
    assert [shown(fabric, one).state for one in (silent, other)] == ["requested", "accepted"], (
        "a dry run changes nothing"
    )
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: charted(live_store, clock, {"schemaVersion": 1, "agents": agents}).tick(), range(2)))
    assert len(told(fabric, silent.id, "handoff.timeout")) == 1
    assert len(told(fabric, silent.id, "handoff.rejected")) == 1
    assert len(told(fabric, other.id, "handoff.reminded")) == 1
