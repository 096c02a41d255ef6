"""Tells when something in a folder changes, without looking all the time: the kernel's inotify, by the C library.

Must not know what lies in the folders.
"""

from __future__ import annotations

import ctypes
import os
import struct
from contextlib import suppress

_CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _MODIFY = 0x8, 0x40, 0x80, 0x100, 0x200, 0x2
_OVERFLOW, _IS_DIR = 0x4000, 0x40000000
GROWS = _MODIFY | _CREATE | _MOVED_TO
CHANGES = _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _DELETE
_HEAD = struct.Struct("iIII")
_BUFFER = 65_536


class Inotify:
    """A set of watched folders. `fd` can be waited for; raises OSError where the system has no such thing."""

    def __init__(self) -> None:
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self.fd: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError) as error:
            raise OSError("there is no inotify here") from error
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify cannot be used")
        self._folders: dict[int, str] = {}

    def watch(self, what: int, *folders: str) -> None:
        """Also tell of these folders."""
        for folder in folders:
            number = self._libc.inotify_add_watch(self.fd, os.fsencode(folder), what)
            if number < 0:
                raise OSError(ctypes.get_errno(), f"{folder} cannot be watched")
            self._folders[number] = folder

    def read(self) -> set[tuple[str, str]]:
        """Folder and name of what has changed since; an empty folder says that some of it was lost."""
        found: set[tuple[str, str]] = set()
        with suppress(BlockingIOError):
            while data := os.read(self.fd, _BUFFER):
                at = 0
                while at < len(data):
                    number, mask, _cookie, length = _HEAD.unpack_from(data, at)
                    at += _HEAD.size + length
                    name = os.fsdecode(data[at - length : at].rstrip(b"\0"))
                    if mask & _OVERFLOW:
                        found.add(("", ""))
                    elif number in self._folders and not mask & _IS_DIR:
                        found.add((self._folders[number], name))
        return found

    def close(self) -> None:
        """Stop watching."""
        os.close(self.fd)
