"""An agent that has delegated ends its run and is given the task again with the results: the same on every surface."""

from __future__ import annotations

from typing import Any

from tests.surfaces.doors import Door, Refusal, answer_of


def test_a_parent_waits_for_its_children_and_its_next_run_sees_their_results(door: Door) -> None:

    def asked(operation: str, **given: Any) -> dict[str, Any]:
        return answer_of(door.ask(operation, **given))

    parent = door.elsewhere.create("Token refresh", review=False).task_id
    run = asked("claim", task_id=parent, agent="tester")["runId"]
    made = {
        str(asked("create", title="Test it", brief="x", parent_id=parent, key=f"tests of {parent}")["taskId"])
        for _ in range(2)
    }
    assert len(made) == 1, "a retried agent finds the task that it made"
    child = made.pop()

    released = asked("release", task_id=parent, run=run, wait_for_children=True)
    assert (released["status"], list(released["waitsFor"])) == ("ready", [child])
    refused = door.ask("claim", task_id=parent, agent="tester")
    assert isinstance(refused, Refusal)
    assert (refused.code, child in refused.message) == ("not_ready", True)
    held = asked("ready", explain=True)["notReady"]
    assert [child in row["reason"] for row in held if row["id"] == parent] == [True]

    door.elsewhere.complete(child, summary="12 cases pass", agent="qa")
    door.elsewhere.approve(child)
    again = asked("claim", task_id=parent, agent="tester")
    (told,) = asked("show", task_id=parent)["children"]["tasks"]
    assert (told["taskId"], told["status"], told["agent"], told["summary"]) == (child, "done", "qa", "12 cases pass")
    assert asked("complete", task_id=parent, run=again["runId"], summary="it works")["status"] == "done"


def test_a_delegation_without_a_timeout_has_that_of_the_settings(door: Door) -> None:
    task_id = door.elsewhere.create("Token refresh").task_id
    given = {"from_agent": "tester", "to": ["bob"], "reason": "needs a test"}
    started = answer_of(door.ask("handoff_new", type="delegation", task_id=task_id, **given))
    shown = door.elsewhere.handoff_show(started["handoffId"])
    assert (shown.return_protocol.expected, shown.return_protocol.timeout) == (True, "3600000ms")
