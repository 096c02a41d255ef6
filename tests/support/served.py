"""What a test gives to a service and looks at afterwards: tasks, events, output, processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from aof.kernel.events import Event
from aof.service.bootstrap import open_fabric
from aof.service.runners.processes import processes_of_run
from aof.tasks.model import Task
from tests.support.service import Up
from tests.support.waiting import BOUND
from tests.support.warm import warm


def create(root: Path, agent: str, **given: Any) -> str:
    """A task for an agent."""
    with open_fabric(root, actor="pm") as fabric:
        return fabric.create(given.pop("title", f"Work for {agent}"), agent=agent, **given).task_id


def task(root: Path, task_id: str) -> Task:
    """A task as it is now."""
    with open_fabric(root, actor="pm") as fabric:
        return fabric.get(task_id)


def events(root: Path, kind: str, task_id: str | None = None) -> list[Event]:
    """What the log has of a kind."""
    with open_fabric(root, actor="pm") as fabric:
        return [event for event in fabric.events(task_id=task_id) if event.type == kind]


def output(root: Path, task_id: str, attempt: int = 1, name: str = "output.log") -> str:
    """What a worker printed."""
    return (root / "runs" / task_id / "attempts" / str(attempt) / name).read_text()


def once(root: Path, *, forks: bool = True) -> list[dict[str, Any]]:
    """Serve until nothing is left to do; what was said."""
    with Up(root, "--once", forks=forks) as up:
        assert up.finish() == 0
        return up.lines


def first_run(root: Path, task_id: str) -> str:
    """The ID of a task's first run."""
    folder = root / "runs" / task_id
    places = (folder / "run.json", folder / "attempts/1/run.json")
    found = [json.loads(path.read_text()) for path in places if path.is_file()]
    return next(str(run["runId"]) for run in found if run["attempt"] == 1)


def processes(root: Path, run_id: str) -> list[int]:
    """The processes that carry the run in their environment."""
    return sorted(processes_of_run(str(root), run_id))


def note(root: Path, place: str, attempt: int = 1) -> dict[str, Any]:
    """What the note beside a run says of its processes."""
    found: dict[str, Any] = json.loads((root / "runs" / place / "attempts" / str(attempt) / "process.json").read_text())
    return found


def freeze(root: Path, place: str, attempt: int = 1) -> None:
    """Stop the supervisor of a worker, so that the worker outlives a service that is killed."""
    os.kill(note(root, place, attempt)["supervisorPid"], signal.SIGSTOP)


def aof(root: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The command line as a process of its own, with nobody to ask."""
    command = [*warm(), "aof", "--data-dir", str(root), *words]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=BOUND,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
    )
