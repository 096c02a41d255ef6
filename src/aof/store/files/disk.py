"""The disk: every write to a data directory, as single steps, and how its files are read.

Nothing else in the store changes a file. Tells file systems and owners of files apart, too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from aof.errors import AofError, DiskFull, LinkRefused, StorageFailed
from aof.support.confined_folder import NO_NAME, ConfinedFolder, Folder, LinkInTheWay, explained, is_link
from aof.support.hashing import hexdigest

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
_PROVEN = 16  # folders that a round of work goes back to


class Disk:
    """The real disk."""

    def __init__(self) -> None:
        self._replaced = 0
        self._exchange: Callable[[int, bytes, int, bytes, int], int] | None = None
        self._beneath: ConfinedFolder | None = None
        self._proven: dict[str, Folder] = {}  # the folders of this round of work
        self._modes = Modes()

    def bind(self, root: str, modes: Modes | None = None) -> None:
        """Write beneath this data directory only, with its modes: those of its log where nobody says otherwise."""
        self._beneath = ConfinedFolder(root)
        if modes is None:
            try:
                modes = Modes(os.stat(f"{root}/events", follow_symlinks=False).st_mode)
            except OSError:
                modes = Modes()
        self._modes = modes

    def unbind(self) -> None:
        """Write anywhere again, such as to give the data directory itself another name."""
        self.close()
        self._beneath = None

    def begin(self) -> None:
        """Begin a unit of work: folders that were replaced since the last one are noticed."""
        self._proven = {}
        if self._beneath is not None:
            self._beneath.begin()

    def prove(self, *folders: str) -> None:
        """Refuse folders that are reached through a link; those that are missing will be made."""
        if self._beneath is None:
            return
        proven = self._proven  # another thread may begin a round meanwhile
        for path in folders:
            try:
                if len(proven) >= _PROVEN:
                    proven.clear()
                proven[path] = self._beneath.folder(path)
            except FileNotFoundError:
                above = path.rpartition("/")[0]
                if above != self._beneath.root:
                    self.prove(above)

    def _at(self, path: str) -> _Place:
        """The folder that a path lies in, and its name there; raises LinkInTheWay or another OSError."""
        above, _, name = path.rpartition("/")
        known = self._proven.get(above)
        if known is not None and name not in NO_NAME:
            return known, name
        if self._beneath is None:
            return _ANYWHERE, path
        proven = self._proven
        if len(proven) >= _PROVEN:
            proven.clear()
        folder, name = self._beneath.at(path)
        proven[above] = folder
        return folder, name

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
        (here, old), (there, new) = self._at(source), self._at(target)
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
        (here, old), (there, new) = self._at(source), self._at(target)
        ours, theirs = old.encode("utf-8", "surrogateescape"), new.encode("utf-8", "surrogateescape")
        first, second = _HERE if here.fd is None else here.fd, _HERE if there.fd is None else there.fd
        return self._exchange(first, ours, second, theirs, _SWAP_NAMES) == 0

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
        folder, name = self._at(path)
        try:
            fd = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, self._modes.file, dir_fd=folder.fd)
        except OSError as error:
            if folder is _ANYWHERE:
                raise
            raise explained(error, path, name, folder.fd) from None
        if self._modes.exact and folder is not _ANYWHERE:
            found = os.fstat(fd)
            if not found.st_size and found.st_uid == os.geteuid():  # it may be new, and the umask says nothing here
                os.fchmod(fd, self._modes.file)
        return fd

    def close(self) -> None:
        """Let go of open folders; they are opened again where they are needed."""
        self._proven = {}
        if self._beneath is not None:
            self._beneath.close()


def _exchanger() -> Callable[[int, bytes, int, bytes, int], int]:
    """The system's way to exchange two names, or one that always fails."""
    try:
        renameat2: Callable[[int, bytes, int, bytes, int], int] = ctypes.CDLL(None).renameat2
    except AttributeError:
        return lambda _here, _source, _there, _target, _how: -1
    return renameat2


LARGEST = 16 * 1024 * 1024  # bytes: many times what a task's file may have
_BUFFER = 8_192
READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY  # a pipe must not hang us
digest = hexdigest  # what events and heads know a file by
NO_FILE = (errno.EINVAL, errno.EFBIG, errno.ENXIO, errno.ELOOP)  # what reading something unfit fails with
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
)


class Seen:
    """A file as it was read, and when it was written in nanoseconds: enough to notice that somebody has written it.

    A plain class: lists pay for what is loaded here.
    """

    __slots__ = ("inode", "modified", "size")

    def __init__(self, inode: int, modified: int, size: int) -> None:
        self.inode = inode
        self.modified = modified
        self.size = size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and (self.inode, self.modified, self.size) == (
            other.inode,
            other.modified,
            other.size,
        )

    def __hash__(self) -> int:
        return hash((self.inode, self.modified, self.size))

    def is_still(self, found: os.stat_result) -> bool:
        """Whether `stat` tells the same of it."""
        return (self.inode, self.modified, self.size) == (found.st_ino, found.st_mtime_ns, found.st_size)


def seen(path: str) -> Seen | None:
    """The file as it is now; None where there is none."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return Seen(found.st_ino, found.st_mtime_ns, found.st_size)


def found_at(path: str, inode: int, device: int) -> os.stat_result | None:
    """An open file as it is now; None if a path does not lead to it any more: somebody has deleted or moved it."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found if found.st_ino == inode and found.st_dev == device else None


def read(path: str, directory: int | None = None, *, limit: int | None = LARGEST) -> bytes | None:
    """A file's bytes; None where there is none. What is not a regular file, or is too large, raises OSError.

    The path may be relative to an open directory. A symbolic link is refused: it may have come with a clone.
    """
    opened = _opened(path, directory, limit)
    if opened is None:
        return None
    fd = opened[0]
    try:
        data = os.read(fd, _BUFFER)
        return data if len(data) < _BUFFER else _rest(fd, data, path, limit)
    finally:
        os.close(fd)


def read_piece(path: str, offset: int, most: int) -> tuple[bytes, int] | None:
    """At most so many bytes from an offset on, and the file's size; None where there is none. The file may be large."""
    opened = _opened(path, None, None)
    if opened is None:
        return None
    fd, found = opened
    try:
        return os.pread(fd, most, offset), found.st_size
    finally:
        os.close(fd)


def read_seen(path: str) -> tuple[bytes, Seen] | None:
    """The same, and the file as it was before the first byte was read."""
    opened = _opened(path, None, LARGEST)
    if opened is None:
        return None
    fd, found = opened
    try:
        data = os.read(fd, _BUFFER)
        whole = data if len(data) < _BUFFER else _rest(fd, data, path, LARGEST)
        return whole, Seen(found.st_ino, found.st_mtime_ns, found.st_size)
    finally:
        os.close(fd)


def refuse_link(folder: str) -> None:
    """Raise OSError for a folder that is a symbolic link: what lies in it may be anybody's."""
    if os.path.islink(folder):
        raise OSError(errno.ELOOP, "its folder is a symbolic link", folder)


def unfit(path: str, limit: int = LARGEST) -> str | None:
    """Why nobody should read what lies there: it is not a regular file, or too large. None where it can be read."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError as error:
        return error.strerror
    return _unfit(found, limit)


def _unfit(found: os.stat_result, limit: int | None) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "something else")
        return f"it is {kind}, not a regular file"
    if limit is not None and found.st_size > limit:
        return f"it has {found.st_size:,} bytes, more than {limit:,}"
    return None


def _opened(path: str, directory: int | None, limit: int | None) -> tuple[int, os.stat_result] | None:
    try:
        fd = os.open(path, READING, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, not a regular file", path) from None
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a socket or a device, not a regular file", path) from None
        raise
    found = os.fstat(fd)
    is_file = stat.S_ISREG(found.st_mode)
    if is_file and (limit is None or found.st_size <= limit):
        return fd, found
    os.close(fd)
    raise OSError(errno.EFBIG if is_file else errno.EINVAL, _unfit(found, limit), path)


def _rest(fd: int, data: bytes, path: str, limit: int | None) -> bytes:
    """What was read already, and the rest."""
    parts, size = [data], len(data)
    while chunk := os.read(fd, 1 << 20):
        parts.append(chunk)
        size += len(chunk)
        if limit is not None and size > limit:  # it grows while it is read, or never ends
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", path)
    return b"".join(parts)


NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TABLE = "/proc/self/mountinfo"
_UNKNOWN = ("unknown", "unknown")
_FIELDS = 6  # before the dash, as proc(5) has them
_REMOTE = frozenset(
    {"9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs", "ocfs2",
     "orangefs", "pvfs2", "vboxsf", "virtiofs", "vmhgfs"}
)  # fmt: skip
_REMOTE_BEGINNINGS = ("nfs", "smb", "fuse.")
# Of what runs in user space, these keep their data on a disk of this machine. Everything else may be anywhere.
_LOCAL_FUSE = frozenset({
    "fuse.bindfs", "fuse.encfs", "fuse.exfat", "fuse.exfat-fuse", "fuse.ext2", "fuse.ext3", "fuse.ext4",
    "fuse.fuse-overlayfs", "fuse.fuse2fs", "fuse.gocryptfs", "fuse.cryfs", "fuse.mergerfs", "fuse.ntfs", "fuse.ntfs-3g",
    "fuse.overlayfs", "fuse.unionfs", "fuse.unionfs-fuse", "fuse.zfs",
})  # fmt: skip


def failed(error: OSError, doing: str) -> AofError:
    """What to raise when something could not be done and nothing was changed."""
    if error.errno in NO_SPACE:
        return DiskFull(f"no space left to {doing}; nothing was changed", "free some space and try again")
    if isinstance(error, LinkInTheWay):
        return LinkRefused(
            f"could not {doing}: {error.filename} is a symbolic link, and links are not followed; nothing was changed",
            "put what it leads to in its place, or remove it; 'aof doctor' lists all links",
            path=error.filename,
        )
    hint = "check the disk and the permissions"
    if error.errno in (errno.EACCES, errno.EPERM) and error.filename and (owner := owner_of(error.filename)):
        hint = f"it belongs to {owner}; 'aof init --shared group' makes a data directory for several users"
    return StorageFailed(
        f"could not {doing}: {error.strerror}; nothing was changed",
        hint,
        path=error.filename,
    )


@contextmanager
def clearly(doing: str) -> Iterator[None]:
    """Nobody above the store has to know the operating system's errors."""
    try:
        yield
    except OSError as error:
        raise failed(error, doing) from error


def owner_of(path: str) -> str | None:
    """The user that a file belongs to, unless that is the one who asks; None also where the system does not tell."""
    try:
        owner = os.stat(path, follow_symlinks=False).st_uid
    except OSError:
        return None
    return None if owner == os.geteuid() else _name(owner)


def runs_as(pid: int) -> str | None:
    """The same for a process."""
    return owner_of(f"/proc/{pid}")


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def is_remote(kind: str) -> bool:
    """Whether a file system of this type is shared over a network or between machines, or could be."""
    return kind in _REMOTE or (kind.startswith(_REMOTE_BEGINNINGS) and kind not in _LOCAL_FUSE)


def file_system(folder: str, table: str = _TABLE) -> tuple[str, str]:
    """The type and the device of the file system that a folder lies on; `unknown` where the system does not tell."""
    try:
        with open(table, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return _UNKNOWN
    real = os.fsencode(os.path.realpath(folder))
    mounts = [mount for line in lines if (mount := _mount(line)) is not None and _holds(mount[1], real)]
    device = _device(real)  # a mount further up may hide one further down
    found, longest = _UNKNOWN, -1
    for _, point, kind, source in [mount for mount in mounts if mount[0] == device] or mounts:
        if len(point) >= longest:  # the last one of equals lies on top
            found, longest = (kind, source), len(point)
    return found


def _mount(line: bytes) -> tuple[bytes, bytes, str, str] | None:
    """The device number, the place, the type and the source that a line tells of."""
    before, _, behind = line.partition(b" - ")
    fields, rest = before.split(b" "), behind.split(b" ")
    if len(fields) < _FIELDS or len(rest) < 2:  # noqa: PLR2004 - the type and the source
        return None
    return fields[2], _plain(fields[4]), os.fsdecode(_plain(rest[0])), os.fsdecode(_plain(rest[1]))


def _device(real: bytes) -> bytes:
    try:
        number = os.lstat(real).st_dev
    except OSError:
        return b""
    return f"{os.major(number)}:{os.minor(number)}".encode()


def _holds(point: bytes, real: bytes) -> bool:
    return real == point or real.startswith(point.rstrip(b"/") + b"/")


def _plain(field: bytes) -> bytes:
    """Blanks, line breaks and backslashes stand in the table as octal numbers."""
    first, *parts = field.split(b"\\")
    return first + b"".join(_octal(part[:3]) + part[3:] for part in parts)


def _octal(digits: bytes) -> bytes:
    try:
        return bytes((int(digits, 8) & 0xFF,))
    except ValueError:
        return b"\\" + digits
