"""The documents of a data directory: each one's files and its place in the log, under its lock.

What was applied is noted in the document's lock file: a note that is missing, of another boot or about another log only
costs time. Appended text is not flushed, for it can be written again from the log; a file that is replaced is flushed
first, for it holds what people wrote. Must not know any single document.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import msgspec

from aof.documents.projection import Facts, Projection, lock_of
from aof.errors import AofError
from aof.kernel.events import Event
from aof.kernel.model import is_task_id
from aof.store.documents import DocumentState, follow_log
from aof.store.files import markdown
from aof.store.files.disk import LARGEST, Seen, read, seen
from aof.store.files.log.reader import end_position, events_after, events_before
from aof.store.files.paths import Position
from aof.store.port import Scope, ScopeTooNarrow
from aof.support.typed import prepare_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.store.files.locks import HeldLock
    from aof.store.files.log.reader import Reader
    from aof.store.files.paths import Paths
    from aof.store.files.store import Parts

MOST = 4 * LARGEST  # bytes of a document
Decoded = dict[str, tuple[bytes, str]]  # of each file, the bytes that were last read or written, and their text
_NOTE = 2_048
_NO_FILE = ""


class Documents:
    """The documents of one data directory."""

    def __init__(self, parts: Parts, boot: str, *, durable: bool) -> None:
        self._parts = parts
        self._boot = boot
        self._durable = durable
        self._texts: dict[str, tuple[str, int]] = {}  # of files that may only be read, with what they lack of the log
        self._decoded: Decoded = {}
        self._followed: dict[str, tuple[object, DocumentState]] = {}  # where the log ended, and how the file was then

    def follow(self, projection: Projection, held: list[HeldLock], facts: Facts) -> str:
        """Let a document catch up under its lock, which must be held and must not be lost; answers with its note."""
        if self._parts.reader.tips() > 1:
            return ""  # git has brought what other clones wrote, and the log that we read knows nothing of it yet
        if not self._parts.repairs:
            return follow_log(ReadOnlyDocument(self._parts.paths, self._parts.reader, self._texts), projection, facts)
        name = lock_of(projection.name)
        lock = next((one for one in held if one.name == name), None)
        if lock is None or self._parts.locks.is_lost(lock):
            raise ScopeTooNarrow(Scope(names=frozenset({name})))
        document = FileDocument(
            self._parts, lock, projection.path, self._boot, decoded=self._decoded, durable=self._durable
        )
        end, known = self._parts.reader.end(), self._followed.get(name)
        if known is not None and (known[0], known[1].mark) == (end, document.mark(projection.path)):
            return known[1].note  # as this process has left it
        self._parts.refuse_unsound()
        note = follow_log(document, projection, facts)
        if document.known is not None:
            self._followed[name] = end, document.known
        return note

    def foreseen(self, projection: Projection, paths: Iterable[str], facts: Facts) -> dict[str, str]:
        """What the files would be after the document caught up; nothing is written."""
        texts: dict[str, tuple[str, int]] = {}
        if self._parts.reader.tips() == 1:
            follow_log(ReadOnlyDocument(self._parts.paths, self._parts.reader, texts), projection, facts)
        return {path: texts[path][0] if path in texts else read_document(self._parts.paths, path)[0] for path in paths}

    def text(self, path: str) -> str:
        """A document's file as it lies there."""
        found = None if self._parts.repairs else self._texts.get(path)
        return _text(self._parts.paths, path, self._decoded) or "" if found is None else found[0]

    def title(self, task_id: str) -> str | None:
        """The title of a task, from its file as it lies there."""
        parts = self._parts
        head = parts.heads.get(task_id) if is_task_id(task_id) else None
        if head is None:
            return None
        with suppress(OSError, AofError):
            data = read(parts.paths.task(head.folder, task_id))
            return markdown.parse(data).title if data is not None else None
        return None


class Noted(msgspec.Struct, frozen=True):
    """The note in the lock file: what was written, and what somebody was about to write."""

    boot: str
    state: DocumentState | None
    intended: DocumentState | None = None


_decoder = msgspec.json.Decoder(prepare_type(Noted))


class FileDocument:
    """A document whose state is noted in its lock file."""

    def __init__(self, parts: Parts, held: HeldLock, path: str, boot: str, *, decoded: Decoded, durable: bool) -> None:
        self._parts = parts
        self._held = held
        self._main = path
        self._boot = boot
        self._decoded = decoded
        self._durable = durable
        self._root = parts.paths.root
        self._here: Position | None = None
        self.known: DocumentState | None = None  # what the document was like when it was last looked at or written

    def state(self) -> DocumentState | None:
        """What the lock file says, if it is of this boot and of this log."""
        try:
            noted = _decoder.decode(os.pread(self._held.fd, _NOTE, 0))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        state = noted.state
        if noted.intended is not None and self.mark(self._main) == noted.intended.mark:
            state = noted.intended
        here = None if state is None else Position.parse(state.place.split())
        known = noted.boot == self._boot and here is not None and self._parts.reader.holds(here)
        self.known, self._here = (state, here) if known else (None, None)
        return self.known

    def keep(self, state: DocumentState) -> None:
        """Note it; what does not fit is not noted, and costs time later."""
        self.known = state
        self._note(Noted(self._boot, state))

    def intend(self, before: DocumentState | None, after: DocumentState) -> None:
        """Note both, before names are exchanged."""
        self._note(Noted(self._boot, before, after))

    def _note(self, noted: Noted) -> None:
        data = msgspec.json.encode(noted)
        data = data.ljust(_NOTE - 1) + b"\n" if len(data) < _NOTE else b" " * (_NOTE - 1) + b"\n"
        self._parts.disk.overwrite(self._held.fd, data, 0)

    def fresh(self, state: DocumentState | None, types: tuple[str, ...]) -> tuple[str, list[Event]]:
        """What lies behind the place that was noted."""
        if state is None or self._here is None:
            return end_position(self._parts.reader).text(), []
        behind, events = events_after(self._parts.reader, types, self._here)
        return behind.text(), events

    def past(self, place: str, types: tuple[str, ...]) -> Iterator[Event]:
        """Day by day, from the last one back."""
        return _past(self._parts.reader, place, types)

    def mark(self, path: str) -> str:
        """Inode, time and size."""
        return _mark(seen(self._path(path)))

    def read(self, path: str) -> tuple[str, str]:
        """The text, with what is no UTF-8 kept as it is; what a power cut may leave at the end is no text."""
        return read_document(self._parts.paths, path, self._decoded)

    def append(self, path: str, mark: str, text: str) -> str | None:
        """One write at the end of the file; a part of it that a dead writer has left is completed."""
        known = _parsed(mark)
        data = text.encode("utf-8", "surrogateescape")
        disk = self._parts.disk
        if known is None:
            return None
        fd = disk.create(self._path(path))
        try:
            found = os.fstat(fd)
            if found.st_ino != known.inode or found.st_size < known.size:
                return None
            left = os.pread(fd, len(data) + 1, known.size) if found.st_size > known.size else b""
            if not left and found.st_mtime_ns != known.modified:
                return None
            if not data.startswith(left):
                return None
            rest = data[len(left) :]
            while rest:
                rest = rest[disk.append(fd, rest) :]
            found = os.fstat(fd)
            return _mark(Seen(found.st_ino, found.st_mtime_ns, known.size + len(data)))
        finally:
            os.close(fd)

    def replace(self, path: str, mark: str, text: str, written: Callable[[str], None], *, flushed: bool) -> str | None:
        """A temporary file takes the place of the one that was read; what somebody wrote meanwhile is put back."""
        disk, place = self._parts.disk, self._path(path)
        temporary = self._parts.paths.temporary_file(path)
        data = text.encode("utf-8", "surrogateescape")
        flushed = flushed and self._durable
        (disk.write_durable if flushed else disk.write_new)(temporary, data)
        after = _mark(seen(temporary))
        written(after)
        if self.mark(path) != mark:
            disk.unlink(temporary)
            return None
        if mark == _NO_FILE:
            disk.rename(temporary, place)
        elif disk.exchange(temporary, place):
            if _mark(seen(temporary)) != mark and disk.exchange(temporary, place):
                after = ""
            disk.unlink(temporary)
        else:
            disk.rename(temporary, place)
        if flushed:
            disk.sync_dir(self._root)
        if after:
            self._decoded[path] = data, text
        return after or None

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}"


class ReadOnlyDocument:
    """A document for a user who may not write: what the files lack of the log is added in memory, each time anew."""

    def __init__(self, paths: Paths, reader: Reader, texts: dict[str, tuple[str, int]]) -> None:
        self._paths = paths
        self._reader = reader
        self._texts = texts

    def state(self) -> DocumentState | None:
        """Nothing is kept."""
        return None

    def keep(self, state: DocumentState) -> None:
        """Nothing is kept."""

    def fresh(self, state: DocumentState | None, types: tuple[str, ...]) -> tuple[str, list[Event]]:  # noqa: ARG002 - as above
        """Everything is past."""
        return end_position(self._reader).text(), []

    def past(self, place: str, types: tuple[str, ...]) -> Iterator[Event]:
        """Day by day, from the last one back."""
        return _past(self._reader, place, types)

    def mark(self, path: str) -> str:
        """What the file looks like."""
        return _mark(seen(f"{self._paths.root}/{path}"))

    def read(self, path: str) -> tuple[str, str]:
        """The text of the file."""
        self._texts.pop(path, None)
        return read_document(self._paths, path)

    def append(self, path: str, mark: str, text: str) -> str | None:  # noqa: ARG002 - the contract's form
        """Nothing is appended."""
        return None

    def intend(self, before: DocumentState | None, after: DocumentState) -> None:
        """Nothing is kept."""

    def replace(
        self,
        path: str,
        mark: str,
        text: str,
        written: Callable[[str], None],  # noqa: ARG002 - the contract's form
        *,
        flushed: bool,  # noqa: ARG002 - the contract's form
    ) -> str | None:
        """Only in memory."""
        self._texts[path] = (text, 0)
        return mark


def read_document(paths: Paths, path: str, decoded: Decoded | None = None) -> tuple[str, str]:
    """A document's text, and what its file looked like before it was read."""
    before = seen(f"{paths.root}/{path}")
    text = _text(paths, path, decoded)
    return text or "", _mark(before if text is not None else None)


def _text(paths: Paths, path: str, decoded: Decoded | None = None) -> str | None:
    """With what is no UTF-8 kept as it is; what a power cut may leave at the end is no text. None without a file.

    The same bytes are the same object as before: whoever has read it need not read it again.
    """
    data = read(f"{paths.root}/{path}", limit=MOST)
    if data is None:
        return None
    known = decoded.get(path) if decoded is not None else None
    if known is not None and known[0] == data:
        return known[1]
    text = data.rstrip(b"\0").decode("utf-8", "surrogateescape")
    if decoded is not None:
        decoded[path] = data, text
    return text


def _past(reader: Reader, place: str, types: tuple[str, ...]) -> Iterator[Event]:
    until = Position.parse(place.split())
    assert until is not None
    return events_before(reader, types, until)


def _mark(found: Seen | None) -> str:
    return _NO_FILE if found is None else f"{found.inode} {found.modified} {found.size}"


def _parsed(mark: str) -> Seen | None:
    words = mark.split()
    with suppress(ValueError):
        inode, modified, size = map(int, words)
        return Seen(inode, modified, size)
    return None
