"""Handoffs on the disk: a record for each, and the files that a request puts among the child task's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from aof.handoffs import model
from aof.handoffs.delegation import attached
from aof.handoffs.model import Handoff, by_age, is_format_1, is_handoff_id
from aof.kernel.events import Event
from aof.store.files.disk import Disk, digest, read
from aof.store.files.log.segment import is_torn
from aof.store.files.paths import Paths
from aof.store.fold import Folded
from aof.support import nesting
from aof.support.typed import prepare_type
from aof.tasks.model import Task

_decoder = msgspec.json.Decoder(prepare_type(Handoff))
_format_1_decoder = msgspec.json.Decoder(prepare_type(model.Handoff1))
_BEGIN = ("delegation.requested", "handoff.initiated")


def handoff_bytes(handoff: Handoff) -> bytes:
    """The file of a handoff: JSON that a person can read."""
    shown = model.write_format_1(handoff) if is_format_1(handoff.id) else handoff
    return msgspec.json.format(msgspec.json.encode(shown), indent=2) + b"\n"


def parse_handoff(name: str, data: bytes) -> Handoff:
    """The handoff that a file holds. Raises DecodeError, or UnicodeDecodeError."""
    nesting.refuse_nesting(data)
    return model.read_format_1(_format_1_decoder.decode(data)) if is_format_1(name) else _decoder.decode(data)


class Handed:
    """What one commit does to the handoffs of a task."""

    def __init__(self) -> None:
        self.handoffs: dict[str, tuple[Handoff, int]] = {}
        self.attached: dict[str, bytes] = {}
        self.records: dict[str, bytes] = {}

    def finish(self, before: int, folder: str) -> dict[str, str]:
        """Fill in the numbers of events, which are known under the log's lock, and give the digests of the files."""
        self.records = {
            name: handoff_bytes(msgspec.structs.replace(handoff, rev=before + place))
            for name, (handoff, place) in self.handoffs.items()
        }
        files = {f"handoffs/{name}.json": digest(data) for name, data in self.records.items()}
        return files | {f"{folder}/{place}": digest(data) for place, data in self.attached.items()}


class HandoffRecords:
    """The handoffs of one data directory."""

    def __init__(self, paths: Paths, disk: Disk, folded: Callable[[str], Folded]) -> None:
        self._paths = paths
        self._disk = disk
        self._folded = folded

    def of(self, task: Task) -> tuple[Handoff, ...]:
        """The handoffs of a task, as it names them."""
        names = [link.target_id for link in task.links if link.kind == "handoff"]
        found = [self._read(name) for name in names]
        if None in found:
            return tuple(self._folded(task.id).handoffs.values())
        return tuple(handoff for handoff in found if handoff is not None)

    def all(self) -> tuple[Handoff, ...]:
        """Every handoff that has a record, oldest first."""
        found = (self._read(name) for name in self._names())
        return tuple(sorted(filter(None, found), key=by_age))

    def among(self, tasks: Iterable[Task]) -> tuple[Handoff, ...]:
        """The handoffs of these tasks, oldest first."""
        return tuple(sorted((handoff for task in tasks for handoff in self.of(task)), key=by_age))

    def beginning(self, part: str) -> tuple[Handoff, ...]:
        """The handoffs whose IDs begin like this; a whole ID needs no look at the others."""
        names = [part] if is_handoff_id(part) else sorted(name for name in self._names() if name.startswith(part))
        return tuple(one for name in names if (one := self._read(name)) is not None)

    def unproven(self, last: int) -> list[str]:
        """The records that cannot be read, or were written after the log's last event."""
        found = ((name, self._read(name)) for name in self._names())
        return [self._paths.handoff(name) for name, handoff in found if handoff is None or handoff.rev > last]

    def _names(self) -> list[str]:
        with suppress(FileNotFoundError):
            return [name[: -len(".json")] for name in os.listdir(self._paths.handoffs) if name.endswith(".json")]
        return []

    def _read(self, name: str) -> Handoff | None:
        if not is_handoff_id(name):
            return None
        try:
            data = read(self._paths.handoff(name))
            return None if data is None else parse_handoff(name, data)
        except (msgspec.DecodeError, UnicodeDecodeError, OSError):
            return None

    def after(self, handed: Handed | None, event: Event, task: Task) -> Handed:
        """What the event adds to what a commit does."""
        handed = handed or Handed()
        name = event.payload["handoffId"]
        known, _ = handed.handoffs.get(name, (None, 0))
        if known is None and event.type not in _BEGIN:
            known = next((handoff for handoff in self.of(task) if handoff.id == name), None)
        elif known is None:
            known = self._read(name)
        handoff = model.evolve_handoff(known, event)
        if handoff is not None and handoff is not known:
            handed.handoffs[name] = (handoff, event.commit[0])
        handed.attached |= attached(event)
        return handed

    def write(self, handed: Handed, task_id: str, folder: str) -> None:
        """Make the files follow."""
        for name, data in handed.records.items():
            self._put(self._paths.handoff(name), data, task_id)
        for place, data in handed.attached.items():
            self._put(f"{self._paths.files(folder, task_id)}/{place}", data, task_id)

    def redo(self, folded: Folded, folder: str) -> None:
        """Write records and files again from the log. A file that is neither ours nor torn is a person's, and stays."""
        assert folded.task is not None
        task_id = folded.task.id
        for name, handoff in folded.handoffs.items():
            path, data = self._paths.handoff(name), handoff_bytes(handoff)
            if _content(path) != data:
                self._put(path, data, task_id)
        for place, data in folded.attached.items():
            path = f"{self._paths.files(folder, task_id)}/{place}"
            found = _content(path)
            if found != data and (found is None or digest(found) in folded.attachments or is_torn(found, data)):
                self._put(path, data, task_id)

    def _put(self, path: str, data: bytes, task_id: str) -> None:
        temporary = self._paths.temporary_file(f"{task_id}.handoff")
        self._disk.write_new(temporary, data)
        try:
            self._disk.replace(temporary, path)
        except FileNotFoundError:
            self._make_folder(os.path.dirname(path))
            self._disk.rename(temporary, path)

    def _make_folder(self, folder: str) -> None:
        """The folder, and those above it as far as they are missing."""
        if not os.path.isdir(os.path.dirname(folder)):
            self._make_folder(os.path.dirname(folder))
        with suppress(FileExistsError):
            self._disk.make_dir(folder)


def _content(path: str) -> bytes | None:
    try:
        return read(path)
    except OSError:
        return None
