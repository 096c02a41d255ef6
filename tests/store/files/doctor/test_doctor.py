"""Doctor finds each kind of damage, heals what needs no person, and leaves a healthy directory alone."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.events import Draft
from aof.kernel.model import Policy
from aof.maintenance.operations import Diagnosis, doctor
from aof.service.clock import SystemClock
from aof.store.files.locks import STATE_AT
from aof.store.files.store import FilesystemStore
from aof.store.port import Scope
from tests.support.desk import Desk, contents
from tests.support.diagnosis import DONE, GONE, LAID_OUT, RUNNING, WAITING, codes, diagnosed, heals
from tests.support.disks import SteppingDisk
from tests.support.invariants import SAME_BOOT, check_invariants, fabric_on, log_lines
from tests.support.repository import ROOT

TESTED = (
    "store/files/doctor/test_doctor.py",
    "store/files/doctor/test_log.py",
    "store/files/records/test_org_chart.py",
    "faults/test_links.py",
    "store/files/io/test_modes.py",
    "store/files/working_copy/test_git.py",
    "store/files/working_copy/test_two_histories.py",
    "faults/test_unfit_files.py",
    "store/files/integrity/test_log_damage.py",
    "faults/test_leftovers.py",
    "handoffs/test_handoffs.py",
    "e2e/test_clone_merges.py",
    "e2e/test_merge_driver.py",
)
"""Where each problem that doctor knows is made to happen."""


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
    assert len(heals(desk, "task_file_differs").healed) == 1
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


def test_a_worklog_that_cannot_be_read_is_advice_and_holds_nothing_up(desk: Desk) -> None:
    (desk.root / "WORKLOG.md").mkdir()
    told = diagnosed(desk)
    assert told.ok
    assert codes(told.advice) == ["document_unusable"]


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


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM tasks WHERE place % 1024 = 1",
        "UPDATE tasks SET record = (SELECT record FROM tasks WHERE place % 1024 = 2) WHERE place % 1024 = 1",
        "INSERT INTO edges VALUES ('TASK-2026-03-02-001', 'TASK-2026-03-02-002')",
        "UPDATE tasks SET record = '{}'",
    ],
)
def test_a_wrong_index_is_rebuilt(desk: Desk, sql: str) -> None:
    expected = desk.fabric.list(archived=True)
    desk.store.close()
    with closing(sqlite3.connect(desk.root / "index.sqlite")) as database, database:
        database.execute(sql)
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
    assert len(heals(desk, "heads_wrong").healed) == 1
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


def test_doctor_is_not_deceived_by_those_who_write_meanwhile(desk: Desk) -> None:
    """What is being changed while doctor looks is not damage."""
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


def test_two_agents_that_were_both_given_a_task_are_named(desk: Desk) -> None:
    """No command does that; somebody has brought the log into this state."""
    desk.fabric.release(RUNNING, agent="ada")
    first = desk.fabric.claim(RUNNING, agent="ada")
    begun = desk.last(RUNNING)
    with desk.store.unit(Scope(write=frozenset({RUNNING}))) as unit:
        run = f"{first.run_id[:-8]}00000000"
        again = Draft(type=begun.type, task_id=RUNNING, run_id=run, payload=begun.payload | {"agent": "eve"})
        unit.commit((again,), actor="eve", agent="eve", now=desk.clock.now())
    for fix in (False, True):
        (problem,) = (one for one in diagnosed(desk, fix=fix).problems if one.code == "two_leases")
        assert first.run_id in problem.detail
        assert "ada" in problem.detail
        assert "eve" in problem.detail
    fabric = desk.reopen()
    fabric.release(RUNNING, agent="eve")
    assert "two_leases" not in codes(diagnosed(desk).problems), "one of them at most is left"


def test_a_resource_that_more_tasks_occupy_than_it_has_slots_is_named(desk: Desk) -> None:
    several = Fabric(desk.store, desk.clock, Policy(resource_slots={"staging": 2}), "pm")
    held = [several.create("Deploy", resource="staging").task_id for _ in range(2)]
    for task_id, agent in zip(held, ("ada", "eve"), strict=True):
        several.claim(task_id, agent=agent)
    assert "resource_overbooked" not in {one.code for one in several.doctor().advice}
    (advice,) = (one for one in diagnosed(desk).advice if one.code == "resource_overbooked")
    assert all(task_id in advice.detail for task_id in held)


def test_the_reports_stay_the_same_over_a_second_look(desk: Desk) -> None:
    desk.file(WAITING).unlink()
    os.rename(desk.file(RUNNING), desk.file(RUNNING, "done"))
    assert diagnosed(desk) == diagnosed(desk)


def test_every_problem_that_doctor_knows_is_described_and_has_a_test() -> None:
    sources = [*(ROOT / "src/aof/store/files").glob("doctor*.py"), ROOT / "src/aof/maintenance/operations.py"]
    found = {
        code for path in sources for code in re.findall(r'"((?!aof_)[a-z]+(?:_[a-z]+)+)"', path.read_text("utf-8"))
    }
    found |= {"log_damaged", "unreadable_task", "another_task", "log_line_endings"}
    described = (ROOT / "docs/howto/recover-from-damage.md").read_text("utf-8")
    tested = "".join((ROOT / "tests" / name).read_text("utf-8") for name in TESTED)
    assert {code for code in found if f"`{code}`" not in described} == set()
    assert {code for code in found if f'"{code}"' not in tested} == set()


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
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert diagnosed(desk, fix=True).ok
    assert log_lines(desk.root)[: len(before)] == before
    check_invariants(desk.root, edited=True)
