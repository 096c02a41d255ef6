"""Ctrl-C in a command that goes on until somebody ends it. Must not know the command."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


def end_on_interrupt() -> None:
    """Ctrl-C is the way to stop following. Raised as an error it could get lost in a reader that is being closed."""

    def end(_number: int, _frame: object) -> None:
        with suppress(RuntimeError, OSError):  # somebody may be in the middle of writing
            sys.stdout.flush()
        os._exit(0)

    signal.signal(signal.SIGINT, end)
