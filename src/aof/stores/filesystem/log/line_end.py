"""How a line of the log ends: with its hash, at a known distance from its end. Must not know what stands before.

For callers that only check that an event is still where it was.
"""

from __future__ import annotations

GENESIS = "0" * 64
MARK = b',"hash":"'
CLOSE = b'"}\n'
TAIL_BYTES = len(MARK) + 64 + len(CLOSE)


def tail_of(digest: str) -> bytes:
    """How a line with this hash ends."""
    return b"%b%b%b" % (MARK, digest.encode(), CLOSE)
