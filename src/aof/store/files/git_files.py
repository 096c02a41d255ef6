"""What git is told: which files to leave alone, as caches, line endings and the log, and how to merge the others.

A person's own lines stay. Must not know what is in a data directory beyond the names of its folders.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from aof.store.files.disk import Disk, read
from aof.store.files.paths import ATTRIBUTES, DIRECTORIES, IGNORED, OLD_ATTRIBUTES, UNSHARED
from aof.support import git
from aof.support.confined_folder import is_link

_IGNORE = ".gitignore"
# What older versions did not write into these files.
_EXPECTED = {".gitattributes": ATTRIBUTES, _IGNORE: UNSHARED}

# Puts ours, base and theirs whole into one file, in the form that `aof.documents.merge_marks` describes, so that
# git goes on and `aof merge` has every version. A shell does it, so it runs where `aof` is not on the PATH. What an
# earlier merge has left like that goes in as it is. Where anything fails, git leaves its usual conflict.
_KEEP_ALL = r"""
export LC_ALL=C
whole=$2.aof
trap "rm -f $whole" EXIT
test $(cat "$1" "$2" "$3" | wc -c) -lt 8000000
kept() { test $(sed -n "1s/^<<<<<<< aof merge: .*/kept/p;q" "$1"); }
named() { kept "$1" && echo - || hashed "$1"; }
hashed() { hash=$(git hash-object --no-filters "$1") && test "$hash" && echo $(($(wc -c <"$1"))):$hash; }
lines() { if ! kept "$1"; then sed "s/^/ /" "$1"; echo " "; fi; }
base=$(named "$1")
ours=$(named "$2")
theirs=$(named "$3")
for side in "$2" "$3"; do if kept "$side"; then cat "$side"; fi; done >$whole
if test "$ours$theirs" != --; then
echo "<<<<<<< aof merge: $ours $base $theirs"; lines "$2"
echo "||||||| aof merge: base"; lines "$1"
echo "======= aof merge: theirs"; lines "$3"
echo ">>>>>>> aof merge: end"
fi >>$whole
mv $whole "$2"
"""
_DRIVER = {
    "driver": f"sh -ec '{_KEEP_ALL.strip()}' aof %O %A %B || git merge-file -L ours -L base -L theirs %A %O %B",
    "name": "keep both versions whole, for 'aof merge'",
    "recursive": "text",  # of several bases git makes one as it would without this driver
}
ADVICE = "run 'aof init' once in this clone: it adds a merge driver to .git/config, so that git stops at fewer files"


def add_driver(root: str) -> bool:
    """Let git merge the files of tasks and documents by our driver, in this clone; whether that is new."""
    return git.add_settings(root, "merge", "aof", _DRIVER)


def lacks_driver(root: str) -> bool:
    """Whether there is a repository around, and git has no such driver in it."""
    return git.has_settings(root, "merge", "aof") is False


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
