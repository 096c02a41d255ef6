"""What people see on a terminal: everything fits it, and who waits is told."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import aof
from aof.service.bootstrap import open_fabric
from aof.service.clock import SystemClock
from aof.store.files.locks import Locks
from aof.support.printable import clean
from aof.surfaces.cli.live import ProgressLine, progress
from aof.surfaces.cli.screen import cut, pad, width, wrap
from tests.support.terminal import Terminal, plain, readable, shown

# --- what people see: everything fits the terminal, whatever the titles are, and colours are only where they belong


PLAIN = {"NO_COLOR": "1"}
TITLES = (
    "plain",
    "a very long title " * 20,
    "日本語のタイトル 🎉 とても長い題名です " * 4,
    "👩‍👩‍👧 family, e\u0301 accent, ❤️ heart",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan with long and wide titles, a parent, a claim and a dependency."""
    folder = tmp_path_factory.mktemp("plan")
    aof.init(folder / ".aof")
    with aof.open(folder / ".aof", actor="tester") as fabric:
        made = [fabric.create(title, priority="high").task_id for title in TITLES]
        child = fabric.create("child " * 20, parent_id=made[0]).task_id
        fabric.create("grandchild", parent_id=child)
        fabric.create("waits", parent_id=made[0], depends_on=[child], agent="an-agent-with-quite-a-long-name")
        fabric.claim(child, agent="ada")
        fabric.progress(child, agent="ada", text="core logic done", percent=60)
        fabric.block(made[1], reason="waiting for credentials " * 8)
    return folder


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("list", "--tree"),
        ("ready", "--explain"),
        ("blocked",),
        ("graph",),
        ("log",),
        ("board", "--once"),
        ("watch", "--once"),
        ("replay", "--at", "9"),
        ("status",),
    ],
)
def test_everything_fits_the_terminal(folder: Path, words: tuple[str, ...], columns: int) -> None:
    text = plain(shown(*words, cwd=folder, columns=columns))
    assert text.strip()
    assert [line for line in text.splitlines() if width(line) > columns] == []


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_help_fits_the_terminal_and_tells_everything(folder: Path, columns: int) -> None:
    for words in (("--help",), ("create", "--help"), ("help", "init"), ("up", "--help")):
        text = shown(*words, cwd=folder, columns=columns, more=PLAIN)
        assert [line for line in text.splitlines() if width(line) > columns] == []
    assert "Clients that connect over HTTP need a token" in " ".join(text.split())


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_narrow_terminal_still_shows_each_title_and_a_name_for_each_task(folder: Path, columns: int) -> None:
    lines = shown("list", cwd=folder, columns=columns, more=PLAIN).splitlines()
    (line,) = [line for line in lines if line.rstrip().endswith("grandchild")]
    assert aof_show(line.split()[0], folder).rstrip().endswith("grandchild")


def test_what_a_task_waits_for_is_told_to_the_end_on_a_narrow_terminal(folder: Path) -> None:
    for words in (("blocked",), ("ready", "--explain")):
        text = " ".join(shown(*words, cwd=folder, columns=60, more=PLAIN).split())
        assert text.count("credentials") >= 8
    assert "ada has it" in text


def test_a_narrow_board_shows_who_works_and_counts_the_rest(folder: Path) -> None:
    board = shown("board", "--once", cwd=folder, columns=40, more=PLAIN)
    assert "in-progress (1)" in board
    assert "beside these: blocked (1)" in board


def test_a_board_that_is_too_long_names_the_column_that_goes_on(folder: Path) -> None:
    board = shown("board", "--once", cwd=folder, columns=120, more={**PLAIN, "LINES": "6"})
    assert "3 more ready: aof list --status ready" in board


def aof_show(name: str, folder: Path) -> str:
    """The first line about the task that goes by this name."""
    return shown("show", name, cwd=folder, columns=80, more=PLAIN).splitlines()[0]


def test_colours_are_for_terminals_and_for_those_who_want_them(folder: Path) -> None:
    assert "\x1b[33m" in shown("list", cwd=folder)
    for more in (PLAIN, {"TERM": "dumb"}):
        assert "\x1b" not in shown("list", cwd=folder, more=more)


def test_a_tree_has_children_below_their_parents(folder: Path) -> None:
    lines = shown("list", "--tree", cwd=folder, columns=120, more=PLAIN).splitlines()
    (first,) = [place for place, line in enumerate(lines) if line.rstrip().endswith("plain")]
    assert "├─ child" in lines[first + 1]
    assert "│  └─ grandchild" in lines[first + 2]
    assert "└─ waits" in lines[first + 3]


def test_show_names_relatives_and_tells_of_the_lease(folder: Path) -> None:
    parent = shown("show", "001", cwd=folder, more=PLAIN)
    assert "0 of 2 finished" in parent
    assert "├─ TASK-" in parent
    running = shown("show", "005", cwd=folder, more=PLAIN)
    assert "held by     ada, claimed" in running
    assert re.search(r"lease ends in \dm", running)
    assert "60 %, core logic done" in running
    assert "parent      TASK-" in running
    assert "plain" in running


def test_watch_and_board_show_who_works_and_what_changed_last(folder: Path) -> None:
    watched = plain(shown("watch", "--once", cwd=folder, columns=120))
    assert "ada" in watched
    assert re.search(r"lease ends in \dm", watched)
    assert "60 %" in watched
    assert "tester blocked it" in watched.splitlines()[-1]
    board = plain(shown("board", "--once", cwd=folder, columns=120))
    assert "in-progress (1)" in board
    assert "ada" in board
    assert "tester blocked it" in board.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("日本", 4), ("🎉", 2), ("e\u0301", 1), ("👩‍👩‍👧", 2), ("❤️", 2), ("", 0)],
)
def test_the_width_of_text_is_that_on_a_terminal(text: str, columns: int) -> None:
    assert width(text) == columns
    assert width(pad(text, 10)) == 10


@pytest.mark.parametrize("room", range(12))
def test_text_is_cut_between_characters_and_never_takes_more_than_its_room(room: int) -> None:
    for text in ("日本語のタイトル", "👩‍👩‍👧 family", "plain text", "e\u0301e\u0301e\u0301e\u0301"):
        shorter = cut(text, room)
        assert width(shorter) <= room
        assert shorter in (text, "") or shorter.endswith("…")


def test_wrapping_loses_nothing_and_keeps_to_its_room() -> None:
    for text in ("one two three", "日本語のタイトルがとても長い and more", "a" * 50, "x " + "👩‍👩‍👧" * 9, ""):
        for room in range(2, 20):
            lines = wrap(text, room)
            assert max(map(width, lines)) <= room
            assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_what_controls_a_terminal_never_reaches_it() -> None:
    assert clean("a\x1b[31mb\x07\r\u202e") == "a�[31mb���"
    assert clean("a\nb\tc", lines=True) == "a\nb\tc"
    assert clean("日本 👩‍👩‍👧 é") == "日本 👩‍👩‍👧 é"


# --- A person who waits sees that something goes on; scripts see nothing of it
# Real processes on a real terminal. Each is made to wait for a lock that the test holds until its line is there.


CLEAR = b"\r\x1b[K"
PATIENCE = 60.0


class ErrorScreen:
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
def started(place: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], ErrorScreen]]:
    """The command with standard error on a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "aof", "--data-dir", str(place / ".aof"), *words]
    child = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    try:
        yield child, ErrorScreen(ours)
    finally:
        child.kill()
        child.communicate()
        os.close(ours)


@contextmanager
def held(place: Path, name: str) -> Iterator[None]:
    """Another process that has a lock, as far as the command can tell; that of the log is its folder, `events`."""
    locks = Locks(str(place / ".aof" / "locks"), SystemClock(), 1.0)
    locks.take(str(place / ".aof" / name) if name == "events" else name)
    try:
        yield
    finally:
        locks.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
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
        (("replay", "--at", "1"), "events"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_what_lasts_over_a_second_shows_a_line_that_is_gone_at_the_end(
    place: Path, words: tuple[str, ...], lock: str
) -> None:
    with started_while_held(place, lock, *words) as (child, terminal):
        assert child.wait(PATIENCE) == 0
        assert terminal.rest().endswith(CLEAR)


@contextmanager
def started_while_held(place: Path, lock: str, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], ErrorScreen]]:
    """The command, which had to wait for the lock until its line was there."""
    with ExitStack() as until_then:
        until_then.enter_context(held(place, lock))
        with started(place, *words) as (child, terminal):
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
    assert not isinstance(progress("reindex", as_json=False), ProgressLine)


def test_json_has_no_line(place: Path) -> None:
    (place / ".aof" / "aof.toml").write_text("[storage]\nlockTimeout = 1.5\n")
    with held(place, "index"), started(place, "reindex", "--json") as (child, terminal):
        assert child.wait(PATIENCE) == 1  # it waited for the lock for longer than a second
        assert terminal.rest() == b""
        assert child.stdout is not None
        assert b"lock_timeout" in child.stdout.read()


def test_a_measurement_says_what_it_is_at_and_cleans_up_when_it_is_interrupted(place: Path) -> None:
    with Terminal("bench", "--quick", "--sizes", "0", "--dir", "disk", cwd=place) as terminal:
        terminal.until("bench: round ")
        terminal.type(b"\x03")
        assert terminal.end() == 130
    assert list((place / "disk").iterdir()) == []
