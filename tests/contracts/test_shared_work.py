"""What the agents of a workflow share, on every store: context, artifacts, locks on files."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import ContextConflict, FileLocked, InvalidInput, LockRequired, NotAllowed, OutOfScope, StaleLease
from aof.handoffs.context import ARTIFACT_STATUSES, ARTIFACT_TYPES
from aof.kernel.model import Policy
from aof.store.memory import FixedChart
from aof.store.port import Scope, Store
from aof.testing import FakeClock
from tests.support.messages import accepted, request
from tests.support.requirements import requirement
from tests.support.team import chart_of


def handed_on(fabric: Fabric, parent: str, sender: str, receiver: str) -> str:
    """A child of the task that the sender hands to the receiver, who takes it."""
    child = fabric.create("Part", parent_id=parent, agent=receiver, actor=sender).task_id
    fabric.send([request(child, parent, sender, receiver)])
    fabric.send([accepted(child, receiver)])
    fabric.claim(child, agent=receiver)
    return child


def custom(fabric: Fabric, task_id: str) -> dict[str, Any]:
    return fabric.context_show(task_id).context_variables.custom


def history(fabric: Fabric, task_id: str, kind: str) -> list[dict[str, Any]]:
    return [event.payload for event in fabric.events(task_id=task_id) if event.type == kind]


@requirement("handoff.context.decisions-made")
def test_decisions_of_earlier_agents_are_there_after_later_handoffs(fabric: Fabric, clock: FakeClock) -> None:
    top = fabric.create("Whole").task_id
    fabric.claim(top, agent="ada")
    fabric.context_decide(top, description="REST", actor="ada")
    clock.sleep(1)
    to_bob = handed_on(fabric, top, "ada", "bob")
    fabric.context_decide(to_bob, description="Port 8080", actor="bob")
    to_cem = handed_on(fabric, top, "ada", "cem")
    read = fabric.context_show(to_cem).context_variables.decisions_made
    assert [(one.decision_id, one.description, one.made_by, one.timestamp) for one in read] == [
        ("D-1", "REST", "ada", "2026-03-02T09:00:00.000Z"),
        ("D-2", "Port 8080", "bob", "2026-03-02T09:00:01.000Z"),
    ]


def test_a_decision_that_is_said_again_is_recorded_once(fabric: Fabric) -> None:
    top = fabric.create("Whole").task_id
    first = fabric.context_decide(top, description="REST", actor="ada")
    assert fabric.context_decide(top, description=" REST ", actor="ada") == first
    assert fabric.context_decide(top, description="REST", actor="bob").decision_id == "D-2"
    assert len(history(fabric, top, "context.decided")) == 2


@requirement("handoff.context.read-all")
def test_every_agent_reads_what_the_others_wrote_in_their_scopes(fabric: Fabric) -> None:
    top = fabric.create("Whole").task_id
    fabric.claim(top, agent="ada")
    places = {"ada": top, "bob": handed_on(fabric, top, "ada", "bob"), "cem": handed_on(fabric, top, "ada", "cem")}
    for agent, task_id in places.items():
        fabric.context_set(task_id, variables={f"of-{agent}": agent}, actor=agent)
    for task_id in places.values():
        assert custom(fabric, task_id) == {"of-ada": "ada", "of-bob": "bob", "of-cem": "cem"}


@requirement("handoff.context.write-scope")
def test_a_write_outside_the_own_scope_is_refused_and_changes_nothing(fabric: Fabric) -> None:
    top = fabric.create("Whole").task_id
    fabric.claim(top, agent="ada")
    child = handed_on(fabric, top, "ada", "bob")
    fabric.context_set(top, variables={"plan": "a"}, actor="ada")
    fabric.context_set(child, variables={"mine": 1}, actor="bob")
    before = fabric.context_show(top)
    with pytest.raises(OutOfScope, match="scope 'ada'") as refused:
        fabric.context_set(child, variables={"plan": "b"}, actor="bob")
    assert refused.value.details["scope"] == "ada"
    after = fabric.context_show(top)
    assert (after.variables, after.context_variables_hash) == (before.variables, before.context_variables_hash)
    assert custom(fabric, top) == {"plan": "a", "mine": 1}
    assert history(fabric, top, "context.refused") == [
        {"name": "plan", "writer": "bob", "taskId": child, "value": "b", "reason": "out_of_scope"}
    ]


def test_of_two_writes_from_one_version_the_rule_says_which_holds_and_the_log_has_both(fabric: Fabric) -> None:
    top = fabric.create("Whole").task_id
    fabric.claim(top, agent="ada")
    fabric.context_set(top, variables={"port": 1}, scope="shared", actor="ada")
    fabric.context_set(top, variables={"port": 2}, base=1, actor="bob")
    with pytest.raises(ContextConflict):
        fabric.context_set(top, variables={"port": 3}, base=1, actor="cem")
    assert custom(fabric, top) == {"port": 2}
    with pytest.raises(NotAllowed):
        fabric.context_set(top, conflicts="last", actor="cem")
    pm = Fabric(fabric.store, fabric.services.environment.clock, Policy(maintainers=("pm",)), "pm")
    pm.context_set(top, conflicts="last")
    fabric.context_set(top, variables={"port": 4}, base=1, actor="cem")
    assert custom(fabric, top) == {"port": 4}
    told = [(one["value"], one["held"]["value"], one["resolution"]) for one in history(fabric, top, "context.conflict")]
    assert told == [(3, 2, "kept"), (4, 2, "replaced")]


@requirement("handoff.artifact.identity")
def test_an_artifact_keeps_what_identifies_it_over_later_handoffs(fabric: Fabric, clock: FakeClock) -> None:
    top = fabric.create("Whole").task_id
    fabric.claim(top, agent="ada")
    made = fabric.context_artifact(top, path="outputs/api.md", type="document", description="the contract", actor="ada")
    clock.sleep(60)
    handed_on(fabric, top, "ada", "bob")
    last = handed_on(fabric, top, "ada", "cem")
    final = fabric.context_artifact(last, path="outputs/api.md", status="final", actor="cem")
    (read,) = fabric.context_show(last).artifacts
    assert read == final
    assert (read.id, read.created_by, read.created_at, read.description) == (
        made.id,
        "ada",
        "2026-03-02T09:00:00.000Z",
        "the contract",
    )
    assert (made.status, final.status) == ("draft", "final")
    assert [len(part) for part in made.id.split("-")] == [8, 4, 4, 4, 12]


@requirement("handoff.artifact.type-and-status")
def test_artifacts_are_of_five_types_and_in_three_states(fabric: Fabric) -> None:
    top = fabric.create("Whole").task_id
    for number, kind in enumerate(ARTIFACT_TYPES):
        status = ARTIFACT_STATUSES[number % 3]
        fabric.context_artifact(top, path=f"outputs/{kind}", type=kind, status=status)
    read = {one.path: (one.type, one.status) for one in fabric.context_show(top).artifacts}
    assert {kind for kind, _ in read.values()} == set(ARTIFACT_TYPES)
    assert {status for _, status in read.values()} == set(ARTIFACT_STATUSES)
    wrongs: list[dict[str, Any]] = [{"type": "picture"}, {"status": "obsolete"}, {"path": "../x"}]
    for wrong in (*wrongs, {"path": "file:///etc/passwd"}):
        with pytest.raises(InvalidInput) as refused:
            fabric.context_artifact(top, **{"path": "outputs/new"} | wrong)
        assert refused.value.code == "invalid"
    with pytest.raises(InvalidInput, match="keeps its type"):
        fabric.context_artifact(top, path="outputs/file", type="code")
    fabric.context_artifact(top, path="outputs/file", status="superseded")
    again = fabric.context_artifact(top, path="outputs/file", type="code")
    assert again.id not in {one.id for one in fabric.context_show(top).artifacts if one.status == "superseded"}


@requirement("handoff.locks.entry-fields")
def test_the_context_lists_the_files_in_progress_of_the_whole_tree(fabric: Fabric) -> None:
    top = fabric.create("Whole").task_id
    fabric.claim(top, agent="ada")
    child = handed_on(fabric, top, "ada", "bob")
    stranger = fabric.create("Other").task_id
    fabric.claim(stranger, agent="cem")
    fabric.lock("src/api.py", task_id=top, actor="ada")
    fabric.lock("docs", task_id=child, lock_type="shared", actor="bob")
    fabric.lock("elsewhere", task_id=stranger, actor="cem")
    files = fabric.context_show(child).context_variables.files_in_progress
    assert [(one.path, one.owner, one.lock_type) for one in files] == [
        ("docs", "bob", "shared"),
        ("src/api.py", "ada", "exclusive"),
    ]
    with pytest.raises(InvalidInput, match="exclusive, shared"):
        fabric.lock("src", task_id=top, lock_type="advisory", actor="ada")


@requirement("handoff.locks.write-needs-lock")
def test_a_write_is_permitted_and_recorded_only_under_a_lock(fabric: Fabric) -> None:
    task_id = fabric.create("Whole").task_id
    fabric.claim(task_id, agent="ada")

    def asked() -> tuple[str, str]:
        answer = fabric.preflight(task_id, point="write", subject="src/api.py", actor="ada")
        return answer.outcome, answer.stage

    assert asked() == ("blocked", "security")
    with pytest.raises(LockRequired):
        fabric.context_artifact(task_id, path="src/api.py", actor="ada")
    fabric.lock("src", task_id=task_id, lock_type="shared", actor="ada")
    assert asked() == ("blocked", "security")
    fabric.lock("src", task_id=task_id, actor="ada")
    assert asked()[0] == "proceed"
    fabric.context_artifact(task_id, path="src/api.py", actor="ada")
    assert fabric.preflight(task_id, point="write", subject="outputs/x.md", actor="ada").outcome == "proceed"


def test_every_store_finds_who_holds_what_until_the_run_ends(fabric: Fabric, store: Store) -> None:
    first, second = (fabric.create(f"Task {number}").task_id for number in range(2))
    run = fabric.claim(first, agent="ada").run_id
    fabric.claim(second, agent="bob")
    fabric.lock("src", task_id=first, actor="ada")

    def known() -> list[tuple[str, str]]:
        with store.unit(Scope(names=frozenset({"files"}))) as unit:
            within = [(name, lock.path) for name, locks in unit.file_locks().items() for lock in locks]
        assert within == [(task.id, lock.path) for task in store.locking() for lock in task.locks]
        return within

    assert known() == [(first, "src")]
    with pytest.raises(FileLocked) as refused:
        fabric.lock("src/api.py", task_id=second, actor="bob")
    assert refused.value.details["holder_run"] == run
    assert history(fabric, second, "file.refused")[0]["held"]["holder"] == "ada"
    listed = fabric.locks("src/api.py").locks
    assert [(one["path"], one["owner"], one["taskId"], one["runId"], one["state"]) for one in listed] == [
        ("src", "ada", first, run, "held")
    ]
    assert fabric.locks("docs").total == fabric.locks(agent="bob").total == 0
    fabric.complete(first, actor="ada")
    assert known() == []
    fabric.lock("src/api.py", task_id=second, actor="bob")
    with pytest.raises(StaleLease):
        fabric.lock("src", task_id=first, run=run)


def test_a_lost_holder_is_shown_as_such_and_makes_way(fabric: Fabric, clock: FakeClock) -> None:
    first, second = (fabric.create(f"Task {number}").task_id for number in range(2))
    fabric.claim(first, agent="ada")
    fabric.lock("src", task_id=first, actor="ada")
    clock.sleep(600)
    assert [one["state"] for one in fabric.locks().locks] == ["lost"]
    fabric.claim(second, agent="bob")
    fabric.lock("src", task_id=second, actor="bob")
    assert [(one["owner"], one["state"]) for one in fabric.locks().locks] == [("bob", "held")]
    assert fabric.get(first).locks == ()


def test_with_a_chart_only_those_who_take_part_write_and_its_orchestrator_writes_everywhere(
    store: Store, clock: FakeClock
) -> None:
    chart = chart_of(
        agents=[{"id": "ada", "team": "eng", "roles": ["dev"]}, {"id": "bob"}, {"id": "orc"}],
        teams=[{"id": "eng", "orchestrator": "orc"}],
    )
    fabric = Fabric(store, clock, Policy(), "pm", org=FixedChart(chart))
    task_id = fabric.create("Whole").task_id
    fabric.claim(task_id, agent="ada")
    fabric.context_set(task_id, variables={"a": 1}, actor="ada")
    fabric.context_set(task_id, variables={"b": 1}, scope="team:eng", actor="ada")
    with pytest.raises(NotAllowed):
        fabric.context_set(task_id, variables={"c": 1}, actor="bob")
    with pytest.raises(OutOfScope):
        fabric.context_set(task_id, variables={"c": 1}, scope="team:ops", actor="ada")
    fabric.context_set(task_id, variables={"a": 2}, actor="orc")
    assert custom(fabric, task_id) == {"a": 2, "b": 1}


@requirement("handoff.autonomy.risk-triggers-escalation")
def test_a_decision_above_the_agents_risk_waits_for_the_answer_of_an_escalation(store: Store, clock: FakeClock) -> None:
    chart = chart_of(
        agents=[
            {"id": "ada", "autonomy": {"level": 2, "maxRisk": "low"}, "escalatesTo": "lea"},
            {"id": "lea", "autonomy": {"level": 3, "maxRisk": "high"}},
        ]
    )
    fabric = Fabric(store, clock, Policy(maintainers=("pm",)), "pm", org=FixedChart(chart))
    task_id = fabric.create("Whole").task_id
    fabric.claim(task_id, agent="ada")

    def decide(text: str = "Drop the old table", risk: str = "medium") -> tuple[str, str | None]:
        made = fabric.context_decide(task_id, description=text, risk=risk, actor="ada")
        return made.state, made.handoff_id

    assert decide("Rename a variable", "low")[0] == "recorded"
    state, handoff_id = decide()
    assert state == "escalated"
    assert handoff_id is not None
    escalation = fabric.handoff_show(handoff_id)
    assert (escalation.type, escalation.to_agent, escalation.audit.risk_level) == ("escalation", "lea", "medium")
    assert escalation.audit.decision_rationale == "Drop the old table"
    assert decide() == ("escalated", handoff_id), "the same decision again begins no second one"
    made = fabric.context_show(task_id).context_variables.decisions_made
    assert [one.description for one in made] == ["Rename a variable"]
    fabric.handoff_accept(handoff_id, agent="lea", actor="lea")
    fabric.handoff_return(handoff_id, status="success", result="yes", agent="lea", actor="lea")
    if fabric.get(task_id).lease is None:
        fabric.claim(task_id, agent="ada")
    lease = fabric.get(task_id).lease
    assert lease is not None
    again = fabric.context_decide(task_id, description="Drop the old table", risk="medium", run=lease.run_id)
    assert (again.state, again.decision_id, again.made_by) == ("recorded", "D-2", "ada")
    other = fabric.context_decide(task_id, description="Drop another table", risk="medium", run=lease.run_id)
    assert (other.state, other.handoff_id != handoff_id) == ("escalated", True)
