"""What a killed writer left is finished by the next command on any task, and by nobody who only looks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.service.bootstrap import serve
from aof.store.files.task_files import TaskFiles
from aof.testing import FakeClock
from tests.support.disks import DyingDisk
from tests.support.indexes import open_fabric
from tests.support.invariants import fabric_on, open_store
from tests.support.scenarios import STORIES, Story, Teller, copy, prepare, told

pytestmark = pytest.mark.usefixtures("few_stripes")


class _Killed(BaseException):
    """Stands for the end of a process."""


def _cut_short(root: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """An edit whose writer dies before the task's file follows; the file, and the ID of another task."""
    with open_fabric(root, clock) as fabric:
        task_id, other = (fabric.create(title).task_id for title in ("one", "two"))

        def die(*_given: object) -> bool:
            raise _Killed

        with monkeypatch.context() as patched:
            patched.setattr(TaskFiles, "place", die)
            with pytest.raises(_Killed):
                fabric.edit(task_id, title="changed")
    return root / "tasks/ready" / f"{task_id}.md", other


def _shows(fabric: Fabric, other: str) -> None:
    fabric.show(other)


def _claims(fabric: Fabric, other: str) -> None:
    fabric.claim(other, agent="bob")


def _syncs(fabric: Fabric, _other: str) -> None:
    fabric.sync()


@pytest.mark.parametrize("command", [_shows, _claims, _syncs])
def test_a_command_on_another_task_finishes_what_was_left(
    root: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[[Fabric, str], None]
) -> None:
    clock = FakeClock("2026-03-02T09:00:00Z")
    file, other = _cut_short(root, clock, monkeypatch)
    assert '"one"' in file.read_text()
    with open_fabric(root, clock) as fabric:
        command(fabric, other)
    assert '"changed"' in file.read_text()


def _tree(root: Path) -> dict[str, bytes]:
    """Everything but caches, locks and temporary files."""
    kept = ("tasks", "events", "runs", "archive")
    found = [path for name in kept for path in (root / name).rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def _unsettled(root: Path) -> set[str]:
    store = open_store(root, doctor=True)
    try:
        return {problem.code for problem in store.working_copy.diagnose().problems}
    finally:
        store.close()


def _die(root: Path, story: Story, before: Teller, number: int = -1) -> DyingDisk:
    disk = DyingDisk(number) if number >= 0 else DyingDisk()
    told(root, story, disk, before)
    return disk


def _assert_the_next_finishes_it(shm_path: Path, name: str) -> None:
    """Die at a step; somebody only looks, on this boot and the next; then somebody works on another task."""
    story = STORIES[name]
    before = prepare(shm_path / "before", story)
    before.close()
    with closing(open_store(shm_path / "before")) as store:
        other = fabric_on(store, before.clock).create("Another task").task_id
    for number in range(len(_die(copy(shm_path / "before", shm_path / "all"), story, before).taken)):
        root = copy(shm_path / "before", shm_path / "dead")
        disk = _die(root, story, before, number)
        left = _tree(root)
        try:
            _unsettled(root)
            assert _tree(root) == left, "who only looks repairs nothing"
            with closing(open_store(root, doctor=True, boot_id=lambda: "the next")) as looking:
                assert "not_recovered" in {one.code for one in looking.working_copy.diagnose().advice}
            assert _tree(root) == left, "after a restart neither"
            with closing(open_store(root)) as store:
                fabric_on(store, before.clock).edit(other, title="Done meanwhile")
            assert _unsettled(root) <= {"counter_behind"}, "nothing is left to do"
            temporary = [path.name for path in (root / "tmp").glob("TASK-*") if "heartbeat" not in path.name]
            assert not temporary, "only that of a heartbeat, which no journal notes, waits for the next checkpoint"
        except BaseException as error:
            error.add_note(f"died before step {number}: {disk.taken[-1] if disk.taken else None}")
            raise


@pytest.mark.parametrize("name", ["claim again", "complete without review"])
def test_whatever_step_a_writer_dies_at_a_command_on_another_task_finishes_it(shm_path: Path, name: str) -> None:
    _assert_the_next_finishes_it(shm_path, name)


@pytest.mark.parametrize("boot", ["the-same-boot", "the next"])
def test_a_checkpoint_removes_the_temporary_files_of_tasks_and_no_others(root: Path, boot: str) -> None:
    with open_fabric(root, FakeClock("2026-03-02T09:00:00Z")) as fabric:
        task_id = fabric.create("one").task_id
    names = [f"{task_id}.run_heartbeat.json.7-0a0b0c0d-1", f"{task_id}.hops.dev.run.json.7-0a0b0c0d-2", "tokens-7"]
    for name in names:
        (root / "tmp" / name).write_text("half")
    with closing(open_store(root, boot_id=lambda: boot)) as store:
        store.checkpoint()
    assert [path.name for path in (root / "tmp").iterdir()] == ["tokens-7"]


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name, story in STORIES.items() if not story.by_hand])
def test_the_same_for_every_command(shm_path: Path, name: str) -> None:
    _assert_the_next_finishes_it(shm_path, name)


def test_the_service_finishes_what_was_left_with_its_first_round(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock("2026-03-02T09:00:00Z")
    file, _ = _cut_short(root, clock, monkeypatch)
    with open_fabric(root, clock) as fabric:
        serve(fabric, once=True)
    assert '"changed"' in file.read_text()
