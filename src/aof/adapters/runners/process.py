"""The process runner: any command, as an argument list, in a session of its own; never a shell.

The brief is its standard input, a file, so that nobody waits for a reader. Its output is kept in files beside that, and
lines that begin with `AOF/1 ` are passed on. Whatever a worker started ends with it: the group is killed before the
worker is reaped, so that its number cannot be somebody else's. Must not know what a message or an exit means.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from aof.adapters.runners import processes
from aof.adapters.runners.output import Kept, Messages
from aof.app.faults import record
from aof.beneath import Beneath
from aof.core.errors import RunnerFailed
from aof.ports.clock import Clock
from aof.ports.runner import Ended, Listener, Work

_OUTPUT_LIMIT = 16 * 1024 * 1024
_LOOK_AGAIN = 0.05  # seconds, where the system cannot tell when a process ends


class _Worker:
    """A started process."""

    def __init__(self, work: Work, process: subprocess.Popen[bytes], out: Kept, err: Kept) -> None:
        self.work = work
        self.process = process
        self.out = out
        self.err = err
        self.messages = Messages()
        self.exit_fd: int | None = None
        self.stopped: str | None = None
        self.kill_at: float | None = None


class ProcessRunner:
    """Keeps the contract of `ports.runner.Runner`; what happens to workers comes through the selector."""

    def __init__(
        self,
        root: str,
        selector: selectors.BaseSelector,
        clock: Clock,
        listener: Listener,
        *,
        environment: Mapping[str, str] = os.environ,
        output_limit: int = _OUTPUT_LIMIT,
    ) -> None:
        self._root = root
        self._files = Beneath(root)
        self._selector = selector
        self._clock = clock
        self._listener = listener
        self._environment = environment
        self._most = output_limit
        self._workers: dict[str, _Worker] = {}

    def start(self, work: Work) -> None:
        """Start the command; raises RunnerFailed."""
        shown = f"runs/{work.place}/attempts/{work.attempt}"
        folder = f"{self._root}/{shown}"
        try:
            self._files.begin()
            self._files.make_folders(folder)
            with open(self._new_file(f"{folder}/brief.md"), "w+", encoding="utf-8") as brief:
                brief.write(work.brief)
                brief.flush()
                brief.seek(0)
                process = subprocess.Popen(  # noqa: S603 - an argument list from the org chart, never a shell
                    work.command,
                    stdin=brief,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=os.path.join(os.path.dirname(self._root), work.cwd or ""),
                    env=self._variables(work),
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            raise RunnerFailed(
                f"{work.agent} cannot be started: {error}", "correct its 'runner' in org/org-chart.yaml"
            ) from None
        assert process.stdout is not None
        assert process.stderr is not None
        self._note(folder, work, process.pid)
        hidden = (work.secret.rpartition("/")[2].encode(), work.nonce.encode())
        out = Kept(os.dup(process.stdout.fileno()), f"{folder}/output.log", f"{shown}/output.log", self._most, hidden)
        err = Kept(os.dup(process.stderr.fileno()), f"{folder}/errors.log", f"{shown}/errors.log", self._most, hidden)
        process.stdout.close()
        process.stderr.close()
        worker = self._workers[work.run_id] = _Worker(work, process, out, err)
        self._selector.register(out.pipe, selectors.EVENT_READ, lambda: self._heard(worker))
        self._selector.register(err.pipe, selectors.EVENT_READ, lambda: self._noise(worker))
        with suppress(OSError, AttributeError):
            worker.exit_fd = os.pidfd_open(process.pid)
            self._selector.register(worker.exit_fd, selectors.EVENT_READ, lambda: self._gone(worker))

    def stop(self, run_id: str, why: str, *, hard: bool = False) -> None:
        """End the whole group: asked first, made to after the grace."""
        worker = self._workers.get(run_id)
        if worker is None:
            return
        if worker.stopped is None or hard:
            worker.stopped = worker.stopped or why
            worker.kill_at = self._clock.monotonic() + (0.0 if hard else worker.work.grace)
            _signal(worker, signal.SIGKILL if hard else signal.SIGTERM)

    def poll(self) -> float | None:
        """Kill what did not end when asked; look for the end where the system does not tell."""
        waits: list[float] = []
        now = self._clock.monotonic()
        for worker in list(self._workers.values()):
            if worker.kill_at is not None:
                if worker.kill_at <= now:
                    _signal(worker, signal.SIGKILL)
                    worker.kill_at = now + worker.work.grace
                waits.append(worker.kill_at - now)
            if worker.exit_fd is None:
                if os.waitid(os.P_PID, worker.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    self._gone(worker)
                else:
                    waits.append(_LOOK_AGAIN)
        return min(waits, default=None)

    def orphaned(self, place: str, attempt: int) -> bool:
        """Whether the note beside the run names a host of this machine's start that lives no more."""
        try:
            with open(f"{self._root}/runs/{place}/attempts/{attempt}/process.json", "rb") as file:
                note: dict[str, Any] = msgspec.json.decode(file.read())
            boot = self._clock.boot()
            known = boot is not None and (note["bootId"], note["pidSpace"]) == (boot.id, processes.space())
            return known and processes.born(int(note["hostPid"])) != note["hostBorn"]
        except (OSError, msgspec.DecodeError, KeyError, TypeError, ValueError):
            return False

    def sweep(self, run_id: str) -> None:
        """Kill what carries the run, of this data directory, in its environment."""
        processes.end(processes.of_run(self._root, run_id))

    def _variables(self, work: Work) -> dict[str, str]:
        own = {name: value for name, value in self._environment.items() if name != "AOF_HOP"}
        return {
            **own,
            **work.env,
            "AOF_DATA_DIR": self._root,
            "AOF_TASK_ID": work.task_id,
            "AOF_RUN_ID": work.run_id,
            "AOF_AGENT": work.agent,
            "AOF_ACTOR": work.agent,
            "AOF_EPOCH": str(work.epoch),
            "AOF_RUN_SECRET": work.secret,
            "AOF_MESSAGE_NONCE": work.nonce,
            **({"AOF_HOP": work.hop} if work.hop is not None else {}),
        }

    def _new_file(self, path: str) -> int:
        return self._files.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def _note(self, folder: str, work: Work, pid: int) -> None:
        """Who hosts which process, for whoever comes after a host that was killed."""
        boot = self._clock.boot()
        note = {
            "runId": work.run_id,
            "command": list(work.command),
            "pid": pid,
            "hostPid": os.getpid(),
            "hostBorn": processes.born(os.getpid()),
            "pidSpace": processes.space(),
            "bootId": boot.id if boot is not None else None,
        }
        with suppress(OSError), open(self._new_file(f"{folder}/process.json"), "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(note), indent=2) + b"\n")

    def _heard(self, worker: _Worker) -> bool:
        data = worker.out.read()
        if data is None:
            self._forget(worker.out.pipe)
            return False
        for text in worker.messages.feed(data):
            self._listener.said(worker.work, text)
        return bool(data)

    def _noise(self, worker: _Worker) -> bool:
        data = worker.err.read()
        if data is None:
            self._forget(worker.err.pipe)
        return bool(data)

    def _gone(self, worker: _Worker) -> None:
        """The worker has ended: end what it started, read what is left, reap it, and tell."""
        _signal(worker, signal.SIGKILL)
        if self._workers.pop(worker.work.run_id, None) is None:
            return
        try:
            while self._heard(worker):
                pass
            while self._noise(worker):
                pass
            for text in worker.messages.last():
                self._listener.said(worker.work, text)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with its output, that the worker ended is told
            record(f"reading the output of {worker.work.run_id}", error)
        for fd in (worker.out.pipe, worker.err.pipe, worker.exit_fd):
            if fd is not None:
                self._forget(fd)
        if worker.exit_fd is not None:
            os.close(worker.exit_fd)
        code = worker.process.wait()
        worker.out.close()
        worker.err.close()
        self._listener.ended(
            Ended(
                work=worker.work,
                exit_code=code if code >= 0 else None,
                signal=-code if code < 0 else None,
                stopped=worker.stopped,
                output={"stdout": worker.out.told(), "stderr": worker.err.told()},
            )
        )

    def _forget(self, fd: int) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(fd)


def _signal(worker: _Worker, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(worker.process.pid, number)
