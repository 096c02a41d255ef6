"""Text by others inside of a document: no line of it can end its entry or card, or begin another.

Markdown's own structure gets a backslash, which a renderer does not show. Lines that only our documents give a meaning
to, such as the line of a quick handoff, get a space in front. `original` undoes exactly that. Must not know any single
document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from aof.core.validation.visible import visible
from aof.documents.markdown import code_blocks, opens_code, unix

# Headings, rules and underlines of headings, HTML (but no address), and fences that are escaped already.
_STRUCTURE: Final = (
    r"#{1,6}(?:[ \t]|\Z)|(?:=+|-{2,})[ \t]*\Z|(?:[-*_][ \t]*){3,}\Z|<(?!https?:|mailto:|!--)(?=[A-Za-z/!?])"
    r"|<{7}(?: |\Z)|>{7}(?: |\Z)|\|{7}(?: |\Z)"
)
_BEGINS: Final = re.compile(rf"( {{0,3}})(\\*)(?={_STRUCTURE})")
_ESCAPED_FENCE: Final = re.compile(r"( {0,3})(\\+)(?=`{3}|~{3})")
_FENCE: Final = re.compile(r"( {0,3})(\\*)(?=`{3}|~{3})")
_COMMENT: Final = re.compile(r"(?<!\\)(\\*)<!--")


def plain(text: str) -> str:
    """The text as documents hold it: plain line feeds, nothing hidden, no blank lines around it."""
    return visible(unix(text)).lstrip("\n").rstrip()


def contained(text: str, reserved: str | None = None) -> str:
    """The text with no line that begins a structure. `reserved` are further beginnings of lines, as a pattern."""
    return _each(plain(text), reserved, _add)


def original(text: str, reserved: str | None = None) -> str:
    """What `contained` was made from."""
    return _each(unix(text), reserved, _remove)


def inline(text: str) -> str:
    """A text within a line of ours: on one line, and nothing in it hides what follows."""
    return _COMMENT.sub(r"\1\\<!--", visible(" ".join(unix(text).split())))


def inline_original(text: str) -> str:
    """What `inline` was made from."""
    return _COMMENT.sub(lambda found: f"{found[1][1:]}<!--", text)


def _add(line: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(r"\1\2\\", line, count=1)


def _remove(line: str, pattern: re.Pattern[str]) -> str:
    found = pattern.match(line)
    return line if found is None or not found[2] else line[: found.end() - 1] + line[found.end() :]


def _each(text: str, reserved: str | None, change: Callable[[str, re.Pattern[str]], str]) -> str:
    """Change every line outside of code; a fence that is never closed is no fence, and is escaped itself."""
    lines = text.split("\n")
    own = None if reserved is None else re.compile(rf"( *)(?={reserved})")
    done: list[str] = []
    place = 0
    blocks = code_blocks(lines)
    while place < len(lines):
        end = blocks.get(place)
        if end is not None:
            done += lines[place:end]
            place = end
            continue
        line = lines[place]
        for pattern in (_BEGINS, _FENCE if change is _remove or opens_code(line) else _ESCAPED_FENCE):
            line = change(line, pattern) if pattern.match(line) else line
        done.append(_spaced(_comments(line, change), own, change))
        place += 1
    return "\n".join(done)


def _comments(line: str, change: Callable[[str, re.Pattern[str]], str]) -> str:
    """A comment may begin anywhere in a line."""
    if "<!--" not in line:
        return line
    return _COMMENT.sub(r"\1\\<!--" if change is _add else lambda found: f"{found[1][1:]}<!--", line)


def _spaced(line: str, own: re.Pattern[str] | None, change: Callable[[str, re.Pattern[str]], str]) -> str:
    if own is None or (found := own.match(line)) is None:
        return line
    if change is _add:
        return f" {line}"
    return line[1:] if found[1] else line
