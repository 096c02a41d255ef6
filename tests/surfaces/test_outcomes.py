"""How a run or a hop ends, in whatever words an agent says it: the same on every surface, and one word in the log."""

from __future__ import annotations

from tests.support.service import workflow
from tests.support.workflows import hop, template
from tests.surfaces.doors import Door, Refusal, answer_of

COMPLETE = ("approved", "approve", "done", "completed", "success", "ok", "Complete")
NEEDS_REVIEW = ("rejected", "reject", "changes_requested", "changes-requested")


def _reported(door: Door, task_id: str) -> list[str]:
    """The outcomes that the log has of the task."""
    events = door.elsewhere.events(task_id=task_id)
    return [event.payload["result"]["outcome"] for event in events if event.type == "task.completed"]


def _gated(door: Door) -> str:
    workflow(door.root, template(hop("a"), hop("b", "a", canReject=True)))
    task_id = door.elsewhere.create("Gated", brief="x", workflow="flow").task_id
    door.elsewhere.complete(task_id, agent="ada", hop="a")
    door.elsewhere.claim(task_id, agent="bob")
    return task_id


def test_a_hop_without_an_outcome_is_complete(door: Door) -> None:
    task_id = _gated(door)
    assert answer_of(door.ask("complete", task_id=task_id, run=_run(door, task_id)))["status"] == "done"
    assert _reported(door, task_id) == ["done", "done"]


def _run(door: Door, task_id: str) -> str:
    return str(next(hop["lease"]["runId"] for hop in door.elsewhere.get(task_id).workflow["hops"] if "lease" in hop))


def test_other_words_for_an_outcome_are_understood_and_recorded_as_one(door: Door) -> None:
    for word in COMPLETE:
        task_id = _gated(door)
        done = answer_of(door.ask("complete", task_id=task_id, run=_run(door, task_id), outcome=word))
        assert (done["status"], _reported(door, task_id)) == ("done", ["done", "done"]), word
    for word in NEEDS_REVIEW:
        task_id = _gated(door)
        given = {"task_id": task_id, "run": _run(door, task_id), "outcome": word, "blockers": ["no test"]}
        assert answer_of(door.ask("complete", **given))["status"] == "ready", word
        assert _reported(door, task_id) == ["done", "needs_review"], word


def test_a_word_that_is_no_outcome_is_refused(door: Door) -> None:
    task_id = _gated(door)
    refused = door.ask("complete", task_id=task_id, run=_run(door, task_id), outcome="failed")
    assert isinstance(refused, Refusal)
    assert (refused.code, "'failed'" in refused.message) == ("outcome_required", True)
    assert _reported(door, task_id) == ["done"]
