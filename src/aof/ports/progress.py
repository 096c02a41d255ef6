"""Progress of long work. Above: what works. Below: a line on a terminal, or nothing."""

from __future__ import annotations

from collections.abc import Callable

Say = Callable[[str], object]


def silent(_detail: str) -> None:
    """Nobody waits."""
