"""The gates of the session charter. Above: every command. Below: the charter's file."""

from __future__ import annotations

from typing import Protocol

from aof.core.model.gate import Gate


class GatesSource(Protocol):
    """Knows the gates in force."""

    def gates(self) -> tuple[Gate, ...]:
        """The gates that hold anything up; the same object as long as the charter stays as it is."""
        ...
