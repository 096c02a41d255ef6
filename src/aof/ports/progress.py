"""How far long work is, told to whoever waits for it. Above: what works. Below: a line on a terminal, or nobody."""

from __future__ import annotations

from collections.abc import Callable

Say = Callable[[str], object]


def silent(_detail: str) -> None:
    """Nobody waits."""
