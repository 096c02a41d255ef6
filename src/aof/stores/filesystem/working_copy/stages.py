"""The versions of a file that git could not merge: what each side had, byte by byte, from git's own store.

Only git reads its packs, so git is asked for these few contents; it starts no hook, filter, pager or network for that.
Reads only. Must not know what a file means.
"""

from __future__ import annotations

import os
import subprocess

import msgspec

from aof.stores.filesystem.io.read import LARGEST
from aof.stores.filesystem.working_copy.git_index import UnmergedVersion, repository, unmerged_entries

_SECONDS = 30
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
    contents = {stage: _content(folder, one) for stage, one in found.items()}
    if any(content is None for content in contents.values()):
        return None
    return Versions(contents.get(_COMMON), contents.get(_OURS), contents.get(_THEIRS))


def _content(folder: str, entry: UnmergedVersion) -> bytes | None:
    _, place = repository(os.path.realpath(folder))
    if place is None:
        return None
    quiet = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 - an argument list; what git is asked for is a hexadecimal name
            ["git", f"--git-dir={place}", "cat-file", "blob", entry.digest],  # noqa: S607 - the user's own git
            env=kept | quiet,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 and len(done.stdout) <= LARGEST else None
