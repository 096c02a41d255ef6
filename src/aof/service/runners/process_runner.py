"""The process runner: starts any command as a worker (an argument list, never a shell), and ends it.

The service does not fork workers itself. It asks a spawner, a small process of ours, for a supervisor that forks the
worker; see `supervisor`.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from aof.errors import RunnerFailed
from aof.kernel.faults import record
from aof.kernel.limits import looks_secret
from aof.kernel.ports import PEER_TOKEN_NAME, PEER_URL, Ended, Listener, Work
from aof.runs.model import OUTPUT_FILES
from aof.service.runners import attempts, processes
from aof.service.runners.attempts import ProcessOrphans
from aof.store.port import Clock
from aof.support.confined_folder import ConfinedFolder

_OUTPUT_LIMIT: Final = 16 * 1024 * 1024
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from aof.service.runners.supervisor import main; main()"
_ABOVE: Final = os.path.abspath(f"{__file__}/../../../..")  # where the package lies: the program has no site-packages
_BOUND: Final = 30.0  # seconds that one step of a start may take


class _Worker:
    """A started process."""

    def __init__(self, work: Work, link: SupervisorLink, out: KeptStream, err: KeptStream) -> None:
        self.work = work
        self.link = link
        self.out = out
        self.err = err
        self.messages = Messages()
        self.stopped: str | None = None
        self.kill_at: float | None = None
        self.code: int | None = None


class ProcessRunner:
    """Implements `kernel.ports.Runner`; what happens to workers comes through the selector.

    `peer_command` starts the process that works for a run at a peer.
    """

    def __init__(
        self,
        root: str,
        selector: selectors.BaseSelector,
        clock: Clock,
        listener: Listener,
        *,
        environment: Mapping[str, str] = os.environ,
        output_limit: int = _OUTPUT_LIMIT,
        peer_command: tuple[str, ...] = (),
    ) -> None:
        self._root = root
        self._selector = selector
        self._clock = clock
        self._listener = listener
        self._environment = environment
        self._most = output_limit
        self._peer_command = peer_command
        self._files = ConfinedFolder(root)
        self._workers: dict[str, _Worker] = {}
        self._spawner = Spawner()
        self._orphans = ProcessOrphans(root, clock)
        self._reserved: dict[str, int] = {}

    def reserve(self, place: str) -> str | None:
        """Lock the place for a worker; why there can be none now, if so."""
        try:
            self._files.begin()
            lock = attempts.take_folder(self._files, place)
        except OSError as error:
            return f"its folder of runs cannot be locked: {error}"
        if lock is None:
            return "its earlier worker has not ended yet"
        self._reserved[place] = lock
        return None

    def give_back(self, place: str) -> None:
        """Unlock a place where nothing was started."""
        lock = self._reserved.pop(place, None)
        if lock is not None:
            attempts.free_folder(lock)

    def start(self, work: Work) -> None:
        """Start the command; raises RunnerFailed."""
        if work.place not in self._reserved and (why := self.reserve(work.place)):
            raise RunnerFailed(
                f"{work.agent} cannot be started: {why}", "wait until it has, or end it: aof admin recover"
            )
        try:
            worker = self._start(work)
        except (OSError, ValueError) as error:
            raise RunnerFailed(
                f"{work.agent} cannot be started: {error}", "correct its 'runner' in org/org-chart.yaml"
            ) from None
        finally:
            self._close_lock(work.place)
        self._workers[work.run_id] = worker
        self._selector.register(worker.out.pipe, selectors.EVENT_READ, lambda: self._read_output(worker))
        self._selector.register(worker.err.pipe, selectors.EVENT_READ, lambda: self._read_errors(worker))
        self._selector.register(worker.link, selectors.EVENT_READ, lambda: self._ended(worker))

    def _start(self, work: Work) -> _Worker:
        """Take every step of a start; when one fails, undo those before it."""
        path = f"runs/{work.place}/attempts/{work.attempt}"
        folder = f"{self._root}/{path}"
        self._files.begin()
        self._files.make_folders(folder)
        variables = worker_variables(work, self._environment, self._root)
        hidden = [work.secret.rpartition("/")[2].encode(), *worker_secrets(variables)]
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        streams: list[KeptStream] = []
        link: SupervisorLink | None = None
        try:
            for pipe, name in ((out, OUTPUT_FILES["stdout"]), (err, OUTPUT_FILES["stderr"])):
                file = self._files.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK)
                streams.append(KeptStream(pipe, file, f"{path}/{name}", self._most, Redaction(hidden)))
            brief_file = self._files.open(f"{folder}/brief.md", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            with open(brief_file, "w+", encoding="utf-8") as brief:
                brief.write(work.brief)
                brief.flush()
                brief.seek(0)
                request = {
                    "command": list(work.command if work.peer is None else self._peer_command),
                    "environment": dict(variables),
                    "folder": os.path.join(os.path.dirname(self._root), work.cwd or ""),
                }
                link = self._spawner.spawn(request, self._reserved[work.place], brief.fileno(), out_end, err_end)
            attempts.write_note(self._files, self._clock, work, link.expect())
            self._let_begin(link)
        except BaseException:
            if link is not None:
                link.close()
            for stream in streams:
                stream.close()
            for pipe in (out, err)[len(streams) :]:
                os.close(pipe)
            raise
        finally:
            os.close(out_end)
            os.close(err_end)
        return _Worker(work, link, streams[0], streams[1])

    def _close_lock(self, place: str) -> None:
        """Close our descriptor of the lock; a supervisor that has it keeps the place locked."""
        os.close(self._reserved.pop(place))

    def _let_begin(self, link: SupervisorLink) -> None:
        link.send("go")
        answer = link.expect()
        if "failed" in answer:
            raise OSError(answer["failed"])

    def dropped(self, work: Work) -> tuple[str, ...]:
        """The names of variables of ours that the worker does not get, where its chart entry says nothing of any."""
        return dropped_variables(work, self._environment)

    def stop(self, run_id: str, why: str, *, hard: bool = False) -> None:
        """End a worker and its group: with a signal first, and by force after the grace."""
        worker = self._workers.get(run_id)
        if worker is None:
            return
        if worker.stopped is None or hard:
            worker.stopped = worker.stopped or why
            worker.kill_at = self._clock.monotonic() + (0.0 if hard else worker.work.grace)
            _send(worker, "end" if hard else str(int(signal.SIGTERM)))

    def poll(self) -> float | None:
        """Kill workers that did not end in their grace; returns the seconds until the next such time."""
        waits: list[float] = []
        now = self._clock.monotonic()
        for worker in list(self._workers.values()):
            if worker.kill_at is not None:
                if worker.kill_at <= now:
                    _send(worker, "end")
                    worker.kill_at = now + worker.work.grace
                waits.append(worker.kill_at - now)
        return min(waits, default=None)

    def orphaned(self, place: str, attempt: int) -> bool:
        """Whether the note beside the run names a host of this machine's start that lives no more."""
        note = attempts.read_note(self._root, place, attempt)
        return note is not None and note.is_known(self._clock) and processes.born_at(note.host_pid) != note.host_born

    def end(self, place: str, attempt: int, run_id: str) -> str | None:
        """End what is left of a run that nobody hosts; why that cannot be done, if so."""
        return self._orphans.end(place, attempt, run_id)

    def close(self) -> None:
        """Let the spawner end."""
        self._spawner.close()

    def _read_output(self, worker: _Worker) -> bool:
        data = worker.out.read()
        if data is None:
            self._forget(worker.out.pipe)
            return False
        for text in worker.messages.feed(data):
            self._listener.said(worker.work, text)
        return bool(data)

    def _read_errors(self, worker: _Worker) -> bool:
        data = worker.err.read()
        if data is None:
            self._forget(worker.err.pipe)
        return bool(data)

    def _ended(self, worker: _Worker) -> None:
        """Read the last output of a worker of which nothing is left, and report its end; should that fail, again."""
        if worker.code is None:
            worker.code = self._code_of(worker)
            try:
                self._finish_output(worker)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with its output, that the worker ended is told
                record(f"reading the output of {worker.work.run_id}", error)
        self._listener.ended(
            Ended(
                work=worker.work,
                exit_code=worker.code if worker.code >= 0 else None,
                signal=-worker.code if worker.code < 0 else None,
                stopped=worker.stopped,
                output={"stdout": worker.out.report(), "stderr": worker.err.report()},
            )
        )
        self._workers.pop(worker.work.run_id, None)
        self._forget(worker.link.fileno())
        worker.link.close()

    def _code_of(self, worker: _Worker) -> int:
        try:
            return int(worker.link.expect()["ended"])
        except (OSError, KeyError, ValueError):
            # Somebody killed the supervisor, and the worker with it; what had detached itself carries the run.
            self.end(worker.work.place, worker.work.attempt, worker.work.run_id)
            return -signal.SIGKILL

    def _finish_output(self, worker: _Worker) -> None:
        """Read the rest of the output."""
        try:
            while self._read_output(worker):
                pass
            while self._read_errors(worker):
                pass
            for text in worker.messages.last():
                self._listener.said(worker.work, text)
        finally:
            for stream in (worker.out, worker.err):
                self._forget(stream.pipe)
                with suppress(OSError):  # of a disk that is full or gone, which costs the copy
                    stream.close()

    def _forget(self, fd: int) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(fd)


def _send(worker: _Worker, line: str) -> None:
    with suppress(OSError):  # it has gone, and that is about to be noticed
        worker.link.send(line)


class SupervisorLink:
    """The way to the supervisor of one worker. When it is closed, the worker and everything below it is killed."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours
        self._received = b""

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def expect(self) -> dict[str, Any]:
        """Wait for the next message of the supervisor; raises OSError when it sends none any more."""
        self._socket.settimeout(_BOUND)
        while b"\n" not in self._received:
            data = self._socket.recv(65_536)
            if not data:
                raise ConnectionResetError("its supervisor has ended")
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, line: str) -> None:
        """Send the supervisor `go`, `end`, or the number of a signal for the worker's group; raises OSError."""
        self._socket.settimeout(_BOUND)
        self._socket.sendall(line.encode() + b"\n")

    def close(self) -> None:
        """Close the link, which ends what is still there."""
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
        socket.send_fds(self._start(), [b"w"], descriptors)

    def _start(self) -> socket.socket:
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


_PASSED: Final = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR"})
_OURS: Final = "AOF_"
_OF_A_RUN: Final = frozenset({
    "AOF_DATA_DIR", "AOF_TASK_ID", "AOF_RUN_ID", "AOF_AGENT", "AOF_ACTOR", "AOF_EPOCH", "AOF_HOP", "AOF_RUN_SECRET",
    "AOF_MESSAGE_NONCE",
})  # fmt: skip
_SHELL: Final = frozenset({"_", "PWD", "OLDPWD", "SHLVL"})  # a shell's own business, missed by nobody
_SHORTEST_SECRET: Final = 8  # shorter values are words that stand everywhere
_SHORTEST_LINE: Final = 16


def worker_variables(work: Work, service: Mapping[str, str], root: str) -> dict[str, str]:
    """The whole environment of a worker: what the chart lets it inherit, and what is set for its run."""
    inherited = work.inherit_env
    if work.token_env is not None and not isinstance(inherited, str):
        inherited = (*inherited, work.token_env)
    return {
        **{name: value for name, value in service.items() if _is_passed(name, inherited)},
        **work.env,
        "AOF_DATA_DIR": root,
        "AOF_TASK_ID": work.task_id,
        "AOF_RUN_ID": work.run_id,
        "AOF_AGENT": work.agent,
        "AOF_ACTOR": work.agent,
        "AOF_EPOCH": str(work.epoch),
        "AOF_RUN_SECRET": work.secret,
        "AOF_MESSAGE_NONCE": work.nonce,
        **({"AOF_HOP": work.hop} if work.hop is not None else {}),
        **({PEER_URL: work.peer} if work.peer is not None else {}),
        **({PEER_TOKEN_NAME: work.token_env} if work.token_env is not None else {}),
    }


def dropped_variables(work: Work, service: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the service's variables that a worker lacks because its chart says nothing of any; keys first."""
    if work.env or work.inherit_env or work.peer is not None:
        return ()
    names = (name for name in service if not _is_passed(name, ()) and not name.startswith(_OURS) and name not in _SHELL)
    return tuple(sorted(names, key=lambda name: (not looks_secret(name), name)))


def _is_passed(name: str, inherited: tuple[str, ...] | str) -> bool:
    """Whether a worker inherits a variable. What names a run or proves who somebody is, is set for this run only."""
    if name.startswith(_OURS):
        return name not in _OF_A_RUN and not looks_secret(name)
    return inherited == "all" or name in inherited or name in _PASSED or name.startswith("LC_")


def worker_secrets(environment: Mapping[str, str]) -> Iterable[bytes]:
    """What must not stand in an output log: the values of variables whose names look secret."""
    for name, value in environment.items():
        if looks_secret(name) and len(value) >= _SHORTEST_SECRET:
            yield value.encode("utf-8", "surrogateescape")
            if "\n" in value:
                yield from (
                    line.encode("utf-8", "surrogateescape")
                    for line in value.splitlines()
                    if len(line) >= _SHORTEST_LINE
                )


_PREFIX: Final = b"AOF/1 "
_LONGEST_LINE: Final = 10 * 1024 * 1024 + 4096  # what is longer is passed on cut, so that it is refused for its size
_CHUNK: Final = 65_536


class KeptStream:
    """One stream: a pipe that is read and a file that grows, for its owner only; known secrets are blotted out."""

    def __init__(self, pipe: int, file: int, path: str, most: int, redaction: Redaction) -> None:
        os.set_blocking(pipe, False)
        self.pipe = pipe
        self._path = path
        self._most = most
        self._file = file
        self._received = 0
        self._kept = 0
        self._redaction = redaction

    def read(self) -> bytes | None:
        """What has come since the last call; empty when nothing has, None at the end."""
        try:
            data = os.read(self.pipe, _CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            return None
        if not data:
            return None
        self._received += len(data)
        self._keep(self._redaction.feed(data))
        return data

    def _keep(self, data: bytes) -> None:
        fitting = data[: max(self._most - self._kept, 0)]
        if fitting:
            with suppress(OSError):  # a full disk costs the copy, not the messages in it
                self._kept += os.write(self._file, fitting)

    def close(self) -> None:
        """Close pipe and file; the file says so when it does not hold everything."""
        self._keep(self._redaction.rest())
        if self._received > self._kept:
            with suppress(OSError):
                os.write(self._file, f"\n[{self._received - self._kept:,} bytes more were not kept]\n".encode())
        os.close(self.pipe)
        os.close(self._file)

    def report(self) -> dict[str, Any]:
        """Where the output lies and how much of it there is."""
        return {"path": self._path, "bytes": self._received, "kept": self._kept}


class Messages:
    """Finds the lines of a stream that are protocol messages."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[str]:
        """The messages that have been completed by this."""
        *lines, rest = (self._rest + data).split(b"\n")
        found = [text for line in lines if (text := self._message(line)) is not None]
        if len(rest) > _LONGEST_LINE and not self._skipping:
            if rest.startswith(_PREFIX):
                found.append(_text(rest[:_LONGEST_LINE]))
            self._skipping = True
        begins = not self._skipping and (rest.startswith(_PREFIX) or _PREFIX.startswith(rest[: len(_PREFIX)]))
        self._rest = rest if begins else rest[:0] if self._skipping else b"\x00"
        return found

    def last(self) -> list[str]:
        """A message that was not ended by a line break."""
        text = self._message(self._rest)
        return [text] if text is not None else []

    def _message(self, line: bytes) -> str | None:
        skipped, self._skipping = self._skipping, False
        return _text(line) if line.startswith(_PREFIX) and not skipped else None


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


class Redaction:
    """Replaces each secret by as many asterisks; an end that may be the beginning of one is held back."""

    def __init__(self, secrets: Iterable[bytes] = ()) -> None:
        self._secrets = sorted({one for one in secrets if one}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets))) if self._secrets else None
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What can be written now."""
        if self._pattern is None:
            return data
        whole = self._pattern.sub(lambda found: b"*" * len(found[0]), self._held + data)
        held = max(_begun_secret(secret, whole) for secret in self._secrets)
        self._held = whole[len(whole) - held :]
        return whole[: len(whole) - held]

    def rest(self) -> bytes:
        """What was held back, at the end of the stream."""
        rest, self._held = self._held, b""
        return rest


def _begun_secret(secret: bytes, text: bytes) -> int:
    """The length of the longest end of the text that the secret begins with, short of all of it."""
    tail = text[max(len(text) - len(secret) + 1, 0) :] if len(secret) > 1 else b""
    at = tail.find(secret[:1])
    while at != -1:
        if secret.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(secret[:1], at + 1)
    return 0
