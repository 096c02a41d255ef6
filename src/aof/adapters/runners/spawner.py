"""The service's side of starting workers: one spawner process, and a link to the supervisor of each worker.

The spawner is a process of its own because the service has threads: between fork and exec of a threaded process only
async-signal-safe code may run, and waiting for a go-ahead is not that. Must not know tasks or what an exit means.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from typing import Any

_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from aof.adapters.runners.supervisor import main; main()"
_ABOVE = os.path.abspath(f"{__file__}/../../../..")  # where the package lies: the program runs without site-packages
_BOUND = 30.0  # seconds that one step of a start may take


class SupervisorLink:
    """The way to the supervisor of one worker. When it is closed, the worker and everything below it is killed."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours
        self._heard = b""

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def expect(self) -> dict[str, Any]:
        """Wait for the next thing that the supervisor says; raises OSError when it says nothing any more."""
        self._socket.settimeout(_BOUND)
        while b"\n" not in self._heard:
            data = self._socket.recv(65_536)
            if not data:
                raise ConnectionResetError("its supervisor has ended")
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    def send(self, line: str) -> None:
        """Tell the supervisor `go`, `end`, or the number of a signal for the worker's group; raises OSError."""
        self._socket.settimeout(_BOUND)
        self._socket.sendall(line.encode() + b"\n")

    def close(self) -> None:
        """Let go; what is still there ends."""
        self._socket.close()


class Spawner:
    """Starts the spawner process when the first worker is to be started, and again should somebody have killed it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def spawn(self, request: dict[str, Any], lock: int, *stdio: int) -> SupervisorLink:
        """A supervisor for a worker that waits for its go-ahead; it holds the lock until nothing is left of it."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._hand_over([theirs.fileno(), lock, *stdio])
            link = SupervisorLink(ours)
            link.send(json.dumps(request))
        except BaseException:
            ours.close()
            raise
        return link

    def _hand_over(self, descriptors: list[int]) -> None:
        if self._control is not None:
            with suppress(OSError):
                socket.send_fds(self._control, [b"w"], descriptors)
                return
        socket.send_fds(self._begun(), [b"w"], descriptors)

    def _begun(self) -> socket.socket:
        self.close()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-I", "-S", "-c", _PROGRAM, _ABOVE],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )
        return self._control

    def close(self) -> None:
        """Let the spawner end; supervisors go on for as long as their links are open."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.wait()
            self._process = None
