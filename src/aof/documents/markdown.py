"""Markdown as people write it, line by line; text by others inside of it; and what people changed by hand in it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from aof.kernel.limits import visible, visible_line
from aof.support.hashing import hexdigest

Kind = Literal["text", "code", "comment"]

FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)\Z")
# Lines come without blanks at their end, so that no pattern has two ways to match them: a line may be of any length.
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?\Z")
_BOLD: Final = re.compile(r"\*\*([^*]+?)(?::\*\*|\*\*[ \t]*:)[ \t]*(.*)\Z")
_PLAIN: Final = re.compile(r"([A-Z][^:|*`<>\[\]]{0,63}):(?:[ \t]+(.*))?\Z")
_DELIMITER: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?\Z")
_CONFLICT: Final = re.compile(r"(<{7}|={7}|>{7}|\|{7})( .*)?\Z")
_CELL: Final = re.compile(r"\\[\\|<]|<br */?>|\|")
_MARKDOWN_COMMENT, _COMMENT_END = "<!--", "-->"


class Line(msgspec.Struct, frozen=True):
    """One line without its end. Lines within code and comments are no structure."""

    number: int
    text: str
    kind: Kind = "text"


def ending(text: str) -> str:
    """The line ending of a text: that of its first line."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def unix(text: str) -> str:
    """The text with plain line feeds."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def with_ending(text: str, end: str) -> str:
    """A text with plain line feeds, with the line ending of the file that it goes to."""
    return text if end == "\n" else text.replace("\n", end)


def split_lines(text: str) -> list[str]:
    """The lines with their ends; joined again they are the text. Only a line feed ends a line."""
    lines = text.split("\n")
    last = lines.pop()
    ended = [f"{line}\n" for line in lines]
    return [*ended, last] if last else ended


def scan(text: str) -> list[Line]:
    """The lines of a text, each with what it is. A fence or a comment that is never closed hides nothing."""
    bare = [line.rstrip("\r\n") for line in split_lines(text)]
    kinds: list[Kind] = ["text"] * len(bare)
    place = 0
    while place < len(bare):
        kind, end = _hidden(bare, place)
        if kind != "text":
            kinds[place:end] = [kind] * (end - place)
        place = end
    return [Line(number, line, kind) for number, (line, kind) in enumerate(zip(bare, kinds, strict=True), 1)]


def _hidden(lines: Sequence[str], place: int) -> tuple[Kind, int]:
    """What begins at a line, and where it ends."""
    line = lines[place]
    if opened := opens_code(line):
        for end in range(place + 1, len(lines)):
            if closes_code(lines[end], opened):
                return "code", end + 1
    elif line.lstrip().startswith(_MARKDOWN_COMMENT):
        inside = line.lstrip()[len(_MARKDOWN_COMMENT) :]
        if _COMMENT_END in inside:
            return ("comment" if not inside.partition(_COMMENT_END)[2].strip() else "text"), place + 1
        for end in range(place + 1, len(lines)):
            if _COMMENT_END in lines[end]:
                return "comment", end + 1
    return "text", place + 1


def opens_code(line: str) -> str | None:
    """The fence that a line opens."""
    mark = FENCE.match(line)
    return None if mark is None or (mark[1][0] == "`" and "`" in mark[2]) else mark[1]


def closes_code(line: str, opened: str) -> bool:
    """Whether a line closes code that was opened by that fence."""
    mark = FENCE.match(line)
    return mark is not None and mark[1].startswith(opened) and not mark[2].strip()


def code_blocks(lines: Sequence[str]) -> dict[int, int]:
    """Where each fenced block begins and the place behind it. A fence that is never closed begins none.

    What was looked for in vain is not looked for again, so that many open fences cost no more than one.
    """
    fences = [(place, mark[1]) for place, line in enumerate(lines) if (mark := FENCE.match(line)) is not None]
    found: dict[int, int] = {}
    hopeless: dict[str, int] = {}
    behind = 0
    for step, (place, fence) in enumerate(fences):
        kind = fence[0]
        tried = kind in hopeless and len(fence) >= hopeless[kind]
        if place < behind or tried or opens_code(lines[place]) is None:
            continue
        later = (fences[one][0] for one in range(step + 1, len(fences)))
        end = next((one for one in later if closes_code(lines[one], fence)), None)
        if end is None:
            hopeless[kind] = len(fence)
        else:
            behind = found[place] = end + 1
    return found


def unclosed(lines: Iterable[Line]) -> Iterator[int]:
    """The numbers of lines that open code or a comment that is never closed."""
    for line in lines:
        opens = opens_code(line.text) or (
            line.text.lstrip().startswith(_MARKDOWN_COMMENT) and _COMMENT_END not in line.text
        )
        if line.kind == "text" and opens:
            yield line.number


def conflict_marks(lines: Iterable[Line]) -> Iterator[int]:
    """The numbers of lines that a failed merge has left."""
    marked = [line for line in lines if _CONFLICT.match(line.text)]
    if any(line.text.startswith(("<<<<<<<", ">>>>>>>")) for line in marked):
        yield from (line.number for line in marked)


def heading(line: str) -> tuple[int, str] | None:
    """The level and the text of a heading."""
    found = _HEADING.match(line.rstrip())
    if found is None:
        return None
    text = found[2] or ""
    closed = text.rstrip("#")
    return len(found[1]), closed.rstrip() if closed != text and (not closed or closed[-1] in " \t") else text


def headings(lines: Sequence[Line], deepest: int) -> list[tuple[int, int, str]]:
    """The place, level and text of every heading down to a level."""
    found = ((place, heading(line.text)) for place, line in enumerate(lines) if line.kind == "text")
    return [(place, *one) for place, one in found if one is not None and one[0] <= deepest]


def bold_field(line: str) -> tuple[str, str] | None:
    """Key and value of a line such as `**Status:** unread`."""
    found = _BOLD.match(line.rstrip())
    return None if found is None else (found[1].strip(), found[2])


def plain_field(line: str) -> tuple[str, str] | None:
    """Key and value of a line such as `Status: In progress`."""
    found = _PLAIN.match(line.rstrip())
    return None if found is None else (found[1].strip(), found[2] or "")


class MarkdownRow(msgspec.Struct, frozen=True):
    """One row of a table, as its cells read."""

    number: int
    cells: tuple[str, ...]


class Table(msgspec.Struct, frozen=True):
    """A table: its header, its rows, and the numbers of its first line and of the line behind it."""

    header: tuple[str, ...]
    rows: tuple[MarkdownRow, ...]
    begin: int
    end: int

    def uneven(self) -> Iterator[MarkdownRow]:
        """The rows that do not have as many cells as the header."""
        return (row for row in self.rows if len(row.cells) != len(self.header))


def tables(lines: Sequence[Line]) -> Iterator[Table]:
    """The tables among some lines: a header, a line of dashes, and the rows that follow."""
    place = 0
    while place + 1 < len(lines):
        if not (_is_row(lines[place]) and is_delimiter(lines[place + 1])):
            place += 1
            continue
        end = place + 2
        while end < len(lines) and _is_row(lines[end]):
            end += 1
        rows = tuple(MarkdownRow(line.number, cells(line.text)) for line in lines[place + 2 : end])
        yield Table(cells(lines[place].text), rows, lines[place].number, lines[place].number + end - place)
        place = end


def _is_row(line: Line) -> bool:
    return line.kind == "text" and line.text.lstrip().startswith("|")


def is_delimiter(line: Line) -> bool:
    """Whether the line stands between a table's header and its rows."""
    return line.kind == "text" and "|" in line.text and _DELIMITER.match(line.text.strip()) is not None


def cells(line: str) -> tuple[str, ...]:
    """The cells of a row, as they read: a pipe after a backslash is a pipe, and `<br>` is a line break."""
    inner = line.strip().removeprefix("|")
    found, start, part = [], 0, ""
    for mark in _CELL.finditer(inner):
        part += inner[start : mark.start()]
        start = mark.end()
        if mark.group() == "|":
            found.append(part.strip())
            part = ""
        else:
            part += "\n" if mark.group().startswith("<") else mark.group()[1]
    part += inner[start:]
    return (*found, part.strip()) if part.strip() else tuple(found)


def row(values: Iterable[str]) -> str:
    """A row with these cells, whatever they hold."""
    return "| " + " | ".join(_cell(value) for value in values) + " |"


def _cell(value: str) -> str:
    text = unix(value).strip().replace("\\", "\\\\").replace("|", "\\|").replace("<br", "\\<br")
    return text.replace("\n", "<br>")


def table(header: Sequence[str], rows: Iterable[Iterable[str]] = ()) -> list[str]:
    """The lines of a table."""
    return [row(header), "|" + " --- |" * len(header), *map(row, rows)]


# Headings, rules and underlines of headings, HTML (but no address), and fences that are escaped already.
_STRUCTURE: Final = (
    r"#{1,6}(?:[ \t]|\Z)|(?:=+|-{2,})[ \t]*\Z|(?:[-*_][ \t]*){3,}\Z|<(?!https?:|mailto:|!--)(?=[A-Za-z/!?])"
    r"|<{7}(?: |\Z)|>{7}(?: |\Z)|\|{7}(?: |\Z)"
)
_BEGINS: Final = re.compile(rf"( {{0,3}})(\\*)(?={_STRUCTURE})")
_ESCAPED_FENCE: Final = re.compile(r"( {0,3})(\\+)(?=`{3}|~{3})")
_FENCE: Final = re.compile(r"( {0,3})(\\*)(?=`{3}|~{3})")
_ESCAPING_COMMENT: Final = re.compile(r"(?<!\\)(\\*)<!--")


def plain_text(text: str) -> str:
    """The text as documents hold it: plain line feeds, nothing hidden, no blank lines around it."""
    return visible(unix(text)).lstrip("\n").rstrip()


def contained(text: str, reserved: str | None = None) -> str:
    """The text with no line that begins a structure. `reserved` are further beginnings of lines, as a pattern."""
    return _each(plain_text(text), reserved, _add)


def original(text: str, reserved: str | None = None) -> str:
    """What `contained` was made from."""
    return _each(unix(text), reserved, _remove)


def inline(text: str) -> str:
    """A text within a line of ours: on one line, and nothing in it hides what follows."""
    return _ESCAPING_COMMENT.sub(r"\1\\<!--", visible(" ".join(unix(text).split())))


def inline_original(text: str) -> str:
    """What `inline` was made from."""
    return _ESCAPING_COMMENT.sub(lambda found: f"{found[1][1:]}<!--", text)


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
    return _ESCAPING_COMMENT.sub(r"\1\\<!--" if change is _add else lambda found: f"{found[1][1:]}<!--", line)


def _spaced(line: str, own: re.Pattern[str] | None, change: Callable[[str, re.Pattern[str]], str]) -> str:
    if own is None or (found := own.match(line)) is None:
        return line
    if change is _add:
        return f" {line}"
    return line[1:] if found[1] else line


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
        text = f"{before}\n\n## {name}: {inline(edit.what)}\n\n{fence}text\n{unix(edit.text)}\n{fence}\n"
    return text


def kept_edits(text: str) -> list[tuple[int, HandEdit]]:
    """The edits that nobody has settled, each with its line."""
    found, lines = _sections(text), unix(text).split("\n")
    ends = [*(line - 1 for line, _, _ in found), len(lines)][1:]
    bodies = ("\n".join(lines[line:end]).strip() for (line, _, _), end in zip(found, ends, strict=True))
    return [
        (line, HandEdit(what, body.partition("\n")[2].rpartition("\n")[0]))
        for (line, _, what), body in zip(found, bodies, strict=True)
    ]


def without_edits(text: str, settled: Iterable[str]) -> str:
    """The file without the edits of these texts."""
    gone = set(settled)
    left = [edit for _, edit in kept_edits(text) if edit.text not in gone]
    first = next((line for line, _, _ in _sections(text)), None)
    head = "".join(split_lines(text)[: first - 1]) if first is not None else text
    return with_kept(head, "", left)


def _sections(text: str) -> list[tuple[int, str, str]]:
    heads = headings(scan(text), deepest=2)
    found = ((place + 1, _SECTION.match(title)) for place, level, title in heads if level == 2)  # noqa: PLR2004 - sections
    return [(line, match[1], inline_original(match[2])) for line, match in found if match is not None]


def edit_difference(wanted: str, there: str) -> str:
    """What was changed, on one line."""
    lines = difflib.unified_diff(wanted.split("\n"), there.split("\n"), lineterm="", n=0)
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return visible_line("; ".join(changed[:6]))[:_LONGEST]
