"""What a person writes into a task's file becomes part of the log, and nothing of it is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aof.errors import AlreadyClaimed, NotLeaseHolder, NotReady
from aof.store.files import frontmatter
from tests.support.desk import Desk
from tests.support.disks import Step, SteppingDisk
from tests.support.invariants import check_invariants


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ('title: "Write it"', "title: Write it well", "title", "Write it well"),
        ('priority: "normal"', "priority: high", "priority", "high"),
        ("A brief.", "A longer brief.", "body", "A longer brief.\n"),
        ("---\n\nA", 'metadata: {"size": "xl"}\n---\n\nA', "metadata", {"size": "xl"}),
        ("---\n\nA", "routing:\n  agent: ada\n  tags: [api]\n---\n\nA", "routing.tags", ("api",)),
        ("---\n\nA", "sprint: 7\n---\n\nA", "extra", {"sprint": 7}),
        ("---\n\nA", 'acceptance: ["it runs"]\n---\n\nA', "acceptance", ("it runs",)),
    ],
)
def test_an_edit_is_taken_in_by_the_next_command(desk: Desk, old: str, new: str, field: str, value: Any) -> None:
    task_id = desk.create()
    desk.change(task_id, old, new)
    assert desk.state(task_id) == "stale"
    task: Any = desk.fabric.get(task_id)
    for name in field.split("."):
        task = getattr(task, name)
    assert task == value
    event = desk.last(task_id)
    assert (event.type, event.actor) == ("task.updated", "hand")
    assert desk.state(task_id) is None
    check_invariants(desk.root, edited=True)


def test_an_edit_is_taken_in_before_a_command_is_decided(desk: Desk) -> None:
    blocker, task_id = desk.create(), desk.create()
    desk.change(task_id, "---\n\nA", f'dependsOn: ["{blocker}"]\n---\n\nA')
    with pytest.raises(NotReady):
        desk.fabric.claim(task_id, agent="ada")
    assert desk.fabric.get(task_id).depends_on == (blocker,)


def test_lists_show_an_edit_as_stale_and_write_nothing(desk: Desk) -> None:
    task_id = desk.create()
    desk.change(task_id, "A brief.", "Mine.")
    before = desk.contents()
    for answer in (desk.fabric.list(), desk.fabric.ready(), desk.fabric.status()):
        assert [row.state for row in answer.tasks] == ["stale"]
    assert desk.contents() == before


def test_a_value_that_only_changes_its_type_is_an_edit(desk: Desk) -> None:
    task_id = desk.create(metadata={"flag": 1})
    desk.change(task_id, '{"flag":1}', '{"flag":true}')
    assert desk.fabric.get(task_id).metadata["flag"] is True


PERSONAL = """\
---
# Read me first: this file is mine.
schemaVersion: 1
id: {id}
title:   'Write it'     # the name
status: ready
priority: high   # very

rev: {rev}
createdAt: "{at}"
updatedAt: "{at}"
lastTransitionAt: "{at}"
createdBy: tester
sprint: 7
notes:
  - one   # kept
  - "two"
links_of_mine: {{a: 1,  b:   [x, y]}}
---

# My own heading

Some  text with  odd   spacing\t
  and a trailing line
"""


def test_comments_unknown_keys_and_own_text_survive_every_later_rewrite(desk: Desk) -> None:
    task_id = desk.create()
    task = desk.fabric.get(task_id)
    mine = PERSONAL.format(id=task_id, rev=task.rev, at=task.created_at)
    desk.file(task_id).write_text(mine)
    run = desk.fabric.claim(task_id, agent="ada").run_id
    desk.fabric.progress(task_id, run=run, agent="ada", text="half way")
    desk.fabric.release(task_id, run=run, agent="ada")
    desk.fabric.edit(task_id, title="Another")
    desk.reopen()
    run = desk.fabric.claim(task_id, agent="bob").run_id
    desk.fabric.complete(task_id, run=run, agent="bob", summary="done")
    desk.fabric.approve(task_id)
    text = desk.file(task_id, "done").read_text()
    lines = text.splitlines()
    for line in mine.splitlines():
        if not line.startswith(("title", "status", "rev", "updatedAt", "lastTransitionAt")):
            assert line in lines, line
    assert text.startswith("---\n# Read me first: this file is mine.\nschemaVersion: 1\n")
    assert 'title: "Another"     # the name\n' in text
    assert mine.split("---\n", 2)[2] in text, "the body is untouched, byte for byte"
    assert desk.fabric.get(task_id).extra["notes"] == ["one", "two"]
    check_invariants(desk.root, edited=True)


def test_a_file_with_windows_line_ends_stays_readable_whatever_we_write_into_it(desk: Desk) -> None:
    task_id = desk.create()
    path = desk.file(task_id)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n").replace(b"---\r\n", b"# mine\r\n---\r\n", 2)[8:])
    assert path.read_bytes().startswith(b"---\r\n")
    desk.fabric.edit(task_id, metadata={"size": "xl"})
    assert desk.fabric.get(task_id).metadata == {"size": "xl"}
    assert b"# mine\r\n" in path.read_bytes()
    long = {"k" * 1_100: 1}
    text = "mine: yes\r\n" + frontmatter.rewrite("# c\r\n", {"metadata": long})
    assert frontmatter.read(text)["metadata"] == long, "what YAML could not read is read as what we write"
    check_invariants(desk.root, edited=True)


def test_comments_that_are_taken_out_stay_out(desk: Desk) -> None:
    task_id = desk.create()
    desk.change(task_id, 'priority: "normal"', 'priority: "normal"  # urgent?')
    desk.fabric.get(task_id)
    assert "# urgent?" in desk.file(task_id).read_text()
    desk.change(task_id, "  # urgent?", "")
    desk.fabric.get(task_id)
    desk.fabric.edit(task_id, title="Another")
    assert "#" not in desk.file(task_id).read_text()
    assert desk.fabric.get(task_id).layout is None
    check_invariants(desk.root, edited=True)


def test_a_revision_is_not_a_persons_to_change(desk: Desk) -> None:
    task_id = desk.create()
    before = desk.fabric.get(task_id)
    desk.change(task_id, "rev: 3", "rev: 99")
    after = desk.fabric.get(task_id)
    assert (after.status, after.created_at) == (before.status, before.created_at)
    assert after.rev < 99
    check_invariants(desk.root, edited=True)


def test_a_number_that_a_person_makes_up_does_not_run_away_with_the_log(desk: Desk) -> None:
    task_id = desk.create()
    desk.change(task_id, "rev: 3", "rev: 999999999999999999")
    desk.reopen(boot_id=lambda: "after a restart")
    fresh = desk.create()
    assert desk.fabric.get(fresh).rev < 100
    assert desk.fabric.get(task_id).rev == 3
    assert desk.fabric.doctor().ok


def test_a_lease_never_comes_from_a_person(desk: Desk) -> None:
    task_id = desk.create()
    run = desk.fabric.claim(task_id, agent="ada").run_id
    desk.change(task_id, '"agent":"ada"', '"agent":"eve"')
    with pytest.raises(NotLeaseHolder):
        desk.fabric.progress(task_id, agent="eve", text="mine now")
    desk.fabric.progress(task_id, agent="ada", run=run, text="still mine")
    assert '"agent":"eve"' in desk.file(task_id, "in-progress").with_name(f"{task_id}.md.conflict").read_text()
    (taken,) = [event for event in desk.events(task_id) if event.actor == "hand"]
    assert taken.payload["conflicts"] == ["lease"]


def test_another_id_in_the_file_is_refused(desk: Desk) -> None:
    task_id = desk.create()
    desk.change(task_id, f'id: "{task_id}"', 'id: "TASK-2026-03-02-077"')
    assert "TASK-2026-03-02-077" in desk.refused(task_id).message
    assert desk.state(task_id) == "stale"


def save_after_a_claim(desk: Desk, task_id: str, change: Callable[[str], str]) -> str:
    """An editor has the file of a ready task open, an agent claims it, the editor saves."""
    path = desk.file(task_id)
    opened = path.read_text()
    run = desk.fabric.claim(task_id, agent="ada").run_id
    desk.fabric.progress(task_id, run=run, agent="ada", text="began")
    path.write_text(change(opened))
    assert len(desk.files(task_id)) == 2
    return run


def test_an_edit_of_an_older_version_is_merged(desk: Desk) -> None:
    task_id = desk.create(brief="First.\n\nSecond.\n\nThird.\n")
    run = save_after_a_claim(
        desk, task_id, lambda text: text.replace("First.", "First of all.").replace('"Write it"', '"Write it down"')
    )
    task = desk.fabric.get(task_id)
    assert (task.status, task.title) == ("in-progress", "Write it down")
    assert task.body.startswith("First of all.\n\nSecond.\n\nThird.\n")
    assert "began" in task.body
    assert task.lease is not None
    assert task.lease.run_id == run
    assert desk.files(task_id) == [desk.file(task_id, "in-progress")]
    desk.fabric.complete(task_id, run=run, agent="ada", summary="done")
    check_invariants(desk.root, edited=True)


def test_text_above_a_work_log_that_we_began_meanwhile_is_merged(desk: Desk) -> None:
    task_id = desk.create(brief="")
    save_after_a_claim(desk, task_id, lambda text: f"{text}\nWhat I want.\n")
    body = desk.fabric.get(task_id).body
    assert body.startswith("What I want.\n\n## Work Log\n")
    assert "began" in body
    assert not list(desk.root.rglob("*.conflict"))


def test_in_a_conflict_the_log_wins_and_the_persons_copy_is_kept_beside(desk: Desk) -> None:
    task_id = desk.create()
    path = desk.file(task_id)
    opened = path.read_text()
    desk.fabric.edit(task_id, title="What an agent wrote")
    mine = opened.replace('"Write it"', '"What I wrote"').replace('"normal"', '"high"')
    path.write_text(mine)
    task = desk.fabric.get(task_id)
    assert (task.title, task.priority) == ("What an agent wrote", "high"), "what does not clash is taken"
    assert path.with_name(f"{task_id}.md.conflict").read_text() == mine
    assert desk.last(task_id).payload["conflicts"] == ["title"]
    path.write_text(mine.replace("What I wrote", "Once more"))
    desk.fabric.get(task_id)
    assert "Once more" in path.with_name(f"{task_id}.md.conflict.1").read_text(), "no copy replaces another"
    assert path.with_name(f"{task_id}.md.conflict").read_text() == mine
    check_invariants(desk.root, edited=True)


def test_two_people_who_comment_at_once_both_find_their_comments(desk: Desk) -> None:
    task_id = desk.create()
    path = desk.file(task_id)
    opened = path.read_text()
    path.write_text(opened.replace('title: "Write it"', 'title: "Write it"  # ann'))
    desk.fabric.get(task_id)
    path.write_text(opened.replace('createdBy: "tester"', 'createdBy: "tester"  # ben'))
    desk.fabric.get(task_id)
    text = path.read_text()
    assert "# ann\n" in text
    assert "# ben\n" in text
    assert not list(desk.root.rglob("*.conflict"))
    check_invariants(desk.root, edited=True)


def test_edits_in_two_folders_are_both_taken(desk: Desk) -> None:
    task_id = desk.create()
    save_after_a_claim(desk, task_id, lambda text: text.replace('"Write it"', '"Write it down"'))
    path = desk.file(task_id, "in-progress")
    path.write_text(path.read_text().replace('"normal"', '"low"'))
    task = desk.fabric.get(task_id)
    assert (task.title, task.priority, task.status) == ("Write it down", "low", "in-progress")
    assert desk.files(task_id) == [path]
    check_invariants(desk.root, edited=True)


def test_an_older_version_saved_without_a_change_is_taken_away(desk: Desk) -> None:
    task_id = desk.create()
    save_after_a_claim(desk, task_id, lambda text: text)
    count = len(desk.events(task_id))
    with pytest.raises(AlreadyClaimed):
        desk.fabric.claim(task_id, agent="bob")
    assert desk.files(task_id) == [desk.file(task_id, "in-progress")]
    assert len(desk.events(task_id)) == count, "nothing has happened"
    check_invariants(desk.root)


@pytest.mark.parametrize("also_remove", [False, True])
def test_an_older_version_from_version_control_gives_way_to_the_log(desk: Desk, *, also_remove: bool) -> None:
    task_id = desk.create()
    old, data = desk.file(task_id), desk.file(task_id).read_bytes()
    run = desk.fabric.claim(task_id, agent="ada").run_id
    if also_remove:
        desk.file(task_id).unlink()
    old.write_bytes(data)
    count = len(desk.events(task_id))
    assert desk.state(task_id) in (("stale",) if also_remove else (None, "stale"))
    desk.fabric.progress(task_id, run=run, agent="ada", text="on")
    assert len(desk.events(task_id)) == count + 1
    assert desk.files(task_id) == [desk.file(task_id, "in-progress")]
    check_invariants(desk.root)


def test_a_deleted_file_is_restored(desk: Desk) -> None:
    task_id = desk.create()
    data = desk.file(task_id).read_bytes()
    desk.file(task_id).unlink()
    assert desk.state(task_id) == "stale"
    desk.fabric.show(task_id)
    assert desk.file(task_id, "ready").read_bytes() == data
    check_invariants(desk.root)


def test_an_archived_task_can_still_be_corrected(desk: Desk) -> None:
    task_id = desk.create()
    desk.fabric.cancel(task_id)
    desk.fabric.archive(task_id)
    desk.change(task_id, "A brief.", "What came of it.")
    task = desk.fabric.get(task_id)
    assert (task.archived, task.status, task.body) == (True, "cancelled", "What came of it.\n")
    assert desk.file(task_id) == desk.file(task_id, "archive")
    check_invariants(desk.root, edited=True)


class Interrupting(SteppingDisk):
    """A person who saves the file at the worst moment: just before a step of ours."""

    def __init__(self, name: str, number: int, act: Callable[[], object], *, swaps: bool) -> None:
        super().__init__(swaps=swaps)
        self.name, self.left, self.act = name, number, act

    def step(self, step: Step, act: Callable[[], int]) -> int:
        if step.name == self.name and "stripe" not in step.path:
            self.left -= 1
            if self.left == 0:
                self.act()
        return super().step(step, act)


@pytest.mark.parametrize("swaps", [False, True])
@pytest.mark.parametrize("moment", ["append", "flush", "write_new"])
@pytest.mark.parametrize("command", ["edit", "claim"])
def test_an_edit_between_our_reading_and_our_writing_is_not_lost(
    desk: Desk, moment: str, command: str, *, swaps: bool
) -> None:
    task_id = desk.create(brief="First.\n\nSecond.\n")
    path = desk.file(task_id)

    def save() -> None:
        path.write_text(path.read_text().replace("First.", "In between."))

    number = 2 if (moment, command) == ("write_new", "claim") else 1  # the first one is the run's file
    fabric = desk.reopen(Interrupting(moment, number, save, swaps=swaps))
    if command == "edit":
        fabric.edit(task_id, title="Another")
    else:
        fabric.claim(task_id, agent="ada")
    fabric = desk.reopen()
    task = fabric.get(task_id)
    assert task.body.startswith("In between.\n\nSecond.\n")
    assert (task.title, task.status) == (("Another", "ready") if command == "edit" else ("Write it", "in-progress"))
    check_invariants(desk.root, edited=True)


def test_an_edit_that_comes_while_one_is_taken_in_is_not_lost(desk: Desk) -> None:
    task_id = desk.create(brief="First.\n\nSecond.\n")
    path = desk.file(task_id)
    desk.change(task_id, "First.", "My first.")

    def save() -> None:
        path.write_text(path.read_text().replace("Second.", "My second."))

    fabric = desk.reopen(Interrupting("append", 1, save, swaps=False))
    fabric.edit(task_id, title="Another")
    task = desk.reopen().get(task_id)
    assert (task.title, task.body) == ("Another", "My first.\n\nMy second.\n")
    check_invariants(desk.root, edited=True)
