"""Doctor finds each kind of damage, heals what needs no person, and leaves a healthy directory alone."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from aof.adapters.system import SystemClock
from aof.app.maintenance.service import Diagnosis, doctor
from aof.core.model.errors import AofError, LogDamaged
from aof.core.model.events import Event
from aof.core.model.policy import Policy
from aof.entrypoints.bootstrap import diagnose, init_data_dir, open_fabric
from aof.ports.store import Problem
from aof.stores.filesystem.log.reader import Reader
from aof.stores.filesystem.recovery.journal import STATE_AT
from aof.stores.filesystem.store import FilesystemStore
from tests.support.desk import Desk, contents
from tests.support.disks import SteppingDisk
from tests.support.invariants import SAME_BOOT, check_invariants, check_it_goes_on, fabric_on, log_lines, open_store
from tests.support.repository import ROOT

TESTED = (
    "stores/filesystem/doctor/test_doctor.py",
    "stores/filesystem/records/test_org_chart.py",
    "faults/test_links.py",
    "stores/filesystem/io/test_modes.py",
    "stores/filesystem/working_copy/test_git.py",
    "stores/filesystem/working_copy/test_two_histories.py",
    "faults/test_unfit_files.py",
    "stores/filesystem/integrity/test_log_damage.py",
    "faults/test_leftovers.py",
    "app/handoffs/test_delegation.py",
)
"""Where each problem that doctor knows is made to happen."""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A directory with a task in most statuses, runs, and a person's layout."""
    desk = Desk(tmp_path / "data")
    desk.create("Waiting")
    running = desk.create("Running")
    desk.fabric.claim(running, agent="ada")
    done = desk.create("Done", review=False)
    for agent in ("ada", "bob"):
        run = desk.fabric.claim(done, agent=agent).run_id
        if agent == "ada":
            desk.fabric.release(done, run=run, agent=agent)
    desk.fabric.complete(done, run=run, agent="bob", summary="done")
    laid_out = desk.create("Laid out", backlog=True)
    desk.change(laid_out, 'priority: "normal"', "priority: high   # mine")
    desk.fabric.get(laid_out)
    gone = desk.create("Gone")
    desk.fabric.cancel(gone)
    desk.fabric.archive(gone)
    desk.fabric.list()
    return desk


WAITING, RUNNING, DONE, LAID_OUT, GONE = (f"TASK-2026-03-02-00{number}" for number in range(1, 6))


def diagnosed(desk: Desk, *, fix: bool = False) -> Diagnosis:
    """What doctor says, also where the directory cannot be opened otherwise."""
    desk.store.close()
    store = open_store(desk.root, desk.clock, doctor=True)
    try:
        return doctor(store, desk.clock, Policy(), fix=fix)
    finally:
        store.close()


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return sorted({problem.code for problem in problems})


def heals(desk: Desk, *expected: str) -> Diagnosis:
    """Doctor tells the problems, changes nothing, and heals them when asked."""
    before = desk.contents()
    told = diagnosed(desk)
    assert (told.ok, codes(told.problems)) == (False, sorted(expected))
    assert all(problem.detail and problem.fix and problem.path for problem in told.problems)
    assert desk.contents() == before, "without --fix nothing changes"
    healed = diagnosed(desk, fix=True)
    assert (healed.ok, healed.problems) == (True, ())
    assert codes(healed.healed) == sorted(expected)
    assert diagnosed(desk).ok
    return healed


def test_a_healthy_directory_is_ok_and_nothing_is_written(desk: Desk) -> None:
    desk.store.close()
    before = contents(desk.root)
    locks = {path: path.stat().st_mtime_ns for path in desk.root.rglob("*") if path.is_file()}
    assert diagnosed(desk) == Diagnosis(ok=True)
    assert contents(desk.root) == before
    assert {path: path.stat().st_mtime_ns for path in desk.root.rglob("*") if path.is_file()} == locks
    assert desk.reopen().doctor(fix=True) == Diagnosis(ok=True)
    assert contents(desk.root) == before


def test_an_empty_directory_is_ok(tmp_path: Path) -> None:
    assert Desk(tmp_path / "data").fabric.doctor() == Diagnosis(ok=True)


def test_a_missing_task_file_is_restored(desk: Desk) -> None:
    for task_id in (WAITING, GONE, LAID_OUT):
        desk.file(task_id).unlink()
    assert len(heals(desk, "task_file_missing").healed) == 3
    check_invariants(desk.root, edited=True)


def test_an_older_version_of_a_task_gives_way(desk: Desk) -> None:
    data = desk.file(WAITING).read_bytes()
    desk.fabric.edit(WAITING, title="Another")
    desk.file(WAITING).write_bytes(data)
    heals(desk, "task_file_differs")
    check_invariants(desk.root, edited=True)


def test_a_task_in_two_folders_is_put_in_order(desk: Desk) -> None:
    shutil.copy(desk.file(WAITING), desk.file(WAITING, "blocked"))
    heals(desk, "task_in_two_folders")
    assert desk.files(WAITING) == [desk.file(WAITING, "ready")]
    check_invariants(desk.root, edited=True)


def test_an_unreadable_file_is_put_aside_and_the_task_restored(desk: Desk) -> None:
    path = desk.file(WAITING)
    path.write_bytes(b"---\ntitle: [\n---\n")
    told = diagnosed(desk)
    assert codes(told.problems) == ["unreadable_task"]
    assert path.read_bytes() == b"---\ntitle: [\n---\n"
    healed = diagnosed(desk, fix=True)
    copy = path.with_name(f"{WAITING}.md.conflict")
    assert copy.read_bytes() == b"---\ntitle: [\n---\n", "the person's bytes are kept"
    assert (healed.ok, codes(healed.problems)) == (False, ["conflict_copy"])
    assert codes(healed.healed) == ["unreadable_task"]
    copy.unlink()
    assert diagnosed(desk).ok
    check_invariants(desk.root, edited=True)


def test_a_link_is_put_aside_too(desk: Desk, tmp_path: Path) -> None:
    path = desk.file(WAITING)
    outside = path.rename(tmp_path / "outside.md")
    path.symlink_to(outside)
    assert codes(diagnosed(desk).problems) == ["unreadable_task"]
    diagnosed(desk, fix=True)
    assert path.is_file()
    assert not path.is_symlink()
    assert path.with_name(f"{WAITING}.md.conflict").is_symlink()


def test_an_edit_that_will_be_taken_in_is_no_problem(desk: Desk) -> None:
    desk.change(WAITING, "A brief.", "Mine.")
    desk.drop("backlog", "idea.md", "# An idea\n")
    before = desk.contents()
    assert diagnosed(desk) == Diagnosis(ok=True)
    assert desk.contents() == before
    assert diagnosed(desk, fix=True) == Diagnosis(ok=True)
    assert [event.actor for event in desk.reopen().events(task_id=WAITING)][-1] == "hand"


def test_a_refused_move_is_told_and_taken_back(desk: Desk) -> None:
    desk.move(WAITING, "in-progress")
    told = heals(desk, "edit_refused")
    assert "lease" in told.healed[0].detail
    assert desk.files(WAITING) == [desk.file(WAITING, "ready")]
    check_invariants(desk.root, edited=True)


def test_a_refused_edit_is_kept_beside(desk: Desk) -> None:
    desk.change(WAITING, "---\n\nA", 'dependsOn: ["TASK-2020-01-01-001"]\n---\n\nA')
    data = desk.file(WAITING).read_bytes()
    assert codes(diagnosed(desk).problems) == ["edit_refused"]
    assert codes(diagnosed(desk, fix=True).problems) == ["conflict_copy"]
    assert desk.file(WAITING).with_name(f"{WAITING}.md.conflict").read_bytes() == data
    assert desk.reopen().get(WAITING).depends_on == ()


def test_a_folder_that_is_no_status_is_told(desk: Desk) -> None:
    folder = desk.root / "tasks" / "doing"
    folder.mkdir()
    desk.file(WAITING).rename(folder / f"{WAITING}.md")
    heals(desk, "task_file_missing", "unknown_folder")
    (folder / "mine.md").write_text("mine")
    assert codes(diagnosed(desk, fix=True).problems) == ["unknown_folder"]
    assert (folder / "mine.md").read_text() == "mine"


def test_strangers_in_a_status_folder_are_told_and_left_alone(desk: Desk) -> None:
    stranger = desk.drop("ready", "photo.jpg", b"\xff\xd8")
    for name in (".gitkeep", "README.md", f".{WAITING}.md.swp", f"{WAITING}.md~"):
        desk.drop("ready", name, "fine")
    told = diagnosed(desk, fix=True)
    assert [(problem.code, problem.path) for problem in told.problems] == [("unknown_file", "tasks/ready/photo.jpg")]
    assert stranger.exists()


def test_own_files_without_their_task_are_moved_to_it(desk: Desk) -> None:
    lost = desk.file(WAITING, "review").with_suffix("")
    lost.mkdir()
    (lost / "note.txt").write_text("kept")
    heals(desk, "files_misplaced")
    assert (desk.file(WAITING).with_suffix("") / "note.txt").read_text() == "kept"


@pytest.mark.parametrize(
    "name", [f"runs/{RUNNING}/run.json", f"runs/{DONE}/run_result.json", f"runs/{DONE}/attempts/1/run.json"]
)
@pytest.mark.parametrize("damage", ["missing", "wrong", "garbage"])
def test_the_files_of_runs_are_restored(desk: Desk, name: str, damage: str) -> None:
    path = desk.root / name
    data = path.read_bytes()
    match damage:
        case "missing":
            path.unlink()
        case "wrong":
            path.write_bytes(data.replace(b"ada", b"eve").replace(b"bob", b"eve"))
        case "garbage":
            path.write_bytes(b"\x00\xff")
    heals(desk, "run_file_missing" if damage == "missing" else "run_file_differs")
    assert path.read_bytes() == data
    if damage != "missing":
        assert list(desk.root.glob("events/torn/*")), "what was there is kept"
    check_invariants(desk.root, edited=True)


def test_a_result_that_nobody_reported_is_put_aside(desk: Desk) -> None:
    forged = desk.root / "runs" / RUNNING / "run_result.json"
    forged.write_bytes((desk.root / "runs" / DONE / "run_result.json").read_bytes())
    heals(desk, "run_file_differs")
    assert not forged.exists()
    check_invariants(desk.root, edited=True)


def _set(sql: str) -> Callable[[Path], None]:
    def act(root: Path) -> None:
        database = sqlite3.connect(root / "index.sqlite")
        with database:
            database.execute(sql)
        database.close()

    return act


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM tasks WHERE place % 1024 = 1",
        "UPDATE tasks SET record = (SELECT record FROM tasks WHERE place % 1024 = 2) WHERE place % 1024 = 1",
        "INSERT INTO edges VALUES ('TASK-2026-03-02-001', 'TASK-2026-03-02-002')",
        "UPDATE tasks SET record = 'x'",
    ],
)
def test_a_wrong_index_is_rebuilt(desk: Desk, sql: str) -> None:
    expected = desk.fabric.list(archived=True)
    desk.store.close()
    _set(sql)(desk.root)
    heals(desk, "index_wrong")
    assert desk.reopen().list(archived=True) == expected
    check_invariants(desk.root, edited=True)


def test_a_deleted_or_late_index_is_no_problem(desk: Desk) -> None:
    desk.create("Later than the index")
    assert diagnosed(desk).ok
    (desk.root / "index.sqlite").unlink()
    assert diagnosed(desk).ok


@pytest.mark.parametrize("damage", ["deleted", "zeroed", "wrong"])
def test_wrong_heads_are_rebuilt(desk: Desk, damage: str) -> None:
    table = desk.root / "locks/heads/2026-03-02"
    match damage:
        case "deleted":
            table.unlink()
        case "zeroed":
            table.write_bytes(bytes(table.stat().st_size))
        case "wrong":
            table.write_bytes(table.read_bytes().replace(b" r ", b" b "))
    heals(desk, "heads_wrong")
    check_invariants(desk.root, edited=True)


def test_a_counter_that_is_behind_is_put_right(desk: Desk) -> None:
    counter = desk.root / "locks/counter"
    counter.write_bytes(counter.read_bytes().replace(b"2026-03-02 7 ", b"2026-03-02 2 "))
    heals(desk, "counter_behind")
    assert desk.reopen().create("Next").task_id == "TASK-2026-03-02-006"


def test_temporary_files_are_swept_and_are_no_problem(desk: Desk) -> None:
    (desk.root / "tmp" / f"{WAITING}.md").write_text("half")
    assert diagnosed(desk).ok
    assert diagnosed(desk, fix=True).ok
    assert not list((desk.root / "tmp").iterdir())


def test_what_a_dead_writer_left_is_told_and_finished_only_when_asked(desk: Desk) -> None:
    data = desk.file(WAITING).read_bytes()
    desk.fabric.edit(WAITING, title="Another")
    desk.file(WAITING).write_bytes(data)
    note = desk.root / "locks/stripe-01"
    note.write_bytes(note.read_bytes()[:STATE_AT] + f"writing {WAITING}\n".encode())
    journal = desk.root / "locks/journal"
    journal.write_bytes(b".w" + journal.read_bytes()[2:])
    assert diagnosed(desk).problems == ()
    assert codes(diagnosed(desk).advice) == ["unfinished_write"]
    assert desk.file(WAITING).read_bytes() == data, "who only looks changes nothing"
    assert diagnosed(desk, fix=True).ok
    assert desk.file(WAITING).read_bytes() != data
    check_invariants(desk.root, edited=True)


# --- the log


def log_of(desk: Desk) -> Path:
    return desk.root / "events/2026-03-02.jsonl"


@pytest.mark.parametrize("damage", ["changed", "taken out", "put in", "garbage"])
def test_a_broken_chain_is_told_and_never_cut(desk: Desk, damage: str) -> None:
    desk.store.close()
    path = log_of(desk)
    lines = path.read_bytes().splitlines(keepends=True)
    match damage:
        case "changed":
            lines[4] = lines[4].replace(b"tester", b"ghost!")
        case "taken out":
            del lines[3:6]
        case "put in":
            lines.insert(4, lines[2])
        case "garbage":
            lines[4] = b"\x00" * len(lines[4])
    path.write_bytes(b"".join(lines))
    before = desk.contents()
    for fix in (False, True):
        told = diagnosed(desk, fix=fix)
        assert (told.ok, codes(told.problems)) == (False, ["log_damaged"])
        assert "backup" in told.problems[0].fix
        assert desk.contents() == before


def test_a_poisoned_log_is_written_anew_and_opened_again(desk: Desk) -> None:
    state = desk.root / "locks/log"
    state.write_bytes(state.read_bytes().replace(b"sound ", b"poisoned ", 1)[:64])
    desk.reopen()
    with pytest.raises(AofError) as refusal:
        desk.fabric.edit(WAITING, title="Another")
    assert refusal.value.code == "log_poisoned"
    data, inode = log_of(desk).read_bytes(), log_of(desk).stat().st_ino
    heals(desk, "log_poisoned")
    assert log_of(desk).read_bytes() == data
    assert log_of(desk).stat().st_ino != inode, "the bytes are in a new place"
    assert desk.reopen().edit(WAITING, title="Another").updated_fields == ("title",)
    check_it_goes_on(desk.root)


@pytest.mark.parametrize("damage", ["the files deleted", "the folder deleted", "cut", "emptied"])
@pytest.mark.parametrize("checkpointed", [True, False])
def test_a_log_that_lost_events_is_healed_from_the_files(desk: Desk, damage: str, *, checkpointed: bool) -> None:
    if checkpointed:
        desk.store.checkpoint()
    files = {path: path.read_bytes() for path in desk.root.glob("tasks/*/*.md")}
    records = {task_id: desk.fabric.get(task_id) for task_id in (WAITING, RUNNING, DONE, LAID_OUT, GONE)}
    desk.store.close()
    lines = log_of(desk).read_bytes().splitlines(keepends=True)
    match damage:
        case "the files deleted":
            log_of(desk).unlink()
        case "the folder deleted":
            shutil.rmtree(desk.root / "events")
        case "cut":
            log_of(desk).write_bytes(b"".join(lines[:3]))
        case "emptied":
            log_of(desk).write_bytes(b"")
    if checkpointed or damage == "the folder deleted":
        with pytest.raises(AofError) as refusal:
            desk.reopen()
        assert refusal.value.code in {"log_damaged", "no_data_directory"}
    assert codes(diagnosed(desk).problems) == ["log_lacks_events"]
    healed = diagnosed(desk, fix=True)
    assert healed.ok, healed.problems
    desk.reopen()
    for task_id, before in records.items():
        after = desk.fabric.get(task_id)
        assert (after.title, after.status, after.lease, after.retry, after.archived, after.body) == (
            before.title,
            before.status,
            before.lease,
            before.retry,
            before.archived,
            before.body,
        )
        assert after.created_at == before.created_at
        assert after.rev > before.rev or (damage, task_id) == ("cut", WAITING), "no number is given twice"
    assert "priority: high   # mine" in desk.file(LAID_OUT).read_text()
    assert files.keys() == set(desk.root.glob("tasks/*/*.md"))
    assert desk.fabric.progress(RUNNING, agent="ada", text="on").task_id == RUNNING
    assert desk.fabric.doctor().ok


def test_a_directory_that_was_put_back_as_a_whole_is_taken_over_with_one_line(
    desk: Desk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk.store.close()
    shutil.copytree(desk.root, tmp_path / "backup")
    desk.reopen().create("Later")
    desk.store.checkpoint()
    desk.store.close()
    for name in ("tasks", "events", "runs", "archive"):
        shutil.rmtree(desk.root / name)
        shutil.copytree(tmp_path / "backup" / name, desk.root / name)
    desk.reopen()
    assert [line for line in caplog.messages if "replaced as a whole" in line]
    assert desk.fabric.doctor().ok
    desk.store.close()
    check_it_goes_on(desk.root)


def test_a_file_from_another_directory_is_put_into_the_log(desk: Desk, tmp_path: Path) -> None:
    other = Desk(tmp_path / "other")
    other.clock.time += 24 * 3_600_000
    task_id = other.create("From elsewhere")
    shutil.copy(other.file(task_id), desk.file(task_id, "ready"))
    desk.reopen()
    assert "doctor" in desk.refused(task_id).hint
    heals(desk, "task_not_in_log")
    assert desk.reopen().get(task_id).title == "From elsewhere"
    check_invariants(desk.root, edited=True)


def test_doctor_is_not_deceived_by_those_who_write_meanwhile(desk: Desk) -> None:
    """What is being changed while doctor looks is no damage."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        store = FilesystemStore(str(desk.root), SystemClock(), disk=SteppingDisk(), boot_id=lambda: SAME_BOOT)
        try:
            fabric = fabric_on(store, desk.clock)
            for number in range(10_000):
                task_id = fabric.create(f"Busy {number}", review=False).task_id
                (desk.root / "tasks/ready" / task_id).mkdir()
                run = fabric.claim(task_id, agent="busy").run_id
                fabric.complete(task_id, run=run, agent="busy", summary="done")
                fabric.list(limit=1)
                if stop.is_set():
                    break
        except BaseException as error:  # noqa: BLE001 - the test tells it
            failures.append(error)
        finally:
            store.close()

    worker = threading.Thread(target=work)
    worker.start()
    store = FilesystemStore(str(desk.root), SystemClock(), disk=SteppingDisk(), boot_id=lambda: SAME_BOOT)
    try:
        reports = [doctor(store, desk.clock, Policy()) for _ in range(8)]
    finally:
        stop.set()
        worker.join()
        store.close()
    assert failures == []
    assert [report.problems for report in reports] == [()] * 8


def test_the_reports_stay_the_same_over_a_second_look(desk: Desk) -> None:
    desk.file(WAITING).unlink()
    os.rename(desk.file(RUNNING), desk.file(RUNNING, "done"))
    assert diagnosed(desk) == diagnosed(desk)


def test_a_list_does_not_show_what_was_never_proven_durable(desk: Desk) -> None:
    """An event that only the log has, behind a failed flush, is no answer; what is known already still is."""
    known = desk.fabric.list()
    unproven = desk.create("Never flushed")
    state = desk.root / "locks/log"
    state.write_bytes(state.read_bytes().replace(b"sound ", b"poisoned ", 1)[:64])
    desk.reopen()
    with pytest.raises(AofError) as refusal:
        desk.fabric.list()
    assert refusal.value.code == "log_poisoned"
    assert "doctor --fix" in refusal.value.hint
    heals(desk, "log_poisoned")
    assert [row.id for row in desk.reopen().list().tasks] == [*(row.id for row in known.tasks), unproven]


def test_every_problem_that_doctor_knows_is_described_and_has_a_test() -> None:
    root = ROOT
    sources = [*(root / "src/aof/stores/filesystem/doctor").glob("*.py"), root / "src/aof/app/maintenance/service.py"]
    found = {code for path in sources for code in re.findall(r'"([a-z]+(?:_[a-z]+)+)"', path.read_text("utf-8"))}
    found |= {"log_damaged", "unreadable_task", "another_task", "log_line_endings"}
    described = (root / "docs/howto/recover-from-damage.md").read_text("utf-8")
    tested = "".join((root / "tests" / name).read_text("utf-8") for name in TESTED)
    assert {code for code in found if f"`{code}`" not in described} == set()
    assert {code for code in found if f'"{code}"' not in tested} == set()


@pytest.mark.parametrize("lost", ["runs", "locks/heads", "index"])
def test_the_log_is_not_read_once_more_for_every_task_that_something_is_wrong_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """With thousands of tasks doctor would seem to hang, just when somebody needs it most."""
    read: list[int] = []
    of_tasks = Reader.of_tasks

    def counted(self: Reader, *given: Any) -> Iterator[Event]:
        read.append(1)
        return of_tasks(self, *given)

    def readings(count: int) -> int:
        root = Path(init_data_dir(tmp_path / f"{count}/.aof")[0])
        with open_fabric(root, actor="pm") as fabric:
            for _ in range(count):
                fabric.claim(fabric.create("Work", review=False).task_id, agent="ada")
            fabric.list()
        if lost == "index":
            with closing(sqlite3.connect(root / "index.sqlite")) as database, database:
                database.execute("UPDATE tasks SET record = json_set(record, '$.title', 'Wrong')")
        else:
            shutil.rmtree(root / lost)
        read.clear()
        assert not diagnose(root).ok
        assert diagnose(root, fix=True).ok
        return len(read)

    monkeypatch.setattr(Reader, "of_tasks", counted)
    assert readings(12) == readings(4)


@pytest.mark.parametrize(
    "make", [os.mkdir, os.mkfifo, lambda path: os.symlink("nowhere", path)], ids=["dir", "pipe", "link"]
)
@pytest.mark.parametrize("day", ["2026-03-02", "2099-01-01"])
def test_what_is_no_file_in_the_place_of_a_log_is_told_and_nobody_hangs_on_it(
    desk: Desk, make: Callable[[str], None], day: str
) -> None:
    desk.fabric.create("One")
    path = desk.root / f"events/{day}.jsonl"
    kept = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    make(os.fspath(path))
    with pytest.raises(LogDamaged, match="is no file"):
        desk.fabric.create("Two")
    (problem,) = diagnosed(desk).problems
    assert (problem.code, problem.path) == ("log_damaged", f"events/{day}.jsonl")
    assert not diagnosed(desk, fix=True).ok
    path.rmdir() if path.is_dir() else path.unlink()
    if kept is not None:
        path.write_bytes(kept)
    assert diagnosed(desk, fix=True).ok
    desk.reopen().create("Two")


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["dir", "pipe"])
@pytest.mark.parametrize(
    "name", ["runs", "tasks/ready", "locks", "locks/log", "locks/stripe-01", "index.sqlite", "tmp"]
)
def test_what_lies_in_the_place_of_something_of_ours_is_told_or_refused_clearly(
    desk: Desk, make: Callable[[str], None], name: str
) -> None:
    desk.fabric.claim(desk.fabric.create("One").task_id, agent="ada")
    desk.fabric.list()
    before = log_lines(desk.root)
    desk.store.close()
    path = desk.root / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    make(os.fspath(path))
    for fix in (False, True):
        with suppress(AofError):
            diagnosed(desk, fix=fix)
    path.rmdir() if path.is_dir() and not list(path.iterdir()) else shutil.rmtree(
        path
    ) if path.is_dir() else path.unlink()
    assert diagnosed(desk, fix=True).ok
    assert log_lines(desk.root)[: len(before)] == before
    check_invariants(desk.root, edited=True)
