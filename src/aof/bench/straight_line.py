"""The same commits in straight-line Python: what AOF's files, locks and flushes cost where no rule is asked.

A lifecycle writes what AOF's does: the line in the log, chained by its hash, under the same locks, flushed outside of
them; the notes beside the log and the journal; the task's file, which moves from folder to folder, and the files of its
run, each made whole and then renamed. Nothing is checked, parsed, recovered or refused. So this is a bound for what
Python can reach with these files, as the bare disk is one for any program.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from aof.bench.commits import BRIEF, COMMITS, SUMMARY, TITLE
from aof.bench.rounds import Operation, Subject

_FOLDERS: Final = ("locks", "events", "tmp", "runs", "tasks", "tasks/ready", "tasks/in-progress", "tasks/done")
_NOTES: Final = ("journal", "log", "flushed", "revs", "heads")
_CHAIN_BYTES: Final = 32
_encode = msgspec.json.Encoder().encode


def _prepare(folder: Path) -> None:
    for name in _FOLDERS:
        (folder / name).mkdir()
    for name in _NOTES:
        (folder / "locks" / name).touch()
    (folder / "events/log.jsonl").touch()


class _Writer:
    """One process at its tasks; each has a stripe of its own, as most tasks of AOF have one at a time."""

    def __init__(self, folder: Path, number: int, opened: ExitStack) -> None:
        def file(name: str, flags: int = os.O_RDWR | os.O_CREAT) -> int:
            fd = os.open(folder / name, flags, 0o600)
            opened.callback(os.close, fd)
            return fd

        self._number = number
        self._count = 0
        self._stripe = file(f"locks/stripe-{number:02}")
        self._journal, self._log, self._flushed, self._revs, self._heads = (file(f"locks/{name}") for name in _NOTES)
        self._lines = file("events/log.jsonl", os.O_RDWR | os.O_APPEND)
        folders = os.O_RDONLY | os.O_DIRECTORY
        self._events, self._tmp, self._runs = (file(name, folders) for name in ("events", "tmp", "runs"))
        self._status = {name: file(f"tasks/{name}", folders) for name in ("ready", "in-progress", "done")}

    def lifecycle(self) -> None:
        """Create, claim, complete."""
        self._count += 1
        task = f"TASK-{self._number}-{self._count:06}"
        head: dict[str, Any] = {"id": task, "title": TITLE, "status": "ready", "createdBy": "bench"}
        self._commit(task, "task.created", head, "", "ready")
        os.mkdir(task, 0o700, dir_fd=self._runs)
        head |= {"status": "in-progress", "lease": {"agent": "bench", "epoch": 1}}
        run = {"taskId": task, "agent": "bench", "status": "running"}
        self._commit(task, "task.claimed", head, "ready", "in-progress", {"run": run, "run_heartbeat": run})
        head |= {"status": "done", "summary": SUMMARY}
        ended = {"run": run | {"status": "done"}, "run_result": {"taskId": task, "summary": SUMMARY}}
        self._commit(task, "task.completed", head, "in-progress", "done", ended)

    def _commit(  # noqa: PLR0917 - one place, three callers beside each other
        self, task: str, kind: str, head: dict[str, Any], before: str, after: str, of_run: dict[str, Any] | None = None
    ) -> None:
        fcntl.flock(self._stripe, fcntl.LOCK_EX)
        os.pread(self._stripe, 128, 0)
        if before:
            with open(
                f"{task}.md", "rb", opener=lambda name, flags: os.open(name, flags, dir_fd=self._status[before])
            ) as file:
                file.read()
        file_text = f"---\n{_encode(head).decode()}\n---\n\n{BRIEF}\n".encode()
        os.pwrite(self._journal, b"w", self._number)
        os.pwrite(self._stripe, f"writing {task}".encode(), 0)
        fcntl.flock(self._log, fcntl.LOCK_EX)
        fcntl.flock(self._events, fcntl.LOCK_EX)
        last = os.pread(self._log, _CHAIN_BYTES, 0)
        seen = hashlib.sha256(file_text).hexdigest()
        event = {"type": kind, "task": task, "previous": last.hex(), "payload": head, "brief": BRIEF, "file": seen}
        line = _encode(event)
        os.write(self._lines, line + b"\n")
        end = os.fstat(self._lines).st_size
        os.pwrite(self._log, hashlib.sha256(last + line).digest(), 0)
        os.pwrite(self._revs, b"%015d\n" % end, self._number * 16)
        fcntl.flock(self._log, fcntl.LOCK_UN)
        fcntl.flock(self._events, fcntl.LOCK_UN)
        os.fdatasync(self._lines)
        os.pwrite(self._flushed, b"%015d\n" % end, 0)
        if of_run:
            folder = os.open(task, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._runs)
            for name, text in of_run.items():
                self._replace(f"{name}.json", msgspec.json.format(_encode(text)), folder)
            os.close(folder)
        self._replace(f"{task}.md", file_text, self._status[after])
        if before:
            os.unlink(f"{task}.md", dir_fd=self._status[before])
        os.pwrite(self._heads, b"%031d\n" % end, self._number * 32)
        os.pwrite(self._stripe, b"idle".ljust(32), 0)
        os.pwrite(self._journal, b".", self._number)
        fcntl.flock(self._stripe, fcntl.LOCK_UN)

    def _replace(self, name: str, data: bytes, folder: int) -> None:
        temporary = f"{name}.{self._number}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._tmp)
        os.write(fd, data)
        os.close(fd)
        os.rename(temporary, name, src_dir_fd=self._tmp, dst_dir_fd=folder)


@contextmanager
def _opened(folder: Path, number: int) -> Iterator[Operation]:
    with ExitStack() as opened:
        yield _Writer(folder, number, opened).lifecycle


STRAIGHT_LINE: Final = Subject("straight line", COMMITS, _prepare, _opened)
