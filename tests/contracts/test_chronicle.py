"""Work over time, on every store: runs and their waits, moves by day, lead times, agents, one task at an event."""

from __future__ import annotations

import pytest

from aof.api.fabric import Fabric
from aof.errors import InvalidInput, TaskNotFound
from aof.kernel.model import Policy
from aof.org.model import Agent, OrgChart
from aof.store.memory import FixedChart
from aof.store.port import Store
from aof.testing import FakeClock
from tests.support.room import in_status

DAY = 86_400


def test_a_run_tells_how_long_it_worked_and_how_long_it_waited(fabric: Fabric, clock: FakeClock) -> None:
    task_id = fabric.create("Deploy", review=False).task_id
    run = fabric.claim(task_id, agent="ada", ttl=3_600).run_id
    clock.sleep(60)
    fabric.ask(task_id, text="Which?", run=run)
    clock.sleep(30)
    fabric.answer(task_id, text="this")
    clock.sleep(10)
    (row,) = fabric.timeline().rows
    assert (row.working, row.waiting, row.status, bool(row.ended_at)) == (70, 30, "running", False)
    fabric.complete(task_id, run=run)
    clock.sleep(500)
    (row,) = fabric.timeline(task_id=task_id).rows
    assert (row.working, row.waiting, row.status, row.agent, row.title) == (70, 30, "completed", "ada", "Deploy")
    assert [(wait.kind, bool(wait.until)) for wait in row.waits] == [("question", True)]


def test_runs_come_page_by_page_the_last_one_first_and_by_task_agent_and_time(fabric: Fabric, clock: FakeClock) -> None:
    made = []
    for number in range(5):
        made.append(in_status(fabric, "done", title=f"T{number}"))
        clock.sleep(60)
    first = fabric.timeline(limit=2)
    assert [row.title for row in first.rows] == ["T4", "T3"]
    in_status(fabric, "review", title="T5")
    second = fabric.timeline(limit=2, cursor=str(first.next_cursor))
    assert [row.title for row in second.rows] == ["T2", "T1"]
    assert [row.title for row in fabric.timeline(task_id=made[1]).rows] == ["T1"]
    assert fabric.timeline(agent="nobody").total == 0
    assert [row.title for row in fabric.timeline(before="2026-03-02T09:01:30Z").rows] == ["T1", "T0"]
    assert [row.title for row in fabric.timeline(since="2026-03-02T09:03:30Z").rows] == ["T5", "T4"]
    for odd in ("x", str(fabric.inbox(limit=0).next_cursor or "eyJ4Ijox")):
        with pytest.raises(InvalidInput):
            fabric.timeline(cursor=odd)


def test_the_flow_counts_statuses_at_the_end_of_each_day_and_times_of_what_was_done(
    fabric: Fabric, clock: FakeClock
) -> None:
    early = fabric.create("Early", review=False).task_id
    fabric.create("Waits")
    clock.sleep(DAY)
    run = fabric.claim(early, agent="ada").run_id
    clock.sleep(100)
    fabric.complete(early, run=run)
    dead = in_status(fabric, "deadletter")
    flow = fabric.flow(days=3)
    assert [(day.created, day.done) for day in flow.days] == [(0, 0), (2, 0), (1, 1)]
    assert [day.by_status for day in flow.days] == [{}, {"ready": 2}, {"ready": 1, "done": 1, "deadletter": 1}]
    assert (flow.lead_time.count, flow.lead_time.p50, flow.cycle_time.p95) == (1, DAY + 100, 100)
    (ada,) = flow.agents
    assert (ada.agent, ada.attempts, ada.completed, ada.failed) == ("ada", 2, 1, 1)
    fabric.retry(dead, reason="again")
    assert fabric.flow(days=1).days[0].by_status == {"ready": 2, "done": 1}
    assert fabric.flow(days=1).days[0].by_status == fabric.status(compact=True).by_status


def test_a_task_is_shown_at_each_of_its_events_with_what_that_changed(fabric: Fabric) -> None:
    task_id = fabric.create("First title").task_id
    fabric.create("Another")
    fabric.edit(task_id, title="Second title")
    fabric.claim(task_id, agent="ada")
    last = fabric.task_at(task_id)
    assert (last.task["status"], last.number, last.last) == ("in-progress", last.events, last.seq)
    edited = next(event.seq for event in fabric.events(task_id=task_id) if event.type == "task.updated")
    moment = fabric.task_at(task_id, seq=edited)
    assert [(one.field, one.before, one.after) for one in moment.changed] == [("title", "First title", "Second title")]
    assert moment.event["type"] == "task.updated"
    assert fabric.task_at(task_id, seq=int(moment.previous or 0)).task["title"] == "First title"
    assert fabric.task_at(task_id, seq=int(moment.next or 0)).task["title"] == "Second title"
    first = fabric.task_at(task_id, seq=last.first)
    assert {"id", "title", "status"} <= {one.field for one in first.changed}
    assert not first.previous
    with pytest.raises(TaskNotFound):
        fabric.task_at("002", seq=1)


def test_agents_show_what_they_hold_and_for_how_long_and_when_they_were_seen(store: Store, clock: FakeClock) -> None:
    chart = OrgChart(agents=(Agent(id="ada", concurrency=2, team=None), Agent(id="bob", active=False)))
    fabric = Fabric(store, clock, Policy(maintainers=("pm",)), "pm", org=FixedChart(chart))
    task_id = fabric.create("Deploy").task_id
    fabric.claim(task_id, agent="ada", ttl=100)
    clock.sleep(40)
    fabric.heartbeat(task_id, agent="ada", ttl=100)
    clock.sleep(30)
    ada, bob = fabric.agents().agents
    assert (ada.id, ada.load, ada.capacity, ada.listed, ada.available) == ("ada", 1, 2, True, True)
    (held,) = ada.holds
    assert (held.task_id, held.left, held.expired, held.status) == (task_id, 70, False, "running")
    assert ada.last_seen == "2026-03-02T09:00:40.000Z"
    assert (bob.active, bob.load, bob.holds) == (False, 0, ())
    clock.sleep(100)
    (held,) = fabric.agents(agent="ada").agents[0].holds
    assert (held.left, held.expired, held.status) == (-30, True, "lost")


def test_agents_come_page_by_page_also_those_that_no_chart_lists(fabric: Fabric) -> None:
    for name in ("cem", "ada", "bob"):
        fabric.claim(fabric.create("x").task_id, agent=name)
    first = fabric.agents(limit=2)
    assert ([one.id for one in first.agents], first.total) == (["ada", "bob"], 3)
    assert [one.id for one in fabric.agents(limit=2, cursor=str(first.next_cursor)).agents] == ["cem"]
    assert fabric.agents(agent="nobody").total == 0


def test_a_number_outside_of_its_range_is_refused_with_the_range(fabric: Fabric) -> None:
    fabric.ask(fabric.create("T").task_id, text="Which?", run=fabric.claim(agent="ada").run_id)
    for operation, name, number in (
        ("flow", "days", 0),
        ("flow", "days", 99_999_999),
        ("inbox", "limit", -1),
        ("inbox", "limit", 1_001),
        ("agents", "limit", -1),
        ("timeline", "limit", -1),
        ("neighbourhood", "limit", 0),
        ("verify", "limit", -1),
    ):
        task = {"task_id": "001"} if operation == "neighbourhood" else {}
        with pytest.raises(InvalidInput, match=r"is not a whole number from [01] ") as refused:
            getattr(fabric, operation)(**task, **{name: number})
        assert refused.value.details["parameter"] == name
