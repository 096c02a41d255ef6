"""The process runner: any command, as an argument list, in a session of its own; never a shell.

The brief is its standard input, a file, so that nobody waits for a reader. Its output is kept in files beside that, and
lines that begin with `AOF/1 ` are passed on. A worker is started in steps: its place is locked, its process waits, its
note is on the disk, then it gets the go-ahead. Whatever it started ends with it: its supervisor says so only then.
Must not know what a message or an exit means.
"""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Mapping
from contextlib import suppress

from aof._support.confined_folder import ConfinedFolder
from aof.adapters.runners import attempt_folder, processes, worker_note
from aof.adapters.runners import environment as surroundings
from aof.adapters.runners.orphans import ProcessOrphans
from aof.adapters.runners.output import KeptStream, Messages
from aof.adapters.runners.redaction import Redaction
from aof.adapters.runners.spawner import Spawner, SupervisorLink
from aof.app.faults import record
from aof.core.errors.runs import RunnerFailed
from aof.core.model.run import OUTPUT_FILES
from aof.ports.clock import Clock
from aof.ports.runner import Ended, Listener, Work

_OUTPUT_LIMIT = 16 * 1024 * 1024


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
    """Keeps the contract of `ports.runner.Runner`; what happens to workers comes through the selector.

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
            lock = attempt_folder.take(self._files, place)
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
            attempt_folder.free(lock)

    def start(self, work: Work) -> None:
        """Start the command; raises RunnerFailed."""
        if work.place not in self._reserved and (why := self.reserve(work.place)):
            raise RunnerFailed(
                f"{work.agent} cannot be started: {why}", "wait until it has, or end it: aof admin recover"
            )
        try:
            worker = self._started(work)
        except (OSError, ValueError) as error:
            raise RunnerFailed(
                f"{work.agent} cannot be started: {error}", "correct its 'runner' in org/org-chart.yaml"
            ) from None
        finally:
            self._let_go(work.place)
        self._workers[work.run_id] = worker
        self._selector.register(worker.out.pipe, selectors.EVENT_READ, lambda: self._heard(worker))
        self._selector.register(worker.err.pipe, selectors.EVENT_READ, lambda: self._noise(worker))
        self._selector.register(worker.link, selectors.EVENT_READ, lambda: self._gone(worker))

    def _started(self, work: Work) -> _Worker:
        """Every step of a start; what was begun before a step that fails is ended."""
        shown = f"runs/{work.place}/attempts/{work.attempt}"
        folder = f"{self._root}/{shown}"
        self._files.begin()
        self._files.make_folders(folder)
        variables = surroundings.variables(work, self._environment, self._root)
        hidden = [work.secret.rpartition("/")[2].encode(), *surroundings.secrets(variables)]
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        kept: list[KeptStream] = []
        link: SupervisorLink | None = None
        try:
            for pipe, name in ((out, OUTPUT_FILES["stdout"]), (err, OUTPUT_FILES["stderr"])):
                file = self._files.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK)
                kept.append(KeptStream(pipe, file, f"{shown}/{name}", self._most, Redaction(hidden)))
            brief_file = self._files.open(f"{folder}/brief.md", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            with open(brief_file, "w+", encoding="utf-8") as brief:
                brief.write(work.brief)
                brief.flush()
                brief.seek(0)
                link = self._spawned(work, variables, brief.fileno(), out_end, err_end)
            self._noted(work, link)
            self._sent_off(link)
        except BaseException:
            if link is not None:
                link.close()
            for stream in kept:
                stream.close()
            for pipe in (out, err)[len(kept) :]:
                os.close(pipe)
            raise
        finally:
            os.close(out_end)
            os.close(err_end)
        return _Worker(work, link, kept[0], kept[1])

    def _spawned(self, work: Work, variables: Mapping[str, str], *stdio: int) -> SupervisorLink:
        request = {
            "command": list(work.command if work.peer is None else self._peer_command),
            "environment": dict(variables),
            "folder": os.path.join(os.path.dirname(self._root), work.cwd or ""),
        }
        return self._spawner.spawn(request, self._reserved[work.place], *stdio)

    def _noted(self, work: Work, link: SupervisorLink) -> None:
        worker_note.write(self._files, self._clock, work, link.expect())

    def _sent_off(self, link: SupervisorLink) -> None:
        link.send("go")
        answer = link.expect()
        if "failed" in answer:
            raise OSError(answer["failed"])

    def _let_go(self, place: str) -> None:
        """Close our descriptor of the lock; a supervisor that has it keeps the place locked."""
        os.close(self._reserved.pop(place))

    def dropped(self, work: Work) -> tuple[str, ...]:
        """The names of variables of ours that the worker does not get, where its chart entry says nothing of any."""
        return surroundings.dropped(work, self._environment)

    def stop(self, run_id: str, why: str, *, hard: bool = False) -> None:
        """End the whole group: asked first, made to after the grace."""
        worker = self._workers.get(run_id)
        if worker is None:
            return
        if worker.stopped is None or hard:
            worker.stopped = worker.stopped or why
            worker.kill_at = self._clock.monotonic() + (0.0 if hard else worker.work.grace)
            _tell(worker, "end" if hard else str(int(signal.SIGTERM)))

    def poll(self) -> float | None:
        """Kill what did not end when asked."""
        waits: list[float] = []
        now = self._clock.monotonic()
        for worker in list(self._workers.values()):
            if worker.kill_at is not None:
                if worker.kill_at <= now:
                    _tell(worker, "end")
                    worker.kill_at = now + worker.work.grace
                waits.append(worker.kill_at - now)
        return min(waits, default=None)

    def orphaned(self, place: str, attempt: int) -> bool:
        """Whether the note beside the run names a host of this machine's start that lives no more."""
        note = worker_note.read(self._root, place, attempt)
        return note is not None and note.is_known(self._clock) and processes.born(note.host_pid) != note.host_born

    def end(self, place: str, attempt: int, run_id: str) -> str | None:
        """End what is left of a run that nobody hosts; why that cannot be done, if so."""
        return self._orphans.end(place, attempt, run_id)

    def close(self) -> None:
        """Let the spawner go."""
        self._spawner.close()

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
        """Nothing of the worker is left: read what it said last, and tell. Should telling fail, it is told again."""
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
                output={"stdout": worker.out.told(), "stderr": worker.err.told()},
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
        """Pass on and keep what has not been read yet."""
        try:
            while self._heard(worker):
                pass
            while self._noise(worker):
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


def _tell(worker: _Worker, what: str) -> None:
    with suppress(OSError):  # it has gone, and that is about to be noticed
        worker.link.send(what)
