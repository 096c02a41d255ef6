"""Which commands a person has trusted, kept outside of every repository.

There is one file per data directory in the user's state folder (`$XDG_STATE_HOME/aof/trust`, else
`~/.local/state/aof/trust`). It goes by the real path of the data directory and holds SHA-256 digests, no values. Only
a file that belongs to this user and that nobody else can write counts. Must not know what the commands are for.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from aof.errors import SettingsUnusable, StorageFailed
from aof.kernel.ports import CommandLine
from aof.support import nesting
from aof.support.hashing import hexdigest

_VERSION = 1
_MOST = 4_000_000  # bytes
_WRITABLE_BY_OTHERS = 0o022


class _File(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is written."""

    schema_version: int
    data_dir: str
    trusted_at: str
    commands: list[str]


class TrustFile:
    """Implements `kernel.ports.Trust` for one data directory."""

    def __init__(self, root: str, environment: Mapping[str, str] = os.environ) -> None:
        self._root = os.path.abspath(root)
        self._real = os.path.realpath(root)
        self._named = os.fsencode(self._real).decode("utf-8", "backslashreplace")
        self.folder = f"{state_folder(environment)}/trust"
        self._path = f"{self.folder}/{hexdigest(os.fsencode(self._real))}.json"

    def covers(self, command: CommandLine) -> bool:
        """Whether its digest is in the file."""
        return self.digest(command) in self._digests()

    def digest(self, command: CommandLine) -> str:
        """What stands for exactly this command, started for exactly this data directory."""
        env = sorted(command.env.items())
        inherited = sorted(command.inherit_env) if isinstance(command.inherit_env, tuple) else command.inherit_env
        whole = [_VERSION, self._real, list(command.command), env, inherited, self.started_in(command)]
        whole += ["file"] if command.kind == "file" else []
        whole += ["channel", command.hidden] if command.kind == "channel" else []
        return hexdigest(json.dumps(whole).encode())

    def started_in(self, command: CommandLine) -> str:
        """The folder that the command would be started in."""
        base = self._root if command.kind != "runner" else os.path.dirname(self._root)
        return os.path.realpath(os.path.join(base, command.cwd or ""))

    def save(self, commands: Iterable[CommandLine], now: str) -> None:
        """Trust these and no others."""
        if os.path.realpath(self.folder).startswith(f"{self._real}/"):
            raise SettingsUnusable(
                f"the state folder {self.folder} lies in the data directory, which could then trust itself",
                "set XDG_STATE_HOME to a folder outside of it",
            )
        digests = sorted({self.digest(command) for command in commands})
        held = _File(schema_version=_VERSION, data_dir=self._named, trusted_at=now, commands=digests)
        try:
            self._write(msgspec.json.format(msgspec.json.encode(held), indent=2) + b"\n")
        except OSError as error:
            raise StorageFailed(f"{self._path} cannot be written: {error}", "check the state folder") from None

    def _write(self, data: bytes) -> None:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        part = f"{self._path}.{os.getpid()}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with suppress(FileNotFoundError):
            os.unlink(part)
        with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self._path)

    def revoke(self) -> bool:
        """Trust nothing of this data directory any more; whether something was trusted."""
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageFailed(f"{self._path} cannot be removed: {error}", "check the state folder") from None
        return True

    def _digests(self) -> frozenset[str]:
        """Nothing where the file is not ours alone, or not about this data directory."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return frozenset()
        try:
            found = os.fstat(fd)
            ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
            if not ours or found.st_mode & _WRITABLE_BY_OTHERS or found.st_size > _MOST:
                return frozenset()
            held = nesting.decode_json(_whole(fd), _File)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return frozenset()
        finally:
            os.close(fd)
        known = held.schema_version == _VERSION and held.data_dir == self._named
        return frozenset(held.commands) if known else frozenset()


def _whole(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, 65_536):
        parts.append(part)
    return b"".join(parts)


def state_folder(environment: Mapping[str, str]) -> str:
    """Where the state of this user is kept; a relative path in the variable does not count, as its standard says."""
    given = environment.get("XDG_STATE_HOME", "")
    if os.path.isabs(given):
        return f"{given.rstrip('/')}/aof"
    home = environment.get("HOME", "")
    if not os.path.isabs(home):
        import pwd

        home = pwd.getpwuid(os.getuid()).pw_dir
    return f"{home.rstrip('/')}/.local/state/aof"
