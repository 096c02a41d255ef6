"""Processes that are stopped, killed and forked in the middle of their work: nothing is lost, nobody is in the way."""

from __future__ import annotations

import os
import random
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError, LockTimeout
from aof.kernel.events import Event
from aof.service.bootstrap import open_fabric
from aof.store.files.disk import Disk
from aof.store.files.locks import boot_id
from aof.store.port import Scope
from tests.support.invariants import check_invariants, check_it_goes_on
from tests.support.processes import SharedClock, Worker, hear_any, outcome, together
from tests.support.requirements import requirement


class TestStopped:
    """A process that sleeps."""

    @requirement("task.attempts.own-result")
    def test_a_worker_that_slept_past_its_lease_cannot_write_any_more(self, quick: Path) -> None:
        clock = SharedClock()
        fabric = open_fabric(quick, actor="pm", clock=clock)
        task_id = fabric.create("Long work", review=False).task_id

        def work(pipe: Connection) -> None:
            with open_fabric(quick, clock=clock) as mine:
                run = mine.claim(task_id, agent="ada", ttl=30).run_id
                pipe.send(run)
                pipe.recv()
                pipe.send([
                    outcome(mine.complete, task_id, run=run, outcome="done", summary="too late"),
                    outcome(mine.heartbeat, task_id, run=run),
                    outcome(mine.progress, task_id, run=run, text="too late"),
                    outcome(mine.release, task_id, run=run),
                    outcome(mine.fail, task_id, run=run),
                ])  # fmt: skip

        worker = Worker(work)
        first = worker.hear()
        worker.stop()
        clock.put_forward(31)
        assert [(one.task_id, one.status) for one in fabric.recover()] == [(task_id, "ready")]
        clock.put_forward(60)
        second = fabric.claim(task_id, agent="bob", ttl=30)
        before, head = fabric.get(task_id), fabric.store.head()
        worker.go_on()
        worker.say("go on")

        assert worker.hear() == ["stale_lease"] * 5
        worker.end()
        after = fabric.get(task_id)
        assert (after.status, after.lease, after.retry) == (before.status, before.lease, before.retry)
        assert [event.type for event in fabric.events(after=head)] == ["task.late_result"], "it is kept"
        assert before.lease is not None
        assert (before.lease.run_id, before.lease.epoch) == (second.run_id, 2)
        assert second.run_id != first
        clock.put_forward(31)
        assert [(one.status, one.reason) for one in fabric.recover()] == [("ready", "stale_heartbeat_reclaim")]
        assert not [event for event in fabric.events() if event.type == "task.completed"]
        assert [run.status for run in fabric.store.attempts(task_id)] == ["expired", "expired"]
        fabric.close()

    @pytest.mark.parametrize("step", ["append", "flush", "rename"])
    @pytest.mark.parametrize("then", ["goes on", "is killed"])
    def test_a_lock_is_never_stolen_and_the_error_names_who_holds_it(self, root: Path, step: str, then: str) -> None:
        (root / "aof.toml").write_text("[storage]\nlockTimeout = 0.1\n")
        fabric = open_fabric(root, actor="pm")
        task_id = fabric.create("Wanted").task_id

        def work(pipe: Connection) -> None:
            with open_fabric(root, disk=StoppingDisk(step)) as mine:
                pipe.send(outcome(mine.claim, task_id, agent="ada"))

        worker = Worker(work)
        worker.until_stopped()
        with pytest.raises(LockTimeout) as refusal:
            fabric.claim(task_id, agent="bob")
        assert refusal.value.details["pids"] == [worker.pid]
        assert str(worker.pid) in refusal.value.message
        elsewhere = outcome(fabric.create, "Something else")
        assert elsewhere == ("lock_timeout" if step == "append" else "ok")

        if then == "goes on":
            worker.go_on()
            assert worker.hear() == "ok"
            worker.end()
        else:
            worker.kill()

        won = outcome(fabric.claim, task_id, agent="bob")
        assert won == ("ok" if (step, then) == ("append", "is killed") else "already_claimed")
        fabric.close()
        check_invariants(root, boot=boot_id())


class StoppingDisk(Disk):
    """Stops its own process before the first step of a kind."""

    def __init__(self, step: str) -> None:
        super().__init__()
        self._step: str | None = step

    def _stop(self, step: str) -> None:
        if step == self._step:
            self._step = None
            os.kill(os.getpid(), signal.SIGSTOP)

    def append(self, fd: int, data: bytes) -> int:
        """Under the log's lock."""
        self._stop("append")
        return super().append(fd, data)

    def flush(self, fd: int) -> None:
        """After the append, under the task's lock."""
        self._stop("flush")
        super().flush(fd)

    def rename(self, source: str, target: str) -> None:
        """After the commit, while the files are written."""
        self._stop("rename")
        super().rename(source, target)


EXPECTED = {
    "task_running",
    "already_claimed", "cancel_requested", "dependency_cycle", "invalid_transition", "not_ready", "nothing_ready",
    "resource_busy", "run_required", "stale_lease",
}  # fmt: skip
Ack = tuple[str, str, str | None]


def write(fabric: Fabric, chance: random.Random, name: str) -> Iterator[Ack]:
    """Some work; what is yielded was acknowledged."""
    made = fabric.create(
        f"By {name}", review=False, resource=chance.choice([None, None, "lab"]), tags=[name], max_attempts=50
    )
    yield "task.created", made.task_id, None
    if chance.random() < 0.3:
        other = chance.choice(fabric.store.find(fabric.services.environment.read_models.query(limit=40)).tasks).id
        fabric.dep_add(made.task_id, other)
        yield "task.dependency.updated", made.task_id, None
    run = fabric.claim(agent=name, ttl=chance.choice([0.001, 0.05, 60]))
    yield "task.attempt.started", run.task_id, run.run_id
    match chance.randrange(5):
        case 0:
            fabric.release(run.task_id, run=run.run_id)
            yield "task.attempt.failed", run.task_id, run.run_id
        case 1:
            fabric.fail(run.task_id, run=run.run_id, message="no luck")
            yield "task.attempt.failed", run.task_id, run.run_id
        case 2:
            fabric.cancel(run.task_id)
            yield "task.cancel_requested", run.task_id, None
        case _:
            fabric.heartbeat(run.task_id, run=run.run_id, ttl=60)
            fabric.complete(run.task_id, run=run.run_id, summary="done")
            yield "task.attempt.completed", run.task_id, run.run_id


def keep_writing(root: Path, seed: int) -> Worker:
    """A writer that goes on until it is told to stop, or killed."""

    def work(pipe: Connection) -> None:
        chance, name = random.Random(seed), f"writer-{seed}"
        with open_fabric(root, actor=name) as mine:
            while not pipe.poll():
                try:
                    for ack in write(mine, chance, name):
                        pipe.send(ack)
                except AofError as error:
                    if error.code not in EXPECTED:
                        pipe.send(("error", traceback.format_exc(), None))
                        return

    return Worker(work)


def keep_recovering(root: Path, seed: int) -> Worker:
    """A recoverer that goes on until it is told to stop, or killed."""

    def work(pipe: Connection) -> None:
        with open_fabric(root, actor=f"recoverer-{seed}") as mine:
            while not pipe.poll():
                for one in mine.recover():
                    pipe.send(("task.transitioned", one.task_id, None))

    return Worker(work)


@pytest.mark.parametrize("kills", [40, pytest.param(1_500, marks=pytest.mark.full)])
def test_a_storm_of_kills_loses_nothing_that_was_acknowledged(quick: Path, kills: int) -> None:
    chance = random.Random(20260302)
    acknowledged: list[Ack] = []
    makers = [keep_writing] * 8 + [keep_recovering] * 2
    workers = [make(quick, number) for number, make in enumerate(makers)]
    for kill in range(kills):
        for _ in range(chance.randrange(4)):
            acknowledged += [ack for _, ack in hear_any(workers, chance.uniform(0, 0.01))]
        victim = chance.randrange(len(workers))
        workers[victim].kill()
        acknowledged += rest_of(workers[victim])
        workers[victim] = makers[victim](quick, 100 + kill)
    for worker in workers:
        with suppress(BrokenPipeError):
            worker.say("stop")
    for worker in workers:
        acknowledged += rest_of(worker)
        worker.end()

    assert not [ack[1] for ack in acknowledged if ack[0] == "error"]
    with open_fabric(quick) as fabric:
        events = list(fabric.events())
    there = {(event.type, event.task_id, _run(event)) for event in events}
    assert not [ack for ack in acknowledged if ack not in there]
    assert len(acknowledged) > kills
    folded = check_invariants(quick, boot=boot_id())
    assert len(folded) == len({event.task_id for event in events})
    check_it_goes_on(quick, boot=boot_id())


def rest_of(worker: Worker) -> list[Ack]:
    """What the process has said before it ended."""
    said: list[Ack] = []
    with suppress(EOFError, ConnectionResetError):
        while worker.pipe.poll(60):
            said.append(worker.pipe.recv())
    return said


def _run(event: Event) -> str | None:
    return event.run_id if event.type.startswith("task.attempt.") else None


class TestThreads:
    """Several threads in one process."""

    def test_eight_threads_work_on_one_fabric(self, quick: Path) -> None:
        errors: list[str] = []
        done: list[str] = []
        fabric = open_fabric(quick, actor="pm")

        def work(number: int) -> None:
            try:
                for turn in range(8):
                    fabric.create(f"{number} {turn}", review=False)
                    run = fabric.claim(agent=f"agent-{number}")
                    fabric.heartbeat(run.task_id, run=run.run_id)
                    fabric.complete(run.task_id, run=run.run_id)
                    done.append(run.task_id)
            except AofError:
                errors.append(traceback.format_exc())

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert errors == []
        assert len(set(done)) == len(done) == 64
        assert fabric.status(compact=True).by_status == {"done": 64}
        fabric.close()
        check_invariants(quick, boot=boot_id())

    def test_a_child_that_is_forked_while_a_thread_holds_a_lock_has_not_got_that_lock(self, root: Path) -> None:
        (root / "aof.toml").write_text("[storage]\nlockTimeout = 0.1\n")
        fabric = open_fabric(root, actor="pm")
        task_id = fabric.create("Held").task_id
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with fabric.store.unit(Scope(write=frozenset({task_id}))):
                held.set()
                assert let_go.wait(60)

        def child(pipe: Connection) -> None:
            pipe.send(outcome(fabric.claim, task_id, agent="child"))
            pipe.send(outcome(fabric.create, "From the child"))
            pipe.recv()

        holder = threading.Thread(target=hold)
        holder.start()
        assert held.wait(60)
        worker = Worker(child)
        assert worker.hear() == "lock_timeout", "the parent's thread holds it"
        assert worker.hear() == "ok"
        let_go.set()
        holder.join(60)

        assert outcome(fabric.claim, task_id, agent="parent") == "ok", "the child keeps nothing of it"
        worker.say("end")
        worker.end()
        fabric.close()
        check_invariants(root, boot=boot_id())

    def test_children_that_are_forked_while_a_thread_writes_go_on_with_a_sound_log(self, quick: Path) -> None:
        fabric = open_fabric(quick, actor="pm")
        fabric.create("First")
        enough = threading.Event()

        def keep_creating() -> None:
            while not enough.is_set():
                fabric.create("From the parent")

        writer = threading.Thread(target=keep_creating)
        writer.start()
        try:
            made = together(5, lambda number: [fabric.create(f"From {number}").task_id for _ in range(10)])
        finally:
            enough.set()
            writer.join(60)

        assert len({task_id for some in made for task_id in some}) == 50
        fabric.close()
        check_invariants(quick, boot=boot_id())
