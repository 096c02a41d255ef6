"""The marks that git leaves where it could not merge a text: which sides there are, and each one whole.

Must not know any single document.
"""

from __future__ import annotations

from aof.documents import markdown

_OURS, _BASE, _THEIRS, _END = "<<<<<<<", "|||||||", "=======", ">>>>>>>"


def sides(text: str) -> tuple[str, ...]:
    """The text as each side has it; the text alone where it has no marks, or marks that do not belong together."""
    if _OURS not in text or _END not in text:
        return (text,)
    ours: list[str] = []
    theirs: list[str] = []
    into: tuple[list[str], ...] = (ours, theirs)
    here = ""
    for line in markdown.split(text):
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
    return (text,) if here else ("".join(ours), "".join(theirs))


def is_marked(text: str) -> bool:
    """Whether git has left marks in the text."""
    return len(sides(text)) > 1


def _is(line: str, mark: str) -> bool:
    bare = line.rstrip("\r\n")
    return bare == mark or (bare.startswith(f"{mark} ") and mark != _THEIRS)
