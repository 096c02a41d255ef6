"""One line on standard error for what takes longer than a second: what goes on, how far it is, since when.

Only for a person: nothing where standard error is not a terminal, or where the answer is asked for as JSON. A thread of
its own draws the line, so that also work which tells nothing about itself is seen to go on.
Must not know what the work is.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

from aof._support import lazy_imports
from aof.adapters.cli.terminal.screen import trusted
from aof.adapters.cli.terminal.text_width import clean, cut

_BEGIN, _AGAIN = 1.0, 0.2  # seconds before the line is drawn first, and from then on
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Call it with how far the work is; what was told last is shown."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what = what
        self._stream = stream
        self._since = time.monotonic()
        self._detail = ""
        self._over = threading.Event()
        self._drawing = threading.Thread(target=self._draw, name="progress", daemon=True)

    def __call__(self, detail: str) -> None:
        """How far the work is now."""
        self._detail = detail

    def __enter__(self) -> Self:
        lazy_imports.settle()
        self._drawing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._drawing.join()

    def _draw(self) -> None:
        pause, drawn = _BEGIN, False
        while not self._over.wait(pause):
            drawn, pause = True, _AGAIN
            self._write(f"{_CLEAR}{cut(clean(self._line()), _columns(self._stream) - 1)}")
        if drawn:
            self._write(_CLEAR)

    def _line(self) -> str:
        seconds = int(time.monotonic() - self._since)
        return f"{self._what}: {self._detail}, {seconds} s" if self._detail else f"{self._what}: {seconds} s"

    def _write(self, text: str) -> None:
        trusted(self._stream, text)
        self._stream.flush()


class Silent:
    """The same without a terminal: it shows nothing."""

    def __call__(self, detail: str) -> None:
        """Nobody wants to know."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


def progress(what: str, *, as_json: bool) -> ProgressLine | Silent:
    """A line for this work, or none."""
    return ProgressLine(what, sys.stderr) if sys.stderr.isatty() and not as_json else Silent()


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
