"""A person's frontmatter: read strictly, and changed without touching what did not change.

It is seen as blocks: a key at the start of a line, and all lines up to the next one. Comments and blank lines
stay where they are; those inside a value that changes stand behind its new line. Must not know what a task is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from aof.errors import UnreadableTask
from aof.store.files import markdown
from aof.store.files.strict_yaml import FIRST_LINE, load_yaml, refuse_yaml, scan_yaml

# A block starts in the first column, unless with what can only go on with the block before.
_START = re.compile(r"^(?=[^ \t\r\n#\]}])(?!-[ \t\r\n])", re.MULTILINE)
_TRIVIA = re.compile(r"(?: *+(?:#[^\n]*+)?\r?(?:\n|\Z))*+\Z")  # the parser takes no tab there
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_COMMENTED = re.compile(r'((?:[^"#\n]++|"(?:[^"\\\n]++|\\.)*+")*+)(?<=[ \t])#')
_BREAKS = re.compile("[\x85\u2028\u2029\ufeff]|\r(?!\n)")
_MARKERS = ("%", "---", "...")


class _Block(NamedTuple):
    key: str | None  # None for a mapping in braces, which is one block and has all the keys
    value: Any
    text: str
    simple: int  # where the canonical line ends, before its comment; 0 when it is none


def read(text: str) -> dict[str, Any]:
    """The values by key."""
    found: dict[str, Any] = msgspec.to_builtins(_values(_split(text)[1]))  # a copy: what is kept stays as it was read
    return found


def rewrite(layout: str, values: dict[str, Any]) -> str:
    """The same frontmatter with these values: changed ones in place, missing ones gone, new ones at the end."""
    return "".join(_pieces(layout, values, None)[0])


def rewrite_around(layout: str, values: dict[str, Any], key: str) -> tuple[str, str]:
    """Like `rewrite`, but in two parts: what stands before and what behind the value of that key."""
    pieces, place = _pieces(layout, values, key)
    return "".join(pieces[:place]), "".join(pieces[place + 1 :])


def same(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON: 1, 1.0 and true differ, the order of an object's keys does not count."""
    return msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def _values(blocks: list[_Block]) -> dict[str, Any]:
    if blocks and blocks[0].key is None:
        return dict(blocks[0].value)
    return {block.key: block.value for block in blocks if block.key is not None}


@lru_cache(maxsize=64)
def _split(text: str) -> tuple[str, list[_Block]]:
    """What stands before the first key, and the blocks. One edit is read and written in the same layout many times."""
    if len(text.encode()) > markdown.LIMIT:
        raise UnreadableTask("the frontmatter is larger than 64 KB", "Move long texts to the body or to a file.")
    if found := _BREAKS.search(text):
        line = FIRST_LINE + text.count("\n", 0, found.start())
        what = f"the character U+{ord(found[0]):04X} is a line break to some readers"
        raise refuse_yaml(line, what, "Write it as an escape in double quotes.")
    starts = [found.start() for found in _START.finditer(text)]
    before = text[: starts[0]] if starts else text
    if not _TRIVIA.match(before):
        raise refuse_yaml(FIRST_LINE, "keys must start in the first column", "Write `key: value` lines.")
    braces = text.startswith("{", len(before))
    if braces:
        starts = starts[:1]
    parts = [text[start:stop] for start, stop in zip(starts, [*starts, len(text)][1:], strict=True)]
    simple = [None if braces else _simple(part) for part in parts]
    line = FIRST_LINE + before.count("\n")
    # To the parser, lines that are read already are comments: so the numbers of its lines are those of the file.
    yaml = ["#\n" * before.count("\n")]
    for part, done in zip(parts, simple, strict=True):
        yaml.append("#\n" * part.count("\n") if done else _checked(part, line))
        line += part.count("\n")
    loaded = load_yaml("".join(yaml))
    if braces:
        return before, [_Block(None, loaded, parts[0], 0)]
    if len(loaded) != simple.count(None):
        raise UnreadableTask("the frontmatter's keys cannot be told apart", "Write each key at the start of a line.")
    rest = iter(loaded.items())
    blocks = [
        done or _Block(*next(rest), part, 0)  # the parser keeps their order
        for part, done in zip(parts, simple, strict=True)
    ]
    seen: set[str | None] = set()
    for block in blocks:
        if block.key in seen:
            raise UnreadableTask(f"duplicate key: {block.key}", "Keep one of the lines.")
        seen.add(block.key)
    return before, blocks


def _simple(part: str) -> _Block | None:
    """A canonical line with nothing but comments behind it needs no YAML parser, and none of its limits."""
    first = part.split("\n", 1)[0]
    if not _TRIVIA.match(part, len(first) + 1):
        return None
    commented = _COMMENTED.match(first)
    content = commented[1].rstrip(" \t") if commented else first.removesuffix("\r")
    found = markdown.decode_canonical(content.encode())
    return _Block(*next(iter(found.items())), part, len(content)) if found else None


def _checked(part: str, line: int) -> str:
    """The part as the parser may have it."""
    if part.startswith(_MARKERS):
        raise refuse_yaml(line, "a directive or a document's mark is not taken in frontmatter", "Remove the line.")
    return scan_yaml(part, line).text


def _pieces(layout: str, values: dict[str, Any], always: str | None) -> tuple[list[str], int]:
    """The new text in pieces, and which piece is the value of the key that is to be written in any case."""
    before, blocks = _split(layout)
    old = _values(blocks)
    newline = "\r\n" if layout.endswith("\r\n") else "\n"
    pieces, place = [before], -1

    def write(key: str, beside: str) -> None:
        nonlocal place
        place = len(pieces) + 1 if key == always else place
        pieces.extend((f"{markdown.key_text(key)}: ", markdown.encode_value(values[key]), f"{beside}{newline}"))

    def unchanged(key: str) -> bool:
        return key in values and key != always and same(old[key], values[key])

    for block in blocks:
        if all(map(unchanged, old if block.key is None else (block.key,))):
            pieces.append(block.text)
            continue
        beside, behind = _around(block, newline)
        if block.key in values and block.key is not None:
            write(block.key, beside)
            pieces.append(behind)
        else:
            # Neither an indented comment nor an empty line may come to belong to a text of the block before.
            kept = f"{beside}{newline}{behind}" if beside else behind
            pieces.append(_INDENT.sub("", kept).lstrip("\r\n"))
        if block.key is None:
            old = {}  # the braces are gone, so their keys follow as new ones
    added = [key for key in values if key not in old]
    if added and not "".join(("\n", *pieces)).endswith("\n"):
        pieces.append(newline)
    for key in added:
        write(key, "")
    return pieces, place


def _around(block: _Block, newline: str) -> tuple[str, str]:
    """What outlives a block's value: the comment beside its key, and what stands behind it."""
    if block.simple:
        beside, _, behind = block.text[block.simple :].partition("\n")
        return beside.rstrip(), behind
    text, comments, end = scan_yaml(block.text, FIRST_LINE)
    stop = text.find("\n", end - 1) + 1 or len(text)
    first = text.find("\n") + 1 or len(text)
    beside, behind = "", ""
    for start, after in comments:
        if start < first:
            gap = text[len(text[:start].rstrip(" \t")) : start] or " "
            beside = f"{gap}{text[start:after]}"
        elif start < stop:
            behind += f"{text[start:after]}{newline}"
    return beside, behind + _INDENT.sub("", text[stop:])
