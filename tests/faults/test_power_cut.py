"""The power goes at every moment of a history, and the disk is left in every state that is legal then.

The next opener has another boot id. Everything that was acknowledged is there, and nothing is half there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from aof.errors import LogDamaged
from aof.store.files import markdown as files_markdown
from aof.store.files.store import FilesystemStore
from tests.support.clock import DAY
from tests.support.disks import Step, SteppingDisk
from tests.support.history import Cut, RecordingDisk, emptied, everything, nothing, torn
from tests.support.invariants import (
    check_files,
    check_invariants,
    check_it_goes_on,
    check_log,
    fabric_on,
    files_of,
    log_lines,
    open_store,
)
from tests.support.scenarios import (
    HOUR,
    ONE,
    Command,
    Story,
    Teller,
    answer,
    beat,
    claim,
    complete,
    create,
    delegate,
    edit_by_hand,
    fail,
    hand,
    later,
    move_by_hand,
    prepare,
    progress,
    release,
    remove,
    report,
    turn_down,
)

pytestmark = pytest.mark.usefixtures("few_stripes")

NEXT_BOOT = "the-next-boot"
LONG = "A long brief, so that a file takes several sectors.\n" * 40


def long_create(teller: Teller) -> object:
    return teller.fabric.create("Write it", brief=LONG, review=False)


def checkpoint(teller: Teller) -> None:
    teller.store.checkpoint()


HISTORIES: dict[str, tuple[Command, ...]] = {
    "one task": (create(), claim(), progress()),
    "large files": (long_create, claim(), complete()),
    "runs": (create(), claim(), beat(), fail(), later(HOUR), claim(agent="bob"), release(agent="bob"), claim()),
    "a tree": (create(), create("Below", parent_id=ONE), lambda t: t.fabric.cancel(ONE)),
    "archived": (create(review=False), claim(), complete(), lambda t: t.fabric.archive(ONE)),
    "unarchived": (
        create(review=False),
        claim(),
        complete(),
        lambda t: t.fabric.archive(ONE),
        lambda t: t.fabric.reopen(ONE),
    ),
    "a checkpoint": (create(), claim(), checkpoint, progress(), complete()),
    "days": (create(), later(DAY), claim(), later(-2 * DAY), progress(), later(3 * DAY), progress()),
    "messages": (create(), claim(), report(), report(agent="bob"), lambda t: t.fabric.session_end()),
    "handoffs": (create(), create("Below"), claim(), delegate(), turn_down()),
    "handing over": (
        create(),
        claim(),
        hand("sequential", segment_complete=True),
        answer("accept"),
        progress(agent="bob"),
    ),
    "many versions": (create(), claim(), *(progress() for _ in range(9))),
}


def record(
    root: Path, commands: tuple[Command, ...], *, swaps: bool, durable: bool = True
) -> tuple[RecordingDisk, int]:
    """Let a history happen on a disk that remembers it, and tell when it began."""
    disk = RecordingDisk(root, swaps=swaps)
    FilesystemStore.create(str(root), disk)
    made = len(disk.steps)
    teller = Teller(root, disk, durable=durable)
    made = len(disk.steps) if commands else made
    for command in commands:
        teller.tell(command)
        disk.acknowledge(teller.lines)
    teller.close()
    return disk, made


class States:
    """Makes states of the disk one after the other, each only once."""

    def __init__(self, path: Path) -> None:
        self.path = path / "left"
        self._known: set[bytes] = set()

    def make(self, cut: Cut, chosen: frozenset[int], data: Callable[[list[bytes]], bytes]) -> bool:
        """False where the same state was made before."""
        if self.path.exists():
            remove(str(self.path))
        cut.left(self.path, chosen, data)
        digest = sha256()
        for path in sorted(self.path.rglob("*")):
            digest.update(str(path).encode() + (path.read_bytes() if path.is_file() else b""))
        (self.path / "index.sqlite").write_bytes(b"whatever was left of it")
        fresh = digest.digest() not in self._known
        self._known.add(digest.digest())
        return fresh


def some_cut(random: Random, steps: list[Step], made: int, states: States) -> int | None:
    """Make one state at a random moment, and tell the moment; None where that state was made before."""
    moment = random.randint(made, len(steps))
    cut = Cut(steps[:moment])
    pending = cut.open_changes()
    kept = random.choice([0.0, 0.5, 0.9, 1.0])
    chosen = [number for number in pending if random.random() < kept]
    if random.random() < 0.3:
        chosen = pending[: random.randint(0, len(pending))]
    data = random.choice([nothing, everything, emptied, torn(random), torn(random), torn(random)])
    return moment if states.make(cut, frozenset(chosen), data) else None


def some_states(disk: RecordingDisk, made: int, states: States, count: int, seed: str) -> Iterator[int]:
    """So many different states at random moments."""
    random = Random(seed)
    for _ in range(count):
        moment = some_cut(random, disk.steps, made, states)
        if moment is not None:
            yield moment


def all_states(disk: RecordingDisk, made: int, states: States) -> Iterator[int]:
    """Every moment, with everything that a journal may have kept of it."""
    random = Random(0)
    for moment in range(made, len(disk.steps) + 1):
        cut = Cut(disk.steps[:moment])
        for chosen in cut.choices():
            for data in (nothing, everything, emptied, torn(random)):
                if states.make(cut, chosen, data):
                    yield moment


def check(disk: RecordingDisk, states: Iterator[int], left: States) -> int:
    count = 0
    for moment in states:
        count += 1
        try:
            check_invariants(left.path, lines=disk.told_by(moment), boot=NEXT_BOOT)
            if count % 8 == 0:
                check_it_goes_on(left.path, boot=NEXT_BOOT)
        except BaseException as error:
            error.add_note(f"the power went after step {moment}: {[step.name for step in disk.steps[:moment]][-5:]}")
            raise
    return count


@pytest.mark.parametrize("swaps", [False, True], ids=["rename", "swap"])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_power_cut_loses_nothing_that_was_acknowledged(shm_path: Path, name: str, swaps: bool) -> None:  # noqa: FBT001
    disk, made = record(shm_path / "data", HISTORIES[name], swaps=swaps)
    left = States(shm_path)
    assert check(disk, some_states(disk, made, left, 40, f"{name} {swaps}"), left) > 15


@pytest.mark.full
@pytest.mark.parametrize("swaps", [False, True], ids=["rename", "swap"])
@pytest.mark.parametrize("name", HISTORIES)
def test_no_legal_state_after_a_power_cut_loses_anything(shm_path: Path, name: str, swaps: bool) -> None:  # noqa: FBT001
    disk, made = record(shm_path / "data", HISTORIES[name], swaps=swaps)
    left = States(shm_path)
    assert check(disk, all_states(disk, made, left), left) > 300
    assert check(disk, some_states(disk, made, left, 2000, name), left) > 300


def test_the_power_may_go_while_a_directory_is_opened_for_the_first_time(shm_path: Path) -> None:
    disk, made = record(shm_path / "data", (), swaps=False)
    left = States(shm_path)
    assert check(disk, some_states(disk, made, left, 40, "first"), left) > 10


@pytest.mark.parametrize("seed", range(12))
def test_the_power_may_go_again_while_the_last_cut_is_put_right(shm_path: Path, seed: int) -> None:
    assert cut_twice(shm_path, "runs", seed, swaps=seed % 2 == 1) > 5


@pytest.mark.full
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("name", HISTORIES)
def test_the_power_may_go_again_in_every_history(shm_path: Path, name: str, seed: int) -> None:
    assert cut_twice(shm_path, name, seed, swaps=seed % 2 == 1, first=6) > 10


def cut_twice(shm_path: Path, name: str, seed: int, *, swaps: bool, first: int = 3) -> int:
    """Cut the power in a history, then again while that is put right; tells how many states were checked."""
    disk, made = record(shm_path / "data", HISTORIES[name], swaps=swaps)
    left, again = States(shm_path / "first"), States(shm_path / "second")
    (shm_path / "first").mkdir()
    (shm_path / "second").mkdir()
    random = Random(seed)
    checked = 0
    for moment in some_states(disk, made, left, first, f"again {seed}"):
        repairs = RecordingDisk(left.path, swaps=swaps)
        repairs.steps = list(as_steps(left.path))
        begun = len(repairs.steps)
        open_store(left.path, disk=repairs, boot_id=lambda: NEXT_BOOT).close()
        for _ in range(6):
            second = some_cut(random, repairs.steps, begun, again)
            if second is None:
                continue
            checked += 1
            try:
                check_invariants(again.path, lines=disk.told_by(moment), boot="the-boot-after-that")
            except BaseException as error:
                error.add_note(f"the power went after step {moment}, and after step {second - begun} of the repair")
                raise
    return checked


@pytest.mark.parametrize("swaps", [False, True], ids=["rename", "swap"])
def test_a_repair_over_several_versions_may_lose_any_change_of_names(shm_path: Path, swaps: bool) -> None:  # noqa: FBT001
    """The first cut left a file two folders behind; the second undoes one step of the repair, and keeps the others."""
    root = shm_path / "left"
    FilesystemStore.create(str(root), SteppingDisk())
    teller = Teller(root)
    teller.tell(create(review=False), claim())
    older = (root / "tasks/in-progress" / f"{ONE}.md").read_bytes()
    teller.tell(complete(), lambda t: t.fabric.archive(ONE))
    teller.close()
    (root / "archive/tasks" / f"{ONE}.md").unlink()
    (root / "tasks/in-progress" / f"{ONE}.md").write_bytes(older)
    (root / "tasks/in-progress" / f"{ONE}.md").chmod(0o640)
    repairs = RecordingDisk(root, swaps=swaps)
    repairs.steps = list(as_steps(root))
    begun = len(repairs.steps)
    open_store(root, disk=repairs, boot_id=lambda: NEXT_BOOT).close()
    assert (root / "archive/tasks" / f"{ONE}.md").stat().st_mode & 0o777 == 0o640
    synced = [step.name for step in repairs.steps].index("sync_all", begun)
    cut = Cut(repairs.steps[:synced])
    pending = cut.open_changes()
    again = States(shm_path / "second")
    (shm_path / "second").mkdir()
    for lost in pending:
        again.make(cut, frozenset(pending) - {lost}, everything)
        try:
            check_invariants(again.path, lines=teller.lines, boot="the-boot-after-that")
        except BaseException as error:
            error.add_note(f"lost: {cut.changes[lost].slots}")
            raise
    assert pending


def as_steps(root: Path) -> Iterator[Step]:
    """A directory as the steps that lead to it, all of them durable."""
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_dir():
            yield Step("make_dir", name)
        elif not name.startswith("index.sqlite"):
            yield Step("write_new", name, data=path.read_bytes())
    yield Step("sync_all", ".")


# --- the model itself


def test_no_byte_of_a_leftover_shows_up_in_the_file_that_took_its_name(shm_path: Path) -> None:
    """A temporary file is made anew, so what it is renamed to holds new bytes, or none, but never the older ones."""
    old, new = b"o" * 1500, b"n" * 1500
    steps = [
        Step("make_dir", "tmp"),
        Step("write_new", "tmp/task", data=old),
        Step("sync_all", "."),
        Step("write_new", "tmp/task", data=new),
        Step("rename", "tmp/task", "task"),
    ]
    random = Random(0)
    found: set[tuple[str, frozenset[int]]] = set()
    states = States(shm_path)
    for moment in range(3, len(steps) + 1):
        cut = Cut(steps[:moment])
        for chosen in cut.choices():
            for data in (nothing, everything, emptied, *(torn(random) for _ in range(9))):
                states.make(cut, chosen, data)
                for path in (states.path / "tmp/task", states.path / "task"):
                    if path.exists():
                        found.add((path.name if path.parent == states.path else "tmp", frozenset(path.read_bytes())))
    o, n, hole = b"on\0"
    assert {bytes_ for place, bytes_ in found if place == "task"} == {
        frozenset(some) for some in ([], [n], [hole], [n, hole])
    }
    assert ("tmp", frozenset([o])) in found, "the name may still be the leftover's"


# --- without flushes


@pytest.mark.parametrize("name", ["one task", "runs", "handoffs", "a checkpoint", "days"])
def test_without_flushes_a_power_cut_may_lose_work_but_what_is_left_fits_together(shm_path: Path, name: str) -> None:
    disk, made = record(shm_path / "data", HISTORIES[name], swaps=False, durable=False)
    left = States(shm_path)
    for moment in some_states(disk, made, left, 60, name):
        try:
            check_relaxed(left.path)
        except BaseException as error:
            error.add_note(f"the power went after step {moment}: {[step.name for step in disk.steps[:moment]][-5:]}")
            raise


def check_relaxed(root: Path) -> None:
    store = open_store(root, boot_id=lambda: NEXT_BOOT, durable=False)
    try:
        store.locks.release(store.stripes.take_all())
        known = {event.task_id for event in store.events()}
        folded = {task_id: store.folded(task_id) for task_id in known}
        assert len(check_log(root)) == len(list(store.events()))
        run = {path.name for path in (*root.glob("runs/*"), *root.glob("archive/runs/*"))}
        unknown = (files_of(root).keys() | run) - known
        fabric = fabric_on(store)
        made = fabric.create("A new one").task_id
        assert made not in known | unknown
        assert fabric.get(made).rev > max((one.task.rev for one in folded.values() if one.task), default=0)
        folded[made] = store.folded(made)
        for task_id in unknown:  # what the log has lost is left for a person to look at
            runs = (*root.glob(f"runs/{task_id}"), *root.glob(f"archive/runs/{task_id}"))
            for path in (*root.glob(f"*/*/{task_id}.md"), *runs):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for folder in (*root.glob("**/attempts/*"), *root.glob("**/attempts")):
            with suppress(OSError):
                folder.rmdir()  # one that was made for files that were lost is empty, and says nothing
        check_files(root, folded)
    finally:
        store.close()


# --- what is torn, and what a person wrote


def test_what_a_person_wrote_before_a_power_cut_is_taken_in_after_it(shm_path: Path) -> None:
    root = shm_path / "data"
    prepare(root, Story((create(), claim(), edit_by_hand()), ()))
    check_invariants(root, boot=NEXT_BOOT, edited=True)
    text = next(root.glob(f"tasks/*/{ONE}.md")).read_text()
    assert '"By hand"' in text
    assert "A better brief." in text
    assert not list((root / "events/torn").iterdir())


def test_what_a_person_moved_before_a_power_cut_stays_moved(shm_path: Path) -> None:
    root = shm_path / "data"
    prepare(root, Story((create(), move_by_hand(ONE, "backlog")), ()))
    check_invariants(root, boot=NEXT_BOOT, edited=True)
    assert (root / "tasks/backlog" / f"{ONE}.md").exists()


def test_what_a_person_wrote_in_vain_is_durable_before_it_is_overwritten(shm_path: Path) -> None:
    root = shm_path / "data"
    prepare(root, Story((create(),), ()))
    path = next(root.glob(f"tasks/*/{ONE}.md"))
    theirs = path.read_text().replace('"Write it"', '"The person says"')
    disk = RecordingDisk(root)
    teller = Teller(root, disk)
    teller.tell(lambda t: t.fabric.edit(ONE, title="The log says"))
    path.write_text(theirs)
    teller.tell(lambda t: t.fabric.get(ONE))
    teller.close()
    (copy,) = root.glob("tasks/*/*.conflict*")
    assert copy.read_text() == theirs
    kept = str(copy.relative_to(root))
    steps = [(step.name, step.path) for step in disk.steps]
    written = steps.index(("write_new", kept))
    assert steps[written + 1 : written + 3] == [("flush", kept), ("sync_dir", str(copy.parent.relative_to(root)))]


@pytest.mark.parametrize("kept", [0, 512, 1024, 2048])
@pytest.mark.parametrize("hole", [False, True])
def test_a_torn_file_of_ours_is_not_taken_for_a_persons_edit(shm_path: Path, kept: int, hole: bool) -> None:  # noqa: FBT001
    root = shm_path / "data"
    prepare(root, Story((long_create,), ()))
    path = next(root.glob(f"tasks/*/{ONE}.md"))
    whole = path.read_bytes()
    path.write_bytes(whole[:kept].ljust(len(whole), b"\0") if hole else whole[:kept])
    check_invariants(root, boot=NEXT_BOOT)
    assert path.read_bytes() == whole
    assert len(list((root / "events/torn").iterdir())) == 1


def test_a_person_may_shorten_a_text(shm_path: Path) -> None:
    root = shm_path / "data"
    prepare(root, Story((long_create,), ()))
    path = next(root.glob(f"tasks/*/{ONE}.md"))
    whole = path.read_bytes()
    shorter = whole[: whole.rindex(b"A long", 0, 1500)]
    assert len(shorter) % 512
    path.write_bytes(shorter)
    check_invariants(root, boot=NEXT_BOOT, edited=True)
    assert len(files_markdown.parse(path.read_bytes()).body) < len(LONG)


def test_a_link_in_place_of_a_file_does_not_keep_the_directory_from_opening(shm_path: Path) -> None:
    root = shm_path / "data"
    prepare(root, Story((create(),), ()))
    path = next(root.glob(f"tasks/*/{ONE}.md"))
    path.unlink()
    outside = shm_path / "outside.md"
    outside.write_text("somebody else's\n", "utf-8")
    path.symlink_to(outside)
    check_invariants(root, boot=NEXT_BOOT)
    assert not path.is_symlink()
    assert outside.read_text("utf-8") == "somebody else's\n"


# --- damage that no power cut explains


def test_a_broken_log_that_files_are_ahead_of_is_damage_and_nothing_is_cut(shm_path: Path) -> None:
    root = shm_path / "data"
    prepare(root, Story((create(), claim(), progress()), ()))
    log = next((root / "events").glob("*.jsonl"))
    lines = log_lines(root)
    damaged = b"".join(lines[:-2]) + lines[-2].replace(b'"seq"', b'"sEq"') + lines[-1]
    log.write_bytes(damaged)
    with pytest.raises(LogDamaged, match="was durable"):
        open_store(root, boot_id=lambda: NEXT_BOOT)
    assert log.read_bytes() == damaged
    assert not list((root / "events/torn").iterdir())


def test_a_log_that_ends_before_the_checkpoint_is_damage_and_nothing_is_changed(shm_path: Path) -> None:
    root = shm_path / "data"
    prepare(root, Story((create(), claim(), checkpoint, progress()), ()))
    log = next((root / "events").glob("*.jsonl"))
    log.write_bytes(b"".join(log_lines(root)[:2]))
    before = {path: path.read_bytes() for path in root.glob("tasks/*/*.md")}
    with pytest.raises(LogDamaged, match="which was durable"):
        open_store(root, boot_id=lambda: NEXT_BOOT)
    assert {path: path.read_bytes() for path in root.glob("tasks/*/*.md")} == before


def test_a_torn_end_over_several_days_is_cut_everywhere_and_kept_aside(shm_path: Path) -> None:
    """Nothing of the last days was ever flushed, which only happens without flushes."""
    root = shm_path / "data"
    FilesystemStore.create(str(root), SteppingDisk())
    teller = Teller(root, durable=False)
    teller.tell(create(), later(DAY), claim(), later(DAY), progress())
    teller.close()
    first, second, third = sorted((root / "events").glob("*.jsonl"))
    kept = [second.read_bytes(), third.read_bytes()]
    second.write_bytes(b"\0" * 10 + kept[0][10:])
    store = open_store(root, boot_id=lambda: NEXT_BOOT, durable=False)
    store.close()
    assert [path.stat().st_size for path in (second, third)] == [0, 0]
    aside = {path.read_bytes() for path in (root / "events/torn").glob("*.jsonl")}
    assert aside == {b"\0" * 10 + kept[0][10:], kept[1]}
    assert len(log_lines(root)) == len(first.read_bytes().splitlines())
    check_it_goes_on(root, boot=NEXT_BOOT, durable=False)
