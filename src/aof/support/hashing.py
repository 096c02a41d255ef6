"""SHA-256, as files, heads, the log's chain and secrets use it. Must not know what is hashed.

`hashlib` loads OpenSSL, which takes milliseconds and pays only after some hundred digests. A call on the command line
makes a few; so it begins with Python's own small module, as the standard library's `random` does.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WORTH_LOADING = 256
_SMALL = ("_sha2", "_sha256", "hashlib")  # what it is called from Python 3.12 on, before, and without it


def _first() -> Callable[[bytes], Any]:
    for name in _SMALL:
        try:
            found: Callable[[bytes], Any] = import_module(name).sha256
        except (ImportError, AttributeError):
            continue
        return found
    raise ImportError("this Python has no SHA-256")


class _Hashing:
    """The function in use, and how often it was used."""

    def __init__(self) -> None:
        self._function = _first()
        self._left = _WORTH_LOADING

    def __call__(self, data: bytes) -> str:
        if self._left:
            self._left -= 1
            if not self._left:
                self._function = import_module("hashlib").sha256
        digest: str = self._function(data).hexdigest()
        return digest


hexdigest = _Hashing()
