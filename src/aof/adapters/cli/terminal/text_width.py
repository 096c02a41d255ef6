"""How wide text is on a terminal, and how it is cut and padded to fit.

A wide character takes two columns, an accent none. Must not know colours or tables.
"""

from __future__ import annotations

from aof._support.printable import clean

__all__ = ["clean", "cut", "pad", "width", "wrap"]

_CUT = "…"
_WIDE, _JOINER, _AS_PICTURE = "WF", "\u200d", "\ufe0f"
_NO_WIDTH = ("Mn", "Me", "Cf")


def width(text: str) -> int:
    """How many columns the text takes."""
    return len(text) if text.isascii() else sum(columns for _, columns in _clusters(text))


def cut(text: str, room: int) -> str:
    """As much of the text as fits; an ellipsis says that there was more."""
    if width(text) <= room:
        return text
    kept: list[str] = []
    left = room - 1
    for cluster, columns in _clusters(text):
        left -= columns
        if left < 0:
            break
        kept.append(cluster)
    return "".join(kept).rstrip() + _CUT if room > 0 else ""


def pad(text: str, room: int) -> str:
    """The text with spaces behind it up to so many columns."""
    return text + " " * (room - width(text))


def wrap(text: str, room: int) -> list[str]:
    """The text in lines of so many columns at most, broken between words; only what is too long is broken itself."""
    lines = [""]
    for word in text.split():
        if lines[-1] and width(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
            continue
        pieces = [""]
        for cluster, _columns in _clusters(word):
            if pieces[-1] and width(pieces[-1] + cluster) > room:
                pieces.append("")
            pieces[-1] += cluster
        lines = [*lines, *pieces] if lines[-1] else pieces
    return lines


def _clusters(text: str) -> list[tuple[str, int]]:
    """What cannot be cut apart, and how many columns each takes: a character with all that joins or marks it."""
    import unicodedata

    found: list[tuple[str, int]] = []
    joined = False
    for one in text:
        if found and (joined or one in (_JOINER, _AS_PICTURE) or unicodedata.category(one) in _NO_WIDTH):
            before, columns = found[-1]
            found[-1] = (before + one, 2 if one == _AS_PICTURE else columns)
        else:
            found.append((one, 2 if unicodedata.east_asian_width(one) in _WIDE else 1))
        joined = one == _JOINER
    return found
