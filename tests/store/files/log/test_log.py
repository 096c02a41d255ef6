"""The log by itself: its chain, its end, its days, its readers and its locks."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aof.errors import DiskFull, LockTimeout, LogDamaged
from aof.kernel.events import Event
from aof.store.files.disk import Disk
from aof.store.files.log import chain
from aof.store.files.paths import GENESIS, LogReplaced, Position
from aof.store.files.store import FilesystemStore
from tests.support.clock import DAY, ManualClock
from tests.support.clock import MONDAY as EARLY
from tests.support.disks import FailingDisk, SteppingDisk
from tests.support.invariants import check_it_goes_on, check_log, open_store
from tests.support.log_bench import FRIDAY, MONDAY, TASK, TUESDAY, Bench, FailingOnce, another, commit_of
from tests.support.scenarios import Story, Teller, claim, create, later, prepare
from tests.support.verified import verify

# --- the chain


def test_every_event_builds_on_the_one_before(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    bench.append(MONDAY, "two", "three")
    bench.append(TUESDAY, "four")
    assert bench.texts() == ["one", "two", "three", "four"]
    assert verify(bench.reader).seq == 4
    assert [event.seq for event in check_log(bench.root)] == [1, 2, 3, 4]


def test_a_changed_byte_anywhere_in_the_log_is_found(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    bench.append(MONDAY, "two", "three")
    bench.append(MONDAY, "four")
    whole = bench.file().read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x01
        bench.file().write_bytes(changed)
        try:
            found = verify(bench.reader)
        except LogDamaged:
            continue
        assert place >= whole.rindex(b"\n", 0, -1), f"byte {place} was changed unnoticed"
        assert found.seq == 3, "without its end the last line is not yet written"


def test_a_line_taken_out_put_in_twice_or_moved_is_found(bench: Bench) -> None:
    for text in ("one", "two", "three", "four"):
        bench.append(MONDAY, text)
    lines = bench.file().read_bytes().splitlines(keepends=True)
    for number in range(4):
        without = lines[:number] + lines[number + 1 :]
        if number < 3:
            bench.file().write_bytes(b"".join(without))
            with pytest.raises(LogDamaged):
                verify(bench.reader)
        bench.file().write_bytes(b"".join([*lines[: number + 1], *lines[number:]]))
        with pytest.raises(LogDamaged):
            verify(bench.reader)
        bench.file().write_bytes(b"".join([lines[number], *without]) if number else b"".join(reversed(lines)))
        with pytest.raises(LogDamaged):
            verify(bench.reader)


def test_a_whole_day_taken_out_is_found(bench: Bench) -> None:
    for day in (MONDAY, TUESDAY, FRIDAY):
        bench.append(day)
    bench.file(TUESDAY).unlink()
    with pytest.raises(LogDamaged, match="broken at event 3"):
        verify(bench.reader)


def test_a_forged_line_with_a_right_hash_breaks_at_the_next_one(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    bench.append(MONDAY, "two")
    lines = bench.file().read_bytes().splitlines(keepends=True)
    forged = commit_of("uno")(0, GENESIS)[0]
    bench.file().write_bytes(forged + lines[1])
    with pytest.raises(LogDamaged, match="broken at event 2"):
        verify(bench.reader)


def test_a_commit_whose_places_do_not_count_up_is_found(bench: Bench) -> None:
    """Even where every hash is right: someone who can write the log can make hashes."""
    previous, data = GENESIS, b""
    for seq, place in enumerate([(1, 3), (3, 3)], 1):
        event = Event(seq=seq, type="t", timestamp="x", actor="a", task_id=TASK, payload={"text": ""}, commit=place)
        line, previous = chain.seal(event, previous)
        data += line
    bench.file().write_bytes(data)
    with pytest.raises(LogDamaged):
        verify(bench.reader)


def test_verifying_can_begin_at_any_position(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    bench.append(MONDAY, "two")
    middle, _ = next(bench.reader.commits(Position()))
    assert verify(bench.reader, middle).seq == 2
    with pytest.raises(LogDamaged):
        verify(bench.reader, Position(MONDAY, middle.offset, 1, "f" * 64))


# --- the end of the log


def test_an_incomplete_commit_is_not_there_for_readers_and_goes_aside_with_the_next_append(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    whole = bench.file().read_bytes()
    next_commit = commit_of("two", "three")(1, bench.log.position.digest)[0]
    for kept in range(1, len(next_commit)):
        torn = next_commit[:kept]
        bench = Bench(bench.root.parent / str(kept))
        bench.append(MONDAY, "one")
        bench.file().write_bytes(whole + torn)
        assert bench.texts() == ["one"]
        assert verify(bench.reader).seq == 1
        assert bench.file().read_bytes() == whole + torn, "a reader changes nothing"
        other = another(bench)
        other.append(MONDAY, "later")
        other.close()
        assert [path.read_bytes() for path in bench.torn()] == [torn]
        assert bench.texts() == ["one", "later"]
        verify(bench.reader)
        bench.close()


def test_a_second_torn_end_at_the_same_place_does_not_overwrite_the_first(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    for text in (b'{"seq":3', b'{"seq":2,"type"'):
        with bench.file().open("ab") as file:
            file.write(text)
        bench.log.refresh()
    assert {path.read_bytes() for path in bench.torn()} == {b'{"seq":3', b'{"seq":2,"type"'}


def begin_anew(bench: Bench) -> None:
    """Take the log as it is, as who has loaded everything anew."""
    bench.log.restate()
    bench.log.replaced = False


def test_what_is_remembered_of_the_end_must_prove_itself(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    bench.append(MONDAY, "two")
    lines = bench.file().read_bytes().splitlines(keepends=True)
    other = commit_of("another two")(1, chain.decode_event(lines[0]).hash)[0]
    bench.file().write_bytes(lines[0] + other.ljust(len(lines[1])))
    bench.file().write_bytes(lines[0] + other)
    with pytest.raises(LogReplaced):
        bench.append(MONDAY, "decided on what the other log said")
    begin_anew(bench)
    bench.append(MONDAY, "three")
    assert bench.texts() == ["one", "another two", "three"]
    verify(bench.reader)


def test_a_log_that_was_replaced_by_another_file_is_read_anew(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    first = bench.file().read_bytes()
    bench.append(MONDAY, "two")
    bench.file().unlink()
    bench.file().write_bytes(first)
    with pytest.raises(LogReplaced):
        bench.append(MONDAY, "decided on what the other log said")
    begin_anew(bench)
    bench.append(MONDAY, "three")
    assert bench.texts() == ["one", "three"]
    verify(bench.reader)


@pytest.mark.parametrize("size", [10, 70_000, 1_200_000])
def test_the_end_is_found_behind_commits_of_any_size(bench: Bench, size: int) -> None:
    bench.append(MONDAY, "small")
    bench.append(MONDAY, "x" * size, "y" * size)
    with bench.file().open("ab") as file:
        file.write(commit_of("torn", "and lost")(3, bench.log.position.digest)[0][:-10])
    other = another(bench)
    other.append(MONDAY, "after")
    assert other.log.seq == 4
    other.close()
    assert [text[:5] for text in bench.texts()] == ["small", "x" * min(size, 5), "y" * min(size, 5), "after"]
    verify(bench.reader)


def test_a_large_torn_commit_does_not_hide_what_lies_before_it(bench: Bench) -> None:
    bench.append(MONDAY, "x" * 100_000)
    with bench.file().open("ab") as file:
        file.write(commit_of("y" * 50_000, "z")(1, bench.log.position.digest)[0][:-5])
    assert [text[0] for text in bench.texts()] == ["x"]
    other = another(bench)
    other.append(MONDAY, "after")
    other.close()
    assert [text[0] for text in bench.texts()] == ["x", "a"]
    verify(bench.reader)


def test_a_damaged_line_that_others_stand_behind_stops_appending_and_nothing_is_cut(bench: Bench) -> None:
    for text in ("one", "two", "three"):
        bench.append(MONDAY, text)
    damaged = bytearray(bench.file().read_bytes())
    damaged[damaged.index(b"\n") + 5] = 0
    damaged[-30] = 0
    bench.file().write_bytes(damaged)
    other = another(bench)
    with pytest.raises(LogDamaged):
        other.append(MONDAY, "four")
    other.close()
    assert bench.file().read_bytes() == bytes(damaged)
    assert bench.torn() == []


# --- days


def test_the_logs_day_never_goes_back_whatever_the_clock_does(bench: Bench) -> None:
    for day in (TUESDAY, MONDAY, FRIDAY, TUESDAY, "2025-01-01", FRIDAY):
        bench.append(day, day)
        other = another(bench)
        other.append(MONDAY, "elsewhere")
        other.close()
    assert sorted(path.stem for path in (bench.root / "events").glob("*.jsonl")) == [TUESDAY, FRIDAY]
    assert verify(bench.reader).seq == 12
    assert bench.texts()[::2] == [TUESDAY, MONDAY, FRIDAY, TUESDAY, "2025-01-01", FRIDAY]


def test_a_day_that_was_begun_and_never_written_to_does_not_hide_what_is_appended_elsewhere(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    bench.file(FRIDAY).touch()
    seen = bench.reader.end()
    bench.append(MONDAY, "two")
    assert bench.reader.end() != seen, "a follower sees that something came"
    assert bench.texts() == ["one", "two"]
    bench.append(FRIDAY, "three")
    assert bench.texts() == ["one", "two", "three"]
    verify(bench.reader)


def test_the_old_day_is_flushed_before_a_new_one_begins_whoever_wrote_it(bench: Bench) -> None:
    """A writer may have died between its append and its flush; what comes after must not be more durable than that."""
    bench.append(MONDAY, "one")
    other = another(bench)
    other.append(TUESDAY, "two")
    names = [(step.name, step.path.rsplit("/", 1)[-1]) for step in other.disk.taken]
    assert names == [
        ("flush", f"{MONDAY}.jsonl"),
        ("create", f"{TUESDAY}.jsonl"),
        ("sync_dir", "events"),
        ("overwrite", "log"),
        ("append", f"{TUESDAY}.jsonl"),
        ("overwrite", "log"),
        ("flush", f"{TUESDAY}.jsonl"),
        ("overwrite", "flushed"),
    ]
    other.close()


def test_events_can_be_had_from_any_number_over_several_days(bench: Bench) -> None:
    bench.append(MONDAY, "1", "2", "3")
    bench.append(TUESDAY, "4")
    bench.append(TUESDAY, "5", "6")
    bench.append(FRIDAY, "7")
    bench.log.restate(floor=20)
    bench.append(FRIDAY, "21")
    bench.append("2026-03-07", "22")
    everything = [1, 2, 3, 4, 5, 6, 7, 21, 22]
    for after in range(24):
        assert [event.seq for event in bench.reader.events(after)] == [seq for seq in everything if seq > after]


def test_no_number_is_given_below_the_floor(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    bench.log.restate(floor=41)
    bench.append(MONDAY, "two")
    other = another(bench)
    other.append(TUESDAY, "three")
    other.close()
    assert [event.seq for event in bench.reader.events()] == [1, 42, 43]
    verify(bench.reader)


def test_a_checkpoint_on_a_day_without_events_is_found_again(tmp_path: Path) -> None:
    """The day was begun, the disk was full, everything was synced, the power went."""
    root = tmp_path / "data"
    prepare(root, Story((create(),), ()))
    disk = FailingOnce(errno.ENOSPC)
    disk.fails = "append"
    teller = Teller(root, disk, now=EARLY + DAY)
    with pytest.raises(DiskFull):
        teller.tell(claim())
    assert (teller.store.log.position.segment, teller.store.log.position.offset) == (TUESDAY, 0)
    teller.store.checkpoint()
    teller.close()
    check_it_goes_on(root, boot="the-next-boot")


# --- readers


def test_the_head_of_a_log_without_events_is_zero(tmp_path: Path) -> None:
    FilesystemStore.create(str(tmp_path / "data"), SteppingDisk())
    store = open_store(tmp_path / "data", disk=Disk())
    assert store.head() == 0
    assert not store.log.is_poisoned()
    store.close()


def test_a_follower_waits_until_something_comes_and_no_longer_than_it_is_told(tmp_path: Path) -> None:
    prepare(tmp_path / "data", Story((create(),), ()))
    teller = Teller(tmp_path / "data")
    head = teller.store.head()
    assert teller.store.wait(0, 0.0)
    before = teller.clock.ticks
    assert not teller.store.wait(head, 30.0)
    assert teller.clock.ticks == pytest.approx(before + 30.0)
    teller.tell(later(DAY), claim())
    assert teller.store.wait(head, 0.0)
    teller.close()


def test_a_follower_is_woken_by_another_process(tmp_path: Path) -> None:
    prepare(tmp_path / "data", Story((create(),), ()))
    writer = Teller(tmp_path / "data")

    class Woken(ManualClock):
        def sleep(self, seconds: float) -> None:
            """While the follower sleeps for the third time, another writes."""
            super().sleep(seconds)
            if self.ticks > 0.01:
                writer.tell(claim()) if not writer.store.log.seq else None

    follower = open_store(tmp_path / "data", Woken())
    head = follower.head()
    assert follower.wait(head, 60.0)
    assert "task.attempt.started" in [event.type for event in follower.events(head)]
    follower.close()
    writer.close()


def test_a_reader_flushes_what_it_hands_out(tmp_path: Path) -> None:
    prepare(tmp_path / "data", Story((create(),), ()))
    disk = FailingDisk()
    store = open_store(tmp_path / "data", disk=disk)
    list(store.events())
    assert [step.name for step in disk.taken] == ["flush"]
    store.close()


# --- locks


HOLD = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_waiting_for_the_log_is_bounded_and_the_error_names_the_holder(bench: Bench) -> None:
    bench.append()
    command = [sys.executable, "-c", HOLD, bench.paths.events]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockTimeout, match=f"process {holder.pid} holds") as caught:
            bench.append()
        assert caught.value.details["pids"] == [holder.pid]
        holder.communicate(timeout=30)
    bench.append()
    assert verify(bench.reader).seq == 2


def test_a_child_of_a_fork_opens_the_log_for_itself(bench: Bench) -> None:
    bench.append(MONDAY, "before")
    held = bench.locks.take(bench.paths.events)
    assert held is not None
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(ours)
            taken = bench.locks.take_free(bench.paths.events)
            os.write(theirs, b"taken" if taken else b"free for the parent")
            status = 0
        finally:
            os._exit(status)
    os.close(theirs)
    assert os.read(ours, 100) == b"free for the parent", "the parent's lock is not the child's"
    assert os.waitpid(child, 0)[1] == 0
    os.close(ours)
    bench.locks.release((held,))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            bench.append(MONDAY, "in the child")
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    bench.append(MONDAY, "after")
    assert bench.texts() == ["before", "in the child", "after"]
    verify(bench.reader)
