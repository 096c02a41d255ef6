"""What git and people leave in a document's file: the marks of a merge, and edits of what was said through AOF."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from aof.documents import markdown
from aof.documents.markdown import headings, inline, inline_original, scan, split_lines, unix
from aof.kernel.limits import visible_line
from aof.support.hashing import hexdigest

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


_SECTION: Final = re.compile(r"([0-9a-f]{16}): (.+)\Z")
_DIGITS: Final = 16
_LONGEST: Final = 400  # characters of a difference that a heading shows
_ABOUT: Final = (
    "People changed these texts by hand. The log has the originals, which were put back; what stands here counts as\n"
    "nothing. If a change is meant, say it anew through AOF, which adds to the document. Then delete its section."
)


class HandEdit(msgspec.Struct, frozen=True):
    """What was changed, in words, and the text that a person made of it."""

    what: str
    text: str


def with_kept(text: str, document: str, edits: Iterable[HandEdit]) -> str:
    """The file beside a document with these edits added, each once."""
    there = {name for _, name, _ in _sections(text)}
    for edit in edits:
        name = hexdigest(edit.text.encode("utf-8", "surrogateescape"))[:_DIGITS]
        if name in there:
            continue
        longest = max((len(run) for run in re.findall(r"`{3,}", edit.text)), default=2)
        fence = "`" * (longest + 1)
        before = text.rstrip() or f"# Edits of {document} by hand\n\n{_ABOUT}"
        text = f"{before}\n\n## {name}: {inline(edit.what)}\n\n{fence}text\n{unix(edit.text)}\n{fence}\n"
    return text


def kept_edits(text: str) -> list[tuple[int, HandEdit]]:
    """The edits that nobody has settled, each with its line."""
    found, lines = _sections(text), unix(text).split("\n")
    ends = [*(line - 1 for line, _, _ in found), len(lines)][1:]
    edits: list[tuple[int, HandEdit]] = []
    for (line, _, what), end in zip(found, ends, strict=True):
        fenced = "\n".join(lines[line:end]).strip()
        edits.append((line, HandEdit(what, fenced.partition("\n")[2].rpartition("\n")[0])))
    return edits


def without_edits(text: str, settled: Iterable[str]) -> str:
    """The file without the edits of these texts."""
    gone = set(settled)
    left = [edit for _, edit in kept_edits(text) if edit.text not in gone]
    first = next((line for line, _, _ in _sections(text)), None)
    head = "".join(split_lines(text)[: first - 1]) if first is not None else text
    return with_kept(head, "", left)


def _sections(text: str) -> list[tuple[int, str, str]]:
    """The line, the digest and the words of each kept edit."""
    found = [(place + 1, _SECTION.match(title)) for place, level, title in headings(scan(text), deepest=2) if level > 1]
    return [(line, match[1], inline_original(match[2])) for line, match in found if match is not None]


def edit_difference(wanted: str, there: str) -> str:
    """What was changed, on one line."""
    lines = difflib.unified_diff(wanted.split("\n"), there.split("\n"), lineterm="", n=0)
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return visible_line("; ".join(changed[:6]))[:_LONGEST]
