"""A real process is killed at each of its system calls, and everything that it had acknowledged is there."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from aof.store.files.locks import boot_id
from aof.store.files.store import FilesystemStore
from tests.support.disks import SteppingDisk
from tests.support.invariants import check_invariants, check_it_goes_on

CHANGING = (
    "write",
    "pwrite64",
    "rename",
    "renameat2",
    "unlink",
    "mkdir",
    "ftruncate",
    "fdatasync",
    "fsync",
    "syncfs",
    "flock",
)
OPENING = "openat"
_CALL = re.compile(r"^\d+ +(\w+)\(")


@cache
def why_not() -> str:
    """Why this machine cannot run these tests, if it cannot."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-f", "-o", os.devnull, "true"], capture_output=True, check=False, timeout=60)
    return "" if done.returncode == 0 else f"strace may not trace here: {done.stderr.decode()[:100]}"


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "it can")


def live(place: Path, *options: str, compile_modules: bool = False) -> int:
    """Run the child in a new directory; how it ended. Only the first compiles modules, so all make the same calls."""
    if place.exists():
        shutil.rmtree(place)
    place.mkdir()
    FilesystemStore.create(str(place / "data"), SteppingDisk())
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "" if compile_modules else "1",
    }
    command = ["strace", "-f", *options]
    child = [sys.executable, "-m", "tests.support.child", str(place / "data"), str(place / "answers")]
    done = subprocess.run([*command, *child], capture_output=True, check=False, timeout=120, env=environment)
    assert done.returncode in (0, -signal.SIGKILL, 128 + signal.SIGKILL), done.stderr.decode()
    return done.returncode


def calls(place: Path) -> dict[str, list[int]]:
    """Of each system call the numbers at which the child does something with the directory."""
    trace = place.parent / "trace"
    assert live(place, "-o", os.devnull, "-e", "trace=none", compile_modules=True) == 0
    assert live(place, "-o", str(trace), "-e", f"trace={','.join((*CHANGING, OPENING))}") == 0
    counted: Counter[str] = Counter()
    found: dict[str, list[int]] = {name: [] for name in (*CHANGING, OPENING)}
    for line in trace.read_text(errors="replace").splitlines():
        if match := _CALL.match(line):
            name = match[1]
            counted[name] += 1
            if name != OPENING or str(place / "data") in line:
                found[name].append(counted[name])
    return found


def kill(place: Path, name: str, number: int, *, on: bool) -> None:
    """Kill a child at one call, and look at what is left."""
    options = ("-o", os.devnull, "-e", f"trace={name}", "-e", f"inject={name}:signal=SIGKILL:when={number}")
    ended = live(place, *options)
    answers = (place / "answers").read_text() if (place / "answers").exists() else ""
    told = [line.split() for line in answers.splitlines(keepends=True) if line.endswith("\n")]
    try:
        assert ended != 0, "it was killed"
        check_invariants(place / "data", [(task, int(rev)) for task, rev in told], boot=boot_id())
        if on:
            check_it_goes_on(place / "data", boot=boot_id())
    except BaseException as error:
        error.add_note(f"killed at {name} number {number}, after {len(told)} answers")
        raise


def sweep(shm_path: Path, every: int) -> int:
    found = calls(shm_path / "child")
    places = [(name, number) for name, numbers in found.items() for number in numbers]
    for count, (name, number) in enumerate(places[::every]):
        kill(shm_path / "child", name, number, on=count % 4 == 0)
    return len(places)


def test_a_process_that_is_killed_at_a_system_call_loses_nothing_that_it_acknowledged(shm_path: Path) -> None:
    assert sweep(shm_path, 17) > 100


@pytest.mark.full
def test_a_process_that_is_killed_at_any_system_call_loses_nothing_that_it_acknowledged(shm_path: Path) -> None:
    assert sweep(shm_path, 1) > 100
