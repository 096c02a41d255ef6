"""What people changed by hand of what was said through AOF: kept in a file beside the document until it is settled."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from aof.documents.markdown import headings, inline, inline_original, scan, split_lines, unix
from aof.kernel.limits import visible_line
from aof.support.hashing import hexdigest

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
