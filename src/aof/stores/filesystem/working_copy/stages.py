"""Versions of a file from git's own store, byte by byte: what each side of a merge had, and what a rebase has dropped.

Only git reads its packs, so git is asked for these few contents; it starts no hook, filter, pager or network for that.
Reads only. Must not know what a file means.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from aof.stores.filesystem.io.read import LARGEST
from aof.stores.filesystem.working_copy.git_index import repository, unmerged_entries

_SECONDS = 30
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
    contents = {stage: _content(folder, one.digest) for stage, one in found.items()}
    if any(content is None for content in contents.values()):
        return None
    return Versions(contents.get(_COMMON), contents.get(_OURS), contents.get(_THEIRS))


def before_rebase(path: str) -> bytes | None:
    """A file as the branch had it before git moved it last, as a rebase does; None where nothing can be told."""
    top, place = repository(os.path.realpath(os.path.dirname(path)))
    if place is None:
        return None
    name = os.path.relpath(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)), top)
    found = (_content(top, f"{commit}:{name}") for commit in _commits_before(place))
    return next((data for data in found if data is not None), None)


def _commits_before(place: str) -> Iterator[str]:
    """Where the branch was: a rebase that goes on notes it, and git itself for the last one that has ended."""
    for name in ("rebase-merge/orig-head", "rebase-apply/orig-head", "ORIG_HEAD"):
        with suppress(OSError), open(f"{place}/{name}", encoding="ascii", errors="replace") as file:
            commit = file.read(_LONGEST).strip()
            if commit and not commit.strip("0123456789abcdef"):
                yield commit


def _content(folder: str, name: str) -> bytes | None:
    _, place = repository(os.path.realpath(folder))
    if place is None:
        return None
    quiet = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 - an argument list; what git is asked for begins with a hexadecimal name
            ["git", f"--git-dir={place}", "cat-file", "blob", name],  # noqa: S607 - the user's own git
            env=kept | quiet,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 and len(done.stdout) <= LARGEST else None
