"""Standard output and standard error as the command uses them: whatever is written to them is cleaned first.

This is the one place that text passes on its way to a terminal or a pipe, also that of `print`, of logging and of a
traceback. Only control sequences that the command itself makes go around it, by `trusted`; JSON goes to `buffer` and
is escaped where it is made. Must not know what is said.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from aof._support.printable import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

_CONTINUED = "\n    "  # nothing in a message can look like a line of ours


class Guarded:
    """A text stream that lets no control character through, but line breaks and tabs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, cleaned."""
        return self.trusted(clean(text, lines=True))

    def writelines(self, lines: Iterable[str]) -> None:
        """The same for several."""
        for line in lines:
            self.write(line)

    def trusted(self, text: str) -> int:
        """Write what was cleaned already, with control sequences of our own."""
        try:
            return self._stream.write(text)
        except UnicodeEncodeError:  # a terminal that lacks a letter is no reason to fail
            encoding = self._stream.encoding or "ascii"
            return self._stream.write(text.encode(encoding, "replace").decode(encoding))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def trusted(out: TextIO, text: str) -> None:
    """Write to a stream that may be guarded or not."""
    getattr(out, "trusted", out.write)(text)


def guard() -> tuple[TextIO, TextIO]:
    """Put the guard in front of both streams; tells which they were, for `unguard`."""
    before = sys.stdout, sys.stderr
    for name, stream in zip(("stdout", "stderr"), before, strict=True):
        if not isinstance(stream, Guarded):
            setattr(sys, name, Guarded(stream))
    return before


def unguard(before: tuple[TextIO, TextIO]) -> None:
    """Put the streams back, for whoever called the command as a function."""
    sys.stdout, sys.stderr = before


def complain(message: str, hint: str = "") -> None:
    """Say on standard error what is wrong, and what helps."""
    sys.stderr.write(f"aof: {_continued(message)}\n")
    if hint:
        sys.stderr.write(f"  → {_continued(hint)}\n")


def _continued(text: str) -> str:
    return text.replace("\n", _CONTINUED)
