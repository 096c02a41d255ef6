"""A copy that stands for the directory it was made of, as when a folder is moved or restored in its place.

A copied data directory finds that it is another clone, and begins a lane of its own. Most tests copy one only to begin
several times at the same point.
"""

from __future__ import annotations

import os
from pathlib import Path

from aof.store.files.disk import Disk
from aof.store.files.log.layout import STAMP_AT
from aof.store.files.log.segment import Claims
from aof.store.files.paths import GENESIS, Paths


def adopt(root: str | os.PathLike[str]) -> None:
    """Let a copy go on with the root lane."""
    Claims(Paths(os.fspath(root)), Disk()).note("", GENESIS)


def settle(root: Path, boot: str | None = None) -> None:
    """Let an unpacked directory of any version be where it was made: its notes name the inodes that it now has.

    With `boot`, it was last used under that boot.
    """
    log, lanes, checkpoint = root / "locks/log", root / "locks/lanes", root / "locks/checkpoint"
    state, stamp = log.read_text()[:STAMP_AT], log.read_text()[STAMP_AT:].split()
    if stamp:
        inode = str((root / f"events/{stamp[4]}.jsonl").stat().st_ino)
        log.write_text(state + " ".join((*stamp[:2], inode, *stamp[3:])).ljust(255) + "\n")
        _replace_word(root / "locks/flushed", inode)
    found = root.stat()
    for lane in lanes.iterdir() if lanes.exists() else ():
        digest = lane.read_text().split()[0]
        lane.write_text(f"{digest} {found.st_dev} {found.st_ino} {os.uname().nodename}".ljust(255) + "\n")
    if boot is not None:
        _replace_word(checkpoint, boot)


def _replace_word(path: Path, word: str) -> None:
    words, length = path.read_text().split(), path.stat().st_size
    path.write_text(" ".join((word, *words[1:])).ljust(length - 1) + "\n" if words else path.read_text())
