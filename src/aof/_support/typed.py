"""Prepares a record's type before data is converted into it, once and in one thread at a time.

msgspec works a type out when it is first used, and shows it to other threads before it has finished: two threads that
meet a type for the first time crash the process. Every call that decodes or converts into a record names its type
through this. Must not know the types.
"""

from __future__ import annotations

from _thread import RLock

import msgspec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    _Kind = TypeVar("_Kind")

_turn = RLock()
_prepared: set[object] = set()


def prepare_type(kind: _Kind) -> _Kind:
    """The same type; from here on every thread may use it, with all types that it consists of."""
    if kind not in _prepared:
        with _turn:
            msgspec.json.Decoder(kind)
            _prepared.add(kind)
    return kind
