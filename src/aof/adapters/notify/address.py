"""Where a channel leads: an address from the settings, from a variable, or from a private file.

An address usually holds a secret, so it is shown by its scheme at most, with the host where that is no secret.
Must not know what is sent there.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

from aof._support.hashing import hexdigest
from aof._support.printable import clean
from aof.ports.notifier import ChannelFailed

_LONGEST = 4_096  # bytes
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{0,30})://", re.IGNORECASE)
_HOSTED = frozenset({"json", "jsons", "xml", "xmls", "form", "forms"})  # elsewhere the host may be the secret
_HOST = re.compile(r"[a-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9a-f:]{2,45}\](:[0-9]{1,5})?", re.IGNORECASE)
_FOR_OTHERS = 0o077


class Address:
    """One address, read anew each time it is used."""

    def __init__(
        self,
        root: str,
        *,
        url: str | None = None,
        variable: str | None = None,
        file: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._root = os.path.realpath(root)
        self._url = url
        self._variable = variable
        self._file = file
        self._environment = environment

    @property
    def shown(self) -> str:
        """What a person may be shown."""
        if self._variable is not None:
            return f"the address in ${self._variable}"
        if self._file is not None:
            return f"the address in {self._file}"
        return shown(self._url or "")

    @property
    def digest(self) -> str:
        """What stands for it where somebody trusts it: the whole address, or the place that the person keeps it at."""
        parts = (self._url or "", self._variable or "", self._file or "")
        return hexdigest("\0".join(parts).encode("utf-8", "surrogatepass"))

    def read(self) -> str:
        """The address itself. Raises ChannelFailed, whose text has nothing of it."""
        if self._variable is not None:
            found = self._environment.get(self._variable, "")
            if not found:
                raise ChannelFailed(f"the variable {clean(self._variable)} is not set where 'aof up' was started")
        elif self._file is not None:
            found = self._read_file(self._file)
        else:
            found = self._url or ""
        address = found.strip()
        if len(address) > _LONGEST or not address.isprintable() or _SCHEME.match(address) is None:
            raise ChannelFailed(f"{clean(self.shown)} is no address such as json://host/path")
        return address

    def _read_file(self, path: str) -> str:
        if not os.path.isabs(path) or os.path.realpath(path).startswith(f"{self._root}/"):
            raise ChannelFailed("urlFile must be an absolute path outside of the data directory")
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise ChannelFailed(f"{clean(path)} cannot be read: {error.strerror}") from None
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _FOR_OTHERS:
                raise ChannelFailed(f"{clean(path)} must be a file of yours that nobody else can read: chmod 600")
            return os.read(fd, _LONGEST + 1).decode("utf-8", "replace")
        finally:
            os.close(fd)


def shown(url: str) -> str:
    """An address without its secrets."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        return "(no address)"
    host = re.split(r"[/?#]", url[scheme.end() :], maxsplit=1)[0].rpartition("@")[2]
    if scheme.group(1).lower() in _HOSTED and _HOST.fullmatch(host):
        return f"{scheme.group(1).lower()}://{host}/(hidden)"
    return f"{scheme.group(1).lower()}://(hidden)"
