"""Somebody else who writes all the time, from a thread of the test, at a steady rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from aof.service.bootstrap import open_fabric
from tests.e2e.browser.served import Served


class Storm:
    """Commits so many times a second until the block ends; `count` is how many came through."""

    def __init__(self, served: Served, task_ids: list[str], rate: float = 100.0) -> None:
        self.count = 0
        self._served = served
        self._task_ids = task_ids
        self._step = 1 / rate
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._blow, daemon=True)

    def _blow(self) -> None:
        with open_fabric(self._served.root, actor="bob") as fabric:
            due = time.monotonic()
            while not self._end.wait(max(due - time.monotonic(), 0)):
                task = self._task_ids[self.count % len(self._task_ids)]
                fabric.comment(task, text=f"gust {self.count}")
                self.count += 1
                due += self._step

    def until(self, look: Callable[[], object], gusts: int) -> None:
        """Look again and again while at least so many commits come."""
        goal = self.count + gusts
        while self.count < goal:
            assert self._thread.is_alive(), "the storm has ended by itself"
            look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join(30)
