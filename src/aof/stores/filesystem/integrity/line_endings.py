"""A log whose line endings were converted, as git does where `core.autocrlf` is on. Reads only.

The chain is of bytes, so such a log proves nothing, though nothing of it is lost. Must not know how the log is read.
"""

from __future__ import annotations

import os

from aof.core.errors.storage import LineEndingsConverted, LogDamaged
from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read

_MOST_DAYS = 10_000
_SHOWN = 3
RESTORE = (
    "nothing is lost: write '* -text' into .gitattributes of the data directory ('aof init' does it), then let git "
    "write its files again: 'git rm -rq --cached .aof' and 'git checkout HEAD -- .aof'; without git, remove each "
    "carriage return at the end of a line in events/*.jsonl"
)


def converted(paths: Paths) -> list[str]:
    """The days whose log has converted line endings; an event never holds a carriage return as such."""
    try:
        names = sorted(name for name in os.listdir(paths.events) if name.endswith(".jsonl"))
    except OSError:
        return []
    return [name.removesuffix(".jsonl") for name in names[:_MOST_DAYS] if _has_crlf(f"{paths.events}/{name}")]


def explained(paths: Paths, damage: LogDamaged) -> LogDamaged:
    """The same damage, or what it really is."""
    days = converted(paths)
    if not days:
        return damage
    shown = ", ".join(days[:_SHOWN]) + (" and other days" if len(days) > _SHOWN else "")
    what = f"line endings were converted to CR LF in the log of {shown}; nothing was changed"
    return LineEndingsConverted(what, RESTORE, day=days[0])


def _has_crlf(path: str) -> bool:
    try:
        return b"\r\n" in (read(path) or b"")
    except OSError:
        return False
