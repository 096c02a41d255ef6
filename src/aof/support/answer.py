"""The common form of what programs are given. Apart from `typed`, which lists load without any record."""

from __future__ import annotations

from typing import Any

import msgspec


class StructAnswer(msgspec.Struct, frozen=True):
    """A record, or another struct, that an operation gives back."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, in the names and words of JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain
