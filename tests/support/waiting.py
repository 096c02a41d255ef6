"""The one way to wait for what shows itself only when looked at: files, processes, counters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

BOUND = 60.0
"""Seconds that only a failure takes."""


def eventually(condition: Callable[[], object], what: str = "what was awaited") -> None:
    """Look again and again until it is so, within bounds."""
    deadline, pause = time.monotonic() + BOUND, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"no {what}"
        pause.wait(0.01)
