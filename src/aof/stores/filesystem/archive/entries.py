"""An exported data directory as a stream of entries, each checked before a byte of it is used.

The archive may come from anybody. Regular files and folders are taken, everything else is refused: links, devices,
pipes, sparse files, paths that lead out, and more data than a backup can hold. The archive library only takes the
format apart; nothing is left to its filters. Must not write anything.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO, Protocol, cast

from aof._support.printable import clean
from aof.core.errors.base import InvalidInput, PayloadTooLarge


class _Readable(Protocol):
    """What bytes come from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        ...


TOP = ".aof"
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
_PACKED: tuple[tuple[bytes, Callable[[BinaryIO], _Readable]], ...] = (
    (b"\x1f\x8b", lambda packed: gzip.GzipFile(fileobj=packed)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ", lzma.LZMAFile),
)


def travels(name: str) -> bool:
    """Whether a file goes along, by its path in the data directory: no cache, no lock, no token, secret or trust."""
    first = name.partition("/")[0].casefold()
    return first not in _MACHINE and not first.startswith(_PRIVATE) and not first.endswith((".sock", ".key", ".pem"))


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
                    yield self._entry(archive, member, name)
                self._stream.allow(_HEADERS + max(member.size, 0))
            self._whole()

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

    def _entry(self, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> ArchiveEntry:
        self._stream.allow(_HEADERS + member.size)
        return ArchiveEntry(name, self, None if member.isdir() else archive.extractfile(member), member.size)

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
        if parts[0] != TOP or any(part in ("", ".", "..") for part in parts) or len(parts) > _DEEPEST:
            raise self._refused(f"'{shown}' leads out of the data directory")
        if member.size < 0 or member.size > _LARGEST_FILE:
            raise self.too_large(f"'{shown}' has {member.size:,} bytes")
        if len(parts) == 1 and not member.isdir():
            raise self._refused(f"'{shown}' is not a folder")
        return "/".join(parts[1:]) or None

    def _whole(self) -> None:
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
