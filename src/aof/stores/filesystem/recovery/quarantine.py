"""What was never completely written: how it is recognised, and where it is kept before it is cut off."""

from __future__ import annotations

import os

from aof.stores.filesystem.io.paths import Paths
from aof.stores.filesystem.io.read import read

_SECTOR = 512


def torn_name(paths: Paths, day: str, offset: int, data: bytes) -> str:
    """A name for bytes cut from a day's log: a free one, or that of an attempt to keep the same bytes."""
    number, wanted = 0, f"{paths.torn}/{day}-{offset}.jsonl"
    name = wanted
    while os.path.lexists(name) and not data.startswith(read(name, limit=None) or b""):
        number += 1
        name = f"{wanted}.{number}"
    return name


def is_torn(data: bytes, whole: bytes) -> bool:
    """Whether a power cut may have left this of a new file: sectors that are right or empty, and perhaps no end."""
    if len(data) > len(whole) or (len(data) < len(whole) and len(data) % _SECTOR):
        return False
    for start in range(0, len(data), _SECTOR):
        sector = data[start : start + _SECTOR]
        if sector != whole[start : start + _SECTOR] and sector.strip(b"\0"):
            return False
    return True
