"""A service that is killed between any two steps of a start never leads to two workers of one task at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aof.service.bootstrap import open_fabric
from aof.service.runners import attempts
from aof.support.confined_folder import ConfinedFolder
from tests.support.served import create, events, first_run, freeze, note, once, processes, task
from tests.support.service import SETTINGS, Up, chart, directory, lives, scripted
from tests.support.waiting import BOUND, eventually

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")

# Writes when it begins and when it ends; two at once find the other's lock.
ALONE = """
import fcntl, os, sys
journal = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def say(what):
    os.write(journal, f"{what} {os.getpid()}\\n".encode())
alone = os.open(sys.argv[1] + ".alone", os.O_RDWR | os.O_CREAT)
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    say("beside-another")
say("began")
"""
WAITS = ALONE + "import signal; signal.pause()\n"

# `aof up` that kills itself right before, or right after, one step of the runner.
KILLED = """
import os, signal, sys
from aof.service.runners import attempts
from aof.service.runners.process_runner import ProcessRunner
from aof.service.runners.process_runner import Spawner, SupervisorLink
from aof.api.fabric import Fabric
from aof.service.bootstrap import open_fabric, serve

OWNERS = {"take_folder": attempts, "claim": Fabric, "spawn": Spawner, "_hand_over": Spawner,
          "write_note": attempts, "send": SupervisorLink, "expect": SupervisorLink,
          "_let_begin": ProcessRunner, "_close_lock": ProcessRunner}
root, when, step, count = sys.argv[1:]
owner, times = OWNERS[step], [int(count)]
original = getattr(owner, step)

def killed(*given, **named):
    times[0] -= 1
    if when == "before" and not times[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    answer = original(*given, **named)
    if when == "after" and not times[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer

setattr(owner, step, killed)
with open_fabric(root) as fabric:
    serve(fabric, once=True)
"""
STEPS = [
    ("before", "take_folder", 1),
    ("after", "take_folder", 1),
    ("after", "claim", 1),
    ("before", "spawn", 1),
    ("before", "_hand_over", 1),
    ("after", "_hand_over", 1),
    ("after", "spawn", 1),
    ("after", "expect", 1),
    ("before", "write_note", 1),
    ("after", "write_note", 1),
    ("before", "send", 2),
    ("after", "send", 2),
    ("after", "expect", 2),
    ("after", "_let_begin", 1),
    ("before", "_close_lock", 1),
    ("after", "_close_lock", 1),
]


@pytest.mark.parametrize(("when", "step", "count"), STEPS)
def test_a_service_killed_during_a_start_never_leads_to_two_workers_at_once(
    tmp_path: Path, when: str, step: str, count: int
) -> None:
    journal = tmp_path / "journal"
    settings = SETTINGS.replace("ttl = 60", "ttl = 0.5")
    root = directory(tmp_path, {"ada": [sys.executable, "-S", "-E", "-c", WAITS, str(journal)]}, settings)
    task_id = create(root, "ada")
    dead = subprocess.run([sys.executable, "-c", KILLED, str(root), when, step, str(count)], check=False, timeout=BOUND)
    assert dead.returncode == -signal.SIGKILL, "the step was reached"
    chart(root, {"ada": [sys.executable, "-S", "-E", "-c", ALONE, str(journal)]})
    with Up(root) as up:
        up.wait("exit", task_id)
        up.end()
    said = journal.read_text().split("\n")[:-1]
    assert said
    assert not any(line.startswith("beside-another") for line in said)
    assert not any(lives(int(line.split()[1])) for line in said)


@pytest.mark.parametrize("recovers", ["tick", "recover"])
def test_expiry_ends_the_old_worker_before_its_task_is_given_back(tmp_path: Path, recovers: str) -> None:
    root = directory(tmp_path, {"ada": scripted("deaf", "child", "update=on", "wait")}, _short())
    with Up(root) as up:
        task_id = create(root, "ada")
        up.wait("message", task_id)
        orphans = processes(root, first_run(root, task_id))
        freeze(root, task_id)
        up.end(signal.SIGKILL)
    assert all(lives(pid) for pid in orphans)
    with open_fabric(root, actor="pm") as fabric:
        eventually(lambda: bool(fabric.recover() if recovers == "recover" else fabric.tick().actions))
        assert fabric.get(task_id).status == "ready"
    assert not any(lives(pid) for pid in orphans)


def test_what_cannot_be_ended_is_left_and_said(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("update=on", "wait")}, _short())
    with Up(root) as up:
        task_id = create(root, "ada")
        up.wait("message", task_id)
        (worker,) = processes(root, first_run(root, task_id))
        freeze(root, task_id)
        up.end(signal.SIGKILL)
    supervisor = note(root, task_id)["supervisorPid"]
    path = root / "runs" / task_id / "attempts/1/process.json"
    path.write_text(json.dumps(note(root, task_id) | {"pidSpace": "pid:[1]"}))
    try:
        with open_fabric(root, actor="pm") as fabric:
            eventually(lambda: any("another container" in one.reason for one in fabric.tick().left))
            assert fabric.tick().next_at is not None, "it may have been ended a moment later"
            assert [one.status for one in fabric.recover()] == ["in-progress"]
            assert fabric.get(task_id).status == "in-progress"
        assert lives(worker)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    eventually(lambda: not lives(worker))
    with open_fabric(root, actor="pm") as fabric:  # the lock is free with the supervisor gone, whatever the note says
        eventually(lambda: [one.status for one in fabric.recover()] == ["ready"])


def test_a_later_process_with_the_number_of_the_supervisor_is_left_alone(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("update=on", "wait")}, _short())
    with Up(root) as up:
        task_id = create(root, "ada")
        up.wait("message", task_id)
        (worker,) = processes(root, first_run(root, task_id))
        up.end(signal.SIGKILL)
    eventually(lambda: not lives(worker))
    with ended(subprocess.Popen(["sleep", "600"])) as stranger:
        path = root / "runs" / task_id / "attempts/1/process.json"
        path.write_text(json.dumps(note(root, task_id) | {"supervisorPid": stranger.pid, "pid": stranger.pid}))
        with attempt_held(root, task_id), open_fabric(root, actor="pm") as fabric:
            eventually(lambda: [one.status for one in fabric.recover()] == ["in-progress"])
        with open_fabric(root, actor="pm") as fabric:
            assert [one.status for one in fabric.recover()] == ["ready"]
        assert stranger.poll() is None


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the test, however that ends."""
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def attempt_held(root: Path, task_id: str) -> Iterator[None]:
    """Hold the lock of a run as a supervisor does, once the dead one has let go of it."""
    held: list[int] = []

    def taken() -> bool:
        found = attempts.take_folder(ConfinedFolder(str(root)), task_id)
        held.extend(() if found is None else (found,))
        return found is not None

    eventually(taken)
    try:
        yield
    finally:
        attempts.free_folder(held[0])


def test_a_task_is_not_started_again_while_its_earlier_worker_is_still_ending(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS
    command = [sys.executable, "-S", "-E", "-c", deaf, str(journal)]
    root = directory(tmp_path, {"ada": {"runner": {"kind": "process", "command": command, "grace": "1s"}}})
    with Up(root) as up:
        task_id = create(root, "ada")
        eventually(lambda: journal.exists() and "began" in journal.read_text())
        with open_fabric(root, actor="pm") as fabric:
            fabric.release(task_id, run=first_run(root, task_id))
        eventually(lambda: journal.read_text().count("began") >= 2)
        up.end()
    assert "beside-another" not in journal.read_text()


def test_a_worker_of_another_service_in_the_same_place_is_waited_for(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("report=done")})
    task_id = create(root, "ada")
    held = attempts.take_folder(ConfinedFolder(str(root)), task_id)
    assert held is not None
    with Up(root) as up:
        up.wait("up")
        assert task(root, task_id).status == "ready"
        attempts.free_folder(held)
        up.wait("session_end", task_id)
        up.end()
    assert len(events(root, "task.attempt.started", task_id)) == 1


def test_deleting_the_note_of_a_running_worker_does_not_let_another_one_in(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("update=on", "wait")}, _short())
    with Up(root) as up:
        task_id = create(root, "ada")
        up.wait("message", task_id)
        (worker,) = processes(root, first_run(root, task_id))
        supervisor = note(root, task_id)["supervisorPid"]
        freeze(root, task_id)
        up.end(signal.SIGKILL)
    (root / "runs" / task_id / "attempts/1/process.json").unlink()
    try:
        with open_fabric(root, actor="pm") as fabric:
            eventually(lambda: [one.status for one in fabric.recover()] == ["in-progress"])
        assert lives(worker)
    finally:
        os.kill(supervisor, signal.SIGCONT)


def test_a_supervisor_that_was_killed_takes_its_worker_along_and_the_run_has_failed(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("detach=600", "update=on", "wait")})
    with Up(root) as up:
        task_id = create(root, "ada", max_attempts=1)
        up.wait("message", task_id)
        everything = processes(root, first_run(root, task_id))
        assert len(everything) == 2
        os.kill(note(root, task_id)["supervisorPid"], signal.SIGKILL)
        up.wait("exit", task_id)
        assert not any(lives(pid) for pid in everything)
        up.end()
    assert task(root, task_id).status == "deadletter"


def test_a_spawner_that_was_killed_is_replaced_and_running_workers_go_on(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("update=on", "wait"), "bert": scripted("report=done")})
    with Up(root) as up:
        first = create(root, "ada")
        up.wait("message", first)
        supervisor = note(root, first)["supervisorPid"]
        spawner = int(Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(spawner, signal.SIGKILL)
        eventually(lambda: not lives(spawner))
        second = create(root, "bert")
        up.wait("session_end", second)
        assert task(root, first).status == "in-progress"
        assert lives(note(root, first)["pid"])
        up.end()


def test_the_note_is_on_the_disk_when_the_worker_begins(tmp_path: Path) -> None:
    looks = (
        "import json, os, sys; note = json.load(open(os.environ['AOF_DATA_DIR'] + '/runs/' + os.environ['AOF_TASK_ID']"
        " + '/attempts/1/process.json')); sys.exit(0 if note['pid'] == os.getpid() else 3)"
    )
    root = directory(tmp_path, {"ada": [sys.executable, "-S", "-E", "-c", looks]})
    task_id = create(root, "ada", max_attempts=1)
    once(root)
    (exited,) = events(root, "run.exited", task_id)
    assert exited.payload["exitCode"] == 0


def _short() -> str:
    return SETTINGS.replace("ttl = 60", "ttl = 0.6")
