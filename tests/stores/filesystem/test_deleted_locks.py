"""Deleting `locks/` at any moment costs time, and never makes a second winner."""

from __future__ import annotations

import shutil
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from aof.bootstrap import open_fabric
from aof.core.errors import AofError
from aof.core.events import Draft
from aof.ports.store import Scope, ScopeTooNarrow
from tests.support.processes import Worker

TASKS = 4
PROCESSES = 3


def claimer(root: Path, tasks: list[str], name: str) -> Worker:
    def work(pipe: Connection) -> None:
        with open_fabric(root, actor=name) as fabric:
            pipe.send("ready")
            pipe.recv()
            won = []
            for task_id in tasks:
                for _ in range(100):  # what fails because a lock is gone may be tried again
                    try:
                        won.append(fabric.claim(task_id, agent=name).run_id)
                    except AofError as error:
                        if error.code != "already_claimed":
                            continue
                    break
            pipe.send(won)

    return Worker(work)


@pytest.mark.parametrize("part", ["locks", "locks/heads", "locks/revs", "locks/stripe-*"])
def test_every_task_has_one_winner_while_somebody_deletes_locks(root: Path, part: str) -> None:
    with open_fabric(root, actor="pm") as fabric:
        tasks = [fabric.create(f"Work {number}").task_id for number in range(TASKS)]
    workers = [claimer(root, tasks, f"agent-{number}") for number in range(PROCESSES)]
    for worker in workers:
        assert worker.pipe.recv() == "ready"
    ended = threading.Event()

    def delete() -> None:
        while not ended.wait(0.02):
            for path in list(root.glob(part)):
                shutil.rmtree(path, ignore_errors=True)
                with suppress(OSError):
                    path.unlink()

    deleter = threading.Thread(target=delete)
    deleter.start()
    try:
        for worker in workers:
            worker.pipe.send("go")
        answers = [worker.pipe.recv() if worker.pipe.poll(120) else "no answer" for worker in workers]
    finally:
        ended.set()
        deleter.join()
    assert all(isinstance(answer, list) for answer in answers), answers
    won = [run for answer in answers for run in answer]
    with open_fabric(root, actor="pm") as fabric:
        begun = [event for event in fabric.events() if event.type == "task.attempt.started"]
        assert sorted(event.task_id for event in begun) == sorted(tasks), "each was begun once"
        assert len(won) == len(set(won))
        assert set(won) <= {str(event.run_id) for event in begun}


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
