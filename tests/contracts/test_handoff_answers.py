"""Answers to handoffs on every store: checks, acceptance, rejection, rerouting, returns and who may give them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.handoffs.model import Handoff
from aof.kernel.ports import Notification
from aof.service.clock import SystemClock
from aof.store.memory import MemoryStore
from aof.store.port import Store
from aof.testing import FakeClock
from tests.support.handoffs import audited, charted, held, refuses, shown, start, told
from tests.support.messages import request
from tests.support.present import present
from tests.support.requirements import requirement


@pytest.fixture
def team(store: Store, clock: FakeClock) -> Fabric:
    """A fabric with the chart of the handoff tests."""
    return charted(store, clock)


def loads(fabric: Fabric) -> dict[str, int]:
    """How much each agent holds, as the chart shows it."""
    return {one["id"]: one["load"] for one in fabric.org_show()["agents"]}


@requirement("handoff.schema.validation-block", "handoff.capability.full-match", "handoff.lifecycle.05-acknowledge")
def test_a_target_with_all_capabilities_passes_without_a_warning(team: Fabric, clock: FakeClock) -> None:
    needs: dict[str, Any] = {"capabilities": ["python", "security:0.6"], "autonomy_budget": 1}
    one = start(team, "delegation", team.create("W").task_id, "boss", "rita", **needs)
    assert (one.validation.wanted, one.validation.autonomy_budget) == ({"python": 0.0, "security": 0.6}, 1)
    clock.sleep(2)
    taken = team.handoff_accept(one.id, agent="rita").handoff
    assert taken.warnings == ()
    assert told(team, one.id, "handoff.warning") == []
    assert present(taken.checks).capability == "full"
    assert taken.acceptance is not None
    accepted = told(team, one.id, "handoff.accepted")[0].timestamp
    assert one.timestamp < taken.acceptance.acknowledged_at <= accepted
    bea = start(team, "delegation", team.create("W").task_id, "boss", "bea")
    checks = present(team.handoff_accept(bea.id, agent="bea").handoff.checks)
    assert (checks.load, checks.limit) == (0, 2)
    short = start_refused(team, "low", capabilities=[], autonomy_budget=2)
    assert short.code == "budget_too_small"


def start_refused(fabric: Fabric, target: str, **given: Any) -> Any:
    """The refusal of a delegation to the target."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - looked at by the caller
        start(fabric, "delegation", fabric.create("W").task_id, "boss", target, **given)
    return caught.value


@requirement("handoff.capability.partial-match")
def test_a_target_with_some_capabilities_may_accept_with_a_warning(team: Fabric) -> None:
    one = start(team, "delegation", team.create("W").task_id, "boss", "bea", capabilities=["python", "design"])
    assert one.state == "requested"
    taken = team.handoff_accept(one.id, agent="bea").handoff
    assert (taken.state, taken.warnings) == ("accepted", ("bea lacks design",))
    assert taken.checks is not None
    assert (taken.checks.capability, taken.checks.missing) == ("partial", ("design",))
    assert [event.payload["missing"] for event in told(team, one.id, "handoff.warning")] == [["design"]] * 2


@requirement("handoff.capability.no-match", "handoff.acceptance.validated-first")
def test_a_target_without_any_capability_rejects_and_cannot_be_forced(team: Fabric) -> None:
    task_id = team.create("W").task_id
    one = start(team, "delegation", task_id, "boss", "bea", capabilities=["design", "security"])
    assert one.state == "rejected"
    assert one.acceptance is not None
    assert "design" in str(one.acceptance.reason)
    assert "security" in str(one.acceptance.reason)
    assert audited(team, one.id)[:2] == ["initiated", "rejected"]
    refuses("handoff_closed", team.handoff_accept, one.id, agent="bea")
    assert shown(team, one) == one

    full = start(team, "delegation", team.create("X").task_id, "boss", "cai")
    held(team, "cai")
    refuses("at_capacity", team.handoff_accept, full.id, agent="cai")
    refuses("not_addressee", team.handoff_accept, full.id, agent="bea")
    assert shown(team, full).state == "requested"
    assert [event.payload["code"] for event in told(team, full.id, "handoff.refused")] == [
        "at_capacity",
        "not_addressee",
    ]


@requirement("handoff.capacity.figures")
def test_load_rises_with_acceptance_and_falls_with_the_end(team: Fabric) -> None:
    one = start(team, "delegation", team.create("W").task_id, "boss", "bea")
    assert loads(team)["bea"] == 0
    team.handoff_accept(one.id, agent="bea")
    assert loads(team)["bea"] == 1
    team.claim(one.task_id, agent="bea")
    assert loads(team)["bea"] == 1, "its lease and its handoff are the same work"
    team.release(one.task_id, agent="bea")
    team.handoff_return(one.id, agent="bea", status="success")
    assert loads(team)["bea"] == 0
    assert {one["id"]: one["concurrency"] for one in team.org_show()["agents"]}["bea"] == 2


@requirement("handoff.capacity.at-capacity", "handoff.capacity.queue-or-reroute")
def test_at_its_limit_an_agent_rejects_and_the_work_goes_elsewhere_or_waits(team: Fabric) -> None:
    first = start(team, "delegation", team.create("A").task_id, "boss", "bea", capabilities=["python"])
    team.handoff_accept(first.id, agent="bea")
    second = start(team, "delegation", team.create("B").task_id, "boss", "bea", capabilities=["python"])
    assert team.handoff_accept(second.id, agent="bea").handoff.state == "accepted", "one of two places is free"
    third = start(team, "delegation", team.create("C").task_id, "boss", "bea", capabilities=["python"])
    assert (third.state, present(third.acceptance).reason) == ("rejected", "at_capacity")
    moved = team.handoff_show(str(third.forwarded_to))
    assert (moved.state, moved.context, moved.forwarded_from) == ("requested", third.context, third.id)
    assert moved.to_agent in ("rita", "ari", "cai")

    held(team, "wes")
    only = start(team, "delegation", team.create("D").task_id, "boss", "wes", capabilities=[])
    assert only.state in ("rejected", "queued")
    alone = charted_alone(team)
    waiting = start(alone, "delegation", alone.create("E").task_id, "boss", "wes")
    assert waiting.state == "queued"
    assert [one.id for one in alone.handoff_list(state="open")] == [waiting.id]
    refuses("at_capacity", alone.handoff_accept, waiting.id, agent="wes")
    (busy,) = alone.running()
    alone.release(busy.id, agent="wes")
    assert alone.handoff_accept(waiting.id, agent="wes").handoff.state == "accepted"


def charted_alone(_team: Fabric) -> Fabric:
    """A team of one agent, which holds all that it may."""
    clock = FakeClock()
    chart = {"schemaVersion": 1, "agents": [{"id": "wes", "concurrency": 1}]}
    alone = charted(MemoryStore(clock), clock, chart)
    held(alone, "wes")
    return alone


@requirement("handoff.acceptance.status-and-reason", "handoff.acceptance.deferred-open")
def test_a_target_accepts_rejects_or_defers_with_a_reason(fabric: Fabric, clock: FakeClock) -> None:
    tasks = [fabric.create(f"W{number}").task_id for number in range(3)]
    yes, no, later = (start(fabric, "delegation", task, "ada", "bob") for task in tasks)
    for call in (fabric.handoff_reject, fabric.handoff_defer):
        refuses("invalid", call, no.id, agent="bob", reason=" ")
    assert fabric.handoff_accept(yes.id, agent="bob").handoff.state == "accepted"
    answer = present(fabric.handoff_reject(no.id, agent="bob", reason="no time").acceptance)
    assert (answer.status, answer.reason) == ("rejected", "no time")
    put_off = fabric.handoff_defer(
        later.id, agent="bob", reason="after lunch", estimated_completion="2026-03-02T13:00Z"
    )
    assert put_off.acceptance is not None
    assert (put_off.state, put_off.acceptance.status, put_off.acceptance.reason) == (
        "deferred",
        "deferred",
        "after lunch",
    )
    clock.sleep(60)
    assert fabric.get(later.task_id).routing.agent is None
    refuses("not_ready", fabric.claim, later.task_id, agent="bob")
    assert fabric.handoff_accept(later.id, agent="bob").handoff.state == "accepted"
    assert audited(fabric, later.id) == ["initiated", "accepted", "accepted"]


@requirement("handoff.lifecycle.06-accept-or-reject", "handoff.lifecycle.04-initiate")
def test_one_record_has_one_final_answer(fabric: Fabric) -> None:
    first, second = (start(fabric, "delegation", fabric.create("W").task_id, "ada", "bob") for _ in range(2))
    (waiting,) = [one for one in fabric.handoff_inbox("bob") if one.id == first.id]
    assert audited(fabric, waiting.id) == ["initiated"]
    fabric.handoff_accept(first.id, agent="bob")
    refuses("handoff_closed", fabric.handoff_reject, first.id, agent="bob", reason="after all")
    fabric.handoff_reject(second.id, agent="bob", reason="no")
    refuses("handoff_closed", fabric.handoff_accept, second.id, agent="bob")
    refuses("handoff_closed", fabric.handoff_defer, second.id, agent="bob", reason="later")
    assert audited(fabric, first.id) == ["initiated", "accepted"]
    assert audited(fabric, second.id)[:2] == ["initiated", "rejected"]
    assert fabric.handoff_accept(first.id, agent="bob").handoff.state == "accepted", "the same answer again"
    assert audited(fabric, first.id) == ["initiated", "accepted"]


@requirement("handoff.lifecycle.07-execute")
def test_work_begins_only_after_acceptance(fabric: Fabric) -> None:
    task_id = fabric.create("Part").task_id
    one = start(fabric, "delegation", task_id, "ada", "bob")
    assert task_id not in [row["id"] for row in fabric.ready(agent="bob").tasks]
    error = refuses("not_ready", fabric.claim, task_id, agent="bob")
    assert present(error.call).operation == "handoff_accept"
    refuses("stale_lease", fabric.progress, task_id, text="early", agent="bob")
    fabric.handoff_accept(one.id, agent="bob")
    refuses("handed_over", fabric.claim, task_id, agent="cem")
    assert fabric.claim(task_id, agent="bob").task_id == task_id
    assert fabric.progress(task_id, text="now", agent="bob").task_id == task_id


@requirement("handoff.rejection.logged-and-notified")
def test_the_orchestrator_hears_of_a_rejection(store: Store, clock: FakeClock) -> None:
    heard: list[Notification] = []

    class Recorder:
        def notify(self, notification: Notification) -> None:
            heard.append(notification)

    chart = {
        "schemaVersion": 1,
        "agents": [{"id": "ada", "team": "eng"}, {"id": "bob", "team": "eng"}, {"id": "orc"}],
        "teams": [{"id": "eng", "orchestrator": "orc"}],
    }
    fabric = charted(store, clock, chart, notifier=Recorder())
    task_id = held(fabric, "ada")
    one = start(fabric, "delegation", fabric.create("Part", parent_id=task_id).task_id, "ada", "bob")
    fabric.handoff_reject(one.id, agent="bob", reason="no time")
    assert [(told.to, told.handoff_id, told.reason) for told in heard] == [("orc", one.id, "no time")]
    (event,) = told(fabric, one.id, "handoff.rejected")
    assert (event.payload["audit"]["event_type"], event.payload["audit"]["reason"]) == ("rejected", "no time")


@requirement("handoff.rejection.reroute-alternative")
def test_a_rejection_sends_the_same_payload_to_another_agent(team: Fabric) -> None:
    first = start(team, "delegation", team.create("W").task_id, "boss", "bea", capabilities=["python"])
    team.handoff_reject(first.id, agent="bea", reason="no time")
    (event,) = told(team, first.id, "handoff.rejected")
    assert event.payload["audit"]["reason"] == "no time"
    second = team.handoff_show(str(shown(team, first).forwarded_to))
    assert second.to_agent not in ("bea", "boss")
    assert (second.context, second.validation, second.reason) == (first.context, first.validation, first.reason)
    assert second.routing is not None
    assert (second.routing.suggested, second.routing.decided) == ("bea", second.to_agent)
    team.handoff_reject(second.id, agent=second.to_agent, reason="me neither")
    third = team.handoff_show(str(shown(team, second).forwarded_to))
    assert third.to_agent not in ("bea", second.to_agent)


@requirement("handoff.rejection.no-alternative-human")
def test_without_an_alternative_a_person_is_asked(team: Fabric) -> None:
    one = start(team, "delegation", team.create("W").task_id, "boss", "rita", capabilities=["security"])
    team.handoff_reject(one.id, agent="rita", reason="no")
    asked = team.handoff_show(str(shown(team, one).forwarded_to))
    assert (asked.to_agent, asked.state) == ("human", "requested")
    assert "escalated" in audited(team, one.id)
    refuses("not_addressee", team.handoff_accept, asked.id, agent="bea")
    done = team.handoff_answer(asked.id, agent="petra", text="I did it")
    assert (done.state, done.acceptance and done.acceptance.by) == ("completed", "petra")


@requirement("handoff.rejection.max-three-reroutes")
def test_after_three_reroutes_a_person_is_asked(store: Store, clock: FakeClock) -> None:
    agents = [{"id": f"a{number}", "capabilities": ["python"]} for number in range(6)]
    fabric = charted(store, clock, {"schemaVersion": 1, "agents": agents})
    one = start(fabric, "delegation", fabric.create("W").task_id, "boss", "a0", capabilities=["python"])
    asked: list[Handoff] = []
    while one.to_agent != "human":
        asked.append(one)
        fabric.handoff_reject(one.id, agent=one.to_agent, reason="no")
        one = fabric.handoff_show(str(shown(fabric, one).forwarded_to))
    assert len(asked) == 4
    assert len({handoff.to_agent for handoff in asked}) == 4
    assert len(told(fabric, kind="handoff.rerouted")) == 3


@requirement("handoff.routing.single-authority", "handoff.lifecycle.03-validate", "handoff.lifecycle.01-trigger")
def test_agents_suggest_and_routing_decides(team: Fabric) -> None:
    refuses("no_route", start, team, "delegation", team.create("W").task_id, "boss", "nobody")
    assert (team.handoff_list(), team.handoff_inbox("nobody")) == ((), ())
    moved = start(team, "delegation", team.create("W").task_id, "boss", "off")
    assert moved.routing is not None
    assert (moved.routing.suggested, moved.routing.decided) == ("off", moved.to_agent)
    assert moved.to_agent != "off"
    up = start(team, "escalation", held(team, "wes"), "wes", "low")
    assert up.routing is not None
    assert (up.routing.suggested, up.routing.decided, up.to_agent) == ("low", "rita", "rita")
    triggers = {"task_completion", "capability_mismatch", "escalation", "timeout", "explicit_request"}
    assert {one.trigger for one in team.handoff_list()} <= triggers
    assert (moved.trigger, up.trigger) == ("explicit_request", "escalation")


def test_without_a_chart_any_name_is_taken(fabric: Fabric) -> None:
    assert start(fabric, "delegation", fabric.create("W").task_id, "ada", "whoever").state == "requested"


@requirement("handoff.return.references-handoff", "handoff.return.status-enum", "handoff.return.result-body")
def test_a_return_goes_from_the_receiver_to_the_sender(fabric: Fabric) -> None:
    refuses("handoff_not_found", fabric.handoff_return, "7c1e0b5e-54f3-4f3a-9d0e-0f8a1f0f2a11", status="success")
    results = {"success": ("text", "done"), "partial": ("json", {"left": [1, 2]}), "failed": ("artifact_ref", "out/x")}
    for status, (kind, body) in {**results, "timeout": ("json", None)}.items():
        one = start(fabric, "delegation", fabric.create("W").task_id, "ada", "bob")
        fabric.handoff_accept(one.id, agent="bob")
        refuses("not_addressee", fabric.handoff_return, one.id, agent="cem", status=status)
        refuses("not_addressee", fabric.handoff_return, one.id, agent="bob", status=status, to_agent="cem")
        refuses("invalid", fabric.handoff_return, one.id, agent="bob", status="ok")
        refuses("invalid", fabric.handoff_return, one.id, agent="bob", status=status, content_type="html")
        back = fabric.handoff_return(
            one.id, agent="bob", to_agent="ada", status=status, result=body, content_type=kind
        ).returned
        assert back is not None
        assert (back.handoff_id, back.from_agent, back.to_agent, back.status) == (one.id, "bob", "ada", status)
        found = (back.result.content_type, back.result.body) if back.result is not None else ("json", None)
        assert found == (kind, body)


@requirement("handoff.return.context-updates", "handoff.lifecycle.10-release")
def test_a_return_updates_the_shared_context_within_the_receivers_scope(fabric: Fabric) -> None:
    parent = held(fabric, "ada", "Whole")
    child = fabric.create("Part", parent_id=parent).task_id
    fabric.context_set(parent, actor="ada", variables={"plan": "a"})
    one = start(fabric, "delegation", child, "ada", "bob")
    fabric.handoff_accept(one.id, agent="bob")
    run = fabric.claim(child, agent="bob").run_id
    fabric.lock("src/api.py", task_id=child, run=run)
    back = fabric.handoff_return(
        one.id,
        agent="bob",
        status="success",
        variables_changed={"tests": 12, "plan": "b"},
        artifacts_produced=[{"path": "outputs/report.md", "type": "test_result"}],
        notes="all green",
    )
    why = "not applied: 'plan' is in the scope 'ada', which bob may not write"
    assert back.state == "completed"
    assert back.warnings == (why,)
    assert shown(fabric, one) == back
    assert told(fabric, one.id, "handoff.completed")[0].payload["audit"]["notes"] == f"all green; {why}"
    after = start(fabric, "broadcast", parent, "ada", "cem").context
    assert after.context_variables["custom"] == {"plan": "a", "tests": 12}, "the sender's own variable stays"
    assert [(one["path"], one["created_by"]) for one in after.artifacts] == [("outputs/report.md", "bob")]
    assert fabric.get(child).locks == ()
    other = held(fabric, "cem")
    assert fabric.lock("src/api.py", task_id=other, actor="cem").locks


@requirement("handoff.return.audit-fields", "handoff.lifecycle.09-complete", "handoff.lifecycle.08-return")
def test_a_return_is_possible_once_and_completed_stands_right_after(fabric: Fabric, clock: FakeClock) -> None:
    one = start(fabric, "delegation", fabric.create("W").task_id, "ada", "bob")
    refuses("handoff_not_accepted", fabric.handoff_return, one.id, agent="bob", status="success")
    fabric.handoff_accept(one.id, agent="bob")
    clock.sleep(1.5)
    assert told(fabric, one.id, "handoff.completed") == []
    back = fabric.handoff_return(one.id, agent="bob", status="success", tokens_consumed=42, notes="easy")
    audit = present(back.returned).audit
    assert (audit.tokens_consumed, audit.notes, audit.completion_time) == (42, "easy", back.closed_at)
    returned, completed = told(fabric, one.id)[-3:-1]
    assert (returned.type, completed.type) == ("handoff.returned", "handoff.completed")
    assert returned.commit[1] == completed.commit[1]
    assert completed.seq == returned.seq + 1
    record = completed.payload["audit"]
    assert (record["tokens_consumed"], record["duration_ms"], record["outcome"]) == (42, 1500, "success")
    refuses("already_returned", fabric.handoff_return, one.id, agent="bob", status="failed")
    assert shown(fabric, one) == back
    assert len(told(fabric, one.id, "handoff.completed")) == 1


@requirement("handoff.return.replaced-agent-fenced")
def test_an_agent_that_was_replaced_cannot_return_any_more(team: Fabric) -> None:
    task_id = held(team, "wes")
    first = start(team, "escalation", task_id, "wes")
    team.handoff_accept(first.id, agent="rita")
    second = team.handoff_escalate(first.id, agent="rita", rationale="not mine")
    error = refuses("stale_handoff", team.handoff_return, first.id, agent="rita", status="success", result="late")
    assert error.kind == "conflict"
    kept = shown(team, first)
    assert (kept.returned, [one.result.body for one in kept.late_returns if one.result]) == (None, ["late"])
    assert team.get(task_id).status == "blocked", "the sender still waits"
    team.handoff_accept(second.id, agent="ari")
    team.handoff_return(second.id, agent="ari", status="success", result="counts")
    assert team.get(task_id).status == "ready"

    one = start(team, "delegation", team.create("W").task_id, "boss", "bea", capabilities=["python"])
    team.handoff_reject(one.id, agent="bea", reason="no")
    refuses("handoff_closed", team.handoff_return, one.id, agent="bea", status="success")


def test_a_sender_may_take_a_handoff_back_and_send_it_again(fabric: Fabric) -> None:
    task_id = fabric.create("W").task_id
    one = start(fabric, "delegation", task_id, "ada", "bob")
    refuses("handoff_open", start, fabric, "delegation", task_id, "ada", "bob")
    refuses("not_addressee", fabric.handoff_withdraw, one.id, agent="bob", reason="no")
    for count in range(1, 4):
        assert fabric.handoff_resend(one.id, agent="ada").resends == count
    refuses("handoff_closed", fabric.handoff_resend, one.id, agent="ada")
    gone = fabric.handoff_withdraw(one.id, agent="ada", reason="done by hand")
    assert (gone.state, gone.forwarded_to) == ("rejected", None)
    assert fabric.claim(task_id, agent="cem").task_id == task_id
    other = start(fabric, "delegation", fabric.create("X").task_id, "ada", "bob")
    fabric.handoff_accept(other.id, agent="bob")
    assert fabric.handoff_withdraw(other.id, agent="ada", reason="too late").state == "failed"
    assert audited(fabric, other.id) == ["initiated", "accepted", "failed"]


def test_only_the_holder_hands_over_what_somebody_holds(team: Fabric) -> None:
    task_id = held(team, "wes")
    refuses("not_lease_holder", start, team, "broadcast", task_id, "bea", "rita")
    refuses("not_allowed", start, team, "broadcast", team.create("Free").task_id, "bea", "rita")
    codes = [event.payload["code"] for event in told(team, kind="handoff.refused")]
    assert codes == ["not_lease_holder", "not_allowed"]


@requirement("handoff.capacity.at-capacity", "handoff.schema.id-uuid4")
def test_agents_that_accept_at_once_never_hold_more_than_they_may(live_store: Store) -> None:
    team = charted(live_store, SystemClock())
    tasks = [team.create(f"W{number}").task_id for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda task: start(team, "delegation", task, "boss", "bea"), tasks))
    assert len({one.id for one in made}) == 6

    def accept(one: Handoff) -> str:
        try:
            return team.handoff_accept(one.id, agent="bea").handoff.state
        except AofError as error:
            return error.code

    with ThreadPoolExecutor(6) as pool:
        said = sorted(pool.map(accept, made))
    assert said == ["accepted"] * 2 + ["at_capacity"] * 4
    assert loads(team)["bea"] == 2


def test_the_orchestrator_sends_an_unanswered_handoff_elsewhere(store: Store, clock: FakeClock) -> None:
    chart = {
        "schemaVersion": 1,
        "agents": [{"id": name, "team": "eng"} for name in ("ada", "bob", "cem")]
        + [{"id": "low", "autonomy": {"maxRisk": "low"}}, {"id": "orc"}],
        "teams": [{"id": "eng", "orchestrator": "orc"}],
    }
    fabric = charted(store, clock, chart)
    one = start(fabric, "delegation", fabric.create("Part", agent="ada").task_id, "ada", "bob", risk="high")
    refuses("not_addressee", fabric.handoff_reroute, one.id, agent="cem", reason="mine")
    refuses("budget_too_small", fabric.handoff_reroute, one.id, agent="orc", to_agent="low", reason="away")
    refuses("no_route", fabric.handoff_reroute, one.id, agent="orc", to_agent="zed", reason="away")
    refuses("invalid", fabric.handoff_reroute, one.id, agent="orc", to_agent="bob", reason="away")
    moved = fabric.handoff_reroute(one.id, agent="orc", to_agent="cem", reason="bob is away")
    assert (moved.to_agent, moved.forwarded_from, moved.reroutes) == ("cem", one.id, 1)
    assert shown(fabric, one).state == "rejected"
    fabric.handoff_accept(moved.id, agent="cem")
    refuses("handoff_closed", fabric.handoff_reroute, moved.id, agent="orc", reason="after all")


def test_nobody_speaks_for_others_by_the_name_of_the_service(fabric: Fabric) -> None:
    one = start(fabric, "delegation", fabric.create("W").task_id, "ada", "bob")
    refuses("not_addressee", fabric.handoff_accept, one.id, agent="aof")
    refused = refuses("not_addressee", fabric.handoff_withdraw, one.id, agent="aof", reason="mine")
    assert refused.hint


def test_what_is_finished_is_not_taken_on_any_more(fabric: Fabric) -> None:
    task_id = fabric.create("W").task_id
    one = start(fabric, "delegation", task_id, "ada", "bob")
    fabric.cancel(task_id)
    refuses("invalid_transition", fabric.handoff_accept, one.id, agent="bob")
    assert refuses("invalid_transition", start, fabric, "delegation", task_id, "ada", "cem").hint


def test_a_rejected_request_by_message_blocks_the_child_on_every_way(fabric: Fabric) -> None:
    parent, child = held(fabric, "ada"), fabric.create("Part").task_id
    fabric.send(request(child, parent))
    (one,) = fabric.handoff_list()
    rejected = fabric.handoff_reject(one.id, agent="bob", reason="too little context")
    task = fabric.get(child)
    assert (rejected.forwarded_to, present(task.blocked).reason) == (None, "too little context")


def test_only_an_escalation_goes_further_up(fabric: Fabric) -> None:
    one = start(fabric, "delegation", fabric.create("W").task_id, "ada", "bob")
    fabric.handoff_accept(one.id, agent="bob")
    assert refuses("invalid", fabric.handoff_escalate, one.id, agent="bob", rationale="no").hint
