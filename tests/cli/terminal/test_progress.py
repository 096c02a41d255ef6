"""A person who waits sees that something goes on; scripts see nothing of it.

Real processes on a real terminal. Each is made to wait for a lock that the test holds until its line is there.
"""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from aof.service.bootstrap import open_fabric
from aof.service.clock import SystemClock
from aof.store.files.locks import Locks
from aof.surfaces.cli.live import NoProgress, ProgressLine, progress
from tests.support.terminal import readable

CLEAR = b"\r\x1b[K"
PATIENCE = 60.0


class Terminal:
    """What a process writes to standard error, which is a terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.shown = b""

    def read_until(self, wanted: bytes) -> None:
        """Wait for a text."""
        deadline = time.monotonic() + PATIENCE
        while wanted not in self.shown:
            assert time.monotonic() < deadline, f"{wanted!r} is not in {self.shown!r}"
            if readable(self._fd, 1.0):
                self.shown += os.read(self._fd, 4096)

    def rest(self) -> bytes:
        """All that it wrote, after it has ended."""
        while readable(self._fd, 0):
            try:
                data = os.read(self._fd, 4096)
            except OSError:  # EIO: nobody has the terminal open any more
                break
            if not data:
                break
            self.shown += data
        return self.shown


@contextmanager
def started(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], Terminal]]:
    """The command with standard error on a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "aof", "--data-dir", str(folder / ".aof"), *words]
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    try:
        yield child, Terminal(ours)
    finally:
        child.kill()
        child.communicate()
        os.close(ours)


@contextmanager
def held(folder: Path, name: str) -> Iterator[None]:
    """Another process that has a lock, as far as the command can tell."""
    locks = Locks(str(folder / ".aof" / "locks"), SystemClock(), 1.0)
    locks.take(name)
    try:
        yield
    finally:
        locks.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    command = [sys.executable, "-m", "aof", "--data-dir", str(tmp_path / ".aof"), "init"]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    with open_fabric(tmp_path / ".aof", actor="tester") as fabric:
        made = fabric.create("first")
        fabric.list()
    file = tmp_path / ".aof" / made.file_path
    file.write_text(file.read_text() + "\nA thought of my own.\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "lock"),
    [
        (("reindex",), "index"),
        (("export", "copy.tar.gz"), "stripe-01"),
        (("sync",), "stripe-01"),
        (("doctor", "--fix"), "stripe-01"),
        (("replay", "--at", "1"), "log"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_what_lasts_over_a_second_shows_a_line_that_is_gone_at_the_end(
    folder: Path, words: tuple[str, ...], lock: str
) -> None:
    with started_while_held(folder, lock, *words) as (child, terminal):
        assert child.wait(PATIENCE) == 0
        assert terminal.rest().endswith(CLEAR)


@contextmanager
def started_while_held(folder: Path, lock: str, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], Terminal]]:
    """The command, which had to wait for the lock until its line was there."""
    with ExitStack() as until_then:
        until_then.enter_context(held(folder, lock))
        with started(folder, *words) as (child, terminal):
            terminal.read_until(CLEAR + words[0].encode() + b": ")
            until_then.close()
            yield child, terminal


def test_what_is_over_at_once_shows_nothing() -> None:
    screen = io.StringIO()
    with ProgressLine("reindex", screen) as line:
        line("1 of 2 files")
    assert not screen.getvalue()


def test_nobody_is_told_where_standard_error_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(progress("reindex", as_json=False), NoProgress)


def test_json_has_no_line(folder: Path) -> None:
    (folder / ".aof" / "aof.toml").write_text("[storage]\nlockTimeout = 1.5\n")
    with held(folder, "index"), started(folder, "reindex", "--json") as (child, terminal):
        assert child.wait(PATIENCE) == 1  # it waited for the lock for longer than a second
        assert terminal.rest() == b""
        assert child.stdout is not None
        assert b"lock_timeout" in child.stdout.read()


def test_a_measurement_says_what_it_is_at_and_cleans_up_when_it_is_interrupted(folder: Path) -> None:
    with started(folder, "bench", "--quick", "--sizes", "0", "--dir", str(folder / "disk")) as (child, terminal):
        terminal.read_until(b"bench: round ")
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE) == 130
    assert list((folder / "disk").iterdir()) == []
