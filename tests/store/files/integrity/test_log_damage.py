"""Somebody was at the log: what was acknowledged is never cut, and nobody appends behind what is missing or changed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.service.upkeep import diagnose
from aof.store.files.log import chain
from aof.store.files.paths import GENESIS
from aof.store.files.read_only import ReadOnlyStore
from aof.store.lists import Query
from aof.testing import FakeClock
from tests.support.indexes import open_fabric, store_of

Damage = Callable[[list[bytes]], list[bytes]]


def _cut_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1][:-20]]


def _cut_commit(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def _edited(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"two"', b'"TWO"') for line in lines]


def _swapped(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def _removed(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines[2:]]


def _rechained(lines: list[bytes]) -> list[bytes]:
    """Somebody changed an event and made all hashes right again."""
    made, digest = [], GENESIS
    for line in lines:
        event = chain.decode_event(line.replace(b'"two"', b'"TWO"'))
        sealed, digest = chain.seal(msgspec.structs.replace(event, hash=""), digest)
        made.append(sealed)
    return made


@pytest.fixture
def log(root: Path, clock: FakeClock) -> Path:
    """The log of a day on which four tasks were made."""
    with open_fabric(root, clock) as fabric:
        for title in ("one", "two", "three", "four"):
            fabric.create(title)
    (path,) = (root / "events").glob("*.jsonl")
    return path


def _harm(log: Path, damage: Damage) -> bytes:
    """Do it to the log; what it is then."""
    damaged = b"".join(damage(log.read_bytes().splitlines(keepends=True)))
    log.write_bytes(damaged)
    return damaged


@pytest.mark.parametrize("damage", [_cut_line, _cut_commit, _edited, _swapped, _removed, _rechained])
@pytest.mark.parametrize("running", [True, False])
def test_nobody_appends_to_a_log_that_lacks_or_changed_what_was_acknowledged(
    root: Path, clock: FakeClock, log: Path, damage: Damage, *, running: bool
) -> None:
    with open_fabric(root, clock) as fabric:
        if running:
            fabric.create("five")
        damaged = _harm(log, damage)
        os.utime(log, ns=(1, 1))
        for _ in range(2):
            with pytest.raises(AofError) as caught:
                fabric.create("never")
            assert caught.value.code == "log_damaged", caught.value
    assert log.read_bytes() == damaged, "nothing was appended or cut"
    assert not [path for path in (root / "events/torn").iterdir() if path.name != ".gitkeep"]


@pytest.mark.parametrize(("damage", "event"), [(_edited, 4), (_swapped, 3), (_removed, 3)])
def test_the_first_event_that_is_wrong_is_named(
    root: Path, clock: FakeClock, log: Path, damage: Damage, event: int
) -> None:
    _harm(log, damage)
    with open_fabric(root, clock) as fabric, pytest.raises(AofError) as caught:
        fabric.create("never")
    assert caught.value.details["seq"] == event
    assert re.search(rf"event {event}\b", caught.value.message)


READS: dict[str, Callable[[Fabric], object]] = {
    "list": lambda fabric: fabric.list().tasks,
    "log": lambda fabric: list(fabric.events()),
    "show": lambda fabric: fabric.get("001"),
    "verify": lambda fabric: fabric.verify(),
    "sync": lambda fabric: fabric.sync(),
}


def three_days(root: Path, clock: FakeClock) -> list[Path]:
    for title in ("one", "two", "three"):
        with open_fabric(root, clock) as fabric:
            fabric.create(title)
            fabric.list()
        clock.sleep(86_400)
    return sorted((root / "events").glob("*.jsonl"))


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("running", [True, False])
def test_no_read_takes_a_log_without_its_newest_day_for_all_there_is(
    root: Path, clock: FakeClock, read: str, *, running: bool
) -> None:
    newest = three_days(root, clock)[-1]
    if not running:
        newest.unlink()
    with open_fabric(root, clock) as fabric:
        if running:
            assert len(fabric.list().tasks) == 3
            newest.unlink()
        with pytest.raises(AofError) as caught:
            READS[read](fabric)
    assert caught.value.code == "log_damaged"


@pytest.mark.parametrize("day", [0, 1])
@pytest.mark.parametrize("read", ["log", "verify"])
def test_no_read_tells_a_history_from_which_an_older_day_is_missing(
    root: Path, clock: FakeClock, day: int, read: str
) -> None:
    three_days(root, clock)[day].unlink()
    with open_fabric(root, clock) as fabric:
        with pytest.raises(AofError) as caught:
            READS[read](fabric)
        assert caught.value.code == "log_damaged"
        assert [row.title for row in fabric.list().tasks] == ["one", "two", "three"], "the index still knows them"


def test_who_may_only_read_is_told_that_the_log_is_gone(root: Path, clock: FakeClock, log: Path) -> None:
    log.unlink()
    with pytest.raises(AofError) as caught:
        ReadOnlyStore(str(root), clock).find(Query())
    assert caught.value.code == "log_damaged"


def test_a_missing_older_day_stops_appending(root: Path, clock: FakeClock, log: Path) -> None:
    clock.sleep(86_400)
    with open_fabric(root, clock) as fabric:
        fabric.create("the next day")
        log.unlink()
        with pytest.raises(AofError) as caught:
            fabric.create("never")
    assert caught.value.code == "log_damaged"


def test_an_older_day_that_was_edited_in_place_is_noticed_by_the_next_process(
    root: Path, clock: FakeClock, log: Path
) -> None:
    clock.sleep(86_400)
    with open_fabric(root, clock) as fabric:
        fabric.create("the next day")
    log.write_bytes(log.read_bytes().replace(b'"two"', b'"TWO"'))
    with open_fabric(root, clock) as fabric, pytest.raises(AofError) as caught:
        fabric.create("never")
    assert (caught.value.code, caught.value.details["seq"]) == ("log_damaged", 4)


def test_touching_the_log_only_costs_a_verification(root: Path, clock: FakeClock, log: Path) -> None:
    copy = log.read_bytes()
    log.unlink()
    log.write_bytes(copy)
    with open_fabric(root, clock) as fabric:
        fabric.create("five")
        os.utime(log)
        fabric.create("six")
        assert fabric.status().by_status["ready"] == 6


def test_what_a_killed_writer_left_behind_the_acknowledged_end_is_still_set_aside(
    root: Path, clock: FakeClock, log: Path
) -> None:
    with log.open("ab") as file:
        file.write(b'{"seq":5,"type":"task.cre')
    with open_fabric(root, clock) as fabric:
        fabric.create("five")
    (torn,) = [path for path in (root / "events/torn").iterdir() if path.name != ".gitkeep"]
    assert torn.read_bytes() == b'{"seq":5,"type":"task.cre'


def _tree(root: Path) -> dict[str, bytes]:
    """Everything but caches and locks."""
    kept = [path for path in root.rglob("*") if path.is_file() and path.relative_to(root).parts[0] != "locks"]
    return {str(path.relative_to(root)): path.read_bytes() for path in kept if "index.sqlite" not in path.name}


@pytest.mark.parametrize(("damage", "event", "files"), [(_edited, 4, 2), (_swapped, 3, 3), (_removed, 3, 3)])
def test_doctor_names_the_first_wrong_event_and_what_is_left(
    root: Path, clock: FakeClock, log: Path, damage: Damage, *, event: int, files: int
) -> None:
    with open_fabric(root, clock) as fabric:
        fabric.list()
    (root / "tasks/ready/TASK-2026-03-02-004.md").unlink()
    _harm(log, damage)
    before = _tree(root)
    (problem,) = diagnose(root, clock=clock).problems
    assert (problem.code, problem.path) == ("log_damaged", f"events/{log.name}")
    assert re.search(rf"event {event}\b", problem.detail)
    assert f"the files of {files} tasks can be restored" in problem.detail
    assert "the index knows 1 more" in problem.detail
    assert not diagnose(root, clock=clock, fix=True).ok
    assert _tree(root) == before, "nothing was mended"


@pytest.mark.parametrize("synced", [True, False])
def test_doctor_reports_a_log_that_was_chained_anew_as_tampering_and_keeps_the_evidence(
    root: Path, clock: FakeClock, log: Path, *, synced: bool
) -> None:
    with open_fabric(root, clock) as fabric:
        fabric.list()
        if synced:
            store_of(fabric).checkpoint()
    _harm(log, _rechained)
    before, heads = _tree(root), next((root / "locks/heads").iterdir()).read_bytes()
    for fix in (False, True, True):
        (problem,) = diagnose(root, clock=clock, fix=fix).problems
        assert problem.code == "log_rewritten"
        assert "tampered" in problem.detail
        assert "one of the events 4 to 6" in problem.detail
        assert "the files of 4 of 4 tasks are as they were last written" in problem.detail
        assert _tree(root) == before
        assert next((root / "locks/heads").iterdir()).read_bytes() == heads
    for limit in (None, 2):
        with pytest.raises(AofError) as caught, open_fabric(root, clock) as fabric:
            fabric.verify(limit=limit)
        assert (caught.value.code, caught.value.message) == (problem.code, problem.detail), "verify says the same"
    with pytest.raises(AofError) as caught, open_fabric(root, clock) as fabric:
        fabric.create("never")
    assert caught.value.code == ("log_rewritten" if synced else "log_damaged")


def test_a_log_that_was_tampered_with_can_be_left_behind(
    root: Path, clock: FakeClock, log: Path, tmp_path: Path
) -> None:
    _harm(log, _rechained)
    log.rename(tmp_path / "evidence")
    assert diagnose(root, clock=clock, fix=True).ok
    with open_fabric(root, clock) as fabric:
        assert sorted(row.title for row in fabric.list().tasks) == ["four", "one", "three", "two"]
        fabric.create("five")


@pytest.mark.parametrize("damage", [_cut_line, _cut_commit])
def test_doctor_tells_that_the_end_of_the_log_was_cut_and_puts_back_what_files_know(
    root: Path, clock: FakeClock, log: Path, damage: Damage
) -> None:
    _harm(log, damage)
    before = _tree(root)
    assert {problem.code for problem in diagnose(root, clock=clock).problems} == {"log_lacks_events"}
    assert _tree(root) == before, "who only looks repairs nothing"
    assert diagnose(root, clock=clock, fix=True).ok
    with open_fabric(root, clock) as fabric:
        assert sorted(row.title for row in fabric.list().tasks) == ["four", "one", "three", "two"]
        fabric.create("five")


@pytest.mark.parametrize("cut", [_cut_line, _cut_commit])
def test_a_log_that_was_cut_is_refused_also_where_the_locks_were_deleted(
    root: Path, clock: FakeClock, log: Path, cut: Damage
) -> None:
    """The files of its tasks know more than the log, and nobody says where that ended."""
    with open_fabric(root, clock) as fabric:
        fabric.claim("001", agent="ada")
    damaged = _harm(log, cut)
    shutil.rmtree(root / "locks")
    for _ in range(2):
        with pytest.raises(AofError) as caught, open_fabric(root, clock) as fabric:
            fabric.create("never")
        assert caught.value.code == "log_damaged", caught.value
    assert log.read_bytes() == damaged, "nothing was appended or cut"
    assert not [path for path in (root / "events/torn").iterdir() if path.name != ".gitkeep"]
    assert [problem.code for problem in diagnose(root).problems] == ["log_lacks_events"]
    assert diagnose(root, fix=True).ok
    with open_fabric(root, clock) as fabric:
        assert fabric.get("001").status == "in-progress"
