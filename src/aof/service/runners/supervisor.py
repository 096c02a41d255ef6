"""The program beside `aof up` that starts workers: one spawner per service, one supervisor per worker.

The service starts the spawner once (a small interpreter without threads) and hands it the descriptors of each new
worker. The spawner forks a supervisor for it, and that forks the worker. The supervisor is the subreaper of its
worker, so that whatever the worker starts, however it detaches, stays below it; it ends only when all of that is gone.

The worker waits, before its command is executed, for a go-ahead that the service sends once the worker's note is on
the disk. When the service dies, its end of the link closes: a worker that still waits ends without having acted, and
one that runs is killed with everything below it.

Standard library only: it is loaded without site-packages.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, NoReturn

from aof.service.runners import processes

DESCRIPTORS = 5  # link, lock, standard input, output and errors of the worker
_PDEATHSIG, _NAME, _SUBREAPER = 1, 15, 36  # of prctl(2)
_GO = b"g"
_CANNOT = 127


def main() -> None:
    """The spawner: fork a supervisor for each set of descriptors that arrives, until the service has gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors are not waited for
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the service decides when this ends, by closing the socket
    _prctl(_NAME, b"aof-spawner")
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while True:
        data, given, _, _ = socket.recv_fds(control, 1, DESCRIPTORS)
        for fd in given:
            fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
        if not data:
            return
        if len(given) == DESCRIPTORS and os.fork() == 0:
            control.close()
            _supervise(*given)
        for fd in given:
            os.close(fd)


def _supervise(link_fd: int, lock: int, *stdio: int) -> NoReturn:
    """The supervisor, from its fork to its end."""
    try:
        os.setsid()
        _prctl(_NAME, b"aof-supervisor")
        _prctl(_SUBREAPER, 1)
        Supervisor(socket.socket(fileno=link_fd), lock).run(stdio)
    except (OSError, ValueError):
        os._exit(1)  # the service sees the link close
    finally:
        os._exit(0)


class Supervisor:
    """Supervises one worker and everything below it."""

    def __init__(self, link: socket.socket, lock: int) -> None:
        self._link = link
        self._lock = lock
        self._received = b""
        self._told_to_end = False

    def run(self, stdio: tuple[int, ...]) -> None:
        """Fork the worker, let it go when told to, and end the whole tree when it or the service ends."""
        wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)
        line = self._line()
        if line is None:
            return
        request: dict[str, Any] = json.loads(line)
        group = processes.make_group(f"{os.getpid()}-{processes.born_at(os.getpid())}")
        waiting, go = os.pipe2(os.O_CLOEXEC)
        broken, breaks = os.pipe2(os.O_CLOEXEC)
        worker = os.fork()
        if worker == 0:
            os.close(go)
            _become(request, stdio, waiting, breaks, group)
        for fd in (*stdio, waiting, breaks):
            os.close(fd)
        self._send(
            {
                "pid": worker,
                "born": processes.born_at(worker),
                "supervisorPid": os.getpid(),
                "supervisorBorn": processes.born_at(os.getpid()),
                "cgroup": group,
            }
        )
        if self._wait(wake, worker) == "go":
            with suppress(BrokenPipeError):
                os.write(go, _GO)
            with os.fdopen(broken, "rb") as reader:
                trouble = reader.read()
            self._send({"failed": trouble.decode("utf-8", "replace")} if trouble else {"started": True})
            while self._wait(wake, worker) != "end":
                pass
        status = _end_tree(worker, group)
        fcntl.flock(self._lock, fcntl.LOCK_UN)  # before it is told, so that a replacement need not wait
        if group is not None:
            processes.remove_group(group)
        self._send({"ended": status})

    def _end(self, *_: object) -> None:
        self._told_to_end = True

    def _line(self) -> bytes | None:
        """The next line from the service; None when that has gone."""
        while b"\n" not in self._received:
            try:
                data = self._link.recv(65_536)
            except ConnectionError:  # it had not read our last message when it went
                return None
            if not data:
                return None
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _send(self, message: dict[str, Any]) -> None:
        with suppress(OSError):  # that the service has gone is noticed when its link is read
            self._link.sendall(json.dumps(message).encode() + b"\n")

    def _wait(self, wake: int, worker: int) -> str:
        """Until the service says `go`, or it is time to `end`: the worker has ended, or the service has, or says so."""
        while not self._told_to_end and not _has_ended(worker):
            has_line = b"\n" in self._received
            ready, _, _ = select.select([self._link.fileno(), wake], [], [], 0 if has_line else None)
            if wake in ready:
                with suppress(BlockingIOError):
                    while os.read(wake, 512):
                        pass
            if has_line or self._link.fileno() in ready:
                line = self._line()
                if line == b"go":
                    return "go"
                if line is None or not line.isdigit():
                    return "end"  # told to, or the service has gone
                _signal_group(worker, int(line))
        return "end"


def _become(request: dict[str, Any], stdio: tuple[int, ...], waiting: int, breaks: int, group: str | None) -> NoReturn:
    """The worker, before its command is executed: everything is made ready, then it waits for the go-ahead."""
    supervisor = os.getppid()
    step = str(request["command"][0])
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        _prctl(_PDEATHSIG, signal.SIGKILL)
        if group is not None:
            with suppress(OSError):  # the supervisor is the subreaper all the same
                processes.join_group(group)
        for standard, fd in enumerate(stdio):
            os.dup2(fd, standard)
        if os.read(waiting, 1) != _GO or os.getppid() != supervisor:
            os._exit(0)
        step = str(request["folder"])
        os.chdir(step)
        step = str(request["command"][0])
        os.execvpe(step, request["command"], request["environment"])  # noqa: S606 - an argument list, never a shell
    except (OSError, ValueError) as error:
        what = OSError(error.errno, error.strerror, step) if isinstance(error, OSError) else error
        os.write(breaks, str(what).encode("utf-8", "replace")[:2000])
    finally:
        os._exit(_CANNOT)


def _has_ended(worker: int) -> bool:
    """Whether the worker has; it is not reaped yet, so that its number stays its own. Others that ended are."""
    while True:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return False
        if found.si_pid == worker:
            return True
        os.waitpid(found.si_pid, 0)


def _end_tree(worker: int, group: str | None) -> int:
    """Kill the worker and everything below it, and wait until nothing is left; how the worker ended."""
    if group is not None:
        processes.kill_group(group)
    _signal_group(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    with suppress(ChildProcessError):  # nothing is left
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                processes.end_processes(processes.processes_below(os.getpid()))
                os.waitpid(-1, 0)
    return os.waitstatus_to_exitcode(status)


def _signal_group(worker: int, number: int) -> None:
    """Send it to the worker and its process group. The worker itself may not have a group of its own yet."""
    for send in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            send(worker, number)
            return


def _prctl(option: int, value: int | bytes) -> None:
    """Where the system knows it; elsewhere a worker's own process group has to do."""
    if sys.platform == "linux":
        _LIBC.prctl(option, value, 0, 0, 0)


_LIBC = ctypes.CDLL(None)
