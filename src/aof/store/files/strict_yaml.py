"""YAML as AOF takes it from people.

A look at the tokens before the parser and at the values behind it, and the line and column of each value.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec
import ryaml

from aof.errors import UnreadableTask
from aof.kernel.findings import Finding

DEPTH: Final = 32
FIRST_LINE: Final = 2  # of the frontmatter, in its file

_BLANK: Final = (" ", "\t", "\r", "\n", "")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"[^\r\n]*")
_QUOTED = {'"': re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL), "'": re.compile(r"'(?:[^']++|'')*+'")}
_PLAIN = re.compile(r"(?:[^: \t\r\n]++|:(?=[^ \t\r\n])|[ \t]++(?=[^ \t\r\n#]))*+")
_PLAIN_IN_FLOW = re.compile(r"(?:[^:,\[\]{} \t\r\n]++|:(?=[^ \t\r\n,\[\]{}])|[ \t]++(?=[^ \t\r\n#]))*+")
_NEXT_LINE = re.compile(r"(?:[ \t]*+\r?\n)++([ \t]*+)(?=[^#\r\n])")
_HEADER = re.compile(r"[|>](?:[-+]?([1-9])?[-+]?)[ \t]*+(#[^\r\n]*)?[^\n]*\n?")
_LINE = re.compile(r"( *)([^\r\n]?)[^\n]*\n?")
_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})")
_LONG_NUMBER = re.compile(r"[-+]?[0-9]{21,}\s*\Z", re.ASCII)
_REFUSED = {"&": "an anchor (&)", "*": "an alias (*)", "!": "a tag (!)"}


class Scanned(NamedTuple):
    """The text (JSON's surrogate pairs joined, which YAML does not know), its comments and its last token's end."""

    text: str
    comments: list[tuple[int, int]]
    end: int


def refuse_yaml(line: int, what: str, hint: str) -> UnreadableTask:
    """The error for something in that line of the file."""
    return UnreadableTask(f"line {line}: {what}", hint, line=line)


def scan_yaml(text: str, line: int) -> Scanned:
    """Go over the text, whose first line is that line of the file."""
    return Scanner(text, line).scan()


def load_document(text: str, what: str) -> dict[str, Any]:
    """The values of a whole document, such as "the org chart"."""
    return load_yaml(scan_yaml(text, 1).text, 1, what)


def document_text(content: bytes) -> str:
    """A document's text; the mark that many people begin one with is a comment to us. Raises UnicodeDecodeError."""
    text = content.decode("utf-8-sig")
    return f"#--{text[3:]}" if text.startswith(("---\n", "---\r\n")) else text


def with_places(findings: Iterable[Finding], text: str, otherwise: int | None = None) -> tuple[Finding, ...]:
    """The findings with line and column of their place in a document, or of the nearest one around it."""
    where = yaml_places(text)
    placed: list[Finding] = []
    for finding in findings:
        around = (finding.at[:length] for length in range(len(finding.at), 0, -1))
        line, column = next((where[place] for place in around if place in where), (otherwise, None))
        placed.append(msgspec.structs.replace(finding, line=line, column=column))
    return tuple(placed)


def load_yaml(yaml: str, line: int = FIRST_LINE, what: str = "the frontmatter") -> dict[str, Any]:
    """The values of a mapping that was scanned."""
    try:
        loaded = ryaml.loads(yaml)
    except ValueError as error:
        message = re.sub(r"\bline (\d+)", lambda found: f"line {int(found[1]) + line - 1}", str(error))
        raise UnreadableTask(f"{what} is not valid YAML: {message}", "Try the value in quotes.") from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise UnreadableTask(f"{what} is not a mapping", "Write `key: value` lines.")
    _check(loaded, "", 0)
    return loaded


def _check(value: Any, path: str, depth: int) -> None:
    """Refuse what JSON could not hold."""
    if depth > DEPTH:
        raise UnreadableTask(f"{path[:80]}: nested more than {DEPTH} deep", "Keep deep structures in a file.")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise UnreadableTask(f"{path or 'frontmatter'}: the key {key!r} is not text", "Put the key in quotes.")
            _check(item, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check(item, f"{path}[{number}]", depth + 1)
    elif isinstance(value, float) and not isfinite(value):
        raise UnreadableTask(f"{path}: {value} is not a number that JSON knows", "Leave it out, or put it in quotes.")


class Scanner:
    """One pass over a text."""

    def __init__(self, text: str, line: int) -> None:
        self.text, self.line = text, line
        self.pos = self.depth = 0
        self.last, self.column = "", 0  # the last scalar, and where it stands
        self.parent = -1  # the column that a scalar's further lines must stand right of
        self.comments: list[tuple[int, int]] = []

    def scan(self) -> Scanned:
        """Go over all of it."""
        end = 0
        while (pos := _after(_SPACE, self.text, self.pos)) < len(self.text):
            self.pos = pos
            if self.text[pos] == "#":
                self.pos = _after(_COMMENT, self.text, pos)
                self.comments.append((pos, self.pos))
            else:
                if not self._structure(self.text[pos]):
                    self._scalar(self.text[pos])
                end = self.pos
        if self.depth:
            raise self._refused("a [ or { is not closed", "Close it; indent the lines of a longer value.")
        return Scanned(self.text, self.comments, end)

    def _refused(self, what: str, hint: str) -> UnreadableTask:
        return refuse_yaml(self.line + self.text.count("\n", 0, self.pos), what, hint)

    def _column(self) -> int:
        return self.pos - self.text.rfind("\n", 0, self.pos) - 1

    def _structure(self, char: str) -> bool:
        """Take what builds the structure, if the next token does."""
        if char in _REFUSED:
            raise self._refused(f"{_REFUSED[char]} is not taken here", "Write the value out, or in quotes.")
        indicator = self.text[self.pos + 1 : self.pos + 2] in _BLANK
        if char in "[]{}":
            self._bracket(char)
        elif char == ":" and (self.depth or indicator):
            if self.last == "<<":
                raise self._refused("a merge (<<) is not taken here", "Write the keys out.")
            self.parent = self.parent if self.depth else self.column
        elif char == "-" and indicator and not self.depth:
            self.parent = self._column()
        elif char == "?" and indicator:
            raise self._refused("a key marked with ? is not taken here", "Write `key: value`.")
        elif char != "," or not self.depth:
            return False
        self.pos += 1
        return True

    def _bracket(self, char: str) -> None:
        self.depth += 1 if char in "[{" else -1
        if self.depth > DEPTH:
            raise self._refused(f"nested more than {DEPTH} deep", "Keep deep structures in a file of the task.")
        if self.depth < 0:
            raise self._refused(f"{char} closes nothing", "Remove it, or put the value in quotes.")

    def _scalar(self, char: str) -> None:
        start, self.column = self.pos, self._column()
        if char in "|>" and not self.depth:
            self._block_scalar()
        elif char in _QUOTED:
            self._quoted(char)
        else:
            self._plain()
        self.last = self.text[start : self.pos]

    def _quoted(self, char: str) -> None:
        found = _QUOTED[char].match(self.text, self.pos)
        if found is None:
            raise self._refused(f"no closing {char}", "Close the quote; indent the lines of a longer text.")
        content = _PAIR.sub(_joined, found[0]) if char == '"' else found[0]
        if content != found[0]:
            self.text = self.text[: self.pos] + content + self.text[found.end() :]
        self.pos += len(content)

    def _plain(self) -> None:
        """An unquoted text goes on in the next lines as far as they stand right of its parent."""
        pattern = _PLAIN_IN_FLOW if self.depth else _PLAIN
        start = self.pos
        self.pos = max(_after(pattern, self.text, start), start + 1)
        if _LONG_NUMBER.match(self.text, start, self.pos):
            raise self._refused("a number of more than 64 bits", "Put it in quotes.")
        while (following := _NEXT_LINE.match(self.text, self.pos)) and (self.depth or len(following[1]) > self.parent):
            end = _after(pattern, self.text, following.end())
            if end == following.end():
                break
            self.pos = end

    def _block_scalar(self) -> None:
        """A text behind | or > is the lines that stand as far right as its first one, and right of its parent."""
        header = _matched(_HEADER, self.text, self.pos)
        if header[2]:
            self.comments.append(header.span(2))
        indent = max(self.parent, 0) + int(header[1]) if header[1] else 0
        self.pos = pos = header.end()
        while pos < len(self.text):
            line = _matched(_LINE, self.text, pos)
            pos = line.end()
            if line[2]:
                indent = indent or max(len(line[1]), self.parent + 1)
                if len(line[1]) < indent:
                    break
                self.pos = pos


def _matched(pattern: re.Pattern[str], text: str, pos: int) -> re.Match[str]:
    """The match of a pattern that matches wherever it is tried."""
    found = pattern.match(text, pos)
    assert found is not None
    return found


def _after(pattern: re.Pattern[str], text: str, pos: int) -> int:
    """Where the match of such a pattern ends."""
    return _matched(pattern, text, pos).end()


def _joined(found: re.Match[str]) -> str:
    high, low = int(found[2][2:6], 16), int(found[2][8:12], 16)
    return found[1] + chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))


YamlPath = tuple[str | int, ...]
YamlPlace = tuple[int, int]
_SCALAR: Final = "scalar"


class _Token(NamedTuple):
    """A bracket, comma, colon or dash, or a scalar with its text."""

    kind: str
    text: str
    line: int
    column: int


def yaml_places(text: str) -> dict[YamlPath, YamlPlace]:
    """Line and column, both from 1, of each key and each item of a list."""
    recorder = _Recorder(text, 1)
    recorder.scan()
    walk = _Walk(recorder.tokens)
    walk.node((), flow=False)
    return walk.found


class _Recorder(Scanner):
    """The strict look at the tokens, which here keeps them."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text, line)
        self.tokens: list[_Token] = []
        self._starts = [0, *(place + 1 for place, char in enumerate(text) if char == "\n")]

    def _note(self, kind: str, start: int) -> None:
        line = bisect_right(self._starts, start)
        self.tokens.append(_Token(kind, self.text[start : self.pos], line, start - self._starts[line - 1]))

    def _structure(self, char: str) -> bool:
        start = self.pos
        taken = super()._structure(char)
        if taken:
            self._note(char, start)
        return taken

    def _scalar(self, char: str) -> None:
        start = self.pos
        super()._scalar(char)
        self._note(_SCALAR, start)


class _Walk:
    """One pass over the tokens."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.found: dict[YamlPath, YamlPlace] = {}
        self._tokens = tokens
        self._next = 0

    def _peek(self, ahead: int = 0) -> _Token:
        place = self._next + ahead
        return self._tokens[place] if place < len(self._tokens) else _Token("", "", 0, -1)

    def _note(self, path: YamlPath) -> None:
        token = self._peek()
        self.found.setdefault(path, (token.line, token.column + 1))

    def node(self, path: YamlPath, *, flow: bool) -> None:
        """Whatever begins here, up to its end."""
        kind = self._peek().kind
        if kind in ("[", "{"):
            self._flow(path, "]" if kind == "[" else "}")
        elif kind == "-" and not flow:
            self._list(path)
        elif kind == _SCALAR and not flow and self._peek(1).kind == ":":
            self._mapping(path)
        else:
            self._next += 1

    def _list(self, path: YamlPath) -> None:
        column, number = self._peek().column, 0
        while (dash := self._peek()).kind == "-" and dash.column == column:
            self._next += 1
            if self._peek().column > column:
                self._note((*path, number))
                self.node((*path, number), flow=False)
            number += 1

    def _mapping(self, path: YamlPath) -> None:
        column = self._peek().column
        while (key := self._peek()).kind == _SCALAR and key.column == column and self._peek(1).kind == ":":
            inner = (*path, _plain(key.text))
            self._note(inner)
            self._next += 2
            value = self._peek()
            if value.column > column or (value.kind == "-" and value.column == column):
                self.node(inner, flow=False)

    def _flow(self, path: YamlPath, close: str) -> None:
        self._next += 1
        number = 0
        while (token := self._peek()).kind not in (close, ""):
            if token.kind == ",":
                self._next += 1
                continue
            if close == "}" and token.kind == _SCALAR:
                inner: YamlPath = (*path, _plain(token.text))
                self._note(inner)
                self._next += 1
                if self._peek().kind == ":":
                    self._next += 1
                    if self._peek().kind not in (",", close):
                        self.node(inner, flow=True)
            else:
                self._note((*path, number))
                self.node((*path, number), flow=True)
                number += 1
        self._next += 1


def _plain(text: str) -> str:
    """A key without its quotes."""
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    if text[:1] == '"':
        try:
            return str(msgspec.json.decode(text, type=str))
        except msgspec.DecodeError:
            return text[1:-1]
    return text
