"""What stays on a terminal while a command runs: a picture that follows along, and one line of progress.

However it ends, the terminal is as it was before.
"""

from __future__ import annotations

import io
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any, Self, TextIO

from aof.support import lazy_imports
from aof.support.printable import Say, clean, silent
from aof.surfaces.cli.screen import Screen, cut, trusted

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
_ENDED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_QUIT = (b"q", b"Q", b"\x1b")
_LOOKS = 4


def follow(draw: Callable[[Screen], None], changed: Callable[[float], bool]) -> None:
    """Draw again whenever something has changed, and each second, for times pass; until Ctrl-C or `q`.

    A signal only leaves a note: raised as an error it could get lost in whatever runs at that moment.
    """
    ended: list[int] = []
    with _terminal(ended) as out:
        while not ended:
            trusted(out, _frame(draw))
            out.flush()
            for _ in range(_LOOKS):
                if _asked_to_quit():
                    ended.append(signal.SIGINT)
                if ended or changed(1 / _LOOKS):
                    break
    if ended[0] != signal.SIGINT:
        raise SystemExit(128 + ended[0])


class _FrameBuffer(io.StringIO):
    """What a frame is drawn on: as wide and as colourful as the terminal."""

    def isatty(self) -> bool:
        return True


def _frame(draw: Callable[[Screen], None]) -> str:
    buffer = _FrameBuffer()
    screen = Screen(buffer)
    draw(screen)
    lines = buffer.getvalue().removesuffix("\n").split("\n")[: screen.height]
    return _HOME + "\n".join(line + _REST_OF_LINE for line in lines) + _REST_OF_SCREEN


@contextmanager
def _terminal(ended: list[int]) -> Iterator[Any]:
    """The other screen of the terminal, without cursor and echo; signals that would end the process are noted."""
    out = sys.stdout

    def end(number: int, _frame: object) -> None:
        ended.append(number)

    def suspend(_number: int, _frame: object) -> None:
        leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        enter()

    def enter() -> None:
        _echo(on=False)
        trusted(out, _ENTER)
        out.flush()

    def leave() -> None:
        trusted(out, _LEAVE)
        out.flush()
        _echo(on=True)

    handlers = {number: signal.signal(number, end) for number in _ENDED_BY}
    handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, suspend)
    enter()
    try:
        yield out
    finally:
        leave()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _echo(*, on: bool) -> None:
    """Keys are not shown and come one by one, or as usual again. Only where they come from a terminal."""
    if not sys.stdin.isatty():
        return
    import termios

    flags = termios.tcgetattr(sys.stdin)
    both = termios.ECHO | termios.ICANON
    flags[3] = flags[3] | both if on else flags[3] & ~both
    termios.tcsetattr(sys.stdin, termios.TCSANOW, flags)


def _asked_to_quit() -> bool:
    if not sys.stdin.isatty() or not select.select([sys.stdin], [], [], 0)[0]:
        return False
    return os.read(sys.stdin.fileno(), 64) in _QUIT


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


def progress(what: str, *, as_json: bool) -> AbstractContextManager[Say]:
    """A line for this work; where no terminal would show it, nothing is said."""
    return ProgressLine(what, sys.stderr) if sys.stderr.isatty() and not as_json else nullcontext(silent)


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
