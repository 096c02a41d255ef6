"""Three-way merge of a person's edit with what the log has written since. In a conflict the log wins.

Must not know files.
"""

from __future__ import annotations

import difflib
from typing import Any, Final

import msgspec

_COMPARISONS: Final = 4_000_000

_Edit = tuple[int, int, list[str]]


def merge_fields(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the person changed and the log did not, and the names that both changed in different ways.

    A field that the person took away comes as None.
    """
    changes: dict[str, Any] = {}
    conflicts: list[str] = []
    for name in sorted(base.keys() | theirs.keys()):
        before, mine, wanted = base.get(name), ours.get(name), theirs.get(name)
        if _same(wanted, before) or _same(wanted, mine):
            continue
        if _same(mine, before):
            changes[name] = wanted
        else:
            conflicts.append(name)
    return changes, tuple(conflicts)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON, where 1, 1.0 and true differ."""
    return one == other and msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def merge_text(base: str, ours: str, theirs: str) -> str | None:
    """Both sides' changes to the lines of a text; None when they touch the same or neighbouring lines."""
    if theirs in (base, ours):
        return ours
    if ours == base:
        return theirs
    lines = base.splitlines(keepends=True)
    mine = _edits(lines, ours.splitlines(keepends=True))
    edits = mine + [edit for edit in _edits(lines, theirs.splitlines(keepends=True)) if edit not in mine]
    edits.sort(key=lambda edit: (edit[0], edit[1]))
    merged: list[str] = []
    position = -1
    for start, end, replacement in edits:
        if start <= position:
            return None
        merged += lines[max(position, 0) : start] + replacement
        position = end
    return "".join(merged + lines[max(position, 0) :])


def _edits(before: list[str], after: list[str]) -> list[_Edit]:
    """The changed ranges. Where comparing would take too long, all between the first and last difference is one."""
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    tail = next((at for at in range(shorter - head) if before[-1 - at] != after[-1 - at]), shorter - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) * len(new) > _COMPARISONS:
        return [(head, head + len(old), new)]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [(head + i1, head + i2, new[j1:j2]) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]
