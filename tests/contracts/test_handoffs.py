"""Handoffs between agents, on every store: the four types, answers, returns and what follows for the task."""

from __future__ import annotations

import uuid

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import Policy, iso
from aof.store.memory import FixedWorkflows
from aof.store.port import Store
from aof.testing import FakeClock
from tests.support.handoffs import audited, broadcast, charted, held, refuses, shown, start, told
from tests.support.present import present
from tests.support.requirements import requirement


@pytest.fixture
def team(store: Store, clock: FakeClock) -> Fabric:
    """A fabric with the chart of the handoff tests."""
    return charted(store, clock)


@requirement("handoff.schema.id-uuid4", "handoff.schema.parties-and-reason")
def test_a_handoff_has_an_id_of_its_own_and_keeps_who_and_why(fabric: Fabric) -> None:
    task_id = fabric.create("Work").task_id
    made = [
        start(fabric, "broadcast", task_id, "ada", f"b{number}", f"x{number}", reason=f"why {number}")
        for number in range(5)
    ]
    ids = [one for handoff in made for one in [handoff.id, *(o.id for o in fabric.handoff_list(task=task_id))]]
    assert {uuid.UUID(one).version for one in ids} == {4}
    assert len({one.id for one in fabric.handoff_list()}) == 10
    assert [(one.from_agent, one.to_agent, one.reason) for one in made] == [
        ("ada", f"b{number}", f"why {number}") for number in range(5)
    ]
    for field, wrong in (("to", []), ("reason", " ")):
        given = {"type": "sequential", "task_id": task_id, "from_agent": "ada", "to": ["bob"], "reason": "why"}
        assert field in refuses("invalid", fabric.handoff_new, **(given | {field: wrong})).message


@requirement("handoff.schema.type-enum", "handoff.schema.return-protocol-block", "handoff.schema.audit-block")
def test_types_policies_and_risks_outside_the_lists_are_refused(fabric: Fabric) -> None:
    task_id = fabric.create("Work").task_id
    sound = {"type": "broadcast", "task_id": task_id, "from_agent": "ada", "reason": "r", "timeout": "1m"}
    wrong = {"type": "parallel", "on_timeout": "ignore", "timeout": "soon", "risk": "severe", "aggregation": "first"}
    for field, value in wrong.items():
        refuses("invalid", fabric.handoff_new, **(sound | {"to": ["bob"], field: value}))
    assert fabric.handoff_list() == ()
    for number, (on_timeout, risk) in enumerate((("retry", "low"), ("escalate", "medium"), ("fail", "high"))):
        given = {"on_timeout": on_timeout, "risk": risk, "rationale": f"since {risk}", "timeout": 90}
        one = start(fabric, "broadcast", task_id, "ada", f"bob{number}", **given)
        assert (one.return_protocol.on_timeout, one.return_protocol.timeout) == (on_timeout, "90s")
        assert (one.return_protocol.expected, one.audit.risk_level) == (True, risk)
        assert one.audit.decision_rationale == f"since {risk}"
    kinds = {kind: held(fabric, "eve", kind) for kind in ("sequential", "delegation", "escalation")}
    assert {start(fabric, kind, task, "eve", "bob").type for kind, task in kinds.items()} == set(kinds)


@requirement("handoff.schema.context-block", "handoff.lifecycle.02-prepare")
def test_the_receiver_finds_everything_in_the_payload(fabric: Fabric) -> None:
    task_id = held(fabric, "ada")
    messages = [{"content": "begin", "relevant": True}, {"content": "go on", "relevant": True}]
    one = start(
        fabric,
        "broadcast",
        task_id,
        "ada",
        "bob",
        history=messages,
        variables={"branch": "main", "limits": {"cpu": 2}},
        artifacts=[{"path": "outputs/plan.md", "type": "document", "status": "final", "description": "the plan"}],
        budget=12.5,
        deadline="2026-03-03T09:00:00Z",
    )
    seen = shown(fabric, one).context
    assert seen.task_id == task_id
    assert [message["content"] for message in seen.conversation_history] == ["begin", "go on"]
    assert seen.context_variables["custom"] == {"branch": "main", "limits": {"cpu": 2}}
    assert [(one["path"], one["type"], one["status"]) for one in seen.artifacts] == [
        ("outputs/plan.md", "document", "final")
    ]
    assert (seen.constraints.budget, seen.constraints.deadline) == (12.5, "2026-03-03T09:00:00Z")
    before = fabric.store.head()
    for wrong in ({"budget": "much"}, {"deadline": "soon"}, {"artifacts": [{"type": "picture", "path": "x"}]}):
        refuses("invalid", start, fabric, "broadcast", task_id, "ada", "cem", **wrong)
    assert len(fabric.handoff_list()) == 1, "what could not be put together left nothing behind"
    assert {event.type for event in fabric.events(after=before)} <= {"handoff.refused"}


@requirement("handoff.schema.timestamps-utc", "handoff.acceptance.times")
def test_all_times_are_utc_and_an_estimate_must_be_one(fabric: Fabric, clock: FakeClock) -> None:
    one = start(fabric, "delegation", fabric.create("Work").task_id, "ada", "bob")
    refuses("invalid", fabric.handoff_accept, one.id, agent="bob", estimated_completion="soon")
    clock.sleep(3)
    estimate = "2026-03-02T10:00:00Z"
    taken = fabric.handoff_accept(one.id, agent="bob", estimated_completion=estimate).handoff
    assert taken.acceptance is not None
    assert (taken.timestamp, taken.acceptance.acknowledged_at) == ("2026-03-02T09:00:00.000Z", iso(clock.now()))
    assert taken.acceptance.estimated_completion == estimate
    clock.sleep(1)
    back = fabric.handoff_return(one.id, agent="bob", status="success")
    assert present(back.returned).audit.completion_time == back.closed_at == "2026-03-02T09:00:04.000Z"
    plain = start(fabric, "delegation", fabric.create("Work").task_id, "ada", "bob")
    answer = present(fabric.handoff_accept(plain.id, agent="bob").handoff.acceptance)
    assert answer.acknowledged_at.endswith("Z")
    assert answer.estimated_completion is None


@requirement("handoff.sequential.no-return", "handoff.sequential.ownership-transfer", "handoff.sequential.sender-freed")
def test_a_sequential_handoff_moves_the_task_and_frees_the_sender(team: Fabric) -> None:
    task_id = held(team, "wes")
    run = present(team.get(task_id).lease)
    other = team.create("Next").task_id
    refuses("at_capacity", team.claim, other, agent="wes")
    one = start(team, "sequential", task_id, "wes", "bea")
    assert (one.state, one.return_protocol.expected) == ("requested", False)
    assert team.get(task_id).lease == run, "before the answer the sender holds it"
    taken = team.handoff_accept(one.id, agent="bea")
    task = team.get(task_id)
    assert task.lease is not None
    assert (task.owner, task.lease.agent, task.lease.run_id) == ("bea", "bea", taken.run_id)
    assert task.lease.epoch > run.epoch
    refuses("stale_lease", team.progress, task_id, text="mine?", run=run.run_id)
    refuses("stale_lease", team.complete, task_id, run=run.run_id)
    assert taken.handoff.state == "completed"
    assert audited(team, one.id) == ["initiated", "accepted", "completed"]
    assert team.claim(other, agent="wes").task_id == other
    refuses("no_return_expected", team.handoff_return, one.id, agent="bea", status="success")
    assert team.as_run(str(taken.secret)).complete(task_id).status == "review"


@requirement("handoff.sequential.segment-complete-first")
def test_the_senders_part_is_complete_before_the_task_moves(fabric: Fabric) -> None:
    task_id = held(fabric, "ada")
    refuses("segment_open", start, fabric, "sequential", task_id, "ada", "bob", segment_complete=False)
    assert (fabric.handoff_list(), [event for event in told(fabric) if "audit" in event.payload]) == ((), [])
    fabric.progress(task_id, percent=100, agent="ada")
    assert start(fabric, "sequential", task_id, "ada", "bob", segment_complete=False).state == "requested"


@requirement("handoff.sequential.full-context", "handoff.escalation.full-context")
def test_what_earlier_agents_added_goes_all_the_way(fabric: Fabric) -> None:
    task_id = held(fabric, "arc")
    fabric.context_set(task_id, actor="arc", variables={"design": "layers"})
    fabric.context_decide(task_id, actor="arc", description="use layers")
    first = start(fabric, "sequential", task_id, "arc", "imp", artifacts=["outputs/design.md"])
    fabric.handoff_accept(first.id, agent="imp")
    fabric.context_set(task_id, actor="imp", variables={"code": "done"})
    second = start(fabric, "sequential", task_id, "imp", "rev", artifacts=["outputs/code.md"])
    seen = second.context
    assert seen.context_variables["custom"] == {"code": "done", "design": "layers"}
    assert [one["made_by"] for one in seen.context_variables["decisions_made"]] == ["arc"]
    assert [one["path"] for one in seen.artifacts] == ["outputs/design.md", "outputs/code.md"]
    fabric.handoff_accept(second.id, agent="rev")
    talk = [{"content": f"message {number}"} for number in range(20)]
    up = start(fabric, "escalation", task_id, "rev", "boss", rationale="not sure", history=talk)
    assert len(up.context.conversation_history) == 20
    assert up.context.context_variables["custom"] == {"code": "done", "design": "layers"}
    assert (len(up.context.artifacts), up.audit.decision_rationale) == (2, "not sure")


@requirement(
    "handoff.delegation.return-with-timeout", "handoff.delegation.subtask-named", "handoff.delegation.owner-retained"
)
def test_a_delegation_hands_over_a_subtask_and_always_has_a_timeout(fabric: Fabric) -> None:
    parent = held(fabric, "ada", "Whole", owner="ada")
    child = fabric.create("Part", parent_id=parent).task_id
    spare = fabric.create("Other part", parent_id=parent).task_id
    usual = start(fabric, "delegation", spare, "ada", "bob", timeout=None)
    assert (usual.return_protocol.expected, usual.return_protocol.timeout) == (True, "3600000ms")
    one = start(fabric, "delegation", child, "ada", "bob")
    assert (one.task_id, one.parent_task_id) == (child, parent)
    (begun,) = told(fabric, one.id, "handoff.initiated")
    assert begun.payload["audit"]["context_snapshot"]["task_id"] == begun.task_id == child
    fabric.handoff_accept(one.id, agent="bob")
    assert fabric.claim(child, agent="bob").task_id == child, "the receiver can open that task"
    back = fabric.handoff_return(one.id, agent="bob", status="success", result="tested")
    assert (back.state, back.outcome) == ("completed", "success")
    task = fabric.get(parent)
    assert (present(task.lease).agent, task.owner) == ("ada", "ada")


@requirement("handoff.delegation.scoped-context")
def test_a_delegation_carries_only_what_concerns_the_subtask(fabric: Fabric) -> None:
    parent = held(fabric, "ada", "Whole")
    child = fabric.create("Part", parent_id=parent).task_id
    fabric.context_set(parent, actor="ada", variables={"secret plan": "mine", "for bob": 1})
    one = start(fabric, "delegation", child, "ada", "bob", variables={"input": "x.csv"})
    assert one.context.context_variables["custom"] == {"input": "x.csv"}
    full = start(fabric, "broadcast", parent, "ada", "bob")
    assert set(full.context.context_variables["custom"]) == {"secret plan", "for bob", "input"}
    assert one.subtask is not None
    assert "Part" in one.subtask


@requirement("handoff.delegation.wait-mode")
@pytest.mark.parametrize("wait", [True, False])
def test_the_sender_waits_for_the_result_or_goes_on(fabric: Fabric, *, wait: bool) -> None:
    parent = held(fabric, "ada", "Whole")
    child = fabric.create("Part", parent_id=parent).task_id
    one = start(fabric, "delegation", child, "ada", "bob", wait=wait)
    task = fabric.get(parent)
    if wait:
        assert one.id in present(task.blocked).reason
        assert fabric.show(parent)["normalizedStatus"] == "waiting_input"
    else:
        assert fabric.progress(parent, text="meanwhile", agent="ada").task_id == parent
    fabric.handoff_accept(one.id, agent="bob")
    fabric.handoff_return(one.id, agent="bob", status="success")
    after = fabric.get(parent)
    assert after.status == ("ready" if wait else "in-progress")
    if wait:
        assert fabric.claim(agent="ada").task_id == parent


@requirement("handoff.broadcast.group-records", "handoff.broadcast.independent-copies")
def test_a_broadcast_gives_each_receiver_a_record_and_a_copy_of_its_own(fabric: Fabric) -> None:
    task_id = held(fabric, "ada")
    members = broadcast(fabric, task_id, "b", "c", "d", variables={"style": "strict"}, aggregation="all")
    assert len({one.id for one in members}) == 3
    assert len({one.broadcast_group_id for one in members} - {None}) == 1
    assert [one.to_agent for one in members] == ["b", "c", "d"]
    begun = told(fabric, kind="handoff.initiated")
    assert len(begun) == 3
    assert len({event.payload["audit"]["context_snapshot"]["context_variables_hash"] for event in begun}) == 1
    for one in members:
        fabric.handoff_accept(one.id, agent=one.to_agent)
    fabric.handoff_return(members[0].id, agent="b", status="success", variables_changed={"found": 3})
    assert [shown(fabric, one).context.context_variables["custom"] for one in members[1:]] == [{"style": "strict"}] * 2

    first, second = broadcast(fabric, task_id, "e", "f", coordinate=True)
    for one in (first, second):
        fabric.handoff_accept(one.id, agent=one.to_agent)
    fabric.handoff_return(first.id, agent="e", status="success", variables_changed={"hint": "here"})
    assert shown(fabric, second).context.context_variables["custom"]["hint"] == "here"


RETURNS = [
    ("all", "sss", ["open", "open", "success"]),
    ("all", "ssf", ["open", "open", "failed"]),
    ("any", "ffs", ["open", "open", "success"]),
    ("any", "fff", ["open", "open", "failed"]),
    ("majority", "ssff", ["open", "open", "open", "failed"]),
    ("majority", "sfs", ["open", "open", "success"]),
]


@requirement(
    "handoff.broadcast.aggregation-all",
    "handoff.broadcast.aggregation-any",
    "handoff.broadcast.aggregation-majority",
    "handoff.broadcast.owner-until-aggregated",
)
@pytest.mark.parametrize(("mode", "returns", "states"), RETURNS)
def test_returns_are_aggregated(fabric: Fabric, mode: str, returns: str, states: list[str]) -> None:
    task_id = held(fabric, "ada", owner="ada")
    agents = [f"r{number}" for number in range(len(returns))]
    members = broadcast(fabric, task_id, *agents, aggregation=mode)
    for one in members:
        fabric.handoff_accept(one.id, agent=one.to_agent)
    for one, how, state in zip(members, returns, states, strict=True):
        status = "success" if how == "s" else "failed"
        fabric.handoff_return(one.id, agent=one.to_agent, status=status, result=f"by {one.to_agent}")
        assert fabric.handoff_group(str(one.broadcast_group_id)).state == state
        assert fabric.get(task_id).owner == "ada"
    group = fabric.handoff_group(members[0].id)
    assert group.from_agent == "ada"
    assert [(one.agent, one.result["body"]) for one in group.results] == [(agent, f"by {agent}") for agent in agents]
    decided = [event for event in told(fabric) if "group" in event.payload]
    assert [event.payload["group"]["state"] for event in decided] == [states[-1]]


@requirement("handoff.broadcast.return-per-target")
def test_only_receivers_that_owe_a_return_count(fabric: Fabric) -> None:
    task_id = held(fabric, "ada")
    first, second, third = broadcast(fabric, task_id, "b", "c", "d", no_return=["d"])
    assert [one.return_protocol.expected for one in (first, second, third)] == [True, True, False]
    for one in (first, second, third):
        fabric.handoff_accept(one.id, agent=one.to_agent)
    refuses("no_return_expected", fabric.handoff_return, third.id, agent="d", status="success")
    for one in (first, second):
        fabric.handoff_return(one.id, agent=one.to_agent, status="success")
    assert fabric.handoff_group(first.id).state == "success"


@requirement("handoff.escalation.chain-order", "handoff.escalation.assessment-per-level")
def test_an_escalation_climbs_the_chain_and_keeps_every_assessment(team: Fabric) -> None:
    task_id = held(team, "wes")
    first = start(team, "escalation", task_id, "wes", rationale="ambiguous")
    assert (first.to_agent, first.level) == ("rita", 1)
    team.handoff_accept(first.id, agent="rita")
    second = team.handoff_escalate(first.id, agent="rita", rationale="needs a design decision")
    assert (second.to_agent, second.level, second.from_agent) == ("ari", 2, "wes")
    team.handoff_accept(second.id, agent="ari")
    third = team.handoff_escalate(second.id, agent="ari", rationale="touches the contract")
    assert (third.to_agent, third.level) == ("human", 3)
    said = [(one.level, one.agent, one.assessment) for one in third.assessments]
    assert said == [
        (0, "wes", "ambiguous"),
        (1, "rita", "needs a design decision"),
        (2, "ari", "touches the contract"),
    ]
    trail = [event.payload["audit"] for event in told(team, kind="handoff.escalated")]
    assert [one["decision_rationale"] for one in trail] == [assessment for _, _, assessment in said]

    resolved = start(team, "escalation", held(team, "bea"), "bea", "rita")
    team.handoff_accept(resolved.id, agent="rita")
    team.handoff_return(resolved.id, agent="rita", status="success", result="go ahead")
    assert [one.task_id for one in team.handoff_list(from_agent="bea")] == [resolved.task_id]


@requirement("handoff.escalation.depth-three")
def test_a_fourth_level_is_refused_and_the_person_keeps_it(team: Fabric) -> None:
    task_id = held(team, "wes")
    for sender, target in (("wes", "rita"), ("rita", "ari"), ("ari", "human")):
        one = start(team, "escalation", task_id, sender, rationale=f"not for {sender}")
        assert one.to_agent == target
        if target != "human":
            team.handoff_accept(one.id, agent=target)
    refuses("escalation_depth", team.handoff_escalate, _accepted(team, one.id), agent="boss", rationale="no")
    refuses("escalation_depth", start, team, "escalation", task_id, "human", "petra")
    (open_one,) = team.handoff_list(state="open")
    assert (open_one.to_agent, open_one.level) == ("human", 3)
    assert told(team, kind="handoff.refused")[-1].payload["code"] == "escalation_depth"


def _accepted(fabric: Fabric, handoff_id: str) -> str:
    fabric.handoff_accept(handoff_id, agent="boss")
    return handoff_id


@requirement("handoff.escalation.rationale-required", "handoff.escalation.urgency-inherited")
def test_an_escalation_says_why_and_is_as_urgent_as_its_task(fabric: Fabric) -> None:
    task_id = held(fabric, "ada")
    for nothing in ("", "  "):
        refuses("invalid", start, fabric, "escalation", task_id, "ada", "bob", rationale=nothing)
    start(fabric, "escalation", task_id, "ada", "bob", rationale="safety concern")
    (up,) = told(fabric, kind="handoff.escalated")
    assert up.payload["audit"]["decision_rationale"] == "safety concern"
    rank = {"immediate": 0, "normal": 1, "low": 2}
    urgencies = [
        start(fabric, "escalation", held(fabric, "ada", priority=priority), "ada", "bob").urgency
        for priority in ("critical", "high", "normal", "low")
    ]
    ranks = [rank[str(one)] for one in urgencies]
    assert ranks == sorted(ranks)
    assert ranks[0] < ranks[-1]


@requirement("handoff.escalation.temporary-ownership")
def test_the_target_of_an_escalation_owns_the_task_until_its_answer(fabric: Fabric) -> None:
    task_id = held(fabric, "ada")
    one = start(fabric, "escalation", task_id, "ada", "bob")
    fabric.handoff_accept(one.id, agent="bob")
    assert (fabric.get(task_id).owner, one.return_protocol.expected) == ("bob", True)
    fabric.handoff_return(one.id, agent="bob", status="success", result="use plan B")
    task = fabric.get(task_id)
    assert (task.owner, task.status, task.routing.agent) == ("ada", "ready", "ada")
    back = present(shown(fabric, one).returned)
    assert (back.to_agent, present(back.result).body) == ("ada", "use plan B")


@requirement("handoff.sequential.segment-complete-first")
def test_a_hop_is_completed_before_its_task_is_handed_on(store: Store, clock: FakeClock) -> None:
    hops = [{"id": "build", "role": "dev"}, {"id": "check", "role": "qa", "dependsOn": ["build"]}]
    fabric = Fabric(store, clock, Policy(), "pm", workflows=FixedWorkflows({"name": "two", "hops": hops}))
    task_id = fabric.create("Gated", workflow="two").task_id
    run = fabric.claim(task_id, agent="ada")
    refuses("segment_open", start, fabric, "sequential", task_id, "ada", "bob")
    assert (fabric.handoff_list(), [event for event in told(fabric) if "audit" in event.payload]) == ((), [])
    run.complete("built")
    one = start(fabric, "sequential", task_id, "ada", "bob")
    assert fabric.handoff_accept(one.id, agent="bob").handoff.state == "completed"
    assert fabric.get(task_id).owner == "bob"
    assert fabric.claim(task_id, agent="bob").task_id == task_id
