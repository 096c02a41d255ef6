"""Full disks and failing ones: every step may fail, and nobody is told that something happened which did not."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from aof.errors import AofError, CommitUnknown, DiskFull, LogPoisoned, StorageFailed
from aof.store.files.log.chain import decode_event
from aof.store.files.log.layout import STAMP_AT
from tests.support.disks import FailingDisk, Step
from tests.support.invariants import check_invariants, check_it_goes_on, log_lines, open_store
from tests.support.scenarios import STORIES, Story, Teller, claim, copy, create, prepare, progress

pytestmark = pytest.mark.usefixtures("few_stripes")

FAULTS = {
    "failing": {"number": errno.EIO},
    "full for good": {"number": errno.ENOSPC, "lasting": True},
    "short": {"number": errno.ENOSPC, "short": True},
    "full": {"number": errno.ENOSPC},
    "failing for good": {"number": errno.EIO, "lasting": True},
}
LONG = [pytest.param(fault, marks=pytest.mark.full) for fault in ("full", "failing for good")]


def told(root: Path, story: Story, disk: FailingDisk, before: Teller) -> tuple[Teller, BaseException | None]:
    """Carry out the commands on a disk that fails; what came of them, and the error."""
    failure: BaseException | None = None
    teller: Teller | None = None
    try:
        teller = Teller(root, disk, now=before.clock.time)
        teller.lines = before.lines
        teller.tell(*story.then)
    except AofError as error:
        failure = error
    finally:
        if teller is not None:
            teller.close()
    return teller or before, failure


def restarted(root: Path) -> None:
    """What a person does after a failed flush: let the log be verified and healed."""
    store = open_store(root)
    try:
        if store.log.is_poisoned():
            with pytest.raises(LogPoisoned):
                Teller(root).tell(create("Not now"))
            store.log.heal()
    finally:
        store.close()


@pytest.mark.parametrize("fault", ["failing", "full for good", "short", *LONG])
@pytest.mark.parametrize("name", STORIES)
def test_a_step_that_fails_is_told_and_leaves_nothing_half_done(shm_path: Path, name: str, fault: str) -> None:
    story = STORIES[name]
    before = prepare(shm_path / "before", story)
    counting = FailingDisk()
    told(copy(shm_path / "before", shm_path / "counted"), story, counting, before)
    for number, step in enumerate(counting.taken):
        if fault == "short" and step.name != "append":
            continue
        root = copy(shm_path / "before", shm_path / "failed")
        disk = FailingDisk(number, **FAULTS[fault])  # type: ignore[arg-type]
        try:
            teller, failure = told(root, story, disk, before)
            check_answer(step, failure, teller, root)
            restarted(root)
            check_invariants(root, lines=teller.lines, edited=story.by_hand)
            if number % 4 == 0:
                check_it_goes_on(root)
        except BaseException as error:
            error.add_note(f"{fault} at step {number}: {step}")
            raise


def check_answer(step: Step, failure: BaseException | None, teller: Teller, root: Path) -> None:
    """What was told is true."""
    found = log_lines(root)
    if failure is None:
        assert found == teller.lines, "everything that is in the log was told"
    elif isinstance(failure, DiskFull | StorageFailed):
        whole = [line for line in found if line.endswith(b"\n")]
        assert whole[: len(teller.lines)] == teller.lines
        made = [line for line in whole[len(teller.lines) :] if b'"actor":"hand"' not in line]
        assert not [line for line in made if (event := decode_event(line)).commit[0] == event.commit[1]], (
            "it was not made"
        )
    else:
        assert isinstance(failure, CommitUnknown | LogPoisoned), f"{failure!r} is a clear answer"


def appended(steps: list[Step]) -> bool:
    return any(step.name == "append" for step in steps)


def test_a_failed_flush_is_not_tried_again_and_the_change_is_visible_or_not_but_never_half(shm_path: Path) -> None:
    story = STORIES["complete without review"]
    before = prepare(shm_path / "before", story)
    root = copy(shm_path / "before", shm_path / "failed")
    counting = FailingDisk()
    told(copy(root, shm_path / "counted"), story, counting, before)
    flush = next(n for n, step in enumerate(counting.taken) if step.name == "flush" and appended(counting.taken[:n]))
    disk = FailingDisk(flush, errno.EIO)
    _, failure = told(root, story, disk, before)
    assert isinstance(failure, CommitUnknown)
    assert [step.name for step in disk.taken[flush:]].count("flush") == 1
    assert not [step for step in disk.taken[flush:] if step.name in {"write_new", "rename", "append"}], "it stops"
    restarted(root)
    check_invariants(root, lines=before.lines)
    check_it_goes_on(root)


def test_opening_under_a_new_boot_on_a_failing_disk_can_be_tried_again(shm_path: Path) -> None:
    prepare(shm_path / "before", Story((create(), claim(), progress()), ()))
    counting = FailingDisk()
    open_store(copy(shm_path / "before", shm_path / "counted"), disk=counting, boot_id=lambda: "next").close()
    for number, step in enumerate(counting.taken):
        if step.data.endswith(b"idle\n") and not step.path.endswith("stripe-01"):
            continue  # they are all the same
        for fault in (errno.ENOSPC, errno.EIO):
            root = copy(shm_path / "before", shm_path / "failed")
            try:
                late = step.path.endswith("locks/log") and step.number == STAMP_AT  # then the log is verified once more
                noted = "/locks/lanes/" in step.path  # what is not noted only lets this clone begin another lane
                with nullcontext() if late or noted else pytest.raises(AofError):
                    open_store(root, disk=FailingDisk(number, fault), boot_id=lambda: "next").close()
                check_invariants(root, boot="next")
            except BaseException as error:
                error.add_note(f"step {number}: {step}")
                raise


# --- a disk that really is full

FILLED = """
import os, sys
from pathlib import Path
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.errors import AofError
from aof.errors import CommitUnknown, DiskFull, StorageFailed

root = Path(sys.argv[1], "data")
init_data_dir(root)
fabric = open_fabric(root, actor="me")
told, refused = [], 0
filler = open(Path(sys.argv[1], "filler"), "wb", buffering=0)
for size in (65536, 4096, 1024):
    while True:
        try:
            if filler.write(b"x" * size) < size:
                break
        except OSError:
            break
    for _ in range(20):
        try:
            told.append(fabric.create("A title", brief="x" * 3000).task_id)
        except (CommitUnknown, DiskFull, StorageFailed) as error:
            refused += 1
            assert error.hint
    if size == 65536:
        os.truncate(filler.name, os.path.getsize(filler.name) - 2 * size)
assert refused, "the disk was never full"
try:
    fabric.create("Nothing goes any more", brief="x" * 100000)
except AofError as error:
    refused += 1
fabric.close()
filler.close()
os.unlink(filler.name)
fabric = open_fabric(root, actor="me")
for task_id in told:
    assert fabric.get(task_id).title == "A title"
fabric.create("There is space again")
fabric.close()
from tests.support.invariants import check_invariants
from aof.store.files.locks import boot_id
folded = check_invariants(root, boot=boot_id())
assert set(told) <= folded.keys()
check_invariants(root, boot="next")
print("told", len(told), "refused", refused)
"""


def can_mount() -> bool:
    """Whether this machine lets a test mount something of its own."""
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        return False
    command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
    return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="needs unshare -m and mount, which this machine or user does not have")
def test_a_disk_that_is_really_full_refuses_clearly_and_loses_nothing(tmp_path: Path) -> None:
    script = tmp_path / "filled.py"
    script.write_text(FILLED)
    target = tmp_path / "mounted"
    target.mkdir()
    inner = f'mount -t tmpfs -o size=1m none "{target}" && exec "{sys.executable}" "{script}" "{target}"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inner],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("told ")
