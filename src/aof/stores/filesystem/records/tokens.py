"""Tokens in a file of the data directory. Must not know how a token is recognised."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

import msgspec

from aof._support import nesting
from aof.core.errors.base import InvalidInput
from aof.ports.clock import Clock
from aof.ports.tokens import Token
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.locks import Locks
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read
from aof.stores.filesystem.io.system import clearly

_LOCK = "tokens"
_GROUP_AND_OTHERS = 0o077


class TokenFile:
    """The tokens of one data directory; read again when the file has changed."""

    def __init__(self, root: str, clock: Clock, lock_timeout: float = 10.0) -> None:
        self._paths = Paths(root)
        self._path = self._paths.tokens
        self._disk = Disk()
        self._disk.bind(root)
        self._locks = Locks(self._paths.locks, clock, lock_timeout, disk=self._disk)
        self._seen: tuple[int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()

    def all(self) -> tuple[Token, ...]:
        """Every token that is valid."""
        try:
            found = os.lstat(self._path)
        except FileNotFoundError:
            return ()
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._tokens = self._read()
            self._seen = seen
        _refuse_foreign(found)
        return self._tokens

    def change(self, *, add: Token | None = None, remove: str | Collection[str] | None = None) -> bool:
        """Add one, remove one or some, durably; returns whether something changed."""
        gone = {remove} if isinstance(remove, str) else set(remove or ())
        with clearly("change the tokens"):
            held = self._locks.acquire(_LOCK)
            assert held is not None
            try:
                self._disk.begin()
                self._disk.refuse_link(self._path)
                before = self._read()
                after = tuple(token for token in before if token.id not in gone) + ((add,) if add else ())
                if after != before:
                    self._write(msgspec.json.format(msgspec.json.encode(after)) + b"\n")
                return after != before
            finally:
                self._locks.release([held])

    def _write(self, data: bytes) -> None:
        new = f"{self._paths.temporary}/tokens-{os.getpid()}"
        self._disk.write_private(new, data)
        self._disk.rename(new, self._path)
        self._disk.sync_dir(self._paths.root)

    def _read(self) -> tuple[Token, ...]:
        try:
            data = read(self._path)
            if data is None:
                return ()
            _refuse_foreign(os.lstat(self._path))
            return nesting.decode(data, tuple[Token, ...])
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidInput(f"tokens.json cannot be read: {error}", "correct it, or remove it") from None


def _refuse_foreign(found: os.stat_result) -> None:
    """AOF makes the file for its owner alone. One that came with a clone or a copy is open, and may be a stranger's.

    It is looked at each time: a mode can change under a running server.
    """
    if stat.S_ISLNK(found.st_mode):
        raise InvalidInput("tokens.json is not used: it is a symbolic link", "remove it")
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & _GROUP_AND_OTHERS:
        raise InvalidInput(
            f"tokens.json is not used: others can reach it (mode {found.st_mode & 0o777:o}, owner {found.st_uid})",
            "remove it; if you made it yourself, 'chmod 600' it",
        )
