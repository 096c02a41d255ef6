"""Audit records as JSON lines: they follow the log, prove themselves against it, and go when their time is over."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.handoffs.audit import AuditRecord, line_of
from tests.support.audits import finished, note
from tests.support.requirements import requirement
from tests.support.room import Room

DAY = 24 * 60 * 60


def files(room: Room) -> dict[str, bytes]:
    """Every audit file by its name."""
    return {path.name: path.read_bytes() for path in sorted(room.root.glob("logs/*/handoff-audit/*"))}


def steps(room: Room, fabric: Fabric | None = None) -> list[AuditRecord]:
    """All records, as the command has them."""
    return list((fabric or room.fabric).audit().records)


def noted(room: Room, task: str, *which: str, **given: Any) -> None:
    """Commit audit records, one per step."""
    for step in which:
        note(room.fabric.store, room.clock.now(), task, msgspec.convert(step, Any), **given)


@requirement("handoff.retention.json-lines")
def test_records_of_two_days_are_in_two_files_with_one_record_per_line(room: Room) -> None:
    task = room.task()
    noted(room, task, "initiated", "accepted")
    room.clock.sleep(DAY)
    noted(room, task, "completed")
    found = steps(room)
    written = files(room)
    assert list(written) == ["2026-03-02.jsonl", "2026-03-03.jsonl"]
    assert len(list(room.root.glob("logs/unknown/handoff-audit/*.jsonl"))) == 2
    lines = [line for data in written.values() for line in data.splitlines(keepends=True)]
    assert [msgspec.json.decode(line, type=AuditRecord) for line in lines] == found
    assert b"".join(written.values()).count(b"\n") == 3


def test_nothing_is_written_until_somebody_reads(room: Room) -> None:
    noted(room, room.task(), "initiated")
    assert files(room) == {}
    steps(room)
    assert len(files(room)) == 1


@requirement("handoff.audit.immutable")
def test_later_steps_restarts_and_a_rebuilt_index_only_append(room: Room) -> None:
    task = room.task()
    noted(room, task, "initiated")
    steps(room)
    (before,) = files(room).values()
    noted(room, task, "accepted")
    room.reopen()
    (room.root / "index.sqlite").unlink()
    steps(room)
    shutil.rmtree(room.root / "locks")
    noted(room, task, "completed")
    room.reopen()
    steps(room)
    (after,) = files(room).values()
    assert after.startswith(before)
    assert after.count(b"\n") == 3
    assert room.fabric.audit_verify().ok


def test_a_line_that_a_dead_writer_left_unfinished_is_written_again(room: Room) -> None:
    task = room.task()
    noted(room, task, "initiated", "accepted")
    steps(room)
    (path,) = room.root.glob("logs/*/*/*.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n") + 40])
    (room.root / "locks" / "audit").write_bytes(b"")
    room.reopen()
    assert room.fabric.audit_verify().ok
    steps(room)
    assert path.read_bytes() == whole


def broken(room: Room) -> list[tuple[str, int | None, str | None]]:
    """What the verification finds: code, event and handoff."""
    found = room.fabric.audit_verify()
    assert found.ok is not bool(found.problems)
    return [(one.code, one.seq, one.handoff_id) for one in found.problems]


def three(room: Room) -> tuple[Path, list[bytes], list[AuditRecord]]:
    """A file with the records of three handoffs, their lines, and the records."""
    task = room.task()
    for number in range(3):
        noted(room, task, "initiated", handoff=f"h-{number}")
    records = steps(room)
    assert broken(room) == []
    (path,) = room.root.glob("logs/*/*/*.jsonl")
    return path, path.read_bytes().splitlines(keepends=True), records


@pytest.mark.parametrize("code", ["record_changed", "record_removed"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_changed_or_removed_line_of_a_file_is_named_also_after_a_look(room: Room, which: int, code: str) -> None:
    path, lines, records = three(room)
    another = line_of(msgspec.structs.replace(records[which], reason="another reason"))
    lines[which] = another if code == "record_changed" else b""
    path.write_bytes(b"".join(lines))
    for _ in range(2):
        assert broken(room) == [(code, records[which].seq, f"h-{which}")]
        steps(room)


def test_a_reordered_or_repeated_or_added_line_of_a_file_is_named(room: Room) -> None:
    path, lines, records = three(room)
    path.write_bytes(b"".join([lines[1], lines[0], lines[2]]))
    assert broken(room) == [("record_reordered", records[0].seq, "h-0")]
    path.write_bytes(b"".join([*lines, lines[1]]))
    assert broken(room) == [("record_repeated", records[1].seq, "h-1")]
    added = msgspec.structs.replace(records[0], seq=99, handoff_id="h-9")
    path.write_bytes(b"".join([*lines, line_of(added)]))
    assert broken(room) == [("record_unknown", 99, "h-9")]
    path.write_bytes(b"".join([lines[0], b"{}\n", *lines[1:]]))
    assert broken(room) == [("record_changed", None, None)]


def test_a_file_that_was_removed_is_missed(room: Room) -> None:
    path, _, records = three(room)
    path.unlink()
    assert broken(room) == [("record_removed", one.seq, one.handoff_id) for one in records]


def log_lines(room: Room) -> tuple[Path, list[bytes]]:
    """The log of the day, and its lines."""
    path = room.root / "events" / "2026-03-02.jsonl"
    return path, path.read_bytes().splitlines(keepends=True)


def test_a_changed_record_in_the_log_is_named(room: Room) -> None:
    _, _, records = three(room)
    path, lines = log_lines(room)
    at = records[1].seq - 1
    lines[at] = lines[at].replace(b"needs review", b"needs rewiew")
    path.write_bytes(b"".join(lines))
    assert ("record_changed", records[1].seq, "h-1") in broken(room)


def test_a_record_removed_from_the_log_is_named(room: Room) -> None:
    _, _, records = three(room)
    path, lines = log_lines(room)
    del lines[records[1].seq - 1]
    path.write_bytes(b"".join(lines))
    assert set(broken(room)) == {("record_removed", records[1].seq, None), ("record_unknown", records[1].seq, "h-1")}


def test_records_that_change_places_in_the_log_are_named(room: Room) -> None:
    _, _, records = three(room)
    path, lines = log_lines(room)
    at = records[0].seq - 1
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    path.write_bytes(b"".join(lines))
    assert ("record_reordered", records[0].seq, "h-0") in broken(room)


def at_day(room: Room, day: int, start: int) -> None:
    """Move the clock to a number of days after a moment."""
    room.clock.sleep((start + day * DAY * 1000 - room.clock.now()) / 1000)


@requirement("handoff.retention.active-tasks")
def test_records_of_an_open_task_stay_and_those_of_a_cancelled_one_for_thirty_days(room: Room) -> None:
    task = room.task()
    noted(room, task, "initiated", "rejected")
    steps(room)
    room.clock.sleep(366 * DAY)
    assert room.fabric.audit_prune().removed == ()
    finished(room.fabric, task, done=False)
    closed = room.clock.now()
    at_day(room, 29, closed)
    assert room.fabric.audit_prune().removed == ()
    assert sum(data.count(b"\n") for data in files(room).values()) == 2
    at_day(room, 30, closed)
    assert [one.records for one in room.fabric.audit_prune(dry_run=True).removed] == [2]
    assert len(files(room)) == 1
    assert [one.records for one in room.fabric.audit_prune().removed] == [2]
    assert files(room) == {}
    assert room.fabric.audit_verify().ok


@requirement("handoff.retention.completed-tasks", "handoff.retention.escalation-events")
def test_records_of_a_completed_task_stay_for_ninety_days_and_escalations_for_180(room: Room) -> None:
    task = room.fabric.create("One with an escalation", review=False).task_id
    noted(room, task, "initiated", "accepted", handoff="h-1")
    noted(room, task, "initiated", "escalated", handoff="h-2", handoff_type="escalation")
    noted(room, task, "escalated", "completed", handoff="h-1")
    finished(room.fabric, task)
    assert room.fabric.get(task).status == "done"
    closed = room.clock.now()
    at_day(room, 89, closed)
    assert room.fabric.audit_prune().removed == ()
    assert len(steps(room)) == 6
    at_day(room, 179, closed)
    assert [one.records for one in room.fabric.audit_prune().removed] == [3]
    (left,) = files(room).values()
    kept = [msgspec.json.decode(line, type=AuditRecord) for line in left.splitlines()]
    assert [f"{one.handoff_id} {one.event_type}" for one in kept] == ["h-2 initiated", "h-2 escalated", "h-1 escalated"]
    assert broken(room) == []
    assert len(steps(room)) == 6
    at_day(room, 180, closed)
    assert [one.records for one in room.fabric.audit_prune().removed] == [3]
    noted(room, room.task(), "initiated", handoff="h-3")
    steps(room)
    assert [line.count(b"\n") for line in files(room).values()] == [1]


@requirement("handoff.retention.planned-action")
def test_retention_is_an_action_of_the_plan_and_leaves_the_log_alone(room: Room) -> None:
    task = room.task()
    noted(room, task, "initiated", "rejected")
    steps(room)
    finished(room.fabric, task, done=False)
    room.clock.sleep(31 * DAY)
    log = {path: path.read_bytes() for path in (room.root / "events").glob("*.jsonl")}
    (planned,) = room.fabric.tick(dry_run=True).actions
    assert planned.action == "retention"
    assert "2 in logs/unknown/handoff-audit/2026-03-02.jsonl" in planned.reason
    assert len(files(room)) == 1
    (done,) = room.fabric.tick().actions
    assert done == planned
    assert files(room) == {}
    assert {path: path.read_bytes() for path in (room.root / "events").glob("*.jsonl")} == log
    assert room.fabric.doctor().ok
    assert room.fabric.tick().actions == ()


def test_a_tick_lets_the_files_follow(room: Room) -> None:
    noted(room, room.task(), "initiated")
    room.fabric.tick(dry_run=True)
    assert files(room) == {}
    room.fabric.tick()
    assert len(files(room)) == 1


def test_a_link_in_the_place_of_a_file_is_not_followed(room: Room, tmp_path: Path) -> None:
    noted(room, room.task(), "initiated")
    outside = tmp_path / "outside"
    outside.mkdir()
    (room.root / "logs").symlink_to(outside)
    assert len(steps(room)) == 1
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", "..", "x" * 300, "\u202eevil"])
def test_the_name_of_a_project_stays_one_folder(room: Room, name: str) -> None:
    noted(room, room.task(), "initiated")
    found = room.fabric.store.audit_files(name)
    assert found is not None
    found.follow()
    (path,) = room.root.glob("logs/*/handoff-audit/*.jsonl")
    assert path.resolve().is_relative_to(room.root.resolve())
    assert len(path.parts) == len(room.root.parts) + 4
