"""The hook at a session's start, run by real shells: whatever is wrong with AOF, the session begins."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with Claude Code connected, and a folder with the `aof` command."""
    (tmp_path / "bin").mkdir()
    _command(tmp_path, f'exec {sys.executable} -m aof "$@"')
    done = subprocess.run(
        [sys.executable, "-m", "aof", "init", "--agent", "claude"],
        cwd=tmp_path,
        env=_environment(tmp_path),
        check=False,
    )
    assert done.returncode == 0
    return tmp_path


def _environment(project: Path) -> dict[str, str]:
    return {"PATH": f"{project}/bin:/usr/bin:/bin", "HOME": str(project)}


def _command(project: Path, script: str) -> None:
    path = project / "bin" / "aof"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _hook(project: Path, shell: str = "sh") -> subprocess.CompletedProcess[str]:
    """What the client's shell says, as the settings tell it to run the hook."""
    (start,) = json.loads((project / ".claude/settings.json").read_text())["hooks"]["SessionStart"]
    (hook,) = start["hooks"]
    return subprocess.run(
        [str(shutil.which(shell)), "-c", hook["command"]],
        cwd=project, env=_environment(project), input='{"source": "startup"}', capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
def test_the_hook_tells_the_agent_what_waits_for_it(project: Path, shell: str) -> None:
    told = _hook(project, shell)
    assert (told.returncode, told.stderr) == (0, "")
    assert "you are claude" in told.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_without_the_command_the_hook_says_nothing(project: Path, shell: str) -> None:
    (project / "bin" / "aof").unlink()
    told = _hook(project, shell)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


@pytest.mark.parametrize("script", ["echo broken >&2; exit 2", "exit 1", "kill -9 $$", "exec /nowhere"])
def test_however_the_command_ends_the_hook_succeeds(project: Path, script: str) -> None:
    _command(project, script)
    told = _hook(project)
    assert (told.returncode, told.stdout) == (0, "")


def test_where_there_is_no_data_directory_the_hook_says_nothing(project: Path) -> None:
    shutil.rmtree(project / ".aof")
    told = _hook(project)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_a_damaged_data_directory_is_told_and_does_not_stop_the_session(project: Path) -> None:
    (project / ".aof/aof.toml").write_text("not = [toml")
    told = _hook(project)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("AOF did not answer: ")
    assert "tell the person" in told.stdout


def test_a_damaged_log_does_not_stop_the_session(project: Path) -> None:
    subprocess.run(["aof", "create", "x"], cwd=project, env=_environment(project), check=True, capture_output=True)
    (log,) = (project / ".aof/events").glob("*.jsonl")
    log.write_bytes(b"\0\xff{" * 100)
    shutil.rmtree(project / ".aof/index.sqlite", ignore_errors=True)
    told = _hook(project)
    assert (told.returncode, told.stderr) == (0, "")


def test_locks_that_are_held_do_not_stop_the_session(project: Path) -> None:
    held = []
    for path in (project / ".aof/locks").rglob("*"):
        if path.is_file():
            held.append(os.open(path, os.O_RDWR))
            fcntl.flock(held[-1], fcntl.LOCK_EX)
            fcntl.lockf(held[-1], fcntl.LOCK_EX)
    assert held
    told = _hook(project)
    for lock in held:
        os.close(lock)
    assert (told.returncode, told.stderr) == (0, "")


_HANGS = """\
import sys, threading
from aof.surfaces.cli import main
from aof.runs import brief
brief.prime = lambda *given: threading.Event().wait()
sys.exit(main.main())
"""


def test_a_command_that_hangs_gives_up_by_itself(project: Path) -> None:
    (project / "hangs.py").write_text(_HANGS)
    _command(project, f'exec {sys.executable} {project}/hangs.py "$@"')
    told = _hook(project)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("AOF did not answer in 5 seconds.")


def test_the_client_is_told_to_end_a_command_that_does_not_give_up(project: Path) -> None:
    (start,) = json.loads((project / ".claude/settings.json").read_text())["hooks"]["SessionStart"]
    assert start["hooks"][0]["timeout"] == 15
