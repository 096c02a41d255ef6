"""Git around a data directory: what it is told of our files, and what it is in the middle of.

It is told which files to leave alone, as caches, line endings and the log, and how to merge the others; a person's own
lines stay. Its index and its objects are read as files, so no hook or setting of a repository runs. Must not know what
is in a data directory beyond the names of its folders.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from aof.store.files.disk import LARGEST, Disk, read
from aof.store.files.paths import ATTRIBUTES, DIRECTORIES, IGNORED, OLD_ATTRIBUTES, UNSHARED
from aof.support import git
from aof.support.confined_folder import is_link

_IGNORE = ".gitignore"
# What older versions did not write into these files.
_EXPECTED = {".gitattributes": ATTRIBUTES, _IGNORE: UNSHARED}

# Puts ours, base and theirs whole into one file, in the form that `aof.documents.hand_edits` describes, so that
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
    found: dict[str, tuple[str, ...]] = {}
    for name, expected in _EXPECTED.items():
        lines = [_plain(line) for line in (_content(root, name) or b"").splitlines()]
        # A line that stands before one of an earlier version counts as missing: git goes by the last one that fits.
        old = max((number for number, line in enumerate(lines, 1) if line in OLD_ATTRIBUTES), default=0)
        if missing := tuple(line for line in expected if line not in lines[old:]):
            found[name] = missing
    return found


def complete(root: str, disk: Disk) -> bool:
    """Add the lines that are missing, behind a person's own: the last line that fits is what git goes by.

    What earlier versions wrote in their place goes. Tells whether anything was missing.
    """
    missing = lacking(root)
    for name, lines in missing.items():
        before, path = _content(root, name), f"{root}/{name}"
        if before is None:
            disk.write_durable(path, _text(IGNORED if name == _IGNORE else lines))
            continue
        if before and not before.endswith(b"\n"):
            before += b"\n"
        stays = [line for line in before.splitlines(keepends=True) if _plain(line) not in (*OLD_ATTRIBUTES, *lines)]
        temporary = f"{root}/tmp/{name[1:]}-{os.getpid()}"  # noqa: S108 - inside the data directory
        disk.write_durable(temporary, b"".join(stays) + _text(lines))
        disk.replace(temporary, path)
    return bool(missing)


def _plain(line: bytes) -> str:
    return b" ".join(line.split()).decode("utf-8", "replace")


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


_INDEX_BYTES = 512 * 1024 * 1024
_HEADER = struct.Struct(">4sII")
_FIXED = 60  # bytes before the flags with SHA-1 names
_SHA1, _SHA256 = 20, 32
_EXTENDED, _STAGE, _LENGTH = 0x4000, 0x3000, 0x0FFF
_OLDEST, _PREFIXED = 2, 4
_STAGE_SHIFT = 12
_BASE, _OURS, _THEIRS = 1, 2, 3  # stages of a path in a conflict; else it is 0
_COMMIT_DIGITS = 64
_ODD_INDEX = (OSError, ValueError, struct.error, IndexError)
_LOCK = "index.lock"
GIT_RUNNING = "another git command is running"
_GOING_ON = (
    (_LOCK, GIT_RUNNING),
    ("MERGE_HEAD", "git is in the middle of a merge"),
    ("rebase-merge", "git is in the middle of a rebase"),
    ("rebase-apply", "git is in the middle of a rebase"),
    ("CHERRY_PICK_HEAD", "git is in the middle of a cherry-pick"),
    ("REVERT_HEAD", "git is in the middle of a revert"),
)


class _Entry(NamedTuple):
    """One version of a path in git's index: its stage, and the name of the object that holds it."""

    path: str
    stage: int
    digest: str


def in_progress(folder: str) -> str | None:
    """What git is in the middle of, in words; None where it is idle, or where there is no repository."""
    _, place = git.repository(os.path.realpath(folder))
    return (
        None if place is None else next((what for name, what in _GOING_ON if os.path.lexists(f"{place}/{name}")), None)
    )


def is_running(folder: str) -> bool:
    """Whether a git command is changing files now, or has died while it did."""
    _, place = git.repository(os.path.realpath(folder))
    return place is not None and os.path.lexists(f"{place}/{_LOCK}")


def unmerged(folder: str) -> list[str]:
    """The unmerged paths below a folder, relative to it; empty where there is no repository or its index is odd."""
    found: dict[str, None] = {}
    with suppress(*_ODD_INDEX):
        found.update((one.path, None) for one in _entries_below(folder) if one.stage)
    return list(found)


def tracked(folder: str) -> list[str]:
    """The paths below a folder that git tracks, relative to it; empty as above."""
    with suppress(*_ODD_INDEX):
        return [one.path for one in _entries_below(folder)]
    return []


def unmerged_versions(path: str) -> tuple[bytes | None, bytes | None, bytes | None] | None:
    """An unmerged file as it was before both sides changed it, as we have it, and as they have it, where they do.

    None where it is merged, or where nothing can be told.
    """
    folder, name = os.path.split(path)
    digests: dict[int, str] = {}
    with suppress(*_ODD_INDEX):
        digests.update((one.stage, one.digest) for one in _entries_below(folder) if one.stage and one.path == name)
    sides = {stage: git.contents(folder, digest, most=LARGEST) for stage, digest in digests.items()}
    if not sides or None in sides.values():
        return None
    return sides.get(_BASE), sides.get(_OURS), sides.get(_THEIRS)


def version_before_rebase(path: str) -> bytes | None:
    """A file as the branch had it before git moved it last, as a rebase does; None where nothing can be told."""
    folder = os.path.realpath(os.path.dirname(path))
    top, place = git.repository(folder)
    if place is None:
        return None
    name = os.path.relpath(os.path.join(folder, os.path.basename(path)), top)
    # A rebase that goes on notes where the branch was, and git itself for the last one that has ended.
    for noted in ("rebase-merge/orig-head", "rebase-apply/orig-head", "ORIG_HEAD"):
        with suppress(OSError), open(f"{place}/{noted}", encoding="ascii", errors="replace") as file:
            commit = file.read(_COMMIT_DIGITS).strip()
            if commit and not commit.strip("0123456789abcdef"):
                data = git.contents(top, f"{commit}:{name}", most=LARGEST)
                if data is not None:
                    return data
    return None


def _entries_below(folder: str) -> Iterator[_Entry]:
    """What git's index has below a folder, with paths relative to it; raises one of `_ODD_INDEX` where it is odd."""
    real = os.path.realpath(folder)
    top, place = git.repository(real)
    index = f"{place}/index"
    if place is None or not os.path.isfile(index) or os.path.getsize(index) > _INDEX_BYTES:
        return
    with open(index, "rb") as file:
        data = file.read(_INDEX_BYTES)
    mark, version, count = _HEADER.unpack_from(data)
    if mark != b"DIRC" or not _OLDEST <= version <= _PREFIXED:
        return
    prefix = "" if real == top else os.path.relpath(real, top) + "/"
    for one in _parsed(data, version, count, _digest_size(place)):
        if one.path.startswith(prefix):
            yield one._replace(path=one.path[len(prefix) :])


def _digest_size(git: str) -> int:
    """How long the names of objects are; a linked worktree has its settings in the main one."""
    for config in (f"{git}/config", f"{os.path.dirname(os.path.dirname(git))}/config"):
        try:
            with open(config, "rb") as file:
                return _SHA256 if b"objectformat = sha256" in file.read(65_536).lower() else _SHA1
        except OSError:
            continue
    return _SHA1


def _parsed(data: bytes, version: int, count: int, digest: int) -> Iterator[_Entry]:
    """The entries of an index, each found where the one before it ends."""
    at, name = _HEADER.size, b""
    flags_at = _FIXED - _SHA1 + digest
    for _ in range(count):
        start = at
        flags = int.from_bytes(data[at + flags_at : at + flags_at + 2], "big")
        at += flags_at + 2 + (2 if version > _OLDEST and flags & _EXTENDED else 0)
        if version == _PREFIXED:
            cut, at = _offset(data, at)
            end = data.index(b"\0", at)
            name = name[: len(name) - cut] + data[at:end]
            at = end + 1
        else:
            length = flags & _LENGTH
            end = at + length if length < _LENGTH else data.index(b"\0", at)
            name = data[at:end]
            at = start + ((end - start) // 8 + 1) * 8
        named = data[start + flags_at - digest : start + flags_at].hex()
        yield _Entry(name.decode("utf-8", "surrogateescape"), (flags & _STAGE) >> _STAGE_SHIFT, named)


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Git's own numbers of several bytes, as it writes offsets."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
