"""Lines that other threads have for the service's log. The service writes them: one thread, one writer."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue


class Notices:
    """A queue with a descriptor that becomes readable when something is in it."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[tuple[str, str]] = SimpleQueue()
        self.fd, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def put(self, action: str, text: str) -> None:
        """Hand over a line, from any thread."""
        self._lines.put((action, text))
        with suppress(BlockingIOError):  # so many wait already that the service will look
            os.write(self._wake, b"\0")

    def drain(self, tell: Callable[[str, str, str], None]) -> None:
        """Tell everything that waits."""
        with suppress(BlockingIOError):
            while os.read(self.fd, 512):
                pass
        with suppress(Empty):
            while True:
                action, text = self._lines.get_nowait()
                tell(action, "", text)

    def close(self) -> None:
        """Give the descriptors back, once nobody puts anything any more."""
        os.close(self.fd)
        os.close(self._wake)
