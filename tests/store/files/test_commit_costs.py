"""What one commit of a process that runs on may cost: Python calls and system calls, which no machine makes fewer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import aof
from aof.api.fabric import Fabric
from aof.service.bootstrap import open_fabric
from aof.store.files.locks import STRIPES
from tests.support.repository import ROOT

SOURCE = f"{Path(aof.__file__).parent}/"
CALLS = {"create": 290, "claim": 365, "complete": 425}
SYSTEM_CALLS = {"create": 54, "claim": 73, "complete": 77}
TASKS = 10
_MARK = "/the-next-step-is-"


def lifecycles(fabric: Fabric, tasks: int) -> Iterator[str]:
    """Each step for all tasks; its name comes before it."""
    yield "create"
    made = [fabric.create(f"Title {number}", brief="Do it.", review=False).task_id for number in range(tasks)]
    yield "claim"
    for task_id in made:
        fabric.claim(task_id, agent="ada")
    yield "complete"
    for task_id in made:
        fabric.complete(task_id, summary="done")
    yield "end"


def test_a_commit_makes_no_more_python_calls_than_it_may(tmp_path: Path) -> None:
    aof.init(tmp_path / "data")
    calls: Counter[str] = Counter()
    step = ""

    def count(frame: FrameType, event: str, _given: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            calls[step] += 1

    with open_fabric(tmp_path / "data", actor="ada") as fabric:
        list(lifecycles(fabric, STRIPES))
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            for step in lifecycles(fabric, TASKS):
                calls[step] = 0
        finally:
            sys.setprofile(before)
    assert {name: calls[name] / TASKS for name, most in CALLS.items() if calls[name] / TASKS > most} == {}


def traceable() -> bool:
    """Whether this machine has strace and lets it trace."""
    if shutil.which("strace") is None:
        return False
    done = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False, timeout=60)
    return done.returncode == 0


@pytest.mark.skipif(not traceable(), reason="strace cannot trace here")
def test_a_commit_makes_no_more_system_calls_than_it_may(tmp_path: Path) -> None:
    aof.init(tmp_path / "data")
    out = tmp_path / "calls"
    child = f"from {__name__} import live; import sys; live(sys.argv[1])"
    command = ["strace", "-f", "-o", str(out), sys.executable, "-c", child, str(tmp_path / "data")]
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    subprocess.run(command, check=True, timeout=120, env={**os.environ, "PYTHONPATH": path})
    calls: Counter[str] = Counter()
    step = ""
    for line in out.read_text(errors="replace").splitlines():
        if found := re.search(rf"{_MARK}(\w+)", line):
            step = found[1]
        elif re.match(r"\d+ +\w+\(", line):
            calls[step] += 1
    assert {name: calls[name] / TASKS for name, most in SYSTEM_CALLS.items() if calls[name] / TASKS > most} == {}


def live(root: str) -> None:
    """What the traced process does: a step that can be told from all others comes before each that is counted."""
    with open_fabric(root, actor="ada") as fabric:
        list(lifecycles(fabric, STRIPES))
        for step in lifecycles(fabric, TASKS):
            os.path.exists(f"{_MARK}{step}")
