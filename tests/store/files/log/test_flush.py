"""Flushes of the log that fail: who learns of it, what stops, and how it goes on."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import CommitUnknown, LogPoisoned
from aof.store.files.archive import pack
from aof.store.files.locks import STRIPES
from aof.store.files.log.layout import Mark
from aof.store.files.log.writer import Log
from tests.support.disks import FailingDisk, SteppingDisk
from tests.support.invariants import check_invariants, check_it_goes_on, fabric_on, log_lines, open_store
from tests.support.log_bench import MONDAY, TUESDAY, Bench, FailingOnce, another, commit_of
from tests.support.scenarios import ONE, Story, Teller, claim, copy, create, prepare
from tests.support.verified import verify


def poison(bench: Bench) -> None:
    """Let the flush of the second commit fail."""
    bench.append(MONDAY, "one")
    bench.disk.fails = "flush"
    with pytest.raises(CommitUnknown):
        bench.append(MONDAY, "two")


def test_a_failed_flush_poisons_the_log_for_everybody_and_is_not_tried_again(bench: Bench) -> None:
    poison(bench)
    flushes = bench.disk.flushes
    assert flushes == 2, "one for each commit"
    for log in (bench, another(bench)):
        assert log.log.is_poisoned()
        size = bench.file().stat().st_size
        with pytest.raises(LogPoisoned):
            log.append(MONDAY, "three")
        assert bench.file().stat().st_size == size
    assert bench.disk.flushes == flushes


def test_a_healed_log_takes_appends_again(bench: Bench) -> None:
    poison(bench)
    inode = bench.file().stat().st_ino
    healed = another(bench)
    healed.log.heal()
    assert bench.file().stat().st_ino != inode, "what could not be flushed was written again, to another place"
    assert not healed.log.is_poisoned()
    healed.append(MONDAY, "three")
    bench.append(MONDAY, "four")
    assert bench.texts() == ["one", "two", "three", "four"]
    verify(bench.reader)
    healed.close()


def test_a_log_whose_healing_fails_stays_poisoned(bench: Bench) -> None:
    poison(bench)
    for name in ("write_new", "flush", "rename", "sync_dir"):
        bench.disk.fails = name
        with pytest.raises(OSError, match="Input/output error"):
            bench.log.heal()
        assert bench.log.is_poisoned()
        assert bench.texts() == ["one", "two"]
    bench.log.heal()
    bench.append(MONDAY, "three")
    assert bench.texts() == ["one", "two", "three"]


def test_a_log_that_cannot_be_restated_still_says_how_far_it_was_flushed(bench: Bench) -> None:
    """The next opener needs that to find that flushed events are missing."""
    bench.append(MONDAY, "one")
    with bench.file().open("ab") as file:
        file.write(b'{"seq":2')
    bench.disk.fails = "write_new"
    with pytest.raises(OSError, match="Input/output error"):
        bench.log.restate()
    flushed = bench.log.flushed()
    assert flushed is not None
    assert flushed.seq == 1
    bench.log.restate()
    assert bench.log.flushed() is None


def test_a_failed_flush_at_the_end_of_a_day_poisons_the_log_too(bench: Bench) -> None:
    bench.append(MONDAY, "one")
    bench.disk.fails = "flush"
    with pytest.raises(LogPoisoned):
        bench.append(TUESDAY, "two")
    assert bench.log.is_poisoned()
    assert bench.texts() == ["one"]
    with pytest.raises(LogPoisoned):
        bench.append(TUESDAY, "two")


def test_a_failed_flush_that_cannot_be_noted_still_tells_the_caller_that_it_is_unknown(bench: Bench) -> None:
    """Somebody keeps the log's lock for too long, at the worst of all times."""
    bench.append(MONDAY, "one")
    holder = another(bench)
    held: list[object] = []

    class Disk(FailingOnce):
        def flush(self, fd: int) -> None:
            held.append(holder.locks.take(holder.paths.events))
            super().flush(fd)

    disk = Disk()
    disk.fails = "flush"
    log = Log(bench.paths, bench.locks, disk, durable=True)
    with pytest.raises(CommitUnknown):
        log.append(MONDAY, commit_of("two"))
    holder.close()
    assert not log.is_poisoned(), "nobody could note it"
    with pytest.raises(LogPoisoned):
        log.append(MONDAY, commit_of("three"))
    assert log.is_poisoned(), "now it is noted"
    assert bench.texts() == ["one", "two"]
    log.close()


def test_threads_that_share_an_open_file_all_learn_of_a_failed_flush(bench: Bench) -> None:
    """The system tells of a lost write once an open file; the thread that is not told must not take it as success."""
    bench.append(MONDAY, "one")
    appended = threading.Barrier(2, timeout=30)
    told = threading.Event()

    class Disk(SteppingDisk):
        def flush(self, fd: int) -> None:
            if not told.is_set():
                told.set()
                raise OSError(errno.EIO, "Input/output error")

    class Waiting(Log):
        def flush(self, fd: int | None = None, mark: Mark | None = None) -> None:
            appended.wait()
            super().flush(fd, mark)

    log = Waiting(bench.paths, bench.locks, Disk(), durable=True)
    outcomes: list[str] = []

    def work(text: str) -> None:
        try:
            log.append(MONDAY, commit_of(text))
        except CommitUnknown as error:
            outcomes.append(error.code)
        else:
            outcomes.append("acknowledged")

    threads = [threading.Thread(target=work, args=(text,)) for text in ("two", "three")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    log.close()
    assert outcomes == ["commit_unknown", "commit_unknown"]


def test_one_flush_serves_all_threads_that_appended_before_it(bench: Bench) -> None:
    begun, appended = threading.Event(), threading.Event()
    flushes: list[int] = []

    class Disk(SteppingDisk):
        def flush(self, fd: int) -> None:
            flushes.append(os.fstat(fd).st_size)
            begun.set()
            assert appended.wait(30)

    log = Log(bench.paths, bench.locks, Disk(), durable=True)
    first = threading.Thread(target=log.append, args=(MONDAY, commit_of("one")))
    first.start()
    assert begun.wait(30)
    rest = [threading.Thread(target=log.append, args=(MONDAY, commit_of(text))) for text in ("two", "three", "four")]
    for thread in rest:
        thread.start()
    while log.seq < 4:
        first.join(0.001)
    appended.set()
    for thread in (first, *rest):
        thread.join(timeout=60)
    assert flushes[-1] == bench.file().stat().st_size, "all that was appended was flushed"
    assert len(flushes) == 2, "the first flush, and one more for all who came while it lasted"
    log.close()


def test_a_failed_reader_hands_out_nothing_and_poisons_the_log(tmp_path: Path) -> None:
    prepare(tmp_path / "data", Story((create(),), ()))
    store = open_store(tmp_path / "data", disk=FailingDisk(0))
    with pytest.raises(CommitUnknown):
        list(store.events())
    assert store.log.is_poisoned()
    with pytest.raises(LogPoisoned):
        fabric_on(store).create("Another")
    store.close()


def poisoned(root: Path) -> None:
    """Let the flush of a claim fail."""
    prepare(root, Story((create(),), ()))
    disk = FailingOnce()
    teller = Teller(root, disk)
    teller.store.head()
    disk.fails = "flush after append"
    with pytest.raises(CommitUnknown):
        claim()(teller)
    teller.close()


def test_no_file_follows_from_an_event_that_may_be_lost(tmp_path: Path) -> None:
    root = tmp_path / "data"
    poisoned(root)
    store = open_store(root)
    with pytest.raises(LogPoisoned):
        fabric_on(store).get(ONE)
    with pytest.raises(LogPoisoned):
        store.checkpoint()
    assert (root / "tasks/ready" / f"{ONE}.md").exists()
    assert not (root / "runs" / ONE).exists()
    store.close()


QUESTIONS: dict[str, Callable[[Fabric], object]] = {
    "list": lambda fabric: fabric.list(),
    "log": lambda fabric: list(fabric.events()),
    "log of a task": lambda fabric: list(fabric.events(task_id=ONE)),
    "log --follow": lambda fabric: next(fabric.follow(timeout=0.0)),
    "replay": lambda fabric: fabric.replay(1),
    "show": lambda fabric: fabric.show(ONE),
    "show --at": lambda fabric: fabric.show(ONE, at=1),
    "snapshot": lambda fabric: fabric.snapshot(),
    "status": lambda fabric: fabric.status(),
    "the newest event": lambda fabric: fabric.store.head(),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_nobody_answers_from_an_event_that_may_be_lost(tmp_path: Path, question: str) -> None:
    poisoned(tmp_path / "data")
    store = open_store(tmp_path / "data")
    with pytest.raises(LogPoisoned):
        QUESTIONS[question](fabric_on(store))
    store.working_copy.repair()
    QUESTIONS[question](fabric_on(store))
    store.close()


def test_nothing_is_exported_that_may_be_lost(tmp_path: Path) -> None:
    poisoned(tmp_path / "data")
    store = open_store(tmp_path / "data")
    for lock in store.locks.acquire_all(
        (f"stripe-{number:02d}", True) for number in range(STRIPES)
    ):  # as after a message, which leaves no note of what it writes
        store.intents.clear(lock)
        store.locks.release((lock,))
    with pytest.raises(LogPoisoned):
        pack(store, str(tmp_path / "all.tgz"))
    assert not (tmp_path / "all.tgz").exists()
    store.close()


def test_a_healed_log_is_followed_by_its_files_again(tmp_path: Path) -> None:
    root = tmp_path / "data"
    poisoned(root)
    store = open_store(root)
    assert [problem.code for problem in store.working_copy.diagnose().problems] == ["log_poisoned"]
    store.working_copy.repair()
    assert not store.working_copy.diagnose().problems
    store.close()
    check_invariants(root)
    check_it_goes_on(root)


def test_the_next_boot_finds_out_what_a_failed_flush_has_lost(tmp_path: Path) -> None:
    root = tmp_path / "data"
    poisoned(root)
    for lost in (False, True):
        left = copy(root, tmp_path / str(lost))
        if lost:
            log = next((left / "events").glob("*.jsonl"))
            log.write_bytes(b"".join(log_lines(left)[:-2]) + b"\0" * 300)
        assert check_invariants(left, boot="the-next-boot")[ONE].task is not None
        check_it_goes_on(left, boot="the-next-boot")
