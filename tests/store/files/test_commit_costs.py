"""What one commit of a process that runs on may cost: Python calls and system calls, which no machine makes fewer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import aof
from aof.api.fabric import Fabric
from aof.documents import reading
from aof.service.bootstrap import open_fabric
from aof.store.files.locks import STRIPES
from tests.support.repository import ROOT

SOURCE = f"{Path(aof.__file__).parent}/"
# By operation: Python calls and system calls, a few per cent above what is measured. Raise one only on purpose.
MOST = {
    "create": (256, 48),
    "claim": (322, 69),
    "heartbeat": (180, 46),
    "progress": (297, 72),
    "complete": (360, 72),
    "release": (270, 66),
}
TASKS = 10
_MARK = "/the-next-step-is-"


def lifecycles(fabric: Fabric, tasks: int) -> Iterator[str]:
    """Each step for all tasks; its name comes before it."""
    yield "create"
    made = [fabric.create(f"Title {number}", brief="Do it.", review=False).task_id for number in range(tasks)]
    yield "claim"
    for task_id in made:
        fabric.claim(task_id, agent="ada")
    yield "heartbeat"
    for task_id in made:
        fabric.heartbeat(task_id, agent="ada")
    yield "progress"
    for task_id in made:
        fabric.progress(task_id, "half of it", percent=50, agent="ada")
    yield "complete"
    for task_id in made:
        fabric.complete(task_id, summary="done")
    yield "others"
    others = [fabric.create(f"Other {number}").task_id for number in range(tasks)]
    for task_id in others:
        fabric.claim(task_id, agent="ada")
    yield "release"
    for task_id in others:
        fabric.release(task_id, agent="ada")
    yield "end"


def over(counted: Counter[str], column: int) -> dict[str, float]:
    """The operations that cost more than they may, with what one of them costs."""
    assert counted.keys() >= MOST.keys()
    return {name: counted[name] / TASKS for name, most in MOST.items() if counted[name] / TASKS > most[column]}


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
    assert over(calls, 0) == {}


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
    assert over(calls, 1) == {}


def live(root: str) -> None:
    """What the traced process does: a step that can be told from all others comes before each that is counted."""
    with open_fabric(root, actor="ada") as fabric:
        list(lifecycles(fabric, STRIPES))
        for step in lifecycles(fabric, TASKS):
            os.path.exists(f"{_MARK}{step}")


def test_a_step_of_mail_takes_as_many_python_calls_in_a_mailbox_of_hundreds_as_in_one_of_ten(tmp_path: Path) -> None:
    aof.init(tmp_path / "data")
    with open_fabric(tmp_path / "data", actor="ada") as fabric:
        for number in range(10):
            fabric.mail_send("bob", f"Question {number}", body="Which port?\n\n```\nport = 1\n```")
        few = _calls_of_mail(fabric)
        for number in range(290):
            sent = fabric.mail_send("bob", f"Question {number}", body="Which port?\n\n```\nport = 1\n```").message_id
            if number % 2:
                fabric.mail_close(sent, disposition="resolved", reason="done")
        many = _calls_of_mail(fabric)
    assert {name: (few[name], many[name]) for name in few if many[name] > 1.1 * few[name]} == {}


def _calls_of_mail(fabric: Fabric) -> Counter[str]:
    """The Python calls of each step of one message; those of the message before it are not told."""
    calls = Counter[str]()
    for _ in range(2):
        calls.clear()
        with _counted(calls, "send"):
            sent = fabric.mail_send("bob", "Which port?").message_id
        with _counted(calls, "ack"):
            fabric.mail_ack(sent, agent="bob", reason="read")
        with _counted(calls, "close"):
            fabric.mail_close(sent, disposition="resolved", reason="done")
    return calls


def test_a_worklog_of_thousands_of_lines_follows_a_claim_with_the_calls_of_a_new_one(tmp_path: Path) -> None:
    calls = Counter[str]()
    for name, lines in (("new", 10), ("long", 5_000)):
        aof.init(tmp_path / name / "data")
        with open_fabric(tmp_path / name / "data", actor="ada") as fabric:
            fabric.worklog_add("handoff.posted", subject="parser ready", quick=True, next_owner="bob")
            with (tmp_path / name / "data" / "WORKLOG.md").open("a", encoding="utf-8") as file:
                file.write("\n14:32 — ada: parser done.\n" * lines)
            reading.follow_all(fabric.services.environment)
            for title in ("first", "second"):
                fabric.claim(fabric.create(title, brief="Do it.").task_id, agent="ada")
                with _counted(calls, f"{name} {title}"):
                    reading.follow_all(fabric.services.environment)
    assert calls["long second"] <= 1.1 * calls["new second"]


@contextmanager
def _counted(calls: Counter[str], name: str) -> Iterator[None]:
    """Count the Python calls that are made meanwhile."""

    def count(_frame: FrameType, event: str, _given: object) -> None:
        if event == "call":
            calls[name] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
