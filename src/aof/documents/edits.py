"""What people changed by hand in text that stands in the log: kept beside its document until somebody has settled it.

The document gets the original back, and what a person made of it counts as nothing. Each edit is a section of
`<DOCUMENT>_EDITS.md`; who has settled one deletes its section. Must not know any single document.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from aof._support.hashing import hexdigest
from aof.core.validation.visible import visible_line
from aof.documents import markdown
from aof.documents.escaping import inline, inline_original

_SECTION: Final = re.compile(r"([0-9a-f]{16}): (.+)\Z")
_DIGITS: Final = 16
_LONGEST: Final = 400  # characters of a difference that a heading shows
_ABOUT: Final = (
    "People changed these texts by hand. The log has the originals, which were put back; what stands here counts as\n"
    "nothing. If a change is meant, say it anew through AOF, which adds to the document. Then delete its section."
)


class HandEdit(msgspec.Struct, frozen=True):
    """What was changed, in words, and what a person made of it."""

    what: str
    text: str


def path_of(document: str) -> str:
    """The file beside a document."""
    return document.replace(".md", "_EDITS.md")


def with_kept(text: str, document: str, edits: Iterable[HandEdit]) -> str:
    """The file with these edits, each once."""
    there = {name for _, name, _ in _sections(text)}
    for edit in edits:
        name = hexdigest(edit.text.encode("utf-8", "surrogateescape"))[:_DIGITS]
        if name in there:
            continue
        longest = max((len(run) for run in re.findall(r"`{3,}", edit.text)), default=2)
        fence = "`" * (longest + 1)
        before = text.rstrip() or f"# Edits of {document} by hand\n\n{_ABOUT}"
        text = f"{before}\n\n## {name}: {inline(edit.what)}\n\n{fence}text\n{markdown.unix(edit.text)}\n{fence}\n"
    return text


def kept(text: str) -> list[tuple[int, HandEdit]]:
    """The edits that nobody has settled, each with its line."""
    found, lines = _sections(text), markdown.unix(text).split("\n")
    ends = [*(line - 1 for line, _, _ in found), len(lines)][1:]
    bodies = ("\n".join(lines[line:end]).strip() for (line, _, _), end in zip(found, ends, strict=True))
    return [
        (line, HandEdit(what, body.partition("\n")[2].rpartition("\n")[0]))
        for (line, _, what), body in zip(found, bodies, strict=True)
    ]


def without(text: str, settled: Iterable[str]) -> str:
    """The file without the edits of these texts."""
    gone = set(settled)
    left = [edit for _, edit in kept(text) if edit.text not in gone]
    first = next((line for line, _, _ in _sections(text)), None)
    head = "".join(markdown.split(text)[: first - 1]) if first is not None else text
    return with_kept(head, "", left)


def _sections(text: str) -> list[tuple[int, str, str]]:
    heads = markdown.headings(markdown.scan(text), deepest=2)
    found = ((place + 1, _SECTION.match(title)) for place, level, title in heads if level == 2)  # noqa: PLR2004 - sections
    return [(line, match[1], inline_original(match[2])) for line, match in found if match is not None]


def difference(wanted: str, there: str) -> str:
    """What was changed, on one line."""
    lines = difflib.unified_diff(wanted.split("\n"), there.split("\n"), lineterm="", n=0)
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return visible_line("; ".join(changed[:6]))[:_LONGEST]
