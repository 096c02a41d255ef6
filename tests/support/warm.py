"""`python -m aof` without the wait: a command line as a process of its own that forks from one that has all loaded.

Starting a server costs a second of computing, of which loading its libraries is nearly all. Tests whose point is what a
process answers start `warm()` in place of `sys.executable, "-m"`: the words behind it are a module and its arguments.
It is a process to its caller in all that counts: environment, folder, standard streams, exit code; SIGTERM and SIGINT
reach it, and it is killed when its caller kills what it started. `Forked` is the process itself: its ID is its own, and
a signal is there when it was sent. Where the point is a start, or what is loaded, a test starts Python itself.

Nothing is run in the process that all fork from, only loaded, so that none sees what another has done.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from aof.api.catalogue import TIERS
from aof.surfaces.mcp.tools import tools

LOADED = (
    "anyio._backends._asyncio",
    "aof.surfaces.cli.commands.agents",
    "aof.surfaces.cli.main",
    "aof.surfaces.http.app",
    "aof.surfaces.mcp.stdio",
    "aof.service.bootstrap",
    "aof.service.up",
    "aof.service.serve",
    "tests.surfaces.server",
)
_READY = b"warm\n"
_MOST_FILES = 1 << 16
_REPOSITORY = Path(__file__).parents[2]
_CALL = Path(__file__).with_name("warm_call.py")


@cache
def warm() -> tuple[str, ...]:
    """What a command begins with in place of `sys.executable, "-m"`; the first one starts what all fork from."""
    folder = tempfile.mkdtemp(prefix="aof-warm-")
    address = f"{folder}/socket"
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}  # as buffers are
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm", address],
        cwd=_REPOSITORY,
        env=usual,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == _READY

    def end() -> None:
        process.communicate()  # its input ends, and so does it
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return (sys.executable, "-I", "-S", str(_CALL), address)


class Forked:
    """A process that prints into a pipe: what `subprocess.Popen` has for who reads it, signals it and waits for it."""

    def __init__(self, *words: str, environment: Mapping[str, str]) -> None:
        self.returncode: int | None = None
        self._place = socket.socket(socket.AF_UNIX)
        self._place.connect(warm()[-1])
        variables = [f"{name}={value}" for name, value in environment.items()]
        said = [os.getcwd(), str(_mask()), str(len(words)), *words, *variables]
        asked = b"\0".join(map(os.fsencode, said))
        out, printed = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        socket.send_fds(self._place, [len(asked).to_bytes(4, sys.byteorder)], [nothing, printed, printed])
        for one in (nothing, printed):
            os.close(one)
        self.stdout = os.fdopen(out, encoding="utf-8")
        self._place.sendall(asked)
        self.pid = int.from_bytes(self._place.recv(4), sys.byteorder)

    def wait(self, seconds: float | None = None) -> int:
        """Its exit code, or the negative number of the signal that ended it."""
        if self.returncode is None:
            self._place.settimeout(seconds)
            self.returncode = int.from_bytes(self._place.recv(4), sys.byteorder, signed=True)
            self._place.close()
        return self.returncode

    def poll(self) -> int | None:
        """The same if it has ended."""
        with suppress(BlockingIOError):
            return self.wait(0)
        return None

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def serve(address: str) -> None:
    """Fork whatever is asked for, until the standard input ends."""
    for name in LOADED:
        importlib.import_module(name)
    tools(TIERS)  # all servers work them out of the same types
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as waiting:
        listening.bind(address)
        listening.listen(64)
        dead, wake = os.pipe()
        for end in (dead, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for one in (0, dead, listening):
            waiting.register(one, selectors.EVENT_READ)
        os.write(1, _READY)
        _serve(listening, waiting, dead)


def _serve(listening: socket.socket, waiting: selectors.BaseSelector, dead: int) -> None:
    callers: dict[int, socket.socket] = {}
    while True:
        for key, _ in waiting.select():
            if key.fileobj == 0:
                for process in callers:
                    os.kill(process, signal.SIGKILL)
                return
            if key.fileobj is listening:
                caller, _ = listening.accept()
                process = _forked(caller)
                callers[process] = caller
                waiting.register(caller, selectors.EVENT_READ, process)
            elif key.fileobj == dead:
                os.read(dead, 4096)
                _bury(callers, waiting)
            elif key.data in callers:  # it passes a signal on, or was killed itself
                passed = callers[key.data].recv(1)
                os.kill(key.data, passed[0] if passed else signal.SIGKILL)
                if not passed:
                    waiting.unregister(callers[key.data])


def _bury(callers: dict[int, socket.socket], waiting: selectors.BaseSelector) -> None:
    """Tell the callers of those that have ended how."""
    for process in list(callers):
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            with callers.pop(process) as caller, suppress(OSError, KeyError):
                waiting.unregister(caller)
                caller.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, sys.byteorder, signed=True))


def _forked(caller: socket.socket) -> int:
    """A new process that does what the caller asks for."""
    data, streams, _, _ = socket.recv_fds(caller, 4, 3)
    left = int.from_bytes(data, sys.byteorder)
    asked = b""
    while len(asked) < left and (more := caller.recv(left - len(asked))):
        asked += more
    process = os.fork()
    if not process:
        status = 1
        try:
            status = _live(streams, asked)
        except BaseException:  # noqa: BLE001 - as Python itself says it at the end of a process
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    for stream in streams:
        os.close(stream)
    with suppress(OSError):  # killed meanwhile
        caller.sendall(process.to_bytes(4, sys.byteorder))
    return process


def _live(streams: list[int], asked: bytes) -> int:
    """Be the process; its exit code."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, _MOST_FILES)
    folder, mask, count, *rest = asked.split(b"\0")
    module, *words = map(os.fsdecode, rest[: int(count)])
    os.environ.clear()
    for one in rest[int(count) :]:
        name, _, value = one.partition(b"=")
        os.environb[name] = value
    os.chdir(folder)
    os.umask(int(mask))
    time.tzset()
    sys.argv = [module, *words]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code: object = 0
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    serve(sys.argv[1])
