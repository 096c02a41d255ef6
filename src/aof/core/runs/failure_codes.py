"""Codes by which a failure is classified: they only say whether another run makes sense.

Any other code is the caller's own word, and says nothing about that. Must not know the retry policy.
"""

from __future__ import annotations

from typing import Final

from aof.core.errors.base import InvalidInput

AGAIN: Final = ("F-DEP", "F-ENV", "F-EXE", "F-TMO", "F-RES")
FINAL: Final = ("F-INP", "F-SEC", "F-VAL", "F-REV", "F-UNK")


def unknown_code(code: str) -> InvalidInput | None:
    """Refuse what has the form of such a code and is none."""
    if not code.upper().startswith("F-") or code in (*AGAIN, *FINAL):
        return None
    return InvalidInput(
        f"'code' cannot be {code[:80]!r}",
        f"use one of {', '.join(AGAIN)} (tried again) or {', '.join(FINAL)} (not), or a word of your own",
    )
