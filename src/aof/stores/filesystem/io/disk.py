"""Every write to the disk, as single steps, with the modes of what is made. Nothing else in the store changes a file.

A test can stand in for `Disk` to stop at each step, to fail one, or to record all of them and work out every state that
a power cut may leave. Bound to a data directory, it reaches files only beneath that, and follows no link. Modes are
those of the `events/` folder, so every process makes the same files, whatever its umask is; what people and version
control made keeps its mode. Must not know what the bytes mean.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress

from aof._support.confined_folder import ConfinedFolder, Folder, LinkInTheWay, is_link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

PRIVATE_FOLDER: Final = 0o700
GROUP_FOLDER: Final = 0o2770
_PERMISSIONS: Final = 0o7777
_WORTH_SWAPPING = 8
_HERE, _SWAP_NAMES = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BITS = 0o777
_TRIES = 50  # for who deletes folders while others work in them


class Modes:
    """The modes of new folders and files. `exact` ones are set whatever the umask says."""

    __slots__ = ("exact", "file", "folder")

    def __init__(self, folder: int = PRIVATE_FOLDER) -> None:
        self.exact = bool(folder & stat.S_ISGID and folder & stat.S_IWGRP)
        self.folder = GROUP_FOLDER if self.exact else folder & 0o777 | PRIVATE_FOLDER
        self.file = self.folder & 0o666


def shared_with(group: bool) -> Modes:  # noqa: FBT001 - the one thing that there is to say
    """The modes of a new data directory."""
    return Modes(GROUP_FOLDER if group else PRIVATE_FOLDER)


def permission_bits(found: int) -> int:
    """The permission bits of what `stat` tells."""
    return found & _PERMISSIONS


class _Anywhere:
    """Stands for the folder of a whole path, where nobody has bound the disk to a data directory."""

    fd = None


_ANYWHERE = _Anywhere()


_Place = tuple[Folder | _Anywhere, str]


def _anywhere(path: str) -> _Place:
    return _ANYWHERE, path


def _both_anywhere(source: str, target: str) -> tuple[_Place, _Place]:
    return (_ANYWHERE, source), (_ANYWHERE, target)


class Disk:
    """The real disk."""

    def __init__(self) -> None:
        self._replaced = 0
        self._exchange: Callable[[int, str, int, str], bool] | None = None
        self._beneath: ConfinedFolder | None = None
        self._at: Callable[[str], _Place] = _anywhere
        self._both: Callable[[str, str], tuple[_Place, _Place]] = _both_anywhere
        self._modes = Modes()

    def bind(self, root: str, modes: Modes | None = None) -> None:
        """Write beneath this data directory only, with its modes: those of its log where nobody says otherwise."""
        self._beneath = ConfinedFolder(root)
        self._at, self._both = self._beneath.at, self._beneath.both
        if modes is None:
            try:
                modes = Modes(os.stat(f"{root}/events", follow_symlinks=False).st_mode)
            except OSError:
                modes = Modes()
        self._modes = modes

    def unbind(self) -> None:
        """Write anywhere again, such as to give the data directory itself another name."""
        self.close()
        self._beneath, self._at, self._both = None, _anywhere, _both_anywhere

    def begin(self) -> None:
        """Begin a unit of work: folders that were replaced since the last one are noticed."""
        if self._beneath is not None:
            self._beneath.begin()

    def prove(self, *folders: str) -> None:
        """Refuse folders that are reached through a link; those that are missing will be made."""
        if self._beneath is not None:
            self._beneath.prove(*folders)

    def refuse_link(self, path: str) -> None:
        """Refuse to replace a link."""
        folder, name = self._at(path)
        if is_link(name, folder.fd):
            raise LinkInTheWay(path)

    def _at_or_root(self, path: str) -> _Place:
        is_root = self._beneath is not None and path == self._beneath.root
        return (_ANYWHERE, path) if is_root else self._at(path)

    def append(self, fd: int, data: bytes) -> int:
        """Write at the end of an open file; returns how much was written."""
        return os.write(fd, data)

    def flush(self, fd: int) -> None:
        """Make what was appended durable."""
        os.fdatasync(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut an open file back."""
        os.ftruncate(fd, size)

    def overwrite(self, fd: int, data: bytes, offset: int) -> None:
        """Write over a place of an open file that only ever holds state which can be rebuilt."""
        os.pwrite(fd, data, offset)

    def write_new(self, path: str, data: bytes) -> None:
        """Create a file, in place of one that was left there, and write all of the data; only for temporary files."""
        os.close(self._written(path, data, self._modes.file, exact=self._modes.exact))

    def write_durable(self, path: str, data: bytes) -> None:
        """The same, and flushed."""
        self._flushed(self._written(path, data, self._modes.file, exact=self._modes.exact))

    def write_private(self, path: str, data: bytes) -> None:
        """The same, readable by its owner only."""
        self._flushed(self._written(path, data, 0o600, exact=True))

    def _written(self, path: str, data: bytes, mode: int, *, exact: bool) -> int:
        folder, name = self._at(path)
        within = folder.fd
        try:
            fd = os.open(name, _NEW_FILE, mode, dir_fd=within)
        except FileExistsError:
            found = os.stat(name, dir_fd=within, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                raise LinkInTheWay(path) from None
            if not stat.S_ISREG(found.st_mode):
                raise
            os.unlink(name, dir_fd=within)  # a dead writer's
            fd = os.open(name, _NEW_FILE, mode, dir_fd=within)
        try:
            if exact:
                os.fchmod(fd, mode)
            written = os.write(fd, data)
            while written < len(data):
                written += os.write(fd, memoryview(data)[written:])
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _flushed(self, fd: int) -> None:
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: str, target: str) -> None:
        """Put a file in the place of another, atomically."""
        (here, old), (there, new) = self._both(source, target)
        os.rename(old, new, src_dir_fd=here.fd, dst_dir_fd=there.fd)

    def replace(self, source: str, target: str, mode: int | None = None) -> None:
        """Put a new version in the place of an existing file, atomically, with its mode; the old one is gone then.

        Swapping the two names and removing the old version costs half of a rename over it, which makes ext4 allocate
        and write out blocks at once. It needs a library that takes milliseconds to load, so it begins to pay only
        after some writes. A caller that has just examined the existing file passes its mode, as `stat` has it.
        """
        self.keep_mode(source, target, mode)
        self._replaced += 1
        if self._replaced > _WORTH_SWAPPING and self._swap(source, target):
            self.unlink(source)
        else:
            self.rename(source, target)

    def exchange(self, source: str, target: str) -> bool:
        """Exchange a new version with an existing file, which keeps its mode; False where the system cannot."""
        self.keep_mode(source, target)
        return self._swap(source, target)

    def keep_mode(self, source: str, target: str, found: int | None = None) -> None:
        """What replaces a file may be read by those who could read it before: a checkout's files stay as they are.

        A caller that has just examined the existing file passes its mode, as `stat` has it.
        """
        if found is None:
            folder, name = self._at(target)
            try:
                found = os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode
            except FileNotFoundError:
                return
        if stat.S_ISLNK(found):
            raise LinkInTheWay(target)
        if found & _BITS != self._modes.file:
            here, new = self._at(source)
            os.chmod(new, found & _BITS, dir_fd=here.fd)

    def _swap(self, source: str, target: str) -> bool:
        """Exchange two names; False where the system cannot, or the target does not exist."""
        if self._exchange is None:
            self._exchange = _exchanger()
        (here, old), (there, new) = self._both(source, target)
        return self._exchange(_HERE if here.fd is None else here.fd, old, _HERE if there.fd is None else there.fd, new)

    def set_mode(self, path: str, mode: int) -> None:
        """Change who may read and write a file or folder; a link is left alone."""
        folder, name = self._at_or_root(path)
        follow = 0 if folder is _ANYWHERE else os.O_NOFOLLOW
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | follow, dir_fd=folder.fd)
        try:
            os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        folder, name = self._at(path)
        os.unlink(name, dir_fd=folder.fd)

    def make_dir(self, path: str) -> None:
        """Create a folder."""
        folder, name = self._at_or_root(path)
        os.mkdir(name, self._modes.folder, dir_fd=folder.fd)
        if self._modes.exact:
            os.chmod(name, self._modes.folder, dir_fd=folder.fd)

    def sync_dir(self, path: str) -> None:
        """Make the names in a folder durable."""
        folder, where = (_ANYWHERE, path) if self._beneath is None else (self._beneath.folder(path), ".")
        self._flushed(os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder.fd))

    def sync_all(self, root: str) -> None:
        """Make everything on the data directory's file system durable."""
        if sys.platform != "linux":
            os.sync()
            return
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            import ctypes  # 10 ms that only a checkpoint needs

            if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), root)
        finally:
            os.close(fd)

    def create(self, path: str) -> int:
        """Open a file for reading and appending, creating it where it is missing."""
        return self._opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def open_state(self, path: str, *, create: bool = True) -> int:
        """Open a file for reading and for writing in place, creating it where it is missing."""
        return self._opened(path, os.O_RDWR | os.O_CREAT if create else os.O_RDWR)

    def open_cache(self, path: str) -> int:
        """The same for what can be rebuilt, with its folder, which somebody may delete at any moment."""
        for _ in range(_TRIES):
            try:
                return self.open_state(path)
            except FileNotFoundError:
                self.begin()
                folder = path.rpartition("/")[0]
                for one in (folder.rpartition("/")[0], folder):
                    with suppress(FileExistsError, FileNotFoundError):
                        self.make_dir(one)
        return self.open_state(path)

    def _opened(self, path: str, flags: int) -> int:
        if self._beneath is None:
            return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, self._modes.file)
        fd = self._beneath.open(path, flags, self._modes.file)
        if self._modes.exact:
            found = os.fstat(fd)
            if not found.st_size and found.st_uid == os.geteuid():  # it may be new, and the umask says nothing here
                os.fchmod(fd, self._modes.file)
        return fd

    def close(self) -> None:
        """Let go of open folders; they are opened again where they are needed."""
        if self._beneath is not None:
            self._beneath.close()


def _exchanger() -> Callable[[int, str, int, str], bool]:
    """The system's way to exchange two names, or one that always says no."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except AttributeError:
        return lambda _here, _source, _there, _target: False

    def exchange(here: int, source: str, there: int, target: str) -> bool:
        done: int = renameat2(here, os.fsencode(source), there, os.fsencode(target), _SWAP_NAMES)
        return done == 0

    return exchange
