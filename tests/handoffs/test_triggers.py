"""The five conditions that begin a handoff, each alone, each once."""

from __future__ import annotations

from typing import Any

import pytest

from aof.errors import AofError
from aof.handoffs.model import Handoff
from aof.handoffs.payload import HandoffProposal
from aof.tasks.fields import KEY
from aof.tasks.model import Task
from tests.support.handoff_team import MOMENT, HandoffTeam
from tests.support.requirements import requirement

REVIEW: dict[str, Any] = {
    "name": "review",
    "hops": [
        {"id": "implement", "role": "developer"},
        {"id": "check", "role": "reviewer", "dependsOn": ["implement"]},
    ],
}


@pytest.fixture
def team() -> HandoffTeam:
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


def running(team: HandoffTeam, **given: Any) -> Task:
    """A task that ada runs."""
    task = team.task(**given)
    team.fabric.claim(task, agent="ada", ttl=86400)
    return team.fabric.get(task)


def begun(team: HandoffTeam, task_id: str) -> list[Handoff]:
    """The handoffs of a task after two ticks; what begins one twice would show."""
    team.tick()
    team.tick()
    return list(team.fabric.handoff_list(task=task_id))


def only(team: HandoffTeam, task_id: str, trigger: str) -> Handoff:
    """The one handoff of a task, which names its trigger, on the record and in the audit."""
    (handoff,) = begun(team, task_id)
    assert handoff.trigger == trigger
    assert team.records(handoff)[0].trigger == trigger
    return handoff


@requirement("handoff.trigger.task-completion", "handoff.trigger.five-kinds")
def test_a_completed_step_of_a_workflow_goes_to_the_next_agent_and_the_last_to_nobody(team: HandoffTeam) -> None:
    task = team.task(workflow="review")
    run = team.fabric.claim(task, agent="ada").run_id
    assert begun(team, task) == []
    team.fabric.complete(task, run=run, caller_role="developer", outcome="complete")
    handoff = only(team, task, "task_completion")
    assert (handoff.from_agent, handoff.to_agent, handoff.type) == ("ada", "rev", "sequential")
    run = team.fabric.claim(task, agent="rev").run_id
    team.tick()
    assert team.now(handoff).state == "completed"
    assert team.audit(handoff) == ["initiated", "accepted", "completed"]
    team.fabric.complete(task, run=run, caller_role="reviewer", outcome="complete")
    assert len(begun(team, task)) == 1


@requirement("handoff.trigger.capability-mismatch", "handoff.trigger.five-kinds")
def test_work_that_its_agent_cannot_do_goes_to_one_that_can(team: HandoffTeam) -> None:
    able = running(team, profile={KEY: ["code"]})
    assert begun(team, able.id) == []
    task = running(team)
    team.fabric.edit(task.id, profile={KEY: ["security"]})
    handoff = only(team, task.id, "capability_mismatch")
    assert (handoff.from_agent, handoff.to_agent, handoff.type) == ("ada", "sec", "sequential")
    team.fabric.handoff_accept(handoff.id, agent="sec")
    lease = team.fabric.get(task.id).lease
    assert lease is not None
    assert lease.agent == "sec"
    assert len(begun(team, task.id)) == 1


@requirement("handoff.trigger.escalation-risk", "handoff.trigger.five-kinds")
@pytest.mark.parametrize(("risk", "escalates"), [("low", False), ("medium", False), ("high", True)])
def test_a_decision_above_the_agents_risk_is_escalated(team: HandoffTeam, risk: str, *, escalates: bool) -> None:
    task = running(team)
    team.fabric.context_decide(task.id, description="drop the table", risk=risk, actor="ada")
    if not escalates:
        assert begun(team, task.id) == []
        return
    handoff = only(team, task.id, "escalation")
    assert (handoff.from_agent, handoff.to_agent, handoff.type) == ("ada", "rev", "escalation")


@requirement("handoff.trigger.timeout", "handoff.trigger.five-kinds")
def test_an_agent_that_takes_too_long_hands_its_task_to_the_orchestrator(team: HandoffTeam) -> None:
    task = running(team)
    team.clock.sleep(600 - MOMENT)
    assert begun(team, task.id) == []
    team.clock.sleep(MOMENT)
    handoff = only(team, task.id, "timeout")
    assert (handoff.from_agent, handoff.to_agent, handoff.type) == ("ada", "orc", "escalation")
    after = team.fabric.get(task.id)
    assert (after.status, after.lease) == ("blocked", None)
    assert after.retry.failures == 0
    team.fabric.handoff_answer(handoff.id, agent="orc", text="try again")
    assert team.fabric.get(task.id).status == "ready"


@requirement("handoff.trigger.timeout")
def test_a_task_past_its_deadline_goes_to_the_orchestrator_once(team: HandoffTeam) -> None:
    task = running(team, constraints={"deadline": "2026-03-02T09:05:00Z"})
    team.clock.sleep(300 - MOMENT)
    assert begun(team, task.id) == []
    team.clock.sleep(MOMENT)
    handoff = only(team, task.id, "timeout")
    assert handoff.to_agent == "orc"
    assert "deadline" in handoff.reason
    team.fabric.handoff_answer(handoff.id, agent="orc", text="go on")
    team.fabric.claim(task.id, agent="ada")
    assert len(begun(team, task.id)) == 1


@requirement("handoff.trigger.explicit-request", "handoff.trigger.five-kinds")
def test_an_agent_asks_a_named_agent_for_help_in_the_middle_of_a_task(team: HandoffTeam) -> None:
    task = running(team)
    team.hand("sec", task=task.id, from_agent="ada")
    handoff = only(team, task.id, "explicit_request")
    assert (handoff.from_agent, handoff.to_agent) == ("ada", "sec")


@requirement("handoff.trigger.five-kinds")
def test_an_invented_trigger_is_refused(team: HandoffTeam) -> None:
    with pytest.raises((AofError, TypeError)):
        team.hand("sec", trigger="boredom")
    with pytest.raises(ValueError, match="boredom"):
        _proposal("boredom")
    assert _proposal("timeout").trigger == "timeout"


def _proposal(trigger: str) -> HandoffProposal:
    import msgspec  # noqa: PLC0415 - only here

    given = {"type": "delegation", "to": ["sec"], "reason": "x", "timeout": "5m", "trigger": trigger}
    return msgspec.convert(given, HandoffProposal)
