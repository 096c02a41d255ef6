"""Versions of a file from git's own store, byte by byte: what each side of a merge had, and what a rebase has dropped.

Only git reads its packs, so git is asked for these few contents. Reads only. Must not know what a file means.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from aof._support.git import contents, repository
from aof.stores.filesystem.io.read import LARGEST
from aof.stores.filesystem.working_copy.git_index import unmerged_entries

_LONGEST = 64  # digits of a commit's name
_COMMON, _OURS, _THEIRS = 1, 2, 3


class Versions(msgspec.Struct, frozen=True):
    """One file as it was before both sides changed it, and as each side has it; None where one has no such file."""

    base: bytes | None = None
    ours: bytes | None = None
    theirs: bytes | None = None


def versions(path: str) -> Versions | None:
    """What git has of an unmerged file; None where it is merged, or where nothing can be told."""
    folder = os.path.dirname(path)
    found = {one.stage: one for one in unmerged_entries(folder) if one.path == os.path.basename(path)}
    if not found:
        return None
    sides = {stage: contents(folder, one.digest, most=LARGEST) for stage, one in found.items()}
    if any(side is None for side in sides.values()):
        return None
    return Versions(sides.get(_COMMON), sides.get(_OURS), sides.get(_THEIRS))


def before_rebase(path: str) -> bytes | None:
    """A file as the branch had it before git moved it last, as a rebase does; None where nothing can be told."""
    top, place = repository(os.path.realpath(os.path.dirname(path)))
    if place is None:
        return None
    name = os.path.relpath(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)), top)
    found = (contents(top, f"{commit}:{name}", most=LARGEST) for commit in _commits_before(place))
    return next((data for data in found if data is not None), None)


def _commits_before(place: str) -> Iterator[str]:
    """Where the branch was: a rebase that goes on notes it, and git itself for the last one that has ended."""
    for name in ("rebase-merge/orig-head", "rebase-apply/orig-head", "ORIG_HEAD"):
        with suppress(OSError), open(f"{place}/{name}", encoding="ascii", errors="replace") as file:
            commit = file.read(_LONGEST).strip()
            if commit and not commit.strip("0123456789abcdef"):
                yield commit
