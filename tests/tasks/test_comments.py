"""Comments: by anybody, on any task, at any status; in its file, in the log, and wherever the task is shown."""

from __future__ import annotations

import io
from typing import Any

import pytest

from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME
from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.model import STATUSES
from aof.runs.brief import brief, prime
from aof.testing import memory_fabric
from tests.support.command_line import Aof
from tests.support.room import Room
from tests.support.team import chart_of


def said(fabric: Fabric, task_id: str) -> list[tuple[Any, Any]]:
    """Authors and texts of all comments."""
    return [(one.get("by"), one["text"]) for one in fabric.show(task_id).get("comments", [])]


@pytest.mark.parametrize("status", STATUSES)
def test_anybody_comments_at_any_status_and_nothing_else_changes(room: Room, fabric: Fabric, status: str) -> None:
    task_id = room.task(status, brief="What to do.\n")
    before = fabric.get(task_id)
    fabric.as_actor("stranger").comment(task_id, "Have you seen this?\n\n# And this?")
    answer = fabric.comment(task_id, "Yes.", agent="eve")
    assert (answer.status, answer.comments) == (status, 2)
    after = fabric.get(task_id)
    assert (after.status, after.lease, after.retry, after.last_transition_at) == (
        before.status, before.lease, before.retry, before.last_transition_at,
    )  # fmt: skip
    assert said(fabric, task_id) == [("stranger", "Have you seen this?\n\n# And this?"), ("eve", "Yes.")]
    assert "\n## Comments\n" in room.file(task_id).read_text()
    events = [event for event in fabric.events(task_id=task_id) if event.type == "task.commented"]
    assert [(event.actor, event.agent, event.payload["by"]) for event in events] == [
        ("stranger", None, "stranger"),
        ("pm", "eve", "eve"),
    ]
    assert said(room.reopen(), task_id) == said(fabric, task_id)


def test_an_archived_task_and_one_that_is_being_cancelled_take_comments(room: Room, fabric: Fabric) -> None:
    archived, stopping = room.task("done"), room.task()
    fabric.archive(archived)
    fabric.claim(stopping, agent="ada", worker="process")
    fabric.cancel(stopping)
    for task_id in (archived, stopping):
        fabric.comment(task_id, "Late, but still")
        assert said(fabric, task_id) == [("pm", "Late, but still")]
    assert room.file(archived).parts[-3] == "archive"
    assert [row.id for row in fabric.list().tasks] == [stopping]


def test_the_holder_works_on_while_others_comment_and_cannot_take_comments_away(room: Room, fabric: Fabric) -> None:
    task_id = room.task()
    run = fabric.claim(task_id, agent="ada")
    fabric.as_actor("eve").comment(task_id, "Mind the gap")
    fabric.update(
        task_id, body="# My notes\n\n## Comments\n\n- 2026-03-02T09:00:00.000Z eve: all is well\n", run=run.run_id
    )
    assert said(fabric, task_id) == [("eve", "Mind the gap")]
    assert fabric.get(task_id).body.startswith("# My notes\n")
    fabric.edit(task_id, description="Rewritten")
    assert said(fabric, task_id) == [("eve", "Mind the gap")]
    fabric.complete(task_id, summary="done", run=run.run_id)
    assert said(fabric, task_id) == [("eve", "Mind the gap")]
    assert "done" in fabric.get(task_id).body


def test_the_same_comment_with_the_same_key_is_made_once(fabric: Fabric) -> None:
    task_id = fabric.create("One").task_id
    assert [fabric.comment(task_id, "Once", key="c1").comments for _ in range(2)] == [1, 1]
    with pytest.raises(AofError) as refusal:
        fabric.comment(task_id, "Other", key="c1")
    assert refusal.value.code == "key_conflict"


@pytest.mark.parametrize(
    ("text", "code"), [("", "invalid"), (" \n", "invalid"), ("x" * 10_001, "payload_too_large"), ("\x00", "invalid")]
)
def test_a_comment_that_says_nothing_or_too_much_is_refused(fabric: Fabric, text: str, code: str) -> None:
    task_id = fabric.create("One").task_id
    with pytest.raises(AofError) as refusal:
        fabric.comment(task_id, text)
    assert refusal.value.code == code
    assert said(fabric, task_id) == []


def test_a_comment_written_into_the_file_is_shown_and_survives_the_next_one(room: Room, fabric: Fabric) -> None:
    task_id = room.task()
    fabric.comment(task_id, "First")
    path = room.file(task_id)
    path.write_text(path.read_text() + "- by hand\n")
    fabric.comment(task_id, "Third")
    assert said(fabric, task_id) == [("pm", "First"), (None, "by hand"), ("pm", "Third")]


def test_a_description_edited_by_hand_meets_a_comment_and_both_stay(room: Room, fabric: Fabric) -> None:
    task_id = room.task(brief="One\n\nTwo\n")
    path = room.file(task_id)
    theirs = path.read_text().replace("One", "1")
    fabric.comment(task_id, "Meanwhile")
    path.write_text(theirs)
    assert said(fabric, task_id) == [("pm", "Meanwhile")]
    assert "\n1\n\nTwo\n" in path.read_text()


def test_comments_are_in_the_brief_the_primer_and_the_snapshot(room: Room, fabric: Fabric) -> None:
    task_id = room.task()
    fabric.comment(task_id, "The key is in the vault")
    run = fabric.claim(task_id, agent="ada")
    fabric.comment(task_id, "mine", agent="ada")
    assert "pm: The key is in the vault" in brief(fabric.get(task_id), run.run_id, ())
    text = prime(fabric, "ada")
    assert f"- {task_id} pm: The key is in the vault" in text
    (shown,) = fabric.snapshot()["tasks"]
    assert [(one["by"], one["text"]) for one in shown["comments"]] == [
        ("pm", "The key is in the vault"),
        ("ada", "mine"),
    ]


def test_a_comment_comes_from_standard_input(aof: Aof, fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = fabric.create("One").task_id
    monkeypatch.setattr("sys.stdin", io.StringIO("two\nlines\n"))
    assert aof("comment", task_id, "-").data["comments"] == 1
    assert said(fabric, task_id) == [("tester", "two\nlines")]
    assert aof("comment", task_id).code == 2
    assert aof("comment", "999", "x").code == 3


def test_a_worker_comments_on_the_tasks_of_others_under_its_own_name_only() -> None:
    chart = chart_of(agents=[{"id": "ada"}, {"id": "bob"}, {"id": "lea"}], teams=[{"id": "eng", "lead": "lea"}])
    fabric = memory_fabric("lea", org=chart)
    task_id = fabric.create("Of ada", agent="ada").task_id
    fabric.claim(task_id, agent="ada")
    bob = fabric.as_actor("bob")
    with pytest.raises(AofError) as refusal:
        bob.edit(task_id, title="Of bob")
    assert refusal.value.code == "not_allowed"
    bob.comment(task_id, "I could help")
    operation = BY_NAME["comment"]
    token = Caller("bob", "agent", proven=True, scope="work")
    with pytest.raises(AofError) as forged:
        perform(fabric, operation, parameters(operation, {"taskId": task_id, "text": "No", "agent": "ada"}), token)
    assert forged.value.code == "actor_mismatch"
    with pytest.raises(AofError) as reading:
        perform(
            fabric,
            operation,
            parameters(operation, {"taskId": task_id, "text": "No"}),
            Caller("bob", "reader", proven=True, scope="read"),
        )
    assert reading.value.code == "not_allowed"
    assert said(fabric, task_id) == [("bob", "I could help")]
