"""A process dies at every single step of a command, and again at every step of what puts that right.

Only the process dies here, so everything that it wrote is there. What a power cut takes away is another matter.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from aof.store.files.disk import Disk
from aof.store.files.store import FilesystemStore
from tests.support.deaths import deaths
from tests.support.disks import DyingDisk, Killed, Moment, Step
from tests.support.invariants import SAME_BOOT, check_invariants, check_it_goes_on, open_store
from tests.support.scenarios import ONE, STORIES, Story, Teller, copy, prepare, told

pytestmark = pytest.mark.usefixtures("few_stripes")

NEXT_BOOT = "the-next-boot"


def steps_of(root: Path, story: Story, before: Teller, *, swaps: bool) -> list[Step]:
    disk = DyingDisk(swaps=swaps)
    told(root, story, disk, before)
    return disk.taken


def check(root: Path, story: Story, teller: Teller, *, boot: str = SAME_BOOT) -> None:
    check_invariants(root, lines=teller.lines, boot=boot, edited=story.by_hand)
    check_what_is_not_in_the_log(root, story)


def check_what_is_not_in_the_log(root: Path, story: Story) -> None:
    """What only files hold is not lost either: a task's own files, signs of life, what a person wrote."""
    names = [getattr(command, "__qualname__", "") for command in (*story.before, *story.then)]
    if any(name.startswith("own_files") for name in names):
        (kept,) = [*root.glob("tasks/*/*/outputs/result.txt"), *root.glob("archive/tasks/*/outputs/result.txt")]
        assert kept.read_text() == "kept"
    if any(name.startswith("beat") for name in names):
        beats = [
            path
            for path in root.glob("runs/**/run_heartbeat.json")
            if re.search(rb'-001-1-[0-9a-f]{8}"', path.read_bytes())
        ]
        assert len(beats) == 1, "the first run's sign of life is kept"
    if any(name.startswith("edit_by_hand") for name in names):
        text = next(root.glob(f"tasks/*/{ONE}.md")).read_text()
        assert '"By hand"' in text, "what the person wrote is there"
        assert "A better brief." in text
    if any(name.startswith("move_by_hand") for name in names):
        assert (root / "tasks/backlog" / f"{ONE}.md").exists()


@pytest.mark.parametrize("name", STORIES)
def test_a_command_that_dies_at_any_step_has_happened_or_has_not(shm_path: Path, name: str) -> None:
    assert_any_step_can_be_the_last(shm_path, STORIES[name], swaps=False)


@pytest.mark.full
@pytest.mark.parametrize("name", STORIES)
def test_whatever_step_a_command_dies_at_work_goes_on(shm_path: Path, name: str) -> None:
    assert_any_step_can_be_the_last(shm_path, STORIES[name], swaps=False, goes_on=1)


@pytest.mark.parametrize("name", ["claim again", "progress", "archive", "take in an edit and claim"])
def test_the_same_holds_where_a_new_version_swaps_names_with_the_old_one(shm_path: Path, name: str) -> None:
    assert_any_step_can_be_the_last(shm_path, STORIES[name], swaps=True)


def assert_any_step_can_be_the_last(shm_path: Path, story: Story, *, swaps: bool, goes_on: int = 4) -> None:
    """Die at every step and look; after every `goes_on`-th also carry another task from the beginning to the end."""
    before = prepare(shm_path / "before", story)
    steps = steps_of(copy(shm_path / "before", shm_path / "counted"), story, before, swaps=swaps)
    assert len(steps) > 5
    check(shm_path / "counted", story, before)
    for number, moment in deaths(steps):
        root = copy(shm_path / "before", shm_path / "dead")
        disk = DyingDisk(number, moment, swaps=swaps)
        teller = told(root, story, disk, before)
        assert disk.dead, f"died {moment.value} {steps[number]}"
        try:
            check(copy(root, shm_path / "rebooted"), story, teller, boot=NEXT_BOOT)
            check(root, story, teller)
            if moment is Moment.BEFORE and number % goes_on == 0:
                check_it_goes_on(root)
        except BaseException as error:
            error.add_note(f"died {moment.value} step {number}: {steps[number]}")
            raise


def settle(root: Path, disk: Disk, boot: str) -> None:
    """What puts a directory right: opening it, and taking every stripe."""
    store = None
    try:
        store = open_store(root, disk=disk, boot_id=lambda: boot)
        store.locks.release(store.stripes.take_all())
    except Killed:
        pass
    finally:
        if store is not None:
            store.close()


def recovery_that_dies(shm_path: Path, story: Story, *, deaths_in: int = 1, again_in: int = 1) -> int:
    """Die at a step of the commands, then at a step of recovery, then look. Tells how often.

    Of the steps of the commands one in `deaths_in` is tried, and of the steps of their recovery one in `again_in`.
    """
    before = prepare(shm_path / "before", story)
    steps = steps_of(copy(shm_path / "before", shm_path / "counted"), story, before, swaps=False)
    count = 0
    for number, moment in itertools.islice(deaths(steps), 0, None, deaths_in):
        dead = copy(shm_path / "before", shm_path / "dead")
        teller = told(dead, story, DyingDisk(number, moment), before)
        for boot in (SAME_BOOT, NEXT_BOOT):
            whole = DyingDisk()
            settle(copy(dead, shm_path / "settled"), whole, boot)
            for again, instant in deaths(whole.taken):
                count += 1
                if count % again_in:
                    continue
                root = copy(dead, shm_path / "again")
                settle(root, DyingDisk(again, instant), boot)
                try:
                    check(root, story, teller, boot=boot)
                except BaseException as error:
                    error.add_note(f"died {moment.value} step {number}: {steps[number]}")
                    error.add_note(f"then {instant.value} step {again} of recovery: {whole.taken[again]}")
                    raise
    return count


@pytest.mark.parametrize("name", STORIES)
def test_recovery_that_dies_is_recovered_from(shm_path: Path, name: str) -> None:
    assert recovery_that_dies(shm_path, STORIES[name], deaths_in=3, again_in=31) > 31


@pytest.mark.full
@pytest.mark.parametrize("name", STORIES)
def test_recovery_that_dies_at_any_step_is_recovered_from(shm_path: Path, name: str) -> None:
    assert recovery_that_dies(shm_path, STORIES[name]) > 31


def test_a_directory_whose_making_died_is_completed_by_the_next_command(shm_path: Path) -> None:
    whole = DyingDisk()
    FilesystemStore.create(str(shm_path / "whole"), whole)
    for number, moment in deaths(whole.taken):
        root = shm_path / f"{number}-{moment.name}"
        with pytest.raises(Killed):
            FilesystemStore.create(str(root), DyingDisk(number, moment))
        FilesystemStore.create(str(root), DyingDisk())
        check_invariants(root)
        check_it_goes_on(root)
