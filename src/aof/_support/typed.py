"""Makes a record's type ready before data is turned into it, once and by one thread at a time.

msgspec works a type out when it is first used, and shows it to other threads before it has finished: two of them that
meet a type for the first time end the process. Whoever decodes or converts into a record names its type through this.
Must not know the types.
"""

from __future__ import annotations

from _thread import RLock

import msgspec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    _Kind = TypeVar("_Kind")

_turn = RLock()
_worked_out: set[object] = set()


def ready(kind: _Kind) -> _Kind:
    """The same type; from here on every thread may use it, with all types that it consists of."""
    if kind not in _worked_out:
        with _turn:
            msgspec.json.Decoder(kind)
            _worked_out.add(kind)
    return kind
