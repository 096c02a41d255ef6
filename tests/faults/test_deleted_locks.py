"""Deleting `locks/` at any moment costs time, and never makes a second winner."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AlreadyClaimed, AofError, LockTimeout
from aof.kernel.events import Draft
from aof.service.bootstrap import open_fabric
from aof.store.files.locks import HeldLock
from aof.store.files.paths import Paths
from aof.store.files.store import FilesystemStore
from aof.store.port import Scope, ScopeTooNarrow
from aof.testing import FakeClock
from tests.support.deaths import opened
from tests.support.disks import Step, SteppingDisk
from tests.support.indexes import store_of
from tests.support.processes import Worker

PARTS = ["locks", "locks/*", "locks/heads", "locks/revs", "locks/stripe-*", "locks/journal"]
CACHES = {"heads_wrong", "counter_behind"}


def claimer(root: Path, tasks: list[str], name: str) -> Worker:
    def work(pipe: Connection) -> None:
        with open_fabric(root, actor=name) as fabric:
            pipe.send("ready")
            pipe.recv()
            won: list[str] = []
            for task_id in tasks:
                with suppress(AlreadyClaimed):
                    won.append(fabric.claim(task_id, agent=name).run_id)
            pipe.send(won)

    return Worker(work)


def deleting(root: Path, part: str, every: float, ended: threading.Event) -> None:
    while not ended.wait(every):
        for path in list(root.glob(part)):
            shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):
                path.unlink()


def assert_one_winner_each(root: Path, part: str, *, tasks: int, processes: int, every: float) -> None:
    """Several processes claim all tasks while somebody deletes; each has one winner, and that winner knows it."""
    with open_fabric(root, actor="pm") as fabric:
        made = [fabric.create(f"Work {number}").task_id for number in range(tasks)]
    workers = [claimer(root, made, f"agent-{number}") for number in range(processes)]
    for worker in workers:
        assert worker.pipe.recv() == "ready"
    ended = threading.Event()
    deleter = threading.Thread(target=deleting, args=(root, part, every, ended))
    deleter.start()
    try:
        for worker in workers:
            worker.pipe.send("go")
        answers = [worker.pipe.recv() if worker.pipe.poll(60) else "no answer" for worker in workers]
    finally:
        ended.set()
        deleter.join()
    assert all(isinstance(answer, list) for answer in answers), answers
    won = [run for answer in answers for run in answer]
    with open_fabric(root, actor="pm") as fabric:
        begun = [event for event in fabric.events() if event.type == "task.attempt.started"]
        assert sorted(event.task_id for event in begun) == sorted(made), "each was begun once"
        assert sorted(won) == sorted(str(event.run_id) for event in begun), "each winner was told"
        fabric.sync()
        assert {row.status for row in fabric.tasks()} == {"in-progress"}
        assert {problem.code for problem in fabric.doctor().problems} <= CACHES, "only what was deleted is wrong"
        assert not fabric.doctor(fix=True).problems


@pytest.mark.parametrize("part", PARTS)
def test_every_task_has_one_winner_while_somebody_deletes_locks(root: Path, part: str) -> None:
    assert_one_winner_each(root, part, tasks=12, processes=4, every=0.003)


@pytest.mark.full
@pytest.mark.parametrize("round_", range(5))
@pytest.mark.parametrize("part", PARTS)
def test_the_same_over_and_over(root: Path, part: str, round_: int) -> None:
    assert_one_winner_each(root, part, tasks=30, processes=6, every=0.001 * (round_ + 1))


def test_a_writer_whose_lock_was_deleted_begins_again_and_loses(root: Path) -> None:
    """Both hold the stripe and have loaded the task; the second to append is refused by the log itself."""
    with open_fabric(root, actor="pm") as one, open_fabric(root, actor="pm") as other:
        task_id = one.create("Work").task_id
        scope = Scope(write=frozenset({task_id}))
        with one.store.unit(scope) as slow:
            assert slow.task(task_id) is not None
            shutil.rmtree(root / "locks")
            assert other.claim(task_id, agent="bob").attempt == 1
            started = Draft(type="task.updated", task_id=task_id, payload={"changes": {"title": "late"}})
            with pytest.raises(ScopeTooNarrow):
                slow.commit((started,), actor="pm", agent=None, now=0)
        assert one.get(task_id).title == "Work"


@pytest.mark.parametrize("forget", ["nothing", "locks/revs"])
def test_a_late_writer_that_put_an_older_version_over_the_newest_makes_no_second_winner(
    root: Path, forget: str
) -> None:
    """It had passed all checks when its lock was deleted, and wrote file and head after somebody else's commit."""
    with open_fabric(root, actor="pm") as fabric:
        task_id = fabric.create("Work").task_id
        old, head = root / "tasks/ready" / f"{task_id}.md", next((root / "locks/heads").iterdir())
        text, noted = old.read_bytes(), head.read_bytes()
        won = fabric.claim(task_id, agent="bob")
    (root / "tasks/in-progress" / f"{task_id}.md").unlink()
    old.write_bytes(text)
    head.write_bytes(noted)
    shutil.rmtree(root / forget, ignore_errors=True)
    with open_fabric(root, actor="pm") as fabric:
        with pytest.raises(AlreadyClaimed):
            fabric.claim(task_id, agent="eve")
        assert fabric.get(task_id).status == "in-progress"
        assert fabric.heartbeat(task_id, run=won.run_id) is not None


class InterruptedDisk(SteppingDisk):
    """Lets somebody else work before its nth step."""

    def __init__(self, number: int, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self.number = number
        self.meanwhile = meanwhile
        self.taken: list[Step] = []

    def step(self, step: Step, act: Callable[[], int]) -> int:
        self.taken.append(step)
        if len(self.taken) == self.number:
            self.meanwhile()
        return act()


def interrupted_claim(root: Path, number: int, elsewhere: Path | None) -> list[Step]:
    """At a step of a claim somebody takes the stripes away, and another one claims; tells the steps of the claim."""
    clock = FakeClock()
    won: list[str] = []

    def claim(fabric: Fabric, name: str) -> None:
        with suppress(AlreadyClaimed):
            won.append(fabric.claim(task_id, agent=name).run_id)

    def meanwhile() -> None:
        if elsewhere is not None:
            (root / "locks").rename(elsewhere)
        else:
            for path in list(root.glob("locks/stripe-*")):
                path.unlink()
        with suppress(LockTimeout), opened(root, clock) as other:  # who stands still may hold the log's lock
            claim(other, "eve")

    FilesystemStore.create(str(root))
    disk = InterruptedDisk(0, meanwhile)
    with opened(root, clock, disk) as fabric:
        task_id = fabric.create("Work").task_id
        disk.taken, disk.number = [], number
        claim(fabric, "bob")
    with opened(root, clock) as fabric:
        begun = [str(event.run_id) for event in fabric.events() if event.type == "task.attempt.started"]
        assert begun == won, "the winner was told"
        assert len(won) == 1, "there is one"
        assert not [event for event in fabric.events() if event.actor == "hand"], "no person has done anything"
        assert fabric.get(task_id).status == "in-progress"
        assert {problem.code for problem in fabric.doctor().problems} <= CACHES
    return disk.taken


@pytest.mark.parametrize("moved", [False, True])
def test_whatever_step_a_writer_stands_at_when_its_lock_goes_away_there_is_one_winner(
    shm_path: Path, *, moved: bool
) -> None:
    steps = interrupted_claim(shm_path / "whole", 0, None)
    for number, step in enumerate(steps, 1):
        try:
            interrupted_claim(shm_path / str(number), number, shm_path / f"locks-{number}" if moved else None)
        except BaseException as error:
            error.add_note(f"before step {number}: {step}")
            raise


def at_once(root: Path, first: Callable[[Fabric], str], second: Callable[[Fabric], str]) -> list[str]:
    """While the first stands at its append, all locks are deleted, and the second decides under new ones."""
    answers = ["", ""]

    def told(number: int, act: Callable[[Fabric], str], fabric: Fabric) -> None:
        try:
            answers[number] = act(fabric)
        except AofError as refusal:
            answers[number] = refusal.code

    with open_fabric(root, actor="pm") as one, open_fabric(root, actor="pm") as other:
        disk, locks, decided = store_of(one).disk, store_of(other).locks, threading.Event()
        append, take = disk.append, locks.take

        def take_and_tell(name: str, *, exclusive: bool = True, wait: bool = True) -> HeldLock:
            if name == str(root / "events"):  # it waits for the first one
                decided.set()
            return take(name, exclusive=exclusive, wait=wait)

        def append_late(fd: int, data: bytes) -> int:
            shutil.rmtree(root / "locks")
            locks.take = take_and_tell  # type: ignore[method-assign]
            disk.append = append  # type: ignore[method-assign]
            follower.start()
            assert decided.wait(30)
            return append(fd, data)

        follower = threading.Thread(target=told, args=(1, second, other))
        disk.append = append_late  # type: ignore[method-assign]
        told(0, first, one)
        follower.join()
    return answers


def test_a_resource_is_held_once_though_its_lock_was_deleted_at_the_append(root: Path) -> None:
    with open_fabric(root, actor="pm") as fabric:
        made = [fabric.create("Deploy", resource="staging").task_id for _ in range(2)]
    claims = [partial(claimed, made[number], f"agent-{number}") for number in range(2)]
    assert at_once(root, *claims) == ["in-progress", "resource_busy"]
    with open_fabric(root, actor="pm") as fabric:
        assert [task.id for task in fabric.tasks() if task.status == "in-progress"] == made[:1]


def claimed(task_id: str, agent: str, fabric: Fabric) -> str:
    fabric.claim(task_id, agent=agent)
    return fabric.get(task_id).status


def test_a_key_makes_one_task_though_its_lock_was_deleted_at_the_append(root: Path) -> None:
    first, second = at_once(root, *(lambda fabric: fabric.create("Once", key="k").task_id for _ in range(2)))
    assert first == second
    with open_fabric(root, actor="pm") as fabric:
        assert len(fabric.tasks()) == 1


def test_two_edges_make_no_cycle_though_the_graphs_lock_was_deleted_at_the_append(root: Path) -> None:
    with open_fabric(root, actor="pm") as fabric:
        one, other = (fabric.create("Work").task_id for _ in range(2))
    answers = at_once(root, partial(waiting_for, one, other), partial(waiting_for, other, one))
    assert answers == ["waits", "dependency_cycle"]


def waiting_for(task_id: str, blocker: str, fabric: Fabric) -> str:
    fabric.dep_add(task_id, blocker)
    return "waits"


def test_a_forked_process_names_its_temporary_files_anew(root: Path) -> None:
    def work(pipe: Connection) -> None:
        pipe.send(Paths(str(root)).temporary_file("one"))

    ours, theirs = Paths(str(root)).temporary_file("one"), Worker(work).pipe.recv()
    assert ours.rpartition(".")[2].split("-")[:2] != theirs.rpartition(".")[2].split("-")[:2]
    assert ours != Paths(str(root)).temporary_file("one")


def test_two_writers_of_one_task_never_share_a_temporary_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one writes the same task while the first has written its temporary file and not yet renamed it."""
    with open_fabric(root, actor="pm") as slow, open_fabric(root, actor="pm") as other:
        task_id = slow.create("Work").task_id
        disk = store_of(slow).disk
        replace = disk.replace
        left: list[str] = []

        def overtaken(source: str, target: str, *given: Any) -> None:
            monkeypatch.undo()
            shutil.rmtree(root / "locks")
            other.edit(task_id, title="Newer")
            left.extend(path.name for path in (root / "tmp").iterdir())
            replace(source, target, *given)

        monkeypatch.setattr(disk, "replace", overtaken)
        slow.edit(task_id, title="Older")
        assert len(left) == 1, "the other one took away its own"
    with open_fabric(root, actor="pm") as fabric:
        assert not fabric.doctor().problems
        assert fabric.get(task_id).title == "Newer"
        assert not list((root / "tmp").iterdir())


def test_a_writer_that_lost_its_lock_while_it_wrote_makes_the_files_follow_the_log_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_fabric(root, actor="pm") as slow, open_fabric(root, actor="pm") as other:
        task_id = slow.create("Work").task_id
        files = store_of(slow).files
        place = files.place

        def overtaken(task: str, data: bytes, *where: Any) -> bool:
            monkeypatch.undo()
            shutil.rmtree(root / "locks")
            other.edit(task_id, title="Newer")
            return place(task, data, *where)

        monkeypatch.setattr(files, "place", overtaken)
        slow.claim(task_id, agent="bob")
    with open_fabric(root, actor="pm") as fabric:
        assert not fabric.doctor().problems
        assert (fabric.get(task_id).title, fabric.get(task_id).status) == ("Newer", "in-progress")
