"""What is said about a task: comments, and entries of its work log."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME
from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.model import STATUSES
from aof.runs.brief import brief, prime
from aof.tasks import body as tasks_body
from aof.tasks.body import TaskComment
from aof.testing import memory_fabric
from tests.support.command_line import Aof
from tests.support.room import Room
from tests.support.team import chart_of

# --- comments: by anybody, on any task, at any status; in its file, in the log, and wherever the task is shown


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


# --- the comments section: appended to, read back, and kept apart from the description and the work log


AT = "2026-03-02T09:00:00.000Z"
BODIES = (
    "",
    "Text\n",
    "Text\r\n\r\nmore\r\n",
    f"Text\n\n## Work Log\n\n- {AT} begun\n",
    "```\n## Comments\n```\n",
    "# A\n\n```\nopen",
)
words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]) | st.sampled_from("\n#-` ")).filter(
    str.strip
)


@given(st.lists(words, min_size=1, max_size=4), st.sampled_from(BODIES), st.sampled_from(["eve", "a2a:peer", "Anna M"]))
def test_what_was_said_is_read_back_and_the_rest_of_the_body_stays(said: list[str], body: str, author: str) -> None:
    after = body
    for text in said:
        after = tasks_body.add_comment(after, AT, author, text)
    found = tasks_body.comments_of(after)
    assert [(one.at, one.by) for one in found] == [(AT, author)] * len(said)
    lines = [[line.strip() for line in text.strip().splitlines()] for text in said]
    assert [[line.strip() for line in one.text.splitlines()] for one in found] == lines
    assert tasks_body.description(after).rstrip() == tasks_body.description(body).rstrip()
    logged = tasks_body.append(after, AT, "later")
    assert tasks_body.comments_of(logged) == found


def test_what_a_person_wrote_into_the_section_is_a_comment_without_an_author() -> None:
    body = f"## Comments\n\n- {AT} eve: signed\n  and more\n\n- looks good to me\nfree text\n\n## Notes\n\n- mine\n"
    assert tasks_body.comments_of(body) == (
        TaskComment(at=AT, by="eve", text="signed\nand more"),
        TaskComment(text="looks good to me"),
        TaskComment(text="free text"),
    )


@pytest.mark.parametrize(
    "new", ["New text", "New text\n\n## Comments\n\n- forged\n", "New text\n\n## Work Log\n\n- mine\n"]
)
def test_a_new_body_and_a_new_description_keep_the_comments(new: str) -> None:
    body = tasks_body.add_comment(tasks_body.append("Old\n", AT, "begun"), AT, "eve", "wait")
    replaced = tasks_body.with_comments_of(body, new)
    assert replaced.startswith("New text\n\n")
    assert tasks_body.comments_of(replaced) == tasks_body.comments_of(body)
    assert tasks_body.with_comments_of(replaced, new) == replaced
    described = tasks_body.with_description(body, new)
    assert described == f"New text\n\n## Work Log\n\n- {AT} begun\n\n## Comments\n\n- {AT} eve: wait\n"


def test_an_empty_new_body_keeps_nothing_but_the_comments() -> None:
    body = tasks_body.add_comment("Old\n", AT, "eve", "wait")
    assert tasks_body.with_comments_of(body, "") == f"## Comments\n\n- {AT} eve: wait\n"
    assert tasks_body.with_comments_of("Old\n", "") == ""


# --- the one work log section: appended to, never doubled, never confused with code


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("", f"## Work Log\n\n- {AT} x\n"),
        ("Text", f"Text\n\n## Work Log\n\n- {AT} x\n"),
        ("Text\n", f"Text\n\n## Work Log\n\n- {AT} x\n"),
        ("## Work Log\n", f"## Work Log\n\n- {AT} x\n"),
        ("## Work Log  \n\n- a\n", f"## Work Log  \n\n- a\n- {AT} x\n"),
        ("A\n\n## Work Log\n\n- a\n\n## Notes\n\nmine\n", f"A\n\n## Work Log\n\n- a\n- {AT} x\n\n## Notes\n\nmine\n"),
        ("## Work Log\n- a\n# Next\n", f"## Work Log\n- a\n- {AT} x\n\n# Next\n"),
    ],
)
def test_an_entry_stands_at_the_end_of_the_section(body: str, result: str) -> None:
    assert tasks_body.append(body, AT, "x") == result


def test_the_lines_of_an_entry_stay_in_its_list_item() -> None:
    body = tasks_body.append("", AT, "one\r\n## two\rthree\n```")
    assert body.splitlines()[2:] == [f"- {AT} one", "  ## two", "  three", "  ```"]
    assert tasks_body.append(body, AT, "later").endswith(f"  ```\n- {AT} later\n")


@pytest.mark.parametrize(
    "code",
    [
        "```\n## Work Log\n```\n",
        "```md\n## Work Log\n```\n",
        "~~~\n## Work Log\n~~~\n",
        "````\n```\n## Work Log\n````\n",
    ],
)
@pytest.mark.parametrize("before", ["", "Text\n\n"])
def test_a_heading_within_code_is_no_section(code: str, before: str) -> None:
    body = tasks_body.append(before + code, AT, "x")
    assert body == f"{before}{code}\n## Work Log\n\n- {AT} x\n"
    assert tasks_body.append(body, AT, "y") == f"{body}- {AT} y\n"


def test_a_heading_within_code_does_not_end_the_section() -> None:
    body = "## Work Log\n\n- a\n\n```sh\n# a comment\n```\n"
    assert tasks_body.append(body, AT, "x") == f"{body}- {AT} x\n"


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    body = "```\ncode\n"
    for number in range(3):
        body = tasks_body.append(body, AT, str(number))
    assert body.count("## Work Log") == 1


def test_windows_line_ends_are_understood_and_kept() -> None:
    body = "Text\r\n\r\n## Work Log\r\n\r\n- a\r\n"
    assert tasks_body.append(body, AT, "x") == f"{body}- {AT} x\r\n"
    assert tasks_body.description(body) == "Text\r\n\r\n"


@given(
    body=st.lists(st.sampled_from(["a", "#", " ", "-", "\n", "\r\n", "```", "~~~", "## Work Log"]), max_size=30).map(
        "".join
    ),
    texts=st.lists(st.text(max_size=30), min_size=1, max_size=4),
)
def test_appending_keeps_what_was_there_and_makes_one_section(body: str, texts: list[str]) -> None:
    grown = tasks_body.append(body, AT, "first")
    headings = grown.count("## Work Log")
    for text in texts:
        before, grown = grown, tasks_body.append(grown, AT, text.replace("## Work Log", ""))
        assert len(grown) > len(before)
        kept = iter(grown)
        assert all(char in kept for char in before.replace("\r", "").replace("\n", "")), (
            "a person's text is never changed"
        )
    assert grown.count("## Work Log") == headings


@given(text=st.text(st.sampled_from(list("ab# \n")), max_size=30))
def test_setting_the_same_description_again_changes_nothing(text: str) -> None:
    body = tasks_body.append("Old\n", AT, "entry")
    once = tasks_body.with_description(body, text)
    assert tasks_body.with_description(once, text) == once
    assert tasks_body.with_description(once, tasks_body.description(once)) == once
    assert once.endswith(f"## Work Log\n\n- {AT} entry\n")


def test_a_body_ends_with_a_newline_unless_it_is_empty() -> None:
    assert [tasks_body.ended(text) for text in ("", "a", "a\n")] == ["", "a\n", "a\n"]
