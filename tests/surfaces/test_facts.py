"""Every change is in the log before it is answered, and the log alone tells all that there is."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.service.bootstrap import open_fabric
from aof.store.files.store import FilesystemStore
from aof.store.fold import fold
from tests.support.disks import Step, SteppingDisk
from tests.support.requirements import requirement
from tests.support.waiting import BOUND
from tests.surfaces.doors import Answer, InPython, OnTheCommandLine, python_door
from tests.surfaces.scripts import SCRIPTS, Script
from tests.surfaces.tape import Tape

_FORK = multiprocessing.get_context("fork")


class MortalDoor:
    """Answers each call from a new process, which is killed as soon as the answer is out."""

    name = "python"

    def __init__(self, door: InPython) -> None:
        self.root, self.elsewhere = door.root, door.elsewhere

    def ask(self, operation: str, **given: Any) -> Answer:
        here, there = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=self._answer, args=(there, operation, given), daemon=True)
        process.start()
        there.close()
        assert here.poll(BOUND), f"no answer to {operation}"
        answer: Answer = here.recv()
        process.join(BOUND)
        assert process.exitcode == -signal.SIGKILL
        return answer

    def _answer(self, pipe: Connection, operation: str, given: dict[str, Any]) -> None:
        pipe.send(InPython(self.root, self.elsewhere).ask(operation, **given))
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MortalDoor]:
    """One directory for all scripts: each goes on with what the others have left."""
    with python_door(tmp_path_factory.mktemp("mortal")) as door:
        yield MortalDoor(door)


@requirement("task.control.writes-facts")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_process_that_is_killed_after_each_answer_loses_nothing_and_the_log_alone_rebuilds_all(
    mortal: MortalDoor, tmp_path: Path, script: Script
) -> None:
    script(Tape(mortal))
    with open_fabric(mortal.root, actor="elsewhere") as fabric:
        fabric.sync()
        log = list(fabric.events())
        tasks = {name: one.task for name, one in fold(log).items()}
        view, handoffs = fabric.snapshot(at=log[-1].seq, archived=True), fabric.handoff_list()
        assert {name: fabric.get(name) for name in tasks} == tasks
    fresh = tmp_path / mortal.root.parent.name / ".aof"  # a project without a name goes by that of its folder
    fresh.mkdir(parents=True)
    shutil.copytree(mortal.root / "events", fresh / "events")
    for part in ("aof.toml", "org", "workflows"):  # settings are no facts
        _copied(mortal.root / part, fresh / part)
    with open_fabric(fresh, actor="elsewhere") as fabric:
        fabric.doctor(fix=True)
        assert {name: fabric.get(name) for name in tasks} == tasks
        assert fabric.snapshot(at=log[-1].seq, archived=True) == view
        assert fabric.handoff_list() == handoffs


def _copied(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.exists():
        shutil.copy(source, target)


class FullDisk(SteppingDisk):
    """Takes nothing into the log."""

    def step(self, step: Step, act: Any) -> int:
        if step.name == "append":
            raise OSError(28, "No space left on device")
        return super().step(step, act)


@requirement("task.control.writes-facts")
def test_no_view_shows_what_the_log_did_not_take(tmp_path: Path) -> None:
    with python_door(tmp_path) as door:
        fabric = door.elsewhere
        running, waiting = fabric.create("Running").task_id, fabric.create("Waiting").task_id
        fabric.claim(running, agent="ada")
        board = OnTheCommandLine(door.root, fabric)
        before, shown = _seen(fabric), board.run("board", "--once")
        environment = fabric.services.environment
        full = FilesystemStore(str(door.root), environment.clock, disk=FullDisk())
        writer = Fabric(full, environment.clock, environment.policy, "elsewhere")
        for change in (
            lambda: writer.create("New"),
            lambda: writer.claim(waiting, agent="bob"),
            lambda: writer.complete(running, agent="ada"),
            lambda: writer.progress(running, percent=50, agent="ada"),
            lambda: writer.cancel(waiting),
            lambda: writer.edit(waiting, title="Other"),
            lambda: writer.pause(waiting),
            lambda: writer.dep_add(waiting, running),
        ):
            with pytest.raises(AofError):
                change()
            assert _seen(fabric) == before
            assert _seen(writer) == before
        assert board.run("board", "--once") == shown
        writer.close()


def _seen(fabric: Fabric) -> list[Any]:
    """Everything that people look at, but for the moment at which they do."""
    return [fabric.list(), fabric.status(), fabric.snapshot()["tasks"], fabric.ready(), fabric.portable_log()]
