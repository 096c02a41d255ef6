"""Whatever a worker started ends with it, however it has detached itself."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from aof.service.bootstrap import open_fabric
from aof.service.runners import process_runner
from aof.service.runners import processes as runners_processes
from tests.support.served import create, first_run, note, once, processes
from tests.support.service import Up, directory, lives, scripted
from tests.support.waiting import BOUND, eventually

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")

# A daemon as they are made: forked twice, in a session of its own, without the environment of the run.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-S", "-c", "import os, signal, sys; "
                  "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN); "
                  "open(sys.argv[1], 'w').write(str(os.getpid()) + chr(10)); signal.pause()", sys.argv[1]], {})
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]) or not open(sys.argv[1]).read().endswith(chr(10)):
    time.sleep(0.01)
"""
UNGROUPED = process_runner._PROGRAM.replace(
    "main()", "from aof.service.runners import processes; processes.own_group = lambda: None; main()"
)


@pytest.mark.parametrize("grouped", [True, False])
def test_a_daemon_without_the_environment_of_its_run_ends_with_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, grouped: bool
) -> None:
    if grouped and not _can_group():
        pytest.skip("no cgroup can be made here")
    mark = tmp_path / "daemon"
    root = directory(tmp_path, {"ada": [sys.executable, "-S", "-E", "-c", DAEMON, str(mark)]})
    task_id = create(root, "ada", max_attempts=1)
    if grouped:
        once(root)
        assert note(root, task_id)["cgroup"]
        assert not Path(note(root, task_id)["cgroup"]).exists()
    else:
        site = tmp_path / "site"
        _without_cgroups(site, monkeypatch)
        once(root, forks=False)
        assert note(root, task_id)["cgroup"] is None
    assert not lives(int(mark.read_text()))


def test_a_process_that_called_setsid_ends_when_its_task_is_cancelled(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("detach=600", "update=on", "wait")})
    with Up(root) as up:
        task_id = create(root, "ada")
        up.wait("message", task_id)
        everything = processes(root, first_run(root, task_id))
        assert len(everything) == 2
        with open_fabric(root, actor="pm") as fabric:
            fabric.cancel(task_id)
        up.wait("exit", task_id)
        assert not any(lives(pid) for pid in everything)
        up.end()


def test_a_daemon_ends_when_the_service_goes_without_having_heard_the_last_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel then answers the supervisor with an error instead of an end of file."""
    monkeypatch.setattr("aof.service.runners.process_runner._PROGRAM", UNGROUPED)
    mark = tmp_path / "daemon"
    command = [sys.executable, "-S", "-E", "-c", DAEMON + "import signal; signal.pause()", str(mark)]
    null = os.open(os.devnull, os.O_RDWR)
    workers = process_runner.Spawner()
    link = workers.spawn({"command": command, "environment": {}, "folder": str(tmp_path)}, null, null, null, null)
    supervisor = link.expect()["supervisorPid"]
    ending = os.pidfd_open(supervisor)
    link.send("go")
    assert select.select([link], [], [], BOUND)[0], "the supervisor says that the worker has started"
    eventually(lambda: mark.exists() and mark.read_text().endswith("\n"))
    link.close()
    assert select.select([ending], [], [], BOUND)[0], "the supervisor ends"
    assert not lives(int(mark.read_text()))
    workers.close()
    os.close(ending)
    os.close(null)


def test_no_group_but_those_that_aof_made_is_ever_killed(tmp_path: Path) -> None:
    parent = runners_processes.own_group()
    assert runners_processes.kill_group(str(tmp_path / "aof-1-2")), "a folder elsewhere is not a group"
    assert parent is None or runners_processes.kill_group(f"{parent}/other"), "nothing is done, and nothing is there"
    (tmp_path / "aof-1-2").mkdir()
    runners_processes.remove_group(str(tmp_path / "aof-1-2"))
    assert (tmp_path / "aof-1-2").exists()


def _can_group() -> bool:
    group = runners_processes.make_group(f"test-{os.getpid()}")
    if group is None:
        return False
    runners_processes.remove_group(group)
    return True


def _without_cgroups(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service is another process: what it imports first lets the spawner find no groups."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        f"import aof.service.runners.process_runner as s\ns._PROGRAM = {UNGROUPED!r}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
