"""The marks that git leaves where it could not merge a text: which sides there are, and each one whole.

AOF's merge driver, a line of shell, keeps whole versions between such marks, one block
for each merge:

    <<<<<<< aof merge: OURS BASE THEIRS     each as its size and git's hash of it, or `-` where the version is not here
     every line of ours, one space before it
    ||||||| aof merge: base
     …
    ======= aof merge: theirs
     …
    >>>>>>> aof merge: end

No line in it is one of the versions' own, so nothing in a version is taken for a mark, and git never merges such a file
with a plain one line by line. Git labels its own marks with no name that has a space and a colon in it. Must not know
any single document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from aof.documents import markdown

WHOLE = "<<<<<<< aof merge: "
_OURS, _BASE, _THEIRS, _END = "<<<<<<<", "|||||||", "=======", ">>>>>>>"
_ENDS = (b"||||||| aof merge: base", b"======= aof merge: theirs", b">>>>>>> aof merge: end")
_OWN = " aof merge: "
_SHA1_DIGITS = 40


class Side(NamedTuple):
    """A version of a file that git was to merge, and what it was changed from, where that is known."""

    data: bytes
    base: bytes | None


def whole_sides(data: bytes) -> tuple[Side, ...]:
    """The versions that the merge driver has kept in a file, the earlier merges first.

    Empty where it has kept none, and where anything was changed since: a version is given back byte by byte or not at
    all.
    """
    head = WHOLE.encode()
    lines = data.split(b"\n") if data.startswith(head) else [b""]
    found: list[Side] = []
    at = 0
    while at < len(lines) - 1:
        names = lines[at].removeprefix(head).split(b" ")
        if not lines[at].startswith(head) or len(names) != len(_ENDS):
            return ()
        parts: list[bytes | None] = []
        for name, end in zip(names, _ENDS, strict=True):
            start = at = at + 1
            while at < len(lines) and lines[at][:1] in (b"", b" "):
                at += 1
            part = _proven(lines[start:at], name)
            if at == len(lines) or lines[at] != end or (part is None) != (name == b"-"):
                return ()
            parts.append(part)
        at += 1
        ours, base, theirs = parts
        found += [Side(one, base) for one in (ours, theirs) if one is not None]
    return tuple(found) if len(found) > 1 and not lines[-1] else ()


def _proven(lines: Sequence[bytes], name: bytes) -> bytes | None:
    """The version that the lines hold; None where it is not the one that has that size and hash."""
    digits, _, wanted = name.partition(b":")
    if not digits.isdigit() or len(digits) > len("1000000000"):
        return None
    size = int(digits)
    text = b"\n".join(line[1:] for line in lines)
    hashed = hashlib.sha1(usedforsecurity=False) if len(wanted) == _SHA1_DIGITS else hashlib.sha256()
    hashed.update(b"blob %d\0" % size + text[:size])
    return text[:size] if len(text) >= size and hashed.hexdigest().encode() == wanted else None


def sides(text: str) -> tuple[str, ...]:
    """The text as each side has it; the text alone where it has no marks, or marks that do not belong together."""
    if _OURS not in text or _END not in text:
        return (text,)
    if text.startswith(WHOLE):
        return _kept_in(text)
    ours: list[str] = []
    theirs: list[str] = []
    into: tuple[list[str], ...] = (ours, theirs)
    here = ""
    for line in markdown.split_lines(text):
        mark = next((one for one in (_OURS, _BASE, _THEIRS, _END) if _is(line, one)), "")
        if mark == _OURS and not here:
            here, into = mark, (ours,)
        elif mark == _BASE and here == _OURS:
            here, into = mark, ()
        elif mark == _THEIRS and here in (_OURS, _BASE):
            here, into = mark, (theirs,)
        elif mark == _END and here == _THEIRS:
            here, into = "", (ours, theirs)
        else:
            for side in into:
                side.append(line)
    # One side may have been committed like that before anybody ran `aof merge` there.
    return (text,) if here else (*_kept_in("".join(ours)), *_kept_in("".join(theirs)))


def _kept_in(text: str) -> tuple[str, ...]:
    kept = whole_sides(text.encode("utf-8", "surrogateescape"))
    return tuple(side.data.decode("utf-8", "surrogateescape") for side in kept) or (text,)


def is_marked(text: str) -> bool:
    """Whether git has left marks in the text."""
    return len(sides(text)) > 1


def _is(line: str, mark: str) -> bool:
    bare = line.rstrip("\r\n")
    return bare == mark or (not bare.startswith(_OWN, len(mark)) and bare.startswith(f"{mark} ") and mark != _THEIRS)
