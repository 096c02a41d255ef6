"""What needs a person, on every store: the same items in the same order, page by page, and none that is settled."""

from __future__ import annotations

import pytest

from aof.api.fabric import Fabric
from aof.errors import InvalidInput
from aof.kernel.model import Policy
from aof.org.model import HUMAN, Agent, OrgChart
from aof.store.memory import FixedChart, FixedWorkflows
from aof.store.port import Store
from aof.supervision.inbox import InboxPage
from aof.testing import FakeClock
from tests.contracts.conftest import read_through
from tests.support.room import in_status
from tests.support.workflows import hop, template


def _kinds(page: InboxPage) -> list[tuple[str, object]]:
    return [(one.kind, one.task_id) for one in page.items]


def test_everything_that_waits_for_a_person_is_there_and_who_is_held_up_most_comes_first(
    fabric: Fabric, clock: FakeClock
) -> None:
    made: list[tuple[str, str]] = []
    for kind, status in (("deadletter", "deadletter"), ("blocked", "blocked"), ("gate", "review")):
        made.append((kind, in_status(fabric, status)))
        clock.sleep(1)
    asking = in_status(fabric, "in-progress")
    fabric.ask(asking, text="Which?", agent="ada")
    made = [("question", asking), made[2], *made[:2]]
    for status in ("backlog", "ready", "done", "cancelled"):
        in_status(fabric, status)
    page = fabric.inbox()
    assert _kinds(page) == made
    assert (page.total, page.by_kind) == (4, {"gate": 1, "question": 1, "blocked": 1, "deadletter": 1})
    assert [one.next[0].operation for one in page.items] == ["answer", "approve", "retry", "unblock"]
    assert page.items[0].next[0].arguments == {"taskId": asking, "question": "Q1", "text": "…"}
    assert [one.age for one in page.items] == [0, 1, 3, 2]


def test_questions_come_first_then_reviews_by_priority_then_what_is_overdue_each_oldest_first(
    fabric: Fabric, clock: FakeClock
) -> None:
    stuck = in_status(fabric, "blocked")
    made: list[tuple[str, str]] = []
    for priority in ("low", "high", "critical", "normal", "high"):
        clock.sleep(1)
        made.append((priority, in_status(fabric, "review", priority=priority)))
    late = fabric.create("Late", due="2026-01-01").task_id
    asking = []
    for priority in ("low", "critical"):
        clock.sleep(1)
        asking.append(in_status(fabric, "in-progress", priority=priority))
        fabric.ask(asking[-1], text="Which?", agent="ada")
    order = {name: rank for rank, name in enumerate(("critical", "high", "normal", "low"))}
    reviews = [task for _, task in sorted(made, key=lambda one: order[one[0]])]
    expected = [*asking, *reviews, late, stuck]
    assert read_through(fabric.inbox, lambda page: [one.task_id for one in page.items], 2) == expected
    fabric.edit(made[0][1], priority="critical")
    assert [one.task_id for one in fabric.inbox(kind=["gate"], limit=2).items] == [made[0][1], made[2][1]]


def test_what_is_settled_is_not_there_any_more(fabric: Fabric) -> None:
    reviewed, dead, stuck = (in_status(fabric, status) for status in ("review", "deadletter", "blocked"))
    asking = in_status(fabric, "in-progress")
    fabric.ask(asking, text="Which?", agent="ada")
    assert fabric.inbox().total == 4
    fabric.approve(reviewed)
    fabric.retry(dead, reason="again")
    fabric.unblock(stuck)
    fabric.answer(asking, text="this")
    assert fabric.inbox().total == 0


def test_a_task_is_overdue_and_a_lease_abandoned_only_once_their_time_is_over(fabric: Fabric, clock: FakeClock) -> None:
    due = fabric.create("Late", due="2026-03-02T09:10:00Z").task_id
    held = in_status(fabric, "in-progress")
    assert fabric.inbox().total == 0
    clock.sleep(200)
    fabric.heartbeat(held, agent="ada")
    clock.sleep(299)
    assert fabric.inbox().total == 0  # the record says five minutes, the sign of life says more
    clock.sleep(200)
    assert _kinds(fabric.inbox()) == [("overdue", due), ("lease", held)]
    fabric.recover()
    assert _kinds(fabric.inbox()) == [("overdue", due)]


def test_pages_follow_each_other_without_gap_or_repetition_while_others_come(fabric: Fabric, clock: FakeClock) -> None:
    expected = []
    for _ in range(7):
        expected.append(in_status(fabric, "review"))
        clock.sleep(1)

    def another() -> None:
        in_status(fabric, "blocked")
        clock.sleep(1)

    seen = read_through(fabric.inbox, lambda page: [one.task_id for one in page.items], 3, another)
    assert seen[:7] == expected
    assert len(seen) == len(set(seen)) == 9
    for odd in ("x", "", "eyJ4Ijox", fabric.list(limit=1).next_cursor or ""):
        with pytest.raises(InvalidInput):
            fabric.inbox(cursor=odd)


def test_it_can_be_asked_for_kinds_and_for_a_person(fabric: Fabric) -> None:
    mine = in_status(fabric, "review", owner="eve")
    anybodys = in_status(fabric, "review")
    others = in_status(fabric, "blocked", owner="pm")
    assert {one.task_id for one in fabric.inbox(person="eve").items} == {mine, anybodys}
    assert [one.task_id for one in fabric.inbox(kind=["blocked"]).items] == [others]
    assert fabric.inbox(kind=["gate"], person="pm").by_kind == {"gate": 1}
    with pytest.raises(InvalidInput):
        fabric.inbox(kind=["everything"])


def test_a_task_that_only_waits_for_another_one_needs_nobody(fabric: Fabric) -> None:
    first = fabric.create("First").task_id
    fabric.create("Second", depends_on=[first])
    fabric.cancel(first)
    paused = fabric.create("Paused").task_id
    fabric.pause(paused)
    assert fabric.inbox().total == 0


def test_hops_that_wait_for_an_approval_or_are_stuck_are_named(store: Store, clock: FakeClock) -> None:
    flow = template(hop("a", autoAdvance=False), hop("b"), hop("c", "a", "b"))
    fabric = Fabric(store, clock, Policy(), "pm", workflows=FixedWorkflows(flow))
    task_id = fabric.create("x", workflow="flow").task_id
    first = fabric.claim(task_id, agent="ada", hop="a").run_id
    second = fabric.claim(task_id, agent="bob", hop="b").run_id
    fabric.complete(task_id, run=first, outcome="complete", summary="did it")
    fabric.complete(task_id, run=second, outcome="blocked", blockers=["no key"])
    found = {(one.kind, one.hop): one for one in fabric.inbox().items}
    assert set(found) == {("gate", "a"), ("blocked", "b")}
    assert found["gate", "a"].next[0].arguments == {"taskId": task_id, "hop": "a"}
    assert found["blocked", "b"].reason == "no key"


def test_mail_and_handoffs_to_people_and_agents_that_do_not_answer_are_there(store: Store, clock: FakeClock) -> None:
    chart = OrgChart(agents=(Agent(id="ada"), Agent(id="bob")), escalation=(HUMAN,))
    fabric = Fabric(store, clock, Policy(maintainers=("pm",)), "pm", org=FixedChart(chart))
    message = fabric.mail_send("pm", "May I?", from_agent="ada", priority="P0").message_id
    fabric.mail_send("bob", "For an agent", from_agent="ada")
    fabric.mail_send("pm", "Only news", from_agent="ada", type="notify")
    clock.sleep(1)
    task_id = fabric.create("x").task_id
    fabric.claim(task_id, agent="ada")
    handed = fabric.handoff_new(
        type="escalation", task_id=task_id, from_agent="ada", to=["pm"], reason="too hard", rationale="x"
    )
    page = fabric.inbox()
    assert [(one.kind, one.message_id or one.handoff_id) for one in page.items] == [
        ("mail", message),
        ("handoff", handed.handoff_id),
    ]
    assert page.items[0].next[0].operation == "mail_ack"
    fabric.mail_ack(message, agent="pm", reason="yes")
    assert [one.kind for one in fabric.inbox().items] == ["handoff"]


def test_an_approval_is_not_offered_to_whose_work_it_is(fabric: Fabric) -> None:
    task_id = fabric.create("Own").task_id
    run = fabric.claim(task_id, agent="ada").run_id
    fabric.complete(task_id, run=run, agent="ada", outcome="needs_review")
    (others,) = fabric.as_actor("bob").inbox(kind=["gate"]).items
    assert [call.operation for call in others.next] == ["approve", "reject", "show"]
    (own,) = fabric.as_actor("ada").inbox(kind=["gate"]).items
    assert [call.operation for call in own.next] == ["reject", "show"]
    assert own.reason == f"{others.reason}, by somebody other than ada"
