"""The real `aof` command in processes of its own: into pipes, or on a terminal of any size that a test can look at."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from tests.support.warm import warm

AOF = (sys.executable, "-m", "aof")
DEADLINE = 60.0
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def environment(**more: str) -> dict[str, str]:
    """The environment of a person: no setting of AOF, an actor, and what the test adds."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AOF_")}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        kept.pop(name, None)
    return kept | {"AOF_ACTOR": "tester", "TERM": "xterm-256color"} | more


def readable(fd: int, seconds: float) -> bool:
    """Whether something can be read within so many seconds. `select` would fail in a process with many open files."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


class Ended:
    """What one call said, and its exit code."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.out = done.stdout or ""
        self.err = done.stderr or ""

    @property
    def data(self) -> Any:
        """The data of the JSON envelope."""
        return json.loads(self.out)["data"]

    @property
    def error(self) -> Any:
        """The error of the JSON envelope."""
        return json.loads(self.out)["error"]


def aof(*words: str, cwd: Path, prefix: Sequence[str] = (), **more: str) -> Ended:
    """Run the command to its end. It starts from nothing behind a `prefix`, and with what only a start looks at."""
    starts = prefix or any(name.startswith(("LANG", "LC_", "PYTHON")) for name in more)
    command = [*prefix, *AOF] if starts else [*warm(), "aof"]
    return Ended(
        subprocess.run(
            [*command, *words],
            cwd=cwd,
            env=environment(**more),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=DEADLINE,
            check=False,
        )
    )


def _as_in_a_terminal() -> None:
    """Ctrl-C reaches the process, also where the tests run in the background and ignore it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """A command that runs on a terminal of its own."""

    def __init__(
        self,
        *words: str,
        cwd: Path,
        columns: int = 80,
        lines: int = 24,
        more: dict[str, str] | None = None,
        command: Sequence[str] = AOF,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        self.text = ""
        self._process = subprocess.Popen(
            [*command, *words],
            cwd=cwd,
            env=environment(**(more or {})),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_as_in_a_terminal,  # noqa: PLW1509 - no other thread runs here
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)
        os.close(self._slave)

    def until(self, wanted: str) -> None:
        """Wait until the text has been written since the last look."""
        begin = len(self.text)
        end = time.monotonic() + DEADLINE
        while wanted not in plain(self.text[begin:]):
            assert time.monotonic() < end, f"no {wanted!r} in {self.text[begin:]!r}"
            assert self._process.poll() is None or self._read(), f"ended without {wanted!r}: {self.text!r}"
            self._read()

    def type(self, keys: bytes) -> None:
        """Press keys; Ctrl-C is the byte 3."""
        os.write(self._master, keys)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command."""
        self._process.send_signal(number)

    def end(self) -> int:
        """Wait for the end; its exit code."""
        end = time.monotonic() + DEADLINE
        while self._process.poll() is None:
            assert time.monotonic() < end, f"does not end: {self.text!r}"
            self._read()
        while self._read():
            pass
        return self._process.returncode

    @contextmanager
    def bound(self) -> Iterator[Callable[[], bool]]:
        """For loops that wait: true while the command runs and the deadline has not passed."""
        end = time.monotonic() + DEADLINE

        def going_on() -> bool:
            assert time.monotonic() < end, f"waited too long: {self.text!r}"
            return self._process.poll() is None

        yield going_on

    def has_open(self, folder: Path) -> bool:
        """Whether the command has a file below the folder open."""
        found = Path(f"/proc/{self._process.pid}/fd")
        with suppress(OSError):
            return any(os.readlink(one).startswith(f"{folder}/") for one in found.iterdir())
        return False

    def restored(self) -> bool:
        """Whether the terminal echoes, shows its cursor and its first screen again."""
        shown = self.text.rfind("\x1b[?25h") >= self.text.rfind("\x1b[?25l")
        first = self.text.rfind("\x1b[?1049l") >= self.text.rfind("\x1b[?1049h")
        return shown and first and termios.tcgetattr(self._slave) == self.before

    def _read(self) -> bool:
        if not readable(self._master, 0.05):
            return False
        fresh = os.read(self._master, 65_536).decode(errors="replace")
        self.text = (self.text + fresh).replace("\r\n", "\n")  # together: a read may end between the two
        return True


def plain(text: str) -> str:
    """Text without colours and movements of the cursor."""
    return _CODES.sub("", text)


def shown(*words: str, cwd: Path, columns: int = 80, more: dict[str, str] | None = None) -> str:
    """What a command that ends by itself leaves on a terminal, colours included."""
    with Terminal(*words, cwd=cwd, columns=columns, more=more, command=(*warm(), "aof")) as terminal:
        terminal.end()
        return terminal.text
