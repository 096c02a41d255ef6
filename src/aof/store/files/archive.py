"""A whole data directory as one file, and back, each entry checked before a byte of it is used.

Caches and locks of this machine stay behind, and so do secrets.
"""

from __future__ import annotations

import bz2
import fcntl
import gzip
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, BinaryIO, Protocol, cast

from aof.errors import Conflict, InvalidInput, PayloadTooLarge
from aof.store.files.disk import Disk
from aof.store.files.store import FilesystemStore
from aof.support.printable import Say, clean, silent

TOP_FOLDER = ".aof"
_MARK = "events"  # the folder that makes a data directory
_RENAME = "rename it, and export again"
_AGAIN = "make a new one with 'aof export FILE'; nothing was written"
_MIB = 1 << 20
_CHUNK = _MIB
_HEADERS = _MIB  # of one entry, with its long name
_MOST_ENTRIES = 2_000_000
_MOST_BYTES = 16 * 1024 * _MIB
_LARGEST_FILE = 4 * 1024 * _MIB
_RATIO, _FREE = 300, 64 * _MIB  # packed bytes to unpacked ones, once there are more than a few
_LONGEST, _DEEPEST = 4_096, 64
_MACHINE = frozenset({"locks", "tmp", "push"})
_PRIVATE = ("index.sqlite", "tokens.", "token.", "secret", "trust", ".secret", ".trust")
_KINDS = {
    tarfile.LNKTYPE: "a link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a named pipe",
}
_BROKEN = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError, OverflowError)


def pack(store: FilesystemStore, target: str, say: Say = silent) -> int:
    """Write everything into a compressed tar file, as of one moment; returns how many files it holds."""
    held = store.stripes.take_all()
    count = 0
    temporary = f"{target}.part"

    def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal count
        inner = entry.name[len(TOP_FOLDER) + 1 :]
        if not (entry.isfile() or entry.isdir()) or (inner and not travels(inner)):
            return None
        if clean(entry.name) != entry.name:
            raise InvalidInput(f"{clean(entry.name)} has a name that no import would take", _RENAME)
        count += entry.isfile()
        say(f"{count:,} files")
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    try:
        store.refuse_unsound()
        with tarfile.open(temporary, "w:gz", compresslevel=6, dereference=False) as archive:
            archive.add(store.paths.root, arcname=TOP_FOLDER, filter=wanted)
        os.replace(temporary, target)
    finally:
        store.locks.release(held)
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return count


def unpack(source: str, root: str, say: Say = silent, disk: Disk | None = None) -> int:
    """Make a data directory from such a file; an existing one is never touched.

    Everything is written to a new folder beside it, which gets its name when it is complete.
    """
    disk = disk or Disk()
    root = os.path.abspath(root)
    if os.path.isdir(f"{root}/{_MARK}"):
        raise Conflict(f"{root} is a data directory already", "import into another place with --data-dir DIR")
    if os.path.lexists(root) and (not os.path.isdir(root) or os.path.islink(root) or os.listdir(root)):
        hint = "import into another place with --data-dir DIR, or move what is there away"
        raise Conflict(f"{root} is there already, and is not an empty folder", hint)
    os.makedirs(os.path.dirname(root), exist_ok=True)
    with open(source, "rb") as packed, _new_folder(root) as folder:
        count = 0
        for entry in Archive(source, packed).entries():
            _write_entry(disk, folder, entry, source)
            count += not entry.is_folder
            say(f"{count:,} files")
        if not os.path.isdir(f"{folder}/{_MARK}"):
            raise InvalidInput(f"{source} holds no exported data directory", "make one with 'aof export FILE'")
        FilesystemStore.create(folder, disk)
        disk.sync_all(folder)
        disk.unbind()
        disk.rename(folder, root)
        disk.sync_dir(os.path.dirname(root))
    return count


def travels(name: str) -> bool:
    """Whether a file goes along, by its path in the data directory: no cache, no lock, no token, secret or trust."""
    first = name.partition("/")[0].casefold()
    return first not in _MACHINE and not first.startswith(_PRIVATE) and not first.endswith((".sock", ".key", ".pem"))


@contextmanager
def _new_folder(root: str) -> Iterator[str]:
    """A folder beside the data directory, only ours; what an import that was killed has left there is removed."""
    parent, name = os.path.split(root)
    prefix = f".{name}.import-"
    for left in sorted(os.listdir(parent)):
        if left.startswith(prefix):
            _remove_if_abandoned(f"{parent}/{left}")
    folder = tempfile.mkdtemp(prefix=prefix, dir=parent)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # says that somebody is at work here, as long as the process lives
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(fd)


def _remove_if_abandoned(folder: str) -> None:
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(fd)


def _write_entry(disk: Disk, folder: str, entry: ArchiveEntry, source: str) -> None:
    """Write one entry. Nothing but what was made here lies in the folder, so no link can lead out of it."""
    path = folder
    parts = entry.name.split("/")
    for part in parts if entry.is_folder else parts[:-1]:
        path = f"{path}/{part}"
        try:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise _clash(source, entry.name)
        except FileNotFoundError:
            disk.make_dir(path)
    if entry.is_folder:
        return
    path = f"{folder}/{entry.name}"
    if os.path.lexists(path):
        raise _clash(source, entry.name)
    fd = disk.create(path)
    try:
        for chunk in entry.chunks():
            written = 0
            while written < len(chunk):
                written += disk.append(fd, chunk[written:])
    finally:
        os.close(fd)


def _clash(source: str, name: str) -> InvalidInput:
    return InvalidInput(
        f"{source} holds '{clean(name)[:200]}' twice, as a file and a folder, or in spellings that are one name here",
        "make a new one with 'aof export FILE'; nothing was written",
    )


class Archive:
    """The entries of one exported data directory."""

    def __init__(self, name: str, packed: BinaryIO) -> None:
        self._name = name
        self._stream = _Bounded(self, packed)

    def entries(self) -> Iterator[ArchiveEntry]:
        """What should be written, in the order of the archive; raises InvalidInput at the first thing that is wrong."""
        self._stream.allow(_HEADERS)
        with self._opened() as archive:
            for count in range(_MOST_ENTRIES + 1):
                member = self._next(archive)
                if member is None:
                    break
                if count == _MOST_ENTRIES:
                    raise self.too_large(f"it has more than {_MOST_ENTRIES:,} entries")
                name = self._checked(member)
                if name is not None and travels(name):
                    self._stream.allow(_HEADERS + member.size)
                    file = None if member.isdir() else archive.extractfile(member)
                    yield ArchiveEntry(name, self, file, member.size)
                self._stream.allow(_HEADERS + max(member.size, 0))
            self._expect_end()

    def _opened(self) -> tarfile.TarFile:
        try:
            return tarfile.open(fileobj=cast("IO[bytes]", self._stream), mode="r|", errorlevel=2, encoding="utf-8")
        except _BROKEN as error:
            raise self.broken(error) from None

    def _next(self, archive: tarfile.TarFile) -> tarfile.TarInfo | None:
        try:
            member = archive.next()
        except _BROKEN as error:
            raise self.broken(error) from None
        cast("Any", archive).members.clear()  # it would remember them all
        return member

    def read(self, file: IO[bytes], size: int) -> bytes:
        """Some bytes of an entry."""
        try:
            return file.read(size)
        except _BROKEN as error:
            raise self.broken(error) from None

    def _checked(self, member: tarfile.TarInfo) -> str | None:
        """The path in the data directory; None for that folder itself."""
        name = member.name
        shown = clean(name)[:200]
        if clean(name) != name or "\\" in name or len(name) > _LONGEST:
            raise self._refused(f"'{shown}' is a name that no data directory has")
        if member.issparse() or member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE):
            raise self._refused(f"'{shown}' is {_KINDS.get(member.type, 'neither a file nor a folder')}")
        parts = name.split("/")
        if parts[0] != TOP_FOLDER or any(part in ("", ".", "..") for part in parts) or len(parts) > _DEEPEST:
            raise self._refused(f"'{shown}' leads out of the data directory")
        if member.size < 0 or member.size > _LARGEST_FILE:
            raise self.too_large(f"'{shown}' has {member.size:,} bytes")
        if len(parts) == 1 and not member.isdir():
            raise self._refused(f"'{shown}' is not a folder")
        return "/".join(parts[1:]) or None

    def _expect_end(self) -> None:
        """An archive ends with empty blocks; without them something was cut off."""
        self._stream.allow(_HEADERS)
        try:
            while self._stream.read(_CHUNK):
                pass
        except _BROKEN as error:
            raise self.broken(error) from None
        if self._stream.last.strip(b"\0") or len(self._stream.last) < 2 * tarfile.BLOCKSIZE:
            raise self.broken("it ends early")

    def broken(self, why: object) -> InvalidInput:
        """What cannot be read."""
        first = clean(str(why).partition("\n")[0].rstrip(":"))[:200]  # others tell what was tried in vain
        return InvalidInput(f"{self._name} cannot be read: {first}", _AGAIN)

    def too_large(self, why: str) -> PayloadTooLarge:
        """More than a backup can hold."""
        return PayloadTooLarge(f"{self._name} is too large: {why}", _AGAIN)

    def _refused(self, why: str) -> InvalidInput:
        return InvalidInput(f"{self._name} is not an export that can be taken: {why}", _AGAIN)


class ArchiveEntry:
    """One file or folder of the archive; its bytes can be read once, before the next entry is asked for."""

    def __init__(self, name: str, source: Archive, file: IO[bytes] | None, size: int) -> None:
        self.name = name
        self.is_folder = file is None
        self._source = source
        self._file = file
        self._size = size

    def chunks(self) -> Iterator[bytes]:
        """All bytes of the file; raises InvalidInput where there are fewer than the archive says."""
        left = self._size
        while left and self._file is not None:
            chunk = self._source.read(self._file, min(left, _CHUNK))
            if not chunk:
                raise self._source.broken("it ends early")
            left -= len(chunk)
            yield chunk


class _Readable(Protocol):
    """What bytes come from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        ...


_PACKED: tuple[tuple[bytes, Callable[[BinaryIO], _Readable]], ...] = (
    (b"\x1f\x8b", lambda packed: gzip.GzipFile(fileobj=packed)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ", lzma.LZMAFile),
)


class _Bounded:
    """The unpacked bytes, as far as they are allowed: no single read, no header and no ratio goes beyond its bound."""

    def __init__(self, archive: Archive, packed: BinaryIO) -> None:
        self._archive = archive
        self._packed = packed
        start = packed.read(8)
        packed.seek(0)
        made = next((kind for magic, kind in _PACKED if start.startswith(magic)), None)
        self._file: _Readable = packed if made is None else made(packed)
        self._total = self._allowed = 0
        self.last = b""

    def allow(self, more: int) -> None:
        """So many bytes may come from here on."""
        self._allowed = self._total + more

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data = self._file.read(min(size, _CHUNK))
        self._total += len(data)
        self.last = (self.last + data)[-2 * tarfile.BLOCKSIZE :]
        if self._total > _MOST_BYTES:
            raise self._archive.too_large(f"it has more than {_MOST_BYTES:,} bytes")
        if self._total > _FREE + _RATIO * self._packed.tell():
            raise self._archive.too_large(f"it unpacks to more than {_RATIO} times its size")
        if self._total > self._allowed:
            raise self._archive.too_large("what describes one of its files has more than a mebibyte")
        return data
