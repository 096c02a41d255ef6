"""What happens to a handoff when time passes: reminders, deadlines, escalation."""

from __future__ import annotations

from typing import Any

import pytest

from aof.errors import AofError
from aof.handoffs.model import Handoff
from aof.handoffs.payload import HandoffProposal
from aof.scheduler.rules import TO_ANSWER
from aof.tasks.fields import KEY
from aof.tasks.model import Task
from tests.support.handoff_team import MOMENT, HandoffTeam, started
from tests.support.requirements import requirement

# --- what time does to handoffs: acknowledgements, reminders, retries, escalations, failures. No test takes real time


CHAIN: dict[str, Any] = {"roles": {"reviewer": {"agents": ["rev"]}}, "escalation": ["reviewer", "human"]}


@pytest.fixture
def team() -> HandoffTeam:
    """Bob pulls, like eve and the reviewer; zoe and dan are started by AOF."""
    same = {"capabilities": ["code"]}
    agents = [{"id": name, **same} for name in ("bob", "eve", "rev")]
    return HandoffTeam(*agents, started("zoe", **same), started("dan", **same), **CHAIN)


def taken_by_bob(team: HandoffTeam, **given: Any) -> Handoff:
    """A delegation to bob, taken_by_bob at once, whose return is owed in five minutes."""
    handoff = team.hand("bob", **given)
    team.fabric.handoff_accept(handoff.id, agent="bob")
    return handoff


@requirement("handoff.unavailable.ack-30s")
def test_an_agent_that_is_started_has_thirty_seconds_to_acknowledge(team: HandoffTeam) -> None:
    handoff = team.hand("zoe")
    team.clock.sleep(29)
    assert team.actions(dry_run=True) == []
    team.clock.sleep(2)
    assert team.actions(dry_run=True) == ["handoff_timeout"]
    assert team.now(handoff).state == "requested"


@requirement("handoff.unavailable.ack-30s")
def test_an_acknowledgement_in_time_stops_the_timer(team: HandoffTeam) -> None:
    taken, put_off = team.hand("zoe"), team.hand("dan")
    team.clock.sleep(20)
    team.fabric.handoff_accept(taken.id, agent="zoe")
    team.fabric.handoff_defer(put_off.id, agent="dan", reason="after lunch")
    team.clock.sleep(11)
    assert team.actions(dry_run=True) == []


@requirement("handoff.unavailable.ack-30s")
def test_a_pulling_agent_and_a_person_have_no_such_timer_unless_the_chart_says_so() -> None:
    patient = {"id": "eve", "runner": {"kind": "pull", "ackTimeout": "1m"}}
    team = HandoffTeam({"id": "bob"}, patient, {"id": "kim", "runner": {"kind": "human"}})
    waits = [team.hand("bob"), team.hand("kim")]
    team.hand("eve")
    team.clock.sleep(31)
    planned = team.tick(dry_run=True)
    assert [one.action for one in planned.actions] == []
    told = {one.reason for one in planned.left}
    assert {f"handoff {one.id} waits for {one.to_agent} to answer" for one in waits} <= told
    team.clock.sleep(29)
    assert team.actions(dry_run=True) == ["handoff_timeout"]


@requirement("handoff.unavailable.marked-and-rerouted")
def test_a_silent_agent_is_marked_and_three_others_are_tried_and_then_a_person() -> None:
    names = ("a1", "a2", "a3", "a4", "a5")
    team = HandoffTeam(*(started(name, capabilities=["code"]) for name in names))
    first = team.hand("a1")
    asked = []
    for reroute in range(4):
        here = team.last(first)
        asked.append(here.to_agent)
        assert here.reroutes == reroute
        team.clock.sleep(30)
        assert "handoff_timeout" in team.actions()
        assert not team.available(here.to_agent)
        assert team.audit(here)[:3] == ["initiated", "timeout", "rejected"]
        assert team.records(here)[2].reason == "unavailable"
        assert team.now(here).state == "rejected"
    assert len(set(asked)) == 4
    last = team.last(first)
    assert (last.to_agent, last.state) == ("human", "requested")
    team.clock.sleep(3600)
    assert team.last(first).id == last.id
    assert team.chart.by_id["a1"].active


@requirement("handoff.unavailable.marked-and-rerouted")
def test_an_agent_that_is_marked_is_not_chosen(team: HandoffTeam) -> None:
    team.hand("zoe")
    team.clock.sleep(30)
    team.actions()
    again = team.hand("zoe")
    assert again.to_agent != "zoe"
    assert again.routing is not None
    assert again.routing.suggested == "zoe"


@requirement("handoff.unavailable.critical-escalates")
@pytest.mark.parametrize(("priority", "step"), [("critical", "handoff.escalated"), ("normal", "handoff.rerouted")])
def test_an_unavailable_target_of_a_critical_task_is_escalated_at_once(
    team: HandoffTeam, priority: str, step: str
) -> None:
    handoff = team.hand("zoe", task=team.task(priority=priority))
    team.clock.sleep(31)
    assert team.actions() == ["handoff_timeout"]
    assert len(team.events(step, handoff)) == 1
    kinds = [event.type for event in team.fabric.events() if event.payload.get("handoffId") == handoff.id]
    assert ("handoff.escalated" in kinds) is (priority == "critical")


@requirement("handoff.timeout.reminder-first")
def test_one_reminder_comes_before_the_policy(team: HandoffTeam) -> None:
    handoff = taken_by_bob(team, on_timeout="fail")
    team.clock.sleep(300 - MOMENT)
    assert team.actions() == []
    team.clock.sleep(MOMENT)
    assert team.actions() == ["handoff_remind"]
    assert team.actions() == []
    assert team.now(handoff).state == "accepted"
    team.clock.sleep(2)
    assert "handoff_timeout" in team.actions()
    assert [one["toAgent"] for one in team.events("handoff.reminded", handoff)] == ["bob"]
    assert team.now(handoff).state == "failed"


@requirement("handoff.timeout.reminder-first")
def test_a_return_after_the_reminder_is_taken_and_no_policy_runs(team: HandoffTeam) -> None:
    handoff = taken_by_bob(team, on_timeout="fail")
    team.clock.sleep(300)
    team.actions()
    team.clock.sleep(2 - MOMENT)
    team.fabric.handoff_return(handoff.id, agent="bob", status="success", result="done")
    team.clock.sleep(3600)
    team.actions()
    assert team.now(handoff).state == "completed"
    assert "timeout" not in team.audit(handoff)


@requirement("handoff.timeout.retry-same-agent", "handoff.timeout.retry-backoff", "handoff.timeout.audited")
def test_a_retry_goes_to_the_same_agent_three_times_after_two_four_and_eight_seconds(team: HandoffTeam) -> None:
    handoff = taken_by_bob(team, on_timeout="retry")
    team.clock.sleep(300)
    assert team.actions() == ["handoff_remind"]
    for number, wait in enumerate((2, 4, 8), 1):
        team.clock.sleep(wait - MOMENT)
        assert "handoff_timeout" not in team.actions()
        team.clock.sleep(MOMENT)
        assert "handoff_timeout" in team.actions()
        assert team.now(handoff).resends == number
        assert team.audit(handoff).count("timeout") == number
        assert (team.now(handoff).to_agent, team.now(handoff).state) == ("bob", "accepted")
    team.clock.sleep(16 - MOMENT)
    assert "handoff_timeout" not in team.actions()
    team.clock.sleep(MOMENT)
    assert "handoff_timeout" in team.actions()
    assert len(team.events("handoff.resent", handoff)) == 3
    assert team.now(handoff).state == "escalated"
    assert team.audit(handoff) == ["initiated", "accepted", "timeout", "timeout", "timeout", "timeout", "escalated"]


@requirement("handoff.timeout.escalate-next", "handoff.timeout.audited")
def test_an_escalated_timeout_forwards_the_payload_to_the_next_of_the_chain(team: HandoffTeam) -> None:
    handoff = taken_by_bob(team, on_timeout="escalate", variables={"branch": "main"})
    team.clock.sleep(300)
    team.actions()
    team.clock.sleep(2)
    team.actions()
    after = team.last(handoff)
    assert (after.to_agent, after.forwarded_from) == ("rev", handoff.id)
    assert after.context.context_variables == handoff.context.context_variables
    assert after.routing is not None
    assert "has not returned" in after.routing.reason
    assert team.audit(handoff) == ["initiated", "accepted", "timeout", "escalated"]


@requirement("handoff.timeout.fail", "handoff.timeout.audited")
def test_a_failed_timeout_fails_the_handoff_and_asks_a_person(team: HandoffTeam) -> None:
    handoff = taken_by_bob(team, on_timeout="fail")
    team.clock.sleep(300)
    team.actions()
    team.clock.sleep(2)
    team.actions()
    over = team.now(handoff)
    assert (over.state, over.outcome) == ("failed", "failed")
    assert "has not returned" in (over.closed_reason or "")
    assert team.audit(handoff)[:4] == ["initiated", "accepted", "timeout", "failed"]
    assert team.last(handoff).to_agent == "human"
    assert any("has not returned" in str(one) for one in team.events("handoff.failed", handoff))


@requirement("handoff.timeout.fail")
def test_a_failed_timeout_marks_the_delegated_subtask_as_failed() -> None:
    eng: dict[str, Any] = {"teams": [{"id": "eng", "orchestrator": "rev"}], **CHAIN}
    team = HandoffTeam(*({"id": name, "team": "eng"} for name in ("ada", "bob", "rev")), **eng)
    parent = team.task(agent="ada")
    team.fabric.claim(parent, agent="ada", ttl=900)
    child = team.task(parent_id=parent)
    waits = team.task(depends_on=[child])
    handoff = taken_by_bob(team, task=child, from_agent="ada", on_timeout="fail")
    team.fabric.claim(child, agent="bob", ttl=900)
    team.clock.sleep(300)
    team.actions()
    team.clock.sleep(2)
    assert "handoff_timeout" in team.actions()
    failed = team.fabric.get(child)
    assert (failed.status, failed.lease) == ("deadletter", None)
    assert failed.last_error is not None
    assert (failed.last_error.code, failed.last_error.cause) == ("handoff_timeout", "timed_out")
    assert "has not returned" in failed.last_error.message
    assert team.fabric.get(waits).status == "blocked"
    assert team.fabric.get(parent).status == "in-progress"
    assert [one["notify"] for one in team.events("handoff.failed", handoff)] == ["rev"]
    asked = team.last(handoff)
    assert team.actions() == [], "the request for a person stays open"
    assert (team.now(asked).to_agent, team.now(asked).state) == ("human", "requested")
    team.fabric.handoff_answer(asked.id, text="do it without")
    assert team.now(asked).state == "completed"


def test_a_queued_handoff_is_delivered_when_its_receiver_has_room() -> None:
    team = HandoffTeam({"id": "bob", "concurrency": 1})
    busy = team.task(agent="bob")
    run = team.fabric.claim(busy, agent="bob").run_id
    handoff = team.hand("bob")
    assert handoff.state == "queued"
    assert team.actions() == []
    team.fabric.complete(busy, run=run)
    assert team.actions() == ["handoff_deliver"]
    assert team.now(handoff).state == "requested"


@pytest.mark.parametrize(("end", "state"), [("done", "completed"), ("cancelled", "failed")])
def test_the_end_of_a_delegated_task_ends_its_handoff(team: HandoffTeam, end: str, state: str) -> None:
    handoff = taken_by_bob(team)
    if end == "done":
        run = team.fabric.claim(handoff.task_id, agent="bob").run_id
        team.fabric.complete(handoff.task_id, run=run)
    else:
        team.fabric.cancel(handoff.task_id)
    team.actions()
    assert team.now(handoff).state == state
    assert team.actions() == []


def test_a_deferred_handoff_of_an_agent_that_is_started_ends_some_day(team: HandoffTeam) -> None:
    handoff = team.hand("zoe")
    team.fabric.handoff_defer(handoff.id, agent="zoe", reason="later", estimated_completion="2026-03-02T10:00:00Z")
    team.clock.sleep(7200 - MOMENT)
    assert "handoff_timeout" not in team.actions()
    team.clock.sleep(MOMENT)
    assert "handoff_timeout" in team.actions()
    assert team.now(handoff).state == "rejected"


def test_a_plan_says_when_the_next_timer_is_due(team: HandoffTeam) -> None:
    team.hand("zoe")
    assert team.tick(dry_run=True).next_at == "2026-03-02T09:00:30.000Z"


@pytest.fixture
def asking() -> HandoffTeam:
    """The reviewer, to whom escalations go, is zoe, whom AOF starts."""
    return HandoffTeam(
        {"id": "bob"}, started("zoe"), roles={"reviewer": {"agents": ["zoe"]}}, escalation=["reviewer", "human"]
    )


def started_to_answer(asking: HandoffTeam) -> Handoff:
    """An escalation to zoe, which a service has taken_by_bob for her."""
    handoff = asking.hand("zoe", "escalation")
    asking.fabric.handoff_accept(handoff.id, agent="zoe", reason=TO_ANSWER)
    return handoff


def test_an_agent_that_is_started_to_answer_is_asked_once_by_a_task_whose_end_is_the_return(
    asking: HandoffTeam,
) -> None:
    handoff = started_to_answer(asking)
    assert [asking.actions() for _ in range(3)] == [["handoff_ask"], [], []]
    (answer,) = asking.fabric.tasks(tag="handoff-answer")
    run = asking.fabric.claim(answer.id, agent="zoe")
    assert asking.actions() == []
    asking.fabric.complete(answer.id, run=run.run_id, summary="go left")
    assert asking.actions() == ["handoff_return"]
    returned = asking.now(handoff).returned
    assert returned is not None
    assert (returned.status, asking.now(handoff).state) == ("success", "completed")
    assert returned.result is not None
    assert returned.result.body == {"task": answer.id, "status": "done", "answer": "go left"}


def test_an_answer_that_fails_is_a_failed_return(asking: HandoffTeam) -> None:
    handoff = started_to_answer(asking)
    asking.actions()
    (answer,) = asking.fabric.tasks(tag="handoff-answer")
    asking.fabric.cancel(answer.id)
    assert asking.actions() == ["handoff_return"]
    assert (asking.now(handoff).outcome, asking.now(handoff).state) == ("failed", "failed")


def test_a_question_that_cannot_be_asked_does_not_keep_the_handoff_open_for_ever(asking: HandoffTeam) -> None:
    handoff = started_to_answer(asking)
    asking.clock.sleep(3_601)
    assert asking.actions(dry_run=True) == ["handoff_remind"]
    assert asking.now(handoff).state == "accepted"


# --- the five conditions that begin a handoff, each alone, each once


REVIEW: dict[str, Any] = {
    "name": "review",
    "hops": [
        {"id": "implement", "role": "developer"},
        {"id": "check", "role": "reviewer", "dependsOn": ["implement"]},
    ],
}


@pytest.fixture
def eng() -> HandoffTeam:
    """A team with an orchestrator: ada develops, rev reviews, sec knows security."""
    return HandoffTeam(
        {
            "id": "ada",
            "team": "eng",
            "roles": ["developer"],
            "capabilities": ["code"],
            "maxExecutionTime": "10m",
            "autonomy": {"maxRisk": "medium"},
            "escalatesTo": "rev",
        },
        {"id": "rev", "team": "eng", "roles": ["reviewer"], "capabilities": ["code"]},
        {"id": "sec", "team": "eng", "capabilities": ["code", "security"]},
        {"id": "orc", "team": "eng"},
        teams=[{"id": "eng", "orchestrator": "orc"}],
        workflows=(REVIEW,),
    )


def running(eng: HandoffTeam, **given: Any) -> Task:
    """A task that ada runs."""
    task = eng.task(**given)
    eng.fabric.claim(task, agent="ada", ttl=86400)
    return eng.fabric.get(task)


def begun(eng: HandoffTeam, task_id: str) -> list[Handoff]:
    """The handoffs of a task after two ticks; what begins one twice would show."""
    eng.tick()
    eng.tick()
    return list(eng.fabric.handoff_list(task=task_id))


def only(eng: HandoffTeam, task_id: str, trigger: str) -> Handoff:
    """The one handoff of a task, which names its trigger, on the record and in the audit."""
    (handoff,) = begun(eng, task_id)
    assert handoff.trigger == trigger
    assert eng.records(handoff)[0].trigger == trigger
    return handoff


@requirement("handoff.trigger.task-completion", "handoff.trigger.five-kinds")
def test_a_completed_step_of_a_workflow_goes_to_the_next_agent_and_the_last_to_nobody(
    eng: HandoffTeam,
) -> None:
    task = eng.task(workflow="review")
    run = eng.fabric.claim(task, agent="ada").run_id
    assert begun(eng, task) == []
    eng.fabric.complete(task, run=run, caller_role="developer", outcome="complete")
    handoff = only(eng, task, "task_completion")
    assert (handoff.from_agent, handoff.to_agent, handoff.type) == ("ada", "rev", "sequential")
    run = eng.fabric.claim(task, agent="rev").run_id
    eng.tick()
    assert eng.now(handoff).state == "completed"
    assert eng.audit(handoff) == ["initiated", "accepted", "completed"]
    eng.fabric.complete(task, run=run, caller_role="reviewer", outcome="complete")
    assert len(begun(eng, task)) == 1


@requirement("handoff.trigger.capability-mismatch", "handoff.trigger.five-kinds")
def test_work_that_its_agent_cannot_do_goes_to_one_that_can(eng: HandoffTeam) -> None:
    able = running(eng, profile={KEY: ["code"]})
    assert begun(eng, able.id) == []
    task = running(eng)
    eng.fabric.edit(task.id, profile={KEY: ["security"]})
    handoff = only(eng, task.id, "capability_mismatch")
    assert (handoff.from_agent, handoff.to_agent, handoff.type) == ("ada", "sec", "sequential")
    eng.fabric.handoff_accept(handoff.id, agent="sec")
    lease = eng.fabric.get(task.id).lease
    assert lease is not None
    assert lease.agent == "sec"
    assert len(begun(eng, task.id)) == 1


@requirement("handoff.trigger.escalation-risk", "handoff.trigger.five-kinds")
@pytest.mark.parametrize(("risk", "escalates"), [("low", False), ("medium", False), ("high", True)])
def test_a_decision_above_the_agents_risk_is_escalated(eng: HandoffTeam, risk: str, *, escalates: bool) -> None:
    task = running(eng)
    eng.fabric.context_decide(task.id, description="drop the table", risk=risk, actor="ada")
    if not escalates:
        assert begun(eng, task.id) == []
        return
    handoff = only(eng, task.id, "escalation")
    assert (handoff.from_agent, handoff.to_agent, handoff.type) == ("ada", "rev", "escalation")


@requirement("handoff.trigger.timeout", "handoff.trigger.five-kinds")
def test_an_agent_that_takes_too_long_hands_its_task_to_the_orchestrator(eng: HandoffTeam) -> None:
    task = running(eng)
    eng.clock.sleep(600 - MOMENT)
    assert begun(eng, task.id) == []
    eng.clock.sleep(MOMENT)
    handoff = only(eng, task.id, "timeout")
    assert (handoff.from_agent, handoff.to_agent, handoff.type) == ("ada", "orc", "escalation")
    after = eng.fabric.get(task.id)
    assert (after.status, after.lease) == ("blocked", None)
    assert after.retry.failures == 0
    eng.fabric.handoff_answer(handoff.id, agent="orc", text="try again")
    assert eng.fabric.get(task.id).status == "ready"


@requirement("handoff.trigger.timeout")
def test_a_task_past_its_deadline_goes_to_the_orchestrator_once(eng: HandoffTeam) -> None:
    task = running(eng, constraints={"deadline": "2026-03-02T09:05:00Z"})
    eng.clock.sleep(300 - MOMENT)
    assert begun(eng, task.id) == []
    eng.clock.sleep(MOMENT)
    handoff = only(eng, task.id, "timeout")
    assert handoff.to_agent == "orc"
    assert "deadline" in handoff.reason
    eng.fabric.handoff_answer(handoff.id, agent="orc", text="go on")
    eng.fabric.claim(task.id, agent="ada")
    assert len(begun(eng, task.id)) == 1


@requirement("handoff.trigger.explicit-request", "handoff.trigger.five-kinds")
def test_an_agent_asks_a_named_agent_for_help_in_the_middle_of_a_task(eng: HandoffTeam) -> None:
    task = running(eng)
    eng.hand("sec", task=task.id, from_agent="ada")
    handoff = only(eng, task.id, "explicit_request")
    assert (handoff.from_agent, handoff.to_agent) == ("ada", "sec")


@requirement("handoff.trigger.five-kinds")
def test_an_invented_trigger_is_refused(eng: HandoffTeam) -> None:
    with pytest.raises((AofError, TypeError)):
        eng.hand("sec", trigger="boredom")
    with pytest.raises(ValueError, match="boredom"):
        _proposal("boredom")
    assert _proposal("timeout").trigger == "timeout"


def _proposal(trigger: str) -> HandoffProposal:
    import msgspec  # noqa: PLC0415 - only here

    given = {"type": "delegation", "to": ["sec"], "reason": "x", "timeout": "5m", "trigger": trigger}
    return msgspec.convert(given, HandoffProposal)
