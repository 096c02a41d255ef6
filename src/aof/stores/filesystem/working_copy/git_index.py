"""What git has not merged yet, read from its index: no program is started, so no hook or setting of a repository runs.

The index is a list of paths; those in a conflict have a stage above 0. Reads only. Must not know why it is asked.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from aof._support.git import repository

_MOST_BYTES = 512 * 1024 * 1024
_HEADER = struct.Struct(">4sII")
_FIXED = 60  # bytes before the flags with SHA-1 names
_SHA1, _SHA256 = 20, 32
_EXTENDED, _STAGE, _LENGTH = 0x4000, 0x3000, 0x0FFF
_OLDEST, _PREFIXED = 2, 4
_STAGE_SHIFT = 12
_LOCK = "index.lock"
RUNNING = "another git command is running"
_GOING_ON = (
    (_LOCK, RUNNING),
    ("MERGE_HEAD", "git is in the middle of a merge"),
    ("rebase-merge", "git is in the middle of a rebase"),
    ("rebase-apply", "git is in the middle of a rebase"),
    ("CHERRY_PICK_HEAD", "git is in the middle of a cherry-pick"),
    ("REVERT_HEAD", "git is in the middle of a revert"),
)


class UnmergedVersion(NamedTuple):
    """One version of a path: in a conflict stage 1 is what both sides began with, 2 is ours, 3 is theirs; else 0."""

    path: str
    stage: int
    digest: str


def unmerged(folder: str) -> list[str]:
    """The unmerged paths below a folder, relative to it; empty where there is no repository or its index is odd."""
    return list(dict.fromkeys(one.path for one in unmerged_entries(folder)))


def unmerged_entries(folder: str) -> list[UnmergedVersion]:
    """The same with every version that git has of them."""
    real = os.path.realpath(folder)
    top, git = repository(real)
    if git is None:
        return []
    prefix = "" if real == top else os.path.relpath(real, top) + "/"
    found: list[UnmergedVersion] = []
    try:
        own = (one for one in _conflicts(git) if one.path.startswith(prefix))
        found.extend(one._replace(path=one.path[len(prefix) :]) for one in own)
    except (OSError, ValueError, struct.error, IndexError):
        return found
    return found


def tracked(folder: str) -> list[str]:
    """The paths below a folder that git tracks, relative to it; empty as above."""
    real = os.path.realpath(folder)
    top, git = repository(real)
    prefix = "" if real == top else os.path.relpath(real, top) + "/"
    with suppress(OSError, ValueError, struct.error, IndexError):
        return [one.path[len(prefix) :] for one in _entries_of(git) if one.path.startswith(prefix)] if git else []
    return []


def in_progress(folder: str) -> str | None:
    """What git is in the middle of, in words; None where it is idle, or where there is no repository."""
    _, git = repository(os.path.realpath(folder))
    return None if git is None else next((what for name, what in _GOING_ON if os.path.lexists(f"{git}/{name}")), None)


def is_running(folder: str) -> bool:
    """Whether a git command is changing files now, or has died while it did."""
    _, git = repository(os.path.realpath(folder))
    return git is not None and os.path.lexists(f"{git}/{_LOCK}")


def _conflicts(git: str) -> Iterator[UnmergedVersion]:
    return (one for one in _entries_of(git) if one.stage)


def _entries_of(git: str) -> Iterator[UnmergedVersion]:
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


def _entries(data: bytes, version: int, count: int, digest: int) -> Iterator[UnmergedVersion]:
    """The paths with their stages; each entry is found where the one before it ends."""
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
        named = data[start + flags_at - digest : start + flags_at].hex()
        yield UnmergedVersion(name.decode("utf-8", "surrogateescape"), (flags & _STAGE) >> _STAGE_SHIFT, named)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Git's own numbers of several bytes, as it writes offsets."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
