"""Files beneath one folder, reached without following a link: one `openat` per folder on the way.

Open folders are kept, so that the hot path costs one `lstat` per folder and round of work, not a walk per file. What
was deleted, moved or replaced meanwhile (`git checkout`) is opened again. Must not know what the files are for.
"""

from __future__ import annotations

import errno
import os
import stat

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC
NO_NAME = frozenset({"", ".", ".."})
_KEPT = 32  # open folders


class LinkInTheWay(OSError):
    """A symbolic link lies where a file or folder of ours belongs; it was not followed."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, "a symbolic link is in the way", path)


class Folder:
    """An open folder. A user of the descriptor keeps the object, so that nobody closes it meanwhile.

    Which one it is, is looked for when it is used in a second round; until then the inode is 0.
    """

    __slots__ = ("device", "fd", "inode", "proven")

    def __init__(self, fd: int, proven: int) -> None:
        self.fd = fd
        self.device = self.inode = 0
        self.proven = proven

    def __del__(self, _close=os.close) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - at exit `os` may be gone
        _close(self.fd)


class ConfinedFolder:
    """The folders beneath a root. The root itself may be reached through links; everything below may not."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._known: dict[str, Folder] = {}
        self._round = 0

    def begin(self) -> None:
        """Begin a round of work: look at every folder once more before its next use."""
        self._round += 1

    def at(self, path: str) -> tuple[Folder, str]:
        """The folder that a path lies in, and its name there; raises LinkInTheWay or another OSError."""
        above, _, name = path.rpartition("/")
        if name in NO_NAME:
            raise _outside(path)
        known = self._known.get(above)
        if known is not None and known.proven == self._round:
            return known, name
        return self.folder(above), name

    def has(self, path: str) -> bool:
        """Whether something lies there, be it a link that leads nowhere."""
        folder, name = self.at(path)
        return os.access(name, os.F_OK, dir_fd=folder.fd, follow_symlinks=False)

    def folder(self, path: str) -> Folder:
        """An open folder; one that still lies where it was reached without a link is not opened again."""
        known = self._known.get(path)
        if known is not None:
            if known.proven == self._round:
                return known
            if not known.inode:
                found = os.fstat(known.fd)
                known.inode, known.device = found.st_ino, found.st_dev
            try:
                found = os.stat(path, follow_symlinks=path == self.root)
            except OSError:
                self._known.pop(path, None)
            else:
                if found.st_ino == known.inode and found.st_dev == known.device:
                    known.proven = self._round
                    self._known[path] = self._known.pop(path, known)  # those in use are closed last
                    return known
        if path == self.root:
            return self._keep(path, Folder(os.open(path, _FOLDER & ~os.O_NOFOLLOW), self._round))
        above, _, name = path.rpartition("/")
        if name in NO_NAME or not above.startswith(self.root):
            raise _outside(path)
        # What lies directly in the root is reached by its whole path: that saves opening the root.
        parent, place = (None, path) if above == self.root else (self.folder(above), name)
        within = None if parent is None else parent.fd
        try:
            fd = os.open(place, _FOLDER, dir_fd=within)
        except OSError as error:
            raise explained(error, path, place, within) from None
        return self._keep(path, Folder(fd, self._round))

    def _keep(self, path: str, folder: Folder) -> Folder:
        while len(self._known) >= _KEPT:
            self._known.pop(next(iter(self._known)), None)
        self._known[path] = folder
        return folder

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        """Open a file; a link in its place is refused."""
        folder, name = self.at(path)
        try:
            return os.open(name, flags | _FILE, mode, dir_fd=folder.fd)
        except OSError as error:
            raise explained(error, path, name, folder.fd) from None

    def make_folders(self, path: str) -> None:
        """Make a folder, and those above it as far as they are missing, each with the mode of the one it lies in."""
        missing: list[str] = []
        while path != self.root:
            try:
                self.folder(path)
                break
            except FileNotFoundError:
                missing.append(path)
                path = path.rpartition("/")[0]
        for one in reversed(missing):
            folder, name = self.at(one)
            mode = stat.S_IMODE(os.fstat(folder.fd).st_mode)
            try:
                os.mkdir(name, mode & 0o777, dir_fd=folder.fd)
            except FileExistsError:
                continue
            if mode & stat.S_ISGID:  # shared with a group, whatever the umask says
                os.chmod(name, mode, dir_fd=folder.fd)

    def close(self) -> None:
        """Let go of the open folders."""
        self._known.clear()


def is_link(name: str, within: int | None = None) -> bool:
    """Whether a name is a symbolic link, also one that leads nowhere."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode)
    except OSError:
        return False


def explained(error: OSError, path: str, name: str, within: int | None) -> OSError:
    """The same error with the whole path, or that a link is in the way."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EEXIST, errno.EMLINK) and is_link(name, within):
        return LinkInTheWay(path)
    return OSError(error.errno, error.strerror, path)


def _outside(path: str) -> OSError:
    return OSError(errno.EXDEV, "not beneath the data directory", path)
