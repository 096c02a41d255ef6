"""`sync` imports everything that people did to the files, and gives new files their IDs."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from aof.kernel.model import is_task_id
from aof.maintenance.operations import Synced
from aof.store.files.integrity import scan
from tests.support.desk import Desk
from tests.support.invariants import check_invariants, open_store
from tests.support.processes import DEADLINE


def test_nothing_to_do_changes_nothing(desk: Desk) -> None:
    desk.create()
    before = desk.contents()
    assert desk.fabric.sync() == Synced()
    assert desk.contents() == before


def test_everything_that_people_did_is_taken_in_at_once(desk: Desk) -> None:
    edited, moved, deleted, copied, illegal, broken, same = (desk.create(f"Task {n}") for n in range(7))
    desk.change(edited, "A brief.", "Mine.")
    desk.move(moved, "backlog")
    desk.file(deleted).unlink()
    desk.file(copied, "blocked").write_bytes(desk.file(copied).read_bytes())
    desk.move(illegal, "done")
    desk.file(broken).write_text("---\nbroken: [\n---\n")
    desk.drop("ready", "TASK-2026-03-02-050.md", "---\ntitle: Mine\npriority: high\n---\n\nText.\n")
    desk.drop("backlog", "idea.md", "# An idea\n\nThat I had.\n")
    synced = desk.fabric.sync()
    assert synced.taken_in == (edited, moved)
    assert sorted(synced.new) == ["TASK-2026-03-02-008", "TASK-2026-03-02-050"]
    assert [one.path for one in synced.refused] == [illegal, broken]
    assert {one.code for one in synced.refused} == {"unreadable_task"}
    assert all(one.hint and one.reason for one in synced.refused)
    assert desk.files(deleted) == [desk.file(deleted, "ready")]
    assert desk.files(copied) == [desk.file(copied, "ready")]
    assert desk.fabric.get(same).rev == 21
    again = desk.fabric.sync()
    assert (again.taken_in, again.new, again.refused) == ((), (), synced.refused)
    desk.file(broken).unlink()
    desk.move(illegal, "ready")
    check_invariants(desk.root, edited=True)


def test_a_new_file_becomes_a_task_with_everything_that_stands_in_it(desk: Desk) -> None:
    desk.drop(
        "ready",
        "TASK-2026-03-02-050.md",
        "---\n# mine\ntitle:  'Do it'  # soon\ntags_of_mine: [a, b]\nstatus: done\n"
        "routing: {agent: ada}\n---\n\nText.\n",
    )
    task = desk.fabric.get("TASK-2026-03-02-050")
    assert (task.title, task.status, task.routing.agent, task.body) == ("Do it", "ready", "ada", "Text.\n")
    assert task.extra == {"tags_of_mine": ["a", "b"]}
    assert (task.created_by, task.rev > 0) == ("hand", True)
    text = desk.file(task.id).read_text()
    assert text.startswith("---\n# mine\ntitle:  'Do it'  # soon\ntags_of_mine: [a, b]\n")
    assert desk.fabric.claim(agent="ada").task_id == task.id
    check_invariants(desk.root, edited=True)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Fix the login\n\nIt is broken.\n", "Fix the login"),
        ("Just a line\n", "Just a line"),
        ("\n\n##  With\ttab \x07\n", "With tab"),
        ("---\ntitle: Given\n---\n# Other\n", "Given"),
        ("---\npriority: low\n---\n", "TASK-2026-03-02-001"),
    ],
)
def test_a_file_without_an_id_is_given_one_and_a_title(desk: Desk, text: str, title: str) -> None:
    path = desk.drop("backlog", "my idea.md", text)
    (task_id,) = desk.fabric.sync().new
    assert is_task_id(task_id)
    assert not path.exists()
    task = desk.fabric.get(task_id)
    assert (task.title, task.status) == (title, "backlog")
    check_invariants(desk.root, edited=True)


def test_a_copy_of_a_task_under_a_new_id_is_a_new_task(desk: Desk) -> None:
    task_id = desk.create(metadata={"size": "xl"})
    desk.fabric.claim(task_id, agent="ada")
    template = desk.file(task_id).read_text()
    desk.drop("ready", "TASK-2026-03-02-050.md", template)
    (fresh,) = desk.fabric.sync().new
    task = desk.fabric.get(fresh)
    assert (task.id, task.lease, task.retry.attempts, task.metadata) == ("TASK-2026-03-02-050", None, 0, {"size": "xl"})


@pytest.mark.parametrize(
    ("folder", "name", "text"),
    [
        ("done", "finished.md", "# Finished\n"),
        ("in-progress", "started.md", "# Started\n"),
        ("ready", "broken.md", "---\nbroken: [\n---\n"),
        ("ready", "empty.md", ""),
        ("ready", "binary.md", b"\xff\xfe\x00"),
        ("ready", "newer.md", "---\nschemaVersion: 2\ntitle: x\n---\n"),
    ],
)
def test_what_cannot_become_a_task_keeps_its_content(desk: Desk, folder: str, name: str, text: str | bytes) -> None:
    path = desk.drop(folder, name, text)
    data = path.read_bytes()
    synced = desk.fabric.sync()
    assert (synced.new, len(synced.refused)) == ((), 1)
    assert synced.refused[0].hint
    assert data in [file.read_bytes() for file in path.parent.iterdir()]


def test_what_is_no_task_of_anybody_is_left_alone(desk: Desk) -> None:
    for name in ("README.md", ".hidden.md", "notes.txt", "#auto.md"):
        desk.drop("ready", name, "mine")
    outside = desk.root.parent / "outside.md"
    outside.write_text("somebody else's\n", "utf-8")
    (desk.root / "tasks/ready/link.md").symlink_to(outside)
    before = desk.contents()
    assert desk.fabric.sync() == Synced()
    assert desk.contents() == before
    assert outside.read_text("utf-8") == "somebody else's\n"


def test_an_id_that_a_person_has_used_is_not_given_again(desk: Desk) -> None:
    desk.create()
    desk.drop("backlog", "TASK-2026-03-02-002.md", "# Mine\n")
    desk.drop("backlog", "TASK-2026-03-02-999999999.md", "# Far away\n")
    desk.drop("backlog", "TASK-2026-03-02-003.md", "---\nnot: [closed\n---\n")
    assert desk.create() == "TASK-2026-03-02-004"
    assert desk.fabric.show("TASK-2026-03-02-002")["title"] == "Mine"
    assert len(desk.fabric.sync().new) == 1
    (desk.root / "tasks/backlog/TASK-2026-03-02-003.md").unlink()
    (desk.root / "locks/counter").unlink()
    assert desk.reopen().create("Next").task_id == "TASK-2026-03-02-005"
    check_invariants(desk.root, edited=True)


def test_numbers_that_were_taken_ahead_and_not_used_are_given_back(desk: Desk) -> None:
    for _ in range(5):
        desk.create()
    assert desk.reopen().create("Next").task_id == "TASK-2026-03-02-006"


def test_numbers_taken_ahead_are_not_handed_to_a_forked_child(desk: Desk) -> None:
    given = [desk.store.reserve_id(desk.clock.now()) for _ in range(4)]
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=lambda: theirs.send(desk.store.reserve_id(desk.clock.now())))
    child.start()
    assert ours.poll(DEADLINE)
    assert len({*given, ours.recv(), desk.store.reserve_id(desk.clock.now())}) == 6
    child.join(DEADLINE)


def test_many_changed_files_cost_one_look_at_the_log(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        desk.change(desk.create(f"Task {number}"), "A brief.", "Mine.")
    reads = 0
    reader = desk.store.reader
    whole = reader.of_tasks

    def counted(*args: object) -> object:
        nonlocal reads
        reads += len(args) == 1
        return whole(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(reader, "of_tasks", counted)
    assert len(desk.fabric.sync().taken_in) == 30
    assert reads == 1


@pytest.mark.full
def test_a_hundred_thousand_files_are_scanned_in_seconds(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "data")
    task_id = desk.create()
    data, head = desk.file(task_id).read_bytes(), desk.store.heads.get(task_id)
    assert head is not None
    for number in range(2, 100_001):
        name = f"TASK-2026-03-02-{number:03d}"
        desk.file(name, "ready").write_bytes(data)
        desk.store.heads.put(name, head.rev, head.folder, head.digest)
    desk.store.close()
    store = open_store(desk.root, desk.clock)
    began = os.times()
    assert scan(store.paths, store.heads).changed == []
    ended = os.times()
    assert ended.user + ended.system - began.user - began.system < 15
    store.close()
