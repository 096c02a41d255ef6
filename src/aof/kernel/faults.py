"""Unexpected errors: each is recorded under a reference, set aside, and tried again after growing waits.

The log of the process has the traceback under the same reference as the line that a user sees. Must not know what was
attempted, nor which surface it was for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Final

import msgspec

from aof.errors import AofError
from aof.kernel.limits import visible, visible_line
from aof.store.port import Clock

Tell = Callable[[str, str, str], None]

_SHOWN: Final = 300
_FIRST: Final = 1.0  # seconds before something that failed is tried again
_LONGEST: Final = 60.0
_FORGOTTEN: Final = 3_600.0
PERSISTENT: Final = 3  # failures one after another


def reference() -> str:
    """A new name by which a fault is found in the log."""
    return f"FAULT-{os.urandom(4).hex()}"


def describe(error: Exception) -> str:
    """An error on one line, within bounds."""
    said = f"{error.message} [{error.code}]" if isinstance(error, AofError) else f"{type(error).__name__}: {error}"
    return visible_line(said)[:_SHOWN]


def record(what: str, error: Exception) -> str:
    """Log what an error did, with its traceback where nobody foresaw it; gives the reference."""
    import logging
    import traceback

    name = reference()
    head = f"{name}: {visible_line(what)[:_SHOWN]} failed: {describe(error)}"
    if not isinstance(error, AofError):
        head += "\n" + visible("".join(traceback.format_exception(error))).rstrip()
    logging.getLogger(__name__).error("%s", head)
    return name


class _Setback(msgspec.Struct):
    """Something that has failed, and when it may be tried again."""

    failures: int
    until: float
    error: Exception


class Faults:
    """The faults of one service or tick, by what was attempted."""

    def __init__(self, clock: Clock, tell: Tell | None = None) -> None:
        self._clock = clock
        self._tell = tell
        self._setbacks: dict[Hashable, _Setback] = {}

    def attempt(self, key: Hashable, what: str, task_id: str, step: Callable[[], object]) -> bool:
        """Take a step, unless it failed a moment ago, and record what it raises. Returns whether it was taken."""
        if self.wait(key):
            return False
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the edge of one step: all others go on
            self.failed(key, what, task_id, error)
            return False
        self.succeeded(key)
        return True

    def note(self, what: str, task_id: str, error: Exception) -> str:
        """Record an error and go on; gives the sentence that says so."""
        if isinstance(error, AofError):
            said, action = f"{what}: {describe(error)}", "trouble"
        else:
            said, action = f"{what} failed: {describe(error)} (reference {record(what, error)})", "fault"
        if self._tell is not None:
            self._tell(action, task_id, said)
        return said

    def failed(self, key: Hashable, what: str, task_id: str, error: Exception) -> str:
        """Record an error of something that will be tried again, later and later."""
        before = self._setbacks.get(key)
        failures = before.failures + 1 if before is not None else 1
        wait = min(_FIRST * 2 ** (failures - 1), _LONGEST)
        now = self._clock.monotonic()
        self._setbacks = {name: one for name, one in self._setbacks.items() if now - one.until < _FORGOTTEN}
        self._setbacks[key] = _Setback(failures, now + wait, error)
        return f"{self.note(what, task_id, error)}; it is tried again in {wait:.0f} s"

    def succeeded(self, key: Hashable) -> None:
        """Note a success, after which earlier errors of the same kind no longer count."""
        self._setbacks.pop(key, None)

    def wait(self, key: Hashable) -> float:
        """The seconds until it may be tried again; 0 when it may be now."""
        found = self._setbacks.get(key)
        return max(found.until - self._clock.monotonic(), 0.0) if found is not None else 0.0

    def persistent(self, key: Hashable) -> Exception | None:
        """The last error of something that keeps failing, if anything does."""
        found = self._setbacks.get(key)
        return found.error if found is not None and found.failures >= PERSISTENT else None

    def waiting(self, *kinds: str) -> dict[tuple[Hashable, ...], float]:
        """What waits to be tried again, by keys whose first part is one of these kinds, with the seconds left."""
        now = self._clock.monotonic()
        return {
            key: one.until - now
            for key, one in self._setbacks.items()
            if isinstance(key, tuple) and key[0] in kinds and one.until > now
        }
