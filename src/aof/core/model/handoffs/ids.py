"""Identifiers of handoffs: version 4 UUIDs, and the form that earlier versions wrote. Must not draw anything random."""

from __future__ import annotations

import re
from typing import Final

from aof._support.hashing import hexdigest

_UUID4: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z", re.ASCII)
_FORMAT_1: Final = re.compile(r"HO-[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{3,9}-[0-9]{1,15}\Z", re.ASCII)
_PART: Final = re.compile(r"[0-9a-f-]{1,36}\Z", re.ASCII)


def uuid4(entropy: str, number: int) -> str:
    """The nth version 4 UUID from random text that the caller has drawn; 122 bits of it count."""
    digits = hexdigest(f"{entropy}:{number}".encode())
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def is_handoff_id(text: str) -> bool:
    """Whether the text is a whole handoff ID; it becomes a file name."""
    return _UUID4.match(text) is not None or is_format_1(text)


def is_format_1(text: str) -> bool:
    """Whether the text is an ID as earlier versions made them, from the task and its version."""
    return _FORMAT_1.match(text) is not None


def is_part(text: str) -> bool:
    """Whether the text could be the beginning of a handoff's ID."""
    return _PART.match(text) is not None
