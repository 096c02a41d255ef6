"""The files of a task: reads them, and puts a new version in the place of the old one.

Knows the identity of this clone as well, which owns runs and numbers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import suppress
from functools import cached_property
from typing import TypeVar

import msgspec

from aof.errors import UnreadableResult
from aof.kernel.commands import Numbers
from aof.kernel.model import is_task_id, iso, millis
from aof.runs.model import Heartbeat, Run, RunResult
from aof.store.files.disk import NO_FILE, Disk, Seen, read, read_piece
from aof.store.files.locks import Locks
from aof.store.files.log.segment import Claims
from aof.store.files.paths import LaneNames, Paths
from aof.support import nesting

_encode = msgspec.json.Encoder().encode
_Record = TypeVar("_Record", Run, RunResult, Heartbeat)
_RUN_FILES = ("run.json", "run_result.json", "run_heartbeat.json")


def document(record: Run | RunResult | Heartbeat) -> bytes:
    """A run's file: JSON that a person can read."""
    return msgspec.json.format(_encode(record), indent=2) + b"\n"


class TaskFiles:
    """The files of all tasks in one data directory."""

    def __init__(self, paths: Paths, disk: Disk) -> None:
        self._paths = paths
        self._disk = disk

    @cached_property
    def lanes(self) -> LaneBytes:
        """Which bytes any clone's AOF has written."""
        return LaneBytes(self._paths)

    def present(self, task_id: str) -> list[str]:
        """The folders that hold a file of this name; there should be one."""
        name = f"{task_id}.md"
        return [folder for folder, path in self._paths.folders if os.access(path + name, os.F_OK)]

    def elsewhere(self, task_id: str, expected: str) -> bool:
        """Whether another folder than the expected one holds a file of this name; there should be none."""
        name = f"{task_id}.md"
        for folder, path in self._paths.folders:  # noqa: SIM110 - every command comes by here, and a loop is quicker
            if folder != expected and os.access(path + name, os.F_OK):
                return True
        return False

    def place(self, task_id: str, data: bytes, old: str | None, new: str, file: Seen | None = None) -> bool:
        """Write a version to its folder; from another one, the task's own files follow and the version there goes.

        Leaves everything as it is, and says so, when somebody has written the file since it was `file`.
        """
        temporary = self._paths.temporary_file(f"{task_id}.md")
        target = self._paths.task(new, task_id)
        self._disk.write_new(temporary, data)
        if old is None:
            self._disk.rename(temporary, target)
            return True
        here = self._paths.task(old, task_id)
        mode = None
        if file is not None:
            try:
                found = os.stat(here, follow_symlinks=False)
            except FileNotFoundError:
                found = None
            if found is None or not file.is_still(found):
                self._disk.unlink(temporary)
                return False
            mode = found.st_mode
        if old == new:
            self._disk.replace(temporary, here, mode)
            return True
        self._disk.keep_mode(temporary, here, mode)
        self._disk.rename(temporary, target)
        self.move_folder(here.removesuffix(".md"), target.removesuffix(".md"))  # the task's own files
        with suppress(FileNotFoundError):  # a person has moved it meanwhile, or a writer whose lock was deleted
            self._disk.unlink(here)
        return True

    def gather(self, task_id: str, target: str) -> None:
        """The task's own files follow it, wherever a person left them."""
        for folder, _ in self._paths.folders:
            if folder != target:
                self.move_folder(self._paths.files(folder, task_id), self._paths.files(target, task_id))

    def move_folder(self, source: str, target: str) -> None:
        """Move a folder that may not exist, or may have been moved already. Two of them are left to a person."""
        if os.access(source, os.F_OK) and not os.path.lexists(target):
            with suppress(FileNotFoundError):
                self._disk.rename(source, target)

    def write_run(self, task_id: str, name: str, data: bytes, *, new: bool = False) -> None:
        """Write one of the current run's files; `new` when there surely is none of this name."""
        folder = f"{self._paths.runs}/{task_id}"
        temporary = self._paths.temporary_file(f"{task_id.replace('/', '.')}.{name}")
        self._disk.write_new(temporary, data)
        put = self._disk.rename if new else self._disk.replace
        try:
            put(temporary, f"{folder}/{name}")
        except FileNotFoundError:
            self.make_way(task_id)
            self._disk.rename(temporary, f"{folder}/{name}")

    def make_way(self, place: str) -> None:
        """Make the folder of a task's or a hop's runs, with all that are above it."""
        folder = f"{self._paths.runs}/{place.partition('/')[0]}"
        self._make(folder)
        for part in place.split("/")[1:]:
            folder = f"{folder}/{part}"
            self._make(folder)

    def begin_run(self, task_id: str, earlier: int) -> None:
        """Make room for a new run: the files of the one before go to `attempts/<n>/`, where nothing is overwritten.

        What another history left in the place of the new run's files is kept beside, and never taken for its own.
        """
        folder = f"{self._paths.runs}/{task_id}"
        if not earlier:
            try:
                self._disk.make_dir(folder)
            except FileExistsError:
                for name in _RUN_FILES:
                    if os.path.lexists(f"{folder}/{name}"):
                        self.keep_beside(f"{folder}/{name}", f"{self._paths.torn}/{task_id.replace('/', '.')}.{name}")
            return
        kept = f"{folder}/attempts/{earlier}"
        self._make(folder)
        self._make(f"{folder}/attempts")
        self._make(kept)
        for name in _RUN_FILES:
            with suppress(FileNotFoundError):
                self._disk.rename(f"{folder}/{name}", self.free_name(f"{kept}/{name}"))

    def has_superseded(self, folder: str) -> bool:
        """Whether a folder of runs holds some of other clones, which a merge has superseded."""
        try:
            return any("-" in name for name in os.listdir(f"{folder}/attempts"))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def sweep(self, task_ids: Collection[str] | None = None) -> None:
        """Remove temporary files that dead writers of these or all tasks left. The caller holds their stripes."""
        for entry in os.scandir(self._paths.temporary):
            task_id = entry.name.partition(".")[0]
            wanted = is_task_id(task_id) if task_ids is None else task_id in task_ids
            if wanted and entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    self._disk.unlink(entry.path)

    def move_runs(self, task_id: str, *, archived: bool) -> None:
        """The runs of a task go into the archive with it, and come back with it."""
        self.move_folder(self._paths.run(task_id, archived=not archived), self._paths.run(task_id, archived=archived))

    def keep_beside(self, path: str, keep: str) -> None:
        """Put a file aside under another name, where nothing of the same name is lost."""
        self._disk.rename(path, self.free_name(keep))

    def free_name(self, wanted: str) -> str:
        """The name, with a number where it is taken."""
        number, name = 0, wanted
        while os.path.lexists(name):
            number += 1
            name = f"{wanted}.{number}"
        return name

    def read_output(self, place: str, attempt: int, name: str, offset: int, most: int) -> tuple[bytes, int]:
        """A piece of what a run has printed, also of one that was archived; and how much there is of it."""
        task_id, _, below = place.partition("/")
        for archived in (False, True):
            folder = self._paths.run(task_id, archived=archived) + (f"/{below}" if below else "")
            found = read_piece(f"{folder}/attempts/{attempt}/{name}", offset, most)
            if found is not None:
                return found
        return b"", 0

    def read_run(self, task_id: str, name: str, kind: type[_Record], *, archived: bool = False) -> _Record | None:
        """One of a run's files; None where it is missing or says nothing that we understand."""
        return self.run_document(f"{self._paths.run(task_id, archived=archived)}/{name}", kind)

    def read_result(self, task_id: str, *, archived: bool = False) -> RunResult | UnreadableResult | None:
        """What a run has reported; an error where its file says nothing that we understand."""
        place = f"{self._paths.run(task_id, archived=archived)}/run_result.json"
        try:
            data = read(place)
            return None if data is None else nesting.decode_json(data, RunResult)
        except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
            where = self._paths.relative(place)
            hint = "'aof doctor --fix' restores it from the log; until then the task stays as it is"
            return UnreadableResult(f"{where} cannot be understood: {error}", hint, path=where)

    def run_document(self, path: str, kind: type[_Record]) -> _Record | None:
        """A run's file at any place."""
        try:
            data = read(path)
            return None if data is None else nesting.decode_json(data, kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        except OSError as error:
            if error.errno in NO_FILE:
                return None
            raise

    def _make(self, folder: str) -> None:
        with suppress(FileExistsError):
            self._disk.make_dir(folder)


_DIGEST = re.compile(rb'"([0-9a-f]{64})"')
_CHUNK = 1 << 22
_OVERLAP = 66


class LaneBytes:
    """The digests of task files that any lane of the log names, read again when a file of the log has changed."""

    def __init__(self, paths: Paths) -> None:
        self._folder = paths.events
        self._seen: dict[str, tuple[int, int, frozenset[bytes]]] = {}

    def wrote(self, digest: str) -> bool:
        """Whether some lane names this digest; false where the log has a single lane."""
        files = self._files()
        wanted = digest.encode()
        return _are_several(files) and any(wanted in self._digests(entry) for entry in files)

    def several(self) -> bool:
        """Whether more than one clone has written to the log."""
        return _are_several(self._files())

    def _files(self) -> list[os.DirEntry[str]]:
        with os.scandir(self._folder) as entries:
            return [entry for entry in entries if entry.name.endswith(".jsonl")]

    def _digests(self, entry: os.DirEntry[str]) -> frozenset[bytes]:
        state = entry.stat(follow_symlinks=False)
        known = self._seen.get(entry.name)
        if known is not None and known[:2] == (state.st_mtime_ns, state.st_size):
            return known[2]
        found: set[bytes] = set()
        with open(entry.path, "rb") as file:
            rest = b""
            while data := file.read(_CHUNK):
                found.update(_DIGEST.findall(rest + data))
                rest = data[-_OVERLAP:]
        self._seen[entry.name] = state.st_mtime_ns, state.st_size, frozenset(found)
        return self._seen[entry.name][2]


def _are_several(files: list[os.DirEntry[str]]) -> bool:
    """Whether a lane lies beside the first one: its name stands between the day and the ending."""
    return any(entry.name.count(".") > 1 for entry in files)


LOCK = "clone"
_BYTES = 64
_TOKEN_BYTES = 8


class Clone:
    """One clone, as one process sees it."""

    def __init__(self, locks: Locks, disk: Disk, claims: Claims, lanes: LaneNames, away_ms: int) -> None:
        self._locks = locks
        self._disk = disk
        self._claims = claims
        self._lanes = lanes
        self._away_ms = away_ms
        self._token = ""

    def numbers(self) -> Numbers:
        """How this clone numbers what it makes."""
        if self._is_root():
            return Numbers(alone=not self._lanes.several())
        return Numbers(self.token())

    def _is_root(self) -> bool:
        """Whether it is the one that began the history, or is about to."""
        return self._claims.is_root() or self._lanes.none()

    def token(self) -> str:
        """The clone's own random name; made when it is first needed."""
        if not self._token:
            held = self._locks.take(LOCK)
            try:
                inode = os.fstat(held.fd).st_ino
                match os.pread(held.fd, _BYTES, 0).decode("ascii", "replace").split():
                    case [token, known] if known == f"{inode}":
                        self._token = token
                    case _:
                        self._token = os.urandom(_TOKEN_BYTES).hex()
                        self._disk.overwrite(held.fd, f"{self._token} {inode}".ljust(_BYTES - 1).encode() + b"\n", 0)
            finally:
                self._locks.release((held,))
        return self._token

    def forget(self) -> None:
        """Somebody has deleted the lock files: read the token again."""
        self._token = ""

    def signed(self, heartbeat: Heartbeat) -> Heartbeat:
        """A sign of life as this clone writes it; the clone that began the history signs none."""
        if self._is_root():
            return heartbeat
        return msgspec.structs.replace(heartbeat, clone=self.token())

    def last_sign(self, files: TaskFiles, place: str, *, archived: bool = False) -> Heartbeat | None:
        """The last sign of life of the current run; of a run of another clone, one that lasts for a long while."""
        found = files.read_run(place, "run_heartbeat.json", Heartbeat, archived=archived)
        root = self._is_root()
        if root and not self._lanes.several():
            return found
        run = files.read_run(place, "run.json", Run, archived=archived)
        if run is None or (found is not None and found.run_id == run.run_id and self._is_own(found, root=root)):
            return found
        return self._elsewhere(run)

    def _is_own(self, heartbeat: Heartbeat, *, root: bool) -> bool:
        return heartbeat.clone is None if root else heartbeat.clone == self.token()

    def _elsewhere(self, run: Run) -> Heartbeat:
        until = iso(millis(run.started_at) + self._away_ms)
        return Heartbeat(
            task_id=run.task_id,
            agent_id=run.agent_id,
            run_id=run.run_id,
            last_heartbeat=run.started_at,
            beat_count=0,
            expires_at=until,
            hop=run.hop,
        )
