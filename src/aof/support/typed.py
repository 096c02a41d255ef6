"""Two precautions where records are decoded.

A type is prepared once and by one thread at a time, and many records are made without looking for garbage among them.
msgspec works a type out when it is first used, and shows it to other threads before it has finished: two threads that
meet a type for the first time crash the process. Every call that decodes or converts into a record names its type
through this. Must not know the types.
"""

from __future__ import annotations

import gc
from _thread import RLock
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import msgspec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeVar

if TYPE_CHECKING:
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


@contextmanager
def uncollected() -> Iterator[None]:
    """Many records are made and none is part of a cycle, so looking for garbage among them is lost time.

    Afterwards they count as old: otherwise the next record that is made would have all of them looked at as young ones.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
