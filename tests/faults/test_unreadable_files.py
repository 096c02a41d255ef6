"""A file that cannot be understood stays as it is, is told clearly, and stops nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.desk import Desk
from tests.support.invariants import check_invariants


def fronted(text: str) -> bytes:
    return f"---\n{text}\n---\n\nbody\n".encode()


BOMB = "\n".join([f'a0: &a0 ["{"x" * 9}"]', *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20))])
BAD = {
    "bad YAML": fronted('title: "no end'),
    "no mapping": fronted("- one\n- two"),
    "no frontmatter": b"Just text.\n",
    "an endless frontmatter": b"---\ntitle: x\n",
    "empty": b"",
    "invalid UTF-8": b"---\ntitle: \xff\xfe\n---\n",
    "NUL": b"---\ntitle: \x00\n---\n",
    "a YAML bomb": fronted(BOMB),
    "100,000 brackets": fronted("title: " + "[" * 30_000)[:60_000] + b"\n---\n",
    "100,000 brackets as text": b"---\n" + b"[" * 100_000 + b"\n---\n",
    "duplicate keys": fronted("title: a\ntitle: b"),
    "64 KB of frontmatter": fronted(f"title: {'x' * 70_000}"),
    "binary": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_read_stays_untouched_and_stops_nothing_else(desk: Desk, name: str) -> None:
    task_id, other = desk.create(), desk.create()
    path = desk.file(task_id)
    path.write_bytes(BAD[name])
    desk.refused(task_id)
    assert path.read_bytes() == BAD[name]
    assert desk.state(task_id) == "unknown"
    assert desk.state(other) is None
    assert desk.fabric.claim(agent="ada").task_id == other
    third = desk.create(depends_on=[task_id])
    assert desk.fabric.get(third).depends_on == (task_id,), "for others the task is as the log has it"
    desk.reopen()
    desk.refused(task_id)
    assert path.read_bytes() == BAD[name]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('status: "ready"', "status: doing"),
        ('priority: "normal"', "priority: 7"),
        ("rev: 3", "rev: soon"),
        ("rev: 3\n", ""),
        ("schemaVersion: 1", "schemaVersion: 2"),
        ('title: "Write it"', "title: [a, list]"),
        ('createdBy: "tester"', "createdBy: tester\nlease: yes"),
        ('createdBy: "tester"', "createdBy: &anchor tester"),
    ],
)
def test_a_value_that_is_impossible_is_refused(desk: Desk, old: str, new: str) -> None:
    task_id = desk.create()
    desk.change(task_id, old, new)
    data = desk.file(task_id).read_bytes()
    desk.refused(task_id)
    assert desk.file(task_id).read_bytes() == data


@pytest.mark.parametrize(
    "line",
    [
        'dependsOn: ["TASK-2026-01-01-001"]',
        'dependsOn: ["../../etc/passwd"]',
        'parentId: "TASK-2026-01-01-001"',
        'owner: "two\\nlines"',
        'resource: "no name!"',
    ],
)
def test_an_edit_that_no_command_would_accept_is_refused(desk: Desk, line: str) -> None:
    task_id = desk.create()
    desk.change(task_id, "---\n\nA", f"{line}\n---\n\nA")
    desk.refused(task_id)
    assert line in desk.file(task_id).read_text()


def test_a_dependency_on_itself_by_hand_is_refused(desk: Desk) -> None:
    task_id = desk.create()
    desk.change(task_id, "---\n\nA", f'dependsOn: ["{task_id}"]\n---\n\nA')
    assert desk.refused(task_id).hint


def test_a_title_without_end_is_refused(desk: Desk) -> None:
    task_id = desk.create()
    desk.change(task_id, '"Write it"', f'"{"x" * 5_000}"')
    assert desk.refused(task_id).hint


@pytest.mark.parametrize("kind", ["link to a file", "pipe", "folder"])
def test_what_is_no_regular_file_is_no_task(desk: Desk, kind: str, tmp_path: Path) -> None:
    task_id, other = desk.create(), desk.create()
    path = desk.file(task_id)
    outside = tmp_path / "outside.md"
    outside.write_bytes(path.read_bytes())
    path.unlink()
    match kind:
        case "link to a file":
            path.symlink_to(outside)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    desk.refused(task_id)
    assert desk.state(task_id) == "unknown"
    assert desk.fabric.claim(agent="ada").task_id == other
    assert path.is_symlink() or path.is_fifo() or path.is_dir()


def test_a_link_to_nothing_is_a_file_that_is_missing(desk: Desk, tmp_path: Path) -> None:
    task_id = desk.create()
    path, data = desk.file(task_id), desk.file(task_id).read_bytes()
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    desk.fabric.show(task_id)
    assert path.read_bytes() == data
    assert not path.is_symlink()


def test_a_file_that_is_corrected_is_taken_in_with_all_that_happened_meanwhile(desk: Desk) -> None:
    parent = desk.create()
    task_id = desk.create(parent_id=parent)
    path, text = desk.file(task_id), desk.file(task_id).read_text()
    path.write_text(text.replace('title: "Write it"', 'title: "no end'))
    desk.fabric.cancel(parent)
    assert 'title: "no end' in path.read_text()
    path.write_text(text.replace('title: "Write it"', "title: corrected"))
    task = desk.fabric.get(task_id)
    assert (task.title, task.status) == ("corrected", "cancelled")
    assert desk.files(task_id) == [desk.file(task_id, "cancelled")]
    check_invariants(desk.root, edited=True)


def test_a_bad_copy_in_another_folder_is_told_and_stays(desk: Desk) -> None:
    task_id = desk.create()
    copy = desk.drop("blocked", f"{task_id}.md", BAD["bad YAML"])
    desk.refused(task_id)
    assert copy.read_bytes() == BAD["bad YAML"]
    copy.unlink()
    desk.fabric.show(task_id)
