"""Where each value of a YAML document stands: line and column by its path. For documents that the parser has read.

Follows what strict documents can hold: block and flow mappings and lists, and scalars of every style. Must not know
what the values mean; a place that it does not find is not an error.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

import msgspec

from aof.stores.filesystem.records.strict_yaml import Scanner

Path = tuple[str | int, ...]
Place = tuple[int, int]
_SCALAR: Final = "scalar"


class _Token(NamedTuple):
    """A bracket, comma, colon or dash, or a scalar with its text."""

    kind: str
    text: str
    line: int
    column: int


def places(text: str) -> dict[Path, Place]:
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
        self.found: dict[Path, Place] = {}
        self._tokens = tokens
        self._next = 0

    def _peek(self, ahead: int = 0) -> _Token:
        place = self._next + ahead
        return self._tokens[place] if place < len(self._tokens) else _Token("", "", 0, -1)

    def _note(self, path: Path) -> None:
        token = self._peek()
        self.found.setdefault(path, (token.line, token.column + 1))

    def node(self, path: Path, *, flow: bool) -> None:
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

    def _list(self, path: Path) -> None:
        column, number = self._peek().column, 0
        while (dash := self._peek()).kind == "-" and dash.column == column:
            self._next += 1
            if self._peek().column > column:
                self._note((*path, number))
                self.node((*path, number), flow=False)
            number += 1

    def _mapping(self, path: Path) -> None:
        column = self._peek().column
        while (key := self._peek()).kind == _SCALAR and key.column == column and self._peek(1).kind == ":":
            inner = (*path, _plain(key.text))
            self._note(inner)
            self._next += 2
            value = self._peek()
            if value.column > column or (value.kind == "-" and value.column == column):
                self.node(inner, flow=False)

    def _flow(self, path: Path, close: str) -> None:
        self._next += 1
        number = 0
        while (token := self._peek()).kind not in (close, ""):
            if token.kind == ",":
                self._next += 1
                continue
            if close == "}" and token.kind == _SCALAR:
                inner: Path = (*path, _plain(token.text))
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
