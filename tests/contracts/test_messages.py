"""Messages, remarks and handoffs on every store."""

from __future__ import annotations

import pytest

from aof.api.fabric import Fabric
from aof.kernel.events import Draft
from aof.runs.model import RunResult
from aof.store.port import Scope, ScopeTooNarrow, Store
from aof.testing import FakeClock
from tests.contracts.drafts import reading
from tests.support.messages import accepted, rejected, report, request, update

MISSING = "TASK-2026-03-02-404"


def outcomes(fabric: Fabric, *messages: object) -> list[str]:
    return [sent.reason or sent.outcome for sent in fabric.send(*messages)]


def test_a_remark_needs_neither_a_task_nor_a_lock(store: Store, clock: FakeClock) -> None:
    for task_id in ("", MISSING):
        draft = Draft(type="protocol.message.rejected", task_id=task_id, payload={"reason": "invalid_json"})
        with store.unit(Scope()) as unit:
            (event,) = unit.commit((draft,), actor="pm", agent=None, now=clock.now())
        assert event.task_id == task_id
    assert [event.seq for event in store.events()] == [1, 2]
    assert [event.seq for event in store.events(task_id=MISSING)] == [2]
    assert store.ids("404") == ()
    assert store.reserve_id(clock.now()).endswith("-001")


def test_what_changes_a_task_needs_its_lock(store: Store, clock: FakeClock) -> None:
    for kind, payload in (("task.noted", {}), ("delegation.accepted", {"handoffId": "HO-2026-03-02-404-1"})):
        with store.unit(Scope()) as unit, pytest.raises(ScopeTooNarrow):
            unit.commit((Draft(type=kind, task_id=MISSING, payload=payload),), actor="pm", agent=None, now=clock.now())


def test_a_remark_about_a_task_leaves_the_task_as_it_is(fabric: Fabric) -> None:
    task_id = fabric.create("Write").task_id
    fabric.claim(task_id, agent="ada")
    before = fabric.get(task_id)
    assert outcomes(fabric, report(task_id, "bob"), report(task_id) | {"type": "x.y"}, report(MISSING)) == [
        "not_lease_holder",
        "unknown_type",
        "task_not_found",
    ]
    assert fabric.get(task_id) == before
    assert fabric.list().tasks[0].id == task_id


def test_a_report_is_kept_and_carried_out_at_the_end_of_the_session(fabric: Fabric) -> None:
    task_id = fabric.create("Write").task_id
    run = fabric.claim(task_id, agent="ada").run_id
    assert outcomes(fabric, report(task_id, deliverables=["a.md"]), report(task_id, deliverables=["a.md"])) == [
        "accepted",
        "noop",
    ]
    with fabric.store.unit(reading(task_id)) as unit:
        result = unit.result(task_id)
    assert isinstance(result, RunResult)
    assert (result.run_id, result.deliverables, result.blockers) == (run, ("a.md",), ())
    assert [one.to_status for one in fabric.session_end()] == ["review"]
    assert fabric.session_end() == ()


def test_a_handoff_is_a_record_that_goes_through_its_states(fabric: Fabric) -> None:
    parent, child = (fabric.create(title).task_id for title in ("Above", "Below"))
    fabric.claim(parent, agent="ada")
    revisions = []
    for message, state in (
        (request(child, parent), "requested"),
        (accepted(child), "accepted"),
        (rejected(child), "rejected"),
    ):
        assert outcomes(fabric, message) == ["accepted"]
        (handoff,) = fabric.handoff_list(task=child)
        with fabric.store.unit(reading(child)) as unit:
            assert unit.handoffs(child) == (handoff,)
            assert unit.handoffs(parent) == ()
        assert handoff.state == state
        assert fabric.handoff_show(handoff.id) == handoff
        revisions.append(handoff.rev)
    assert revisions == sorted(set(revisions))
    assert fabric.get(child).status == "blocked"
    assert fabric.get(child).metadata["delegationDepth"] == 1


def test_an_update_moves_or_is_noted(fabric: Fabric) -> None:
    task_id = fabric.create("Write").task_id
    (sent,) = fabric.send(update(task_id, status="in-progress"))
    assert isinstance(sent.run_id, str)
    assert sent.run_id.startswith(f"RUN{task_id[4:]}-1-")
    assert outcomes(fabric, update(task_id, progress="half"), update(task_id, status="blocked", notes="n")) == [
        "accepted",
        "accepted",
    ]
    task = fabric.get(task_id)
    assert task.status == "blocked"
    assert "Progress: half" in task.body
