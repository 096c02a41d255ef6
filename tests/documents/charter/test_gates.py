"""The fabric obeys the gates of the session charter."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import ApprovalRequired
from aof.service.bootstrap import open_fabric
from aof.testing import FakeClock

GATES = {"delayed": ["tag:refactor"], "delay_time": "30m", "approval": ["tag:release", "risk:high", "cancel"]}


@pytest.fixture
def fabric(opened: Fabric) -> Fabric:
    """A fabric of `pm` with a charter."""
    opened.charter_init(**GATES)  # type: ignore[arg-type]
    return opened


def completed(fabric: Fabric, *tags: str, **given: object) -> str:
    """A task that an agent has completed, and that nobody wanted reviewed."""
    task_id = fabric.create("Work", tags=list(tags), metadata={"reviewRequired": False}, **given).task_id  # type: ignore[arg-type]
    worker = fabric.as_actor("ada")
    worker.claim(task_id, agent="ada")
    worker.complete(task_id, summary="done")
    return task_id


def test_completed_work_behind_an_approval_gate_waits_for_a_person(fabric: Fabric) -> None:
    plain, released, risky = (
        completed(fabric),
        completed(fabric, "release"),
        completed(fabric, profile={"risk": "high"}),
    )
    assert [fabric.get(one).status for one in (plain, released, risky)] == ["done", "review", "review"]
    with pytest.raises(ApprovalRequired, match="only a person accept") as refused:
        fabric.as_actor("bob").approve(released)
    assert refused.value.call is not None
    with pytest.raises(ApprovalRequired):
        fabric.as_actor("bob").update(released, status="done")
    assert fabric.get(released).status == "review"
    assert fabric.approve(released).status == "done"


def test_work_behind_notify_and_delay_is_accepted_once_nobody_objected(fabric: Fabric, clock: FakeClock) -> None:
    quiet, objected = completed(fabric, "refactor"), completed(fabric, "refactor")
    assert fabric.get(quiet).status == fabric.get(objected).status == "review"
    clock.sleep(29 * 60)
    assert fabric.tick().actions == ()
    fabric.as_actor("bob").reject(objected, blockers=["breaks the API"])
    clock.sleep(61)
    (action,) = [one for one in fabric.tick().actions if one.action == "gate_elapsed"]
    assert action.task_id == quiet
    assert fabric.get(quiet).status == "done"
    assert fabric.get(objected).status == "ready"


def test_a_review_that_somebody_asked_for_is_never_over_by_time(fabric: Fabric, clock: FakeClock) -> None:
    task_id = fabric.create("Work", tags=["refactor"]).task_id
    worker = fabric.as_actor("ada")
    worker.claim(task_id, agent="ada")
    worker.complete(task_id)
    clock.sleep(86_400)
    fabric.tick()
    assert fabric.get(task_id).status == "review"


def test_an_action_that_needs_approval_is_left_to_a_person(fabric: Fabric) -> None:
    task_id = fabric.create("Work").task_id
    with pytest.raises(ApprovalRequired, match="only a person cancel"):
        fabric.as_actor("ada").cancel(task_id, reason="not wanted")
    with pytest.raises(ApprovalRequired):
        fabric.as_actor("ada").update(task_id, status="cancelled", reason="not wanted")
    assert fabric.cancel(task_id, reason="not wanted").status == "cancelled"


def test_an_amended_gate_holds_at_once_also_in_another_process(root: Path, fabric: Fabric, clock: FakeClock) -> None:
    with open_fabric(root, actor="pm", clock=clock) as other:
        assert other.get(completed(other, "docs")).status == "done"
        fabric.charter_amend(approval=["tag:docs"], reason="docs are law")
        assert other.get(completed(other, "docs")).status == "review"
        assert other.get(completed(other, "release")).status == "done"
    (root / "SESSION_CHARTER.md").unlink()
    assert fabric.get(completed(fabric, "docs")).status == "done"


def test_gates_changed_by_hand_and_those_for_people_only_are_reported(root: Path, fabric: Fabric) -> None:
    fabric.charter_amend(approval=["schema changes", "tag:release"], reason="people decide")
    codes = [one.code for one in fabric.charter_check().problems]
    assert "gate_unenforced" in codes
    assert "gates_changed" not in codes
    path = root / "SESSION_CHARTER.md"
    whole = path.read_text()
    path.write_text(whole.replace("schema changes, tag:release", "none"))
    report = fabric.charter_check()
    assert ("changed_by_hand", False) in [(one.code, report.ok) for one in report.problems]
    assert path.read_text() == whole
    assert "| Approval Required | none |" in (root / "SESSION_CHARTER_EDITS.md").read_text()
