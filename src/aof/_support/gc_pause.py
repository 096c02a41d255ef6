"""Makes many records without looking for garbage among them. Must not know what they are."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
