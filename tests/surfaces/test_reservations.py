"""A task with an agent is reserved for that agent: the same on every surface, with and without an org chart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import NotAllowed, NothingReady, Reserved
from tests.support.service import definition
from tests.support.waiting import eventually
from tests.surfaces.doors import Door, Refusal, answer_of, refusal_of, room

CHART = {
    "schemaVersion": 1,
    "agents": [{"id": name, "roles": ["developer"]} for name in ("ada", "bob", "tester")] + [{"id": "lee"}],
    "teams": [{"id": "eng", "lead": "lee"}],
}


def test_a_reserved_task_is_given_to_nobody_else_until_it_is_assigned_anew(door: Door) -> None:
    task_id = door.elsewhere.create("For bob", agent="bob", priority="critical").task_id
    refused = door.ask("claim", task_id=task_id, agent="tester")
    assert isinstance(refused, Refusal)
    assert (refused.code, "reserved for bob" in refused.message) == ("reserved", True)
    reported = door.ask("complete", task_id=task_id, agent="tester") if door.name != "mcp" else refused
    assert isinstance(reported, Refusal)
    assert reported.code == "reserved"
    of_whom = {"agent": "bob"} if door.name == "mcp" else {}  # a session sees its own queue
    shown = {row["id"]: row.get("agent") for row in answer_of(door.ask("ready", limit=100, **of_whom))["tasks"]}
    assert shown[task_id] == "bob", "the queue says whom it is for"
    assert task_id not in {row["id"] for row in answer_of(door.ask("ready", agent="tester", limit=100))["tasks"]}
    for asked in (
        door.ask("assign", task_id=task_id, agent="tester"),
        door.ask("edit", task_id=task_id, clear=["agent"]),
    ):
        assert isinstance(asked, Refusal)
        assert asked.code == "not_allowed", "the caller is neither a maintainer nor its creator"
    door.elsewhere.assign(task_id, "tester")
    assert answer_of(door.ask("claim", task_id=task_id, agent="tester"))["taskId"] == task_id


def test_who_created_a_task_assigns_it_and_frees_it(door: Door) -> None:
    task_id = str(answer_of(door.ask("create", title="Mine", brief="x", agent="bob"))["taskId"])
    assigned = answer_of(door.ask("assign", task_id=task_id, agent="ada"))
    assert (assigned["taskId"], assigned["status"], assigned["agent"]) == (task_id, "ready", "ada")
    assert "agent" not in answer_of(door.ask("assign", task_id=task_id, nobody=True))
    assert door.elsewhere.get(task_id).routing.agent is None
    for wrong in ({}, {"agent": "ada", "nobody": True}):
        refusal_of(door.ask("assign", task_id=task_id, **wrong), "invalid")


def test_who_may_assign_a_task_can_steal_it_and_keeps_it(door: Door) -> None:
    foreign = door.elsewhere.create("For bob", agent="bob").task_id
    refusal_of(door.ask("claim", task_id=foreign, agent="tester", steal=True), "not_allowed")
    own = str(answer_of(door.ask("create", title="Mine", brief="x", agent="bob"))["taskId"])
    refused = refusal_of(door.ask("claim", task_id=own, agent="tester"), "reserved")
    if door.name != "python":
        for word in ("assign", "steal"):
            assert word in refused.hint
    run = answer_of(door.ask("claim", task_id=own, agent="tester", steal=True))["runId"]
    door.ask("release", task_id=own, run=run)
    assert door.elsewhere.get(own).routing.agent == "tester"


@pytest.fixture(params=["plain", "charted"])
def fabric(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fabric]:
    with room(tmp_path) as (root, found):
        if request.param == "charted":
            definition(root, "org/org-chart.yaml", CHART)
        yield found


def test_only_the_agent_itself_takes_it_and_it_may_give_it_away(fabric: Fabric) -> None:
    task_id = fabric.create("For bob", agent="bob").task_id
    ada, bob = fabric.as_actor("ada"), fabric.as_actor("bob")
    for call in (lambda: ada.claim(task_id, agent="ada"), lambda: ada.update(task_id, status="in-progress")):
        with pytest.raises(Reserved) as refused:
            call()
        assert refused.value.details["agent"] == "bob"
    with pytest.raises(NothingReady):
        ada.claim(agent="ada")
    for change in (lambda: ada.assign(task_id, "ada"), lambda: ada.edit(task_id, routing={"agent": "ada"})):
        with pytest.raises(NotAllowed):
            change()
    assert bob.assign(task_id, "ada").agent == "ada"
    assert ada.claim(agent="ada").task_id == task_id


def test_a_maintainer_takes_it_only_on_purpose(fabric: Fabric) -> None:
    task_id = fabric.as_actor("ada").create("For bob", agent="bob").task_id
    with pytest.raises(Reserved):
        fabric.claim(task_id, agent="elsewhere")
    assert fabric.claim(task_id, agent="elsewhere", steal=True).task_id == task_id


def test_the_reservation_outlives_release_failure_and_recovery(fabric: Fabric) -> None:
    task_id = fabric.create("For bob", agent="bob", max_attempts=9).task_id
    fabric.release(task_id, run=fabric.claim(task_id, agent="bob").run_id)
    fabric.fail(task_id, run=fabric.claim(task_id, agent="bob").run_id)
    fabric.retry(task_id, reason="again")
    fabric.claim(task_id, agent="bob", ttl=0.001)
    eventually(lambda: bool(fabric.recover()))
    fabric.retry(task_id, reason="again")
    with pytest.raises(Reserved):
        fabric.claim(task_id, agent="ada")
    assert fabric.claim(task_id, agent="bob").attempt == 4


def test_a_lead_of_the_chart_assigns_what_others_made(tmp_path: Path) -> None:
    with room(tmp_path) as (root, fabric):
        definition(root, "org/org-chart.yaml", CHART)
        task_id = fabric.create("For bob", agent="bob").task_id
        assert fabric.as_actor("lee").assign(task_id, "ada").agent == "ada"
