"""Prepares a record's type before data is converted into it, once and in one thread at a time.

msgspec works a type out when it is first used, and shows it to other threads before it has finished: two threads that
meet a type for the first time crash the process. Every call that decodes or converts into a record names its type
through this. Must not know the types.
"""

from __future__ import annotations

from _thread import RLock
from functools import cache

import msgspec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    _Kind = TypeVar("_Kind")

    class _Prepare(Protocol):
        def __call__(self, kind: _Kind, /) -> _Kind:
            """The same type; from here on every thread may use it, with all types that it consists of."""
            ...


_turn = RLock()


def _prepare(kind: _Kind) -> _Kind:
    with _turn:
        msgspec.json.Decoder(kind)
    return kind


prepare_type: _Prepare = cache(_prepare)  # whose types mypy forgets
