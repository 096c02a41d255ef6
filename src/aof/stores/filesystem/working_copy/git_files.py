"""The files that tell git what to leave alone: caches, line endings, and the log where two histories meet.

A person's own lines in them stay. Must not know what is in a data directory beyond the names of its folders.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from aof._support.confined_folder import is_link
from aof.stores.filesystem.io.disk import Disk
from aof.stores.filesystem.io.paths import ATTRIBUTES, DIRECTORIES, IGNORED, OLD_ATTRIBUTES, UNSHARED
from aof.stores.filesystem.io.read import read

_IGNORE = ".gitignore"
# What older versions did not write into these files.
_EXPECTED = {".gitattributes": ATTRIBUTES, _IGNORE: UNSHARED}


def prepare(root: str, disk: Disk) -> None:
    """Say what is not to be committed, changed or merged, and that empty folders stay.

    Git removes a folder with its last file, also below those who use it.
    """
    if not os.path.lexists(f"{root}/{_IGNORE}"):
        disk.write_durable(f"{root}/{_IGNORE}", _text(IGNORED))
    complete(root, disk)
    for name in DIRECTORIES:
        keep = f"{root}/{name}/.gitkeep"
        ignored = f"{name.split('/')[0]}/" in IGNORED or f"{name}/" in IGNORED
        if not ignored and not os.path.lexists(keep):
            os.close(disk.create(keep))


def lacking(root: str) -> dict[str, tuple[str, ...]]:
    """The lines that nobody has written yet, by file; raises OSError where a file cannot be read."""
    found = {name: _lacking(_content(root, name), lines) for name, lines in _EXPECTED.items()}
    return {name: lines for name, lines in found.items() if lines}


def _lacking(content: bytes | None, expected: tuple[str, ...]) -> tuple[str, ...]:
    """What is not there, or stands before a line of an earlier version: git goes by the last one that fits."""
    lines = [_plain(line) for line in (content or b"").splitlines()]
    old = max((number for number, line in enumerate(lines, 1) if line in OLD_ATTRIBUTES), default=0)
    return tuple(line for line in expected if line not in lines[old:])


def _without(content: bytes, lines: Sequence[str]) -> bytes:
    return b"".join(line for line in content.splitlines(keepends=True) if _plain(line) not in lines)


def _plain(line: bytes) -> str:
    return b" ".join(line.split()).decode("utf-8", "replace")


def complete(root: str, disk: Disk) -> bool:
    """Add the lines that are missing, behind a person's own: the last line that fits is what git goes by.

    What earlier versions wrote in their place goes.
    """
    missing = lacking(root)
    for name, lines in missing.items():
        before, path = _content(root, name), f"{root}/{name}"
        if before is None:
            disk.write_durable(path, _text(IGNORED if name == _IGNORE else lines))
            continue
        gap = b"" if not before or before.endswith(b"\n") else b"\n"
        temporary = f"{root}/tmp/{name[1:]}-{os.getpid()}"  # noqa: S108 - inside the data directory
        disk.write_durable(temporary, _without(before + gap, (*OLD_ATTRIBUTES, *lines)) + _text(lines))
        disk.replace(temporary, path)
    return bool(missing)


def _content(root: str, name: str) -> bytes | None:
    """The file's content; a link is refused when somebody writes, and counts as empty before."""
    path = f"{root}/{name}"
    try:
        return read(path)
    except OSError:
        if is_link(path):
            return b""
        raise


def _text(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
