"""Two histories that gave one ID to two tasks: they are never fused, and both are kept."""

from __future__ import annotations

import pytest

from aof.errors import AnotherTask, AofError
from tests.support.desk import Desk


def stranger(desk: Desk, task_id: str, *, by: str | None = "somebody", at: str | None = None) -> bytes:
    """The file of another task with the same ID, as another history would have written it."""
    text = desk.file(task_id).read_text("utf-8")
    text = text.replace('title: "Write it"', 'title: "Of another history"')
    if by is not None:
        text = text.replace('createdBy: "', f'createdBy: "{by}-')
    if at is not None:
        line = next(line for line in text.splitlines() if line.startswith("createdAt: "))
        text = text.replace(line, f'createdAt: "{at}"')
    return text.encode()


OTHERS = [{"by": "somebody"}, {"by": None, "at": "2020-01-01T00:00:00.000Z"}]


@pytest.mark.parametrize("other", OTHERS, ids=["createdBy", "createdAt"])
@pytest.mark.parametrize("beside", ["", "backlog"], ids=["in its place", "in another folder"])
def test_every_command_on_the_id_says_so_and_nothing_is_merged(
    desk: Desk, other: dict[str, str | None], beside: str
) -> None:
    task_id = desk.create()
    file = stranger(desk, task_id, **other)
    place = desk.file(task_id, beside) if beside else desk.file(task_id)
    place.write_bytes(file)
    seq = desk.store.head()
    fabric = desk.fabric
    for call in (
        lambda: fabric.show(task_id),
        lambda: fabric.get(task_id),
        lambda: fabric.claim(task_id, agent="ada"),
        lambda: fabric.edit(task_id, priority="high"),
        lambda: fabric.cancel(task_id, reason="no"),
    ):
        with pytest.raises(AofError) as caught:
            call()
        assert caught.value.code == "another_task", caught.value.message
        assert "aof doctor --fix" in caught.value.hint
    refused = fabric.sync().refused
    assert [(one.path, one.code) for one in refused] == [(task_id, "another_task")]
    assert place.read_bytes() == file
    assert desk.store.head() == seq
    assert "another_task" in {problem.code for problem in fabric.doctor().problems}


@pytest.mark.parametrize("other", OTHERS, ids=["createdBy", "createdAt"])
@pytest.mark.parametrize("beside", ["", "backlog"], ids=["in its place", "in another folder"])
def test_fix_restores_the_logs_task_and_keeps_the_other_one_whole(
    desk: Desk, other: dict[str, str | None], beside: str
) -> None:
    task_id = desk.create()
    ours = desk.file(task_id).read_bytes()
    file = stranger(desk, task_id, **other)
    (desk.file(task_id, beside) if beside else desk.file(task_id)).write_bytes(file)
    desk.fabric.doctor(fix=True)
    assert desk.file(task_id, "ready").read_bytes() == ours
    kept = [path.read_bytes() for path in desk.root.glob("tasks/*/*.conflict*")]
    assert kept == [file]
    assert desk.fabric.get(task_id).title == "Write it"


def test_a_higher_number_in_the_other_file_does_not_make_it_the_newer_version(desk: Desk) -> None:
    """A merge keeps this branch's log, while the other branch's file has a number that this log does not reach."""
    task_id = desk.create()
    file = stranger(desk, task_id)
    number = next(line for line in file.decode().splitlines() if line.startswith("rev: "))
    file = file.replace(number.encode(), b"rev: 999")
    desk.file(task_id).write_bytes(file)
    desk.store.close()
    for path in (desk.root / "locks").glob("*"):
        if path.is_file():
            path.unlink()
    desk.reopen()
    with pytest.raises(AnotherTask):
        desk.fabric.get(task_id)
    desk.fabric.doctor(fix=True)
    assert desk.fabric.get(task_id).title == "Write it"
    assert [path.read_bytes() for path in desk.root.glob("tasks/*/*.conflict*")] == [file]
    assert desk.fabric.create("Next").task_id != task_id


def test_the_same_moment_written_in_another_way_is_the_same_task(desk: Desk) -> None:
    task_id = desk.create()
    created = desk.fabric.get(task_id).created_at
    desk.change(task_id, created, created.replace("Z", "+00:00"))
    desk.change(task_id, 'title: "Write it"', 'title: "Write it well"')
    assert desk.fabric.get(task_id).title == "Write it well"


def test_an_id_in_two_folders_is_told_also_where_one_of_them_is_edited(desk: Desk) -> None:
    task_id = desk.create()
    text = desk.file(task_id).read_text("utf-8")
    desk.file(task_id, "backlog").write_text(text.replace("A brief.", "A better brief."), "utf-8")
    problems = desk.fabric.doctor().problems
    assert [problem.code for problem in problems] == ["task_in_two_folders"]
    assert "tasks/backlog/" in problems[0].path
    assert "tasks/ready/" in problems[0].path
    assert desk.fabric.doctor(fix=True).ok
    assert len(desk.files(task_id)) == 1
    assert "A better brief." in desk.fabric.get(task_id).body
