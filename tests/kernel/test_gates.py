"""What gates read: every field that the conditions of a task's workflow name, and the owner; and whose run is ended."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.call import Caller
from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.model import Policy
from aof.org.model import Gate
from aof.testing import memory_fabric
from tests.kernel.test_callers import CHART, STRICT, ask, code, session, token

SECURITY = {
    "or": [
        {"eq": {"field": "metadata.touchesAuth", "value": True}},
        {"not": {"neq": {"field": "priority", "value": "high"}}},
    ]
}
CONDITIONAL = {
    "name": "secured",
    "hops": [
        {"id": "build", "role": "developer"},
        {"id": "security", "role": "reviewer", "dependsOn": ["build"], "condition": SECURITY},
        {"id": "ship", "role": "reviewer", "dependsOn": ["security"], "canReject": True},
    ],
}
TURNED_OFF: list[dict[str, Any]] = [
    {"metadata": {"touchesAuth": False}, "priority": "low"},
    {"metadata": {"touchesAuth": None}},
    {"priority": "normal"},
]
GIVEN: dict[str, Any] = {"workflow": "secured", "metadata": {"touchesAuth": True}, "priority": "high"}


def fabric_with(policy: Policy | None = None, *, chart: bool = True) -> Fabric:
    return memory_fabric(
        "own",
        policy=policy or Policy(maintainers=("own",)),
        org=CHART if chart else None,
        workflows=[CONDITIONAL],
    )


BOUND = pytest.mark.parametrize(("policy", "chart"), [(None, True), (STRICT, False)], ids=["chart", "strict"])


@BOUND
@pytest.mark.parametrize("change", TURNED_OFF)
def test_who_runs_a_task_does_not_change_what_a_condition_of_its_workflow_reads(
    change: dict[str, Any],
    policy: Policy | None,
    chart: bool,  # noqa: FBT001
) -> None:
    fabric = fabric_with(policy, chart=chart)
    for creator in ("own", "ada"):
        task_id = fabric.create("Log in", actor=creator, **GIVEN).task_id
        fabric.claim(task_id, agent="ada")
        for caller in (session("ada"), token("ada"), Caller("ada")):
            assert code(fabric, caller, "edit", taskId=task_id, **change) == "not_allowed"
        ask(fabric, session("ada"), "complete", taskId=task_id, outcome="complete")
        assert code(fabric, session("ada"), "edit", taskId=task_id, **change) == "not_allowed", "it has run it"
        hops = {hop["id"]: hop["status"] for hop in fabric.get(task_id).workflow["hops"]}
        assert hops == {"build": "done", "security": "ready", "ship": "waiting"}


@BOUND
def test_no_other_way_of_changing_a_field_leads_around_a_condition(policy: Policy | None, chart: bool) -> None:  # noqa: FBT001
    fabric = fabric_with(policy, chart=chart)
    task_id = fabric.create("Log in", **(GIVEN | {"priority": "low"})).task_id
    fabric.claim(task_id, agent="ada")
    fabric.edit(task_id, priority="high", actor="own")
    raised = fabric.store.head()
    (item,) = ask(fabric, session("ada"), "bulk", command="edit", taskIds=[task_id], changes={"priority": "low"}).items
    assert item.error.code == "not_allowed"
    assert code(fabric, session("ada"), "undo", seq=raised) == "not_allowed"
    assert fabric.get(task_id).priority == "high"


def test_a_workflow_that_has_not_begun_may_read_whatever_conditions_can_ask_for() -> None:
    fabric = fabric_with()
    task_id = fabric.create("Log in", agent="ada", metadata={"touchesAuth": True}).task_id
    fabric.edit(task_id, routing={"workflow": "secured"})
    for change in (*TURNED_OFF[:2], {"title": "Nothing to see"}, {"visibility": "background"}):
        assert code(fabric, session("ada"), "edit", taskId=task_id, **change) == "not_allowed"


def test_what_no_condition_reads_stays_the_workers() -> None:
    fabric = fabric_with()
    task_id = fabric.create("Log in", **GIVEN).task_id
    fabric.claim(task_id, agent="ada")
    changed = ask(fabric, session("ada"), "edit", taskId=task_id, title="Log in again", metadata={"notes": "x"})
    assert changed.updated_fields == ("title", "metadata")


@pytest.mark.parametrize("change", TURNED_OFF)
def test_the_creator_a_lead_and_a_maintainer_change_what_a_condition_reads(change: dict[str, Any]) -> None:
    for name in ("bob", "lea", "own"):
        fabric = fabric_with()
        task_id = fabric.create("Log in", actor="bob", **GIVEN).task_id
        fabric.claim(task_id, agent="ada")
        assert ask(fabric, session(name), "edit", taskId=task_id, **change).updated_fields


def test_without_a_chart_and_strict_identity_a_condition_is_anybodys() -> None:
    fabric = fabric_with(chart=False)
    task_id = fabric.create("Log in", **GIVEN).task_id
    fabric.claim(task_id, agent="ada")
    assert ask(fabric, session("ada"), "edit", taskId=task_id, priority="low").updated_fields


def test_a_priority_that_a_gate_of_the_charter_asks_for_is_not_the_workers_to_change() -> None:
    gates = (Gate(band="approval", scope=("complete priority:critical",)),)
    fabric = fabric_with(Policy(maintainers=("own",), gates=gates))
    task_id = fabric.create("Ship", priority="critical").task_id
    fabric.claim(task_id, agent="ada")
    assert code(fabric, session("ada"), "edit", taskId=task_id, priority="low") == "not_allowed"


@BOUND
@pytest.mark.parametrize("caller", [session("ada"), token("ada"), Caller("ada")])
def test_a_worker_does_not_make_itself_the_owner(caller: Caller, policy: Policy | None, chart: bool) -> None:  # noqa: FBT001
    fabric = fabric_with(policy, chart=chart)
    task_id = fabric.create("Work", agent="ada").task_id
    assert chart is False or code(fabric, caller, "edit", taskId=task_id, owner="ada") == "not_allowed"
    fabric.claim(task_id, agent="ada")
    assert code(fabric, caller, "edit", taskId=task_id, owner="ada") == "not_allowed"
    (item,) = ask(fabric, caller, "bulk", command="edit", taskIds=[task_id], changes={"owner": "ada"}).items
    assert item.error.code == "not_allowed"
    assert fabric.get(task_id).owner is None
    assert ask(fabric, session("own"), "edit", taskId=task_id, owner="bob").updated_fields == ("owner",)


HOLDS: list[tuple[str, dict[str, Any]]] = [("block", {"reason": "mine"}), ("pause", {}), ("pause", {"reason": "mine"})]


@BOUND
@pytest.mark.parametrize(("operation", "given"), HOLDS)
def test_only_leads_and_maintainers_block_a_task_under_anothers_lease(
    operation: str,
    given: dict[str, Any],
    policy: Policy | None,
    chart: bool,  # noqa: FBT001
) -> None:
    fabric = fabric_with(policy, chart=chart)
    for name in ("ada", "own", "lea", "bob"):
        task_id = fabric.create("Work", actor="ada", owner="ada").task_id
        fabric.claim(task_id, agent="bob")
        if name == "ada" or (name == "lea" and not chart):
            assert code(fabric, session(name), operation, taskId=task_id, **given) == "not_allowed"
            assert fabric.get(task_id).lease
        else:
            assert ask(fabric, session(name), operation, taskId=task_id, **given).status == "blocked"


@BOUND
@pytest.mark.parametrize("status", ["blocked", "deadletter"])
def test_an_update_does_not_end_the_run_of_another_hop(status: str, policy: Policy | None, chart: bool) -> None:  # noqa: FBT001
    fabric = fabric_with(policy, chart=chart)
    task_id = fabric.create("Log in", **GIVEN).task_id
    fabric.claim(task_id, agent="ada")
    assert code(fabric, session("bob"), "update", taskId=task_id, status=status) == "not_allowed"


def test_without_a_chart_and_strict_identity_anybody_blocks() -> None:
    fabric = fabric_with(chart=False)
    task_id = fabric.create("Work").task_id
    fabric.claim(task_id, agent="bob")
    assert ask(fabric, session("ada"), "block", taskId=task_id, reason="mine").status == "blocked"


def test_the_refusal_names_the_holder_and_a_call_that_works() -> None:
    fabric = fabric_with()
    task_id = fabric.create("Work", actor="ada").task_id
    fabric.claim(task_id, agent="bob")
    with pytest.raises(AofError) as refused:
        ask(fabric, session("ada"), "block", taskId=task_id, reason="mine")
    assert refused.value.details["holder"] == "bob"
    assert refused.value.call is not None
    assert refused.value.call.operation == "comment"
