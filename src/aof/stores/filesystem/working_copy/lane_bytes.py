"""Which bytes any clone's AOF has written: those are never a person's edit, whatever path of the log is read.

Every event that writes a file names its digest, so a look at the lines of all lanes tells. Where only one clone ever
wrote, the path of the log itself knows everything, and nothing is read. Must not know what the events mean.
"""

from __future__ import annotations

import os
import re

from aof.stores.filesystem.io.paths import Paths

_DIGEST = re.compile(rb'"([0-9a-f]{64})"')
_CHUNK = 1 << 22
_OVERLAP = 66


class LaneBytes:
    """The digests in all files of one log, read again where a file has changed."""

    def __init__(self, paths: Paths) -> None:
        self._folder = paths.events
        self._seen: dict[str, tuple[int, int, frozenset[bytes]]] = {}

    def wrote(self, digest: str) -> bool:
        """Whether some lane names this digest; false where the log has a single lane."""
        files = self._files()
        wanted = digest.encode()
        return _are_several(files) and any(wanted in self._digests(entry) for entry in files)

    def several(self) -> bool:
        """Whether more than one clone has written to the log."""
        return _are_several(self._files())

    def _files(self) -> list[os.DirEntry[str]]:
        with os.scandir(self._folder) as entries:
            return [entry for entry in entries if entry.name.endswith(".jsonl")]

    def _digests(self, entry: os.DirEntry[str]) -> frozenset[bytes]:
        state = entry.stat(follow_symlinks=False)
        known = self._seen.get(entry.name)
        if known is not None and known[:2] == (state.st_mtime_ns, state.st_size):
            return known[2]
        found: set[bytes] = set()
        with open(entry.path, "rb") as file:
            rest = b""
            while data := file.read(_CHUNK):
                found.update(_DIGEST.findall(rest + data))
                rest = data[-_OVERLAP:]
        self._seen[entry.name] = state.st_mtime_ns, state.st_size, frozenset(found)
        return self._seen[entry.name][2]


def _are_several(files: list[os.DirEntry[str]]) -> bool:
    """Whether a lane lies beside the first one: its name stands between the day and the ending."""
    return any(entry.name.count(".") > 1 for entry in files)
