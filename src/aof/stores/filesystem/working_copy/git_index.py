"""What git has not merged yet, read from its index: no program is started, so no hook or setting of a repository runs.

The index is a list of paths; those in a conflict have a stage above 0. Reads only. Must not know why it is asked.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

_MOST_BYTES = 512 * 1024 * 1024
_HEADER = struct.Struct(">4sII")
_FIXED = 60  # bytes before the flags with SHA-1 names
_SHA1, _SHA256 = 20, 32
_EXTENDED, _STAGE, _LENGTH = 0x4000, 0x3000, 0x0FFF
_OLDEST, _PREFIXED = 2, 4


def unmerged(folder: str) -> list[str]:
    """The unmerged paths below a folder, relative to it; empty where there is no repository or its index is odd."""
    real = os.path.realpath(folder)
    top, git = _repository(real)
    if git is None:
        return []
    prefix = "" if real == top else os.path.relpath(real, top) + "/"
    found: dict[str, None] = {}
    try:
        for path in _conflicts(git):
            if path.startswith(prefix):
                found[path[len(prefix) :]] = None
    except (OSError, ValueError, struct.error, IndexError):
        return list(found)
    return list(found)


def _repository(folder: str) -> tuple[str, str | None]:
    """The working tree that a folder lies in, and where git keeps what belongs to it."""
    here = folder
    while True:
        place = f"{here.rstrip('/')}/.git"
        if os.path.isdir(place):
            return here, place
        if os.path.isfile(place):
            with open(place, "rb") as file:
                text = file.read(4096).decode("utf-8", "surrogateescape")
            if text.startswith("gitdir:"):
                return here, os.path.normpath(os.path.join(here, text[7:].strip()))
        above = os.path.dirname(here)
        if above == here:
            return here, None
        here = above


def _conflicts(git: str) -> Iterator[str]:
    path = f"{git}/index"
    if not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
        return
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES)
    mark, version, count = _HEADER.unpack_from(data)
    if mark != b"DIRC" or not _OLDEST <= version <= _PREFIXED:
        return
    yield from _entries(data, version, count, _digest_size(git))


def _digest_size(git: str) -> int:
    """How long the names of objects are; a linked worktree has its settings in the main one."""
    for config in (f"{git}/config", f"{os.path.dirname(os.path.dirname(git))}/config"):
        try:
            with open(config, "rb") as file:
                return _SHA256 if b"objectformat = sha256" in file.read(65_536).lower() else _SHA1
        except OSError:
            continue
    return _SHA1


def _entries(data: bytes, version: int, count: int, digest: int) -> Iterator[str]:
    """The paths with a stage; each entry is found where the one before it ends."""
    at, name = _HEADER.size, b""
    flags_at = _FIXED - _SHA1 + digest
    for _ in range(count):
        start = at
        flags = int.from_bytes(data[at + flags_at : at + flags_at + 2], "big")
        at += flags_at + 2 + (2 if version > _OLDEST and flags & _EXTENDED else 0)
        if version == _PREFIXED:
            cut, at = _number(data, at)
            end = data.index(b"\0", at)
            name = name[: len(name) - cut] + data[at:end]
            at = end + 1
        else:
            length = flags & _LENGTH
            end = at + length if length < _LENGTH else data.index(b"\0", at)
            name = data[at:end]
            at = start + ((end - start) // 8 + 1) * 8
        if flags & _STAGE:
            yield name.decode("utf-8", "surrogateescape")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Git's own numbers of several bytes, as it writes offsets."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
