"""Blots out known secrets in a stream that comes in pieces. Must not know where the stream goes."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Redaction:
    """Replaces each secret by as many asterisks; an end that may be the beginning of one is held back."""

    def __init__(self, secrets: Iterable[bytes] = ()) -> None:
        self._secrets = sorted({one for one in secrets if one}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets))) if self._secrets else None
        self._back = b""

    def feed(self, data: bytes) -> bytes:
        """What can be written now."""
        if self._pattern is None:
            return data
        whole = self._pattern.sub(_blot, self._back + data)
        held = max(_beginning(secret, whole) for secret in self._secrets)
        self._back = whole[len(whole) - held :]
        return whole[: len(whole) - held]

    def rest(self) -> bytes:
        """What was held back, at the end of the stream."""
        rest, self._back = self._back, b""
        return rest


def _blot(found: re.Match[bytes]) -> bytes:
    return b"*" * len(found[0])


def _beginning(secret: bytes, text: bytes) -> int:
    """The length of the longest end of the text that the secret begins with, short of all of it."""
    tail = text[max(len(text) - len(secret) + 1, 0) :] if len(secret) > 1 else b""
    at = tail.find(secret[:1])
    while at != -1:
        if secret.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(secret[:1], at + 1)
    return 0
