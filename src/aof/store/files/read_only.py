"""A data directory that this process may only read: every answer comes from the log, which needs no lock to be read.

The log's files only grow, and an incomplete end counts as not yet written, so a reader is never in anybody's way. What
writers keep beside the log (heads, index, notes in locks) could not be trusted without their locks, and is left alone.
Must not know any rule about tasks.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from aof.documents.projection import Projection
from aof.errors import NoDataDirectory, ReadOnly
from aof.kernel.events import Event, is_remark
from aof.kernel.model import run_place
from aof.runs.model import OUTPUT_FILES, Heartbeat, Run
from aof.store.documents import follow_log
from aof.store.files import definitions, merge
from aof.store.files.creation import refuse_remains
from aof.store.files.disk import Disk, clearly, digest
from aof.store.files.documents import ReadOnlyDocument, read_document
from aof.store.files.log import reader
from aof.store.files.log.layout import State, log_poisoned
from aof.store.files.log.reader import Reader
from aof.store.files.paths import Paths, Position
from aof.store.files.task_files import TaskFiles
from aof.store.files.working_copy import file_status
from aof.store.fold import Folded
from aof.store.memory import MemoryState, MemoryStore, MemoryUnit
from aof.store.port import Clock, HashedEvent, Scope
from aof.tasks.model import Task

_NOTHING_TO_FLUSH = (errno.EROFS, errno.EINVAL)  # what a file system says that nobody can write to


class ReadOnlyUnit(MemoryUnit):
    """What can be looked at together; nothing is locked, for what the log has told does not change any more."""

    def __init__(self, state: MemoryState, scope: Scope, store: ReadOnlyStore) -> None:
        super().__init__(state, scope)
        self._store = store

    def heartbeat(self, task_id: str) -> Heartbeat | None:
        """The last sign of life."""
        return self._store.heartbeats((task_id,))[task_id]

    def follow(self, projection: Projection) -> str:
        """What the document would be if it could be written; its files stay as they are."""
        return follow_log(ReadOnlyDocument(self._store.paths, self._store.reader, self._state.texts), projection, self)

    def document(self, path: str) -> str:
        """The text of a document's file, with what it lacks of the log."""
        found = self._state.texts.get(path)
        return found[0] if found is not None else read_document(self._store.paths, path)[0]

    def _refused(self, *_: object, **_named: object) -> NoReturn:
        raise self._store.refusal()

    commit = take_in = beat = _refused


class ReadOnlyCopy:
    """The files of the tasks, one by one; all but a look at one file needs the right to write."""

    def __init__(self, store: ReadOnlyStore) -> None:
        self._store = store
        self.root = store.paths.root

    def file_status(self, task: Task) -> str | None:
        """Whether somebody changed the task's file, or it cannot be read."""
        written = self._store.last_file(task.id)
        if written is None:
            return None
        path, mark = written
        return file_status(f"{self.root}/{path}", lambda data: digest(data) == mark)

    def odd_files(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Those whose files differ from what the log wrote."""
        return (task for task in tasks if self.file_status(task) is not None)

    def templates(self) -> tuple[str, ...]:
        """The names of the templates for new tasks."""
        return definitions.template_names(self.root)

    def template(self, name: str) -> tuple[dict[str, Any], str] | None:
        """The keys and the text of a template."""
        return definitions.load_template(self.root, name)

    def tips(self) -> int:
        """How many histories there are that nobody has brought together."""
        with clearly("read the log"):
            return self._store.reader.tips()

    def moved_into(self, _status: str) -> tuple[str, ...]:
        """What lies elsewhere is not looked for."""
        return ()

    def places(self, _task_id: str) -> tuple[str, ...]:
        """What lies elsewhere is not looked for."""
        return ()

    def restored(self) -> tuple[str, ...]:
        """Nothing is ever restored."""
        return ()

    def _refused(self, *_: object, **_named: object) -> NoReturn:
        raise self._store.refusal()

    changes = is_modified = diagnose = repair = rebuild_index = checkpoint = watched = log_end = _refused
    preloaded = adopt = quarantine = verified = merge = _refused


class ReadOnlyStore(MemoryStore):
    """One data directory, as somebody sees it who may not write there. Safe for several threads."""

    def __init__(self, root: str, clock: Clock, *, durable: bool = True) -> None:
        super().__init__(clock)
        self.paths = Paths(os.path.abspath(root))
        if not os.path.isdir(self.paths.events):
            refuse_remains(self.paths)
            raise NoDataDirectory(f"{root} is not a data directory", "make one with 'aof init'")
        self.reader = Reader(self.paths, durable=durable, flush=_flush)
        self._files = TaskFiles(self.paths, Disk())
        self._here = Position()
        self._copy = ReadOnlyCopy(self)

    @property
    def working_copy(self) -> ReadOnlyCopy:
        """The files, which can be looked at one by one."""
        return self._copy

    def last_file(self, task_id: str) -> tuple[str, str] | None:
        """The file that the log wrote last for a task, and its digest."""
        return next(iter(self._state.one(task_id).last_files.items()), None)

    def refusal(self) -> ReadOnly:
        """The refusal of every change."""
        return ReadOnly(
            f"{self.paths.root} is read-only for this user; nothing was changed",
            "get the right to write to that folder, or work on a copy of it",
            path=self.paths.root,
        )

    @contextmanager
    def unit(self, scope: Scope) -> Iterator[ReadOnlyUnit]:
        """Look at some tasks as they are now."""
        self._catch_up()
        yield ReadOnlyUnit(self._state, scope, self)

    @contextmanager
    def _known(self) -> Iterator[MemoryState]:
        """All that the log tells now."""
        with self._state.lock:
            self._catch_up()
            yield self._state

    def reserve_id(self, now: int) -> NoReturn:  # noqa: ARG002 - the contract's form
        """Refused."""
        raise self.refusal()

    def heartbeats(self, task_ids: Iterable[str]) -> dict[str, Heartbeat | None]:
        """The last signs of life: each file is replaced whole."""
        with clearly("read the heartbeats"):
            return {one: self._files.read_run(one, "run_heartbeat.json", Heartbeat) for one in task_ids}

    def output(self, run: Run, stream: str, offset: int, most: int) -> tuple[bytes, int]:
        """A piece of what a run has printed: the file only grows, so no lock is needed."""
        with clearly("read the output"):
            place = run_place(run.task_id, run.hop)
            return self._files.read_output(place, run.attempt, OUTPUT_FILES[stream], offset, most)

    def head(self) -> int:
        """The number of the last event."""
        self._catch_up()
        return self._here.seq

    def events(self, after: int = 0, task_id: str | None = None) -> Iterator[Event]:
        """Durable events in order."""
        self._catch_up()
        if task_id is None:
            yield from self.reader.events(after)
        else:
            yield from (event for event in self.reader.of_tasks((task_id,)) if event.seq > after)

    def events_of_types(self, types: tuple[str, ...], since: str = "") -> Iterator[Event]:
        """Durable events of some types only."""
        self._catch_up()
        return reader.events_since(self.reader, types, since)

    def events_by_hash(self, beginning: str) -> tuple[HashedEvent, ...]:
        """Durable events by the beginning of their hashes."""
        self._catch_up()
        return merge.events_by_hash(self.reader, beginning)

    def wait(self, after: int, timeout: float) -> bool:
        """Sleep until an event comes."""
        return reader.wait_for_more(self.reader, self._clock, after, timeout)

    def _catch_up(self) -> None:
        """Read what the log tells now; the chain has to hold, and no flush may have failed."""
        state = self._state
        with state.lock, clearly("read the log"):
            with suppress(FileNotFoundError):
                fd = os.open(f"{self.paths.locks}/log", os.O_RDONLY | os.O_CLOEXEC)
                try:
                    noted = State.read(fd)
                finally:
                    os.close(fd)
                if noted is not None and noted.poisoned:
                    raise log_poisoned()
            if not self.reader.holds(self._here):
                state.folded.clear()
                self._here = Position()
            for here, lines in self.reader.proven(self._here):
                for _, event in lines:
                    if event.task_id and not is_remark(event):
                        state.folded.setdefault(event.task_id, Folded()).add(event)
                self._here = here
            if not self._here.seq:
                refuse_remains(self.paths)


def _flush(fd: int) -> None:
    try:
        os.fdatasync(fd)
    except OSError as error:
        if error.errno not in _NOTHING_TO_FLUSH:
            raise
