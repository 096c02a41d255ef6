"""Commands that fork from a process with all loaded are to their caller what commands are that start from nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.service import directory, lives
from tests.support.terminal import environment
from tests.support.waiting import BOUND
from tests.support.warm import Forked, warm

FROM_NOTHING = (sys.executable, "-m")


def said(begun: tuple[str, ...], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What a command says to somebody who is called tester."""
    command, variables = [*begun, "aof", *words], environment()
    return subprocess.run(
        command, cwd=folder, env=variables, input="", capture_output=True, text=True, timeout=BOUND, check=False
    )


@pytest.mark.parametrize(
    "words", [("list",), ("show", "009"), ("claim",), ("no-such-verb",), ("prime",), ("--version",)]
)
def test_a_forked_command_says_and_ends_as_one_that_starts_from_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert said(warm(), tmp_path, "init").returncode == 0
    forked, started = said(warm(), tmp_path, *words), said(FROM_NOTHING, tmp_path, *words)
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


def test_a_forked_command_has_the_folder_and_the_name_of_its_caller_only(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        assert said(warm(), tmp_path / name, "init").returncode == 0
    assert said(warm(), tmp_path / "a", "create", "Here").returncode == 0
    assert "Here" in said(warm(), tmp_path / "a", "list").stdout
    assert "Here" not in said(warm(), tmp_path / "b", "list").stdout
    assert '"actor":"tester"' in "".join(path.read_text() for path in (tmp_path / "a/.aof/events").glob("*.jsonl"))


def test_a_forked_service_is_ended_by_signals_of_its_own(tmp_path: Path) -> None:
    words = ("aof", "--data-dir", str(directory(tmp_path, {})), "up", "--log-json")
    for number, code in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)):
        service = Forked(*words, environment=environment())
        assert '"up"' in service.stdout.readline()
        assert lives(service.pid)
        service.send_signal(number)
        assert service.wait(BOUND) == code


def test_who_kills_what_it_started_kills_the_fork(tmp_path: Path) -> None:
    words = [*warm(), "aof", "--data-dir", str(directory(tmp_path, {})), "up", "--log-json"]
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        first = caller.stdout.readline()
        caller.kill()
        assert '"up"' in first
        assert caller.stdout.read() is not None, "nobody holds the stream any more"
    assert caller.returncode == -signal.SIGKILL
