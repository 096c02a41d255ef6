"""Text by others inside a text of ours: fenced and labelled, so that nobody takes one for the other.

The fence is longer than any in the text, and what a reader would not see is made visible. Must not know what the text
is about.
"""

from __future__ import annotations

import re
from typing import Final

from aof.core.validation.visible import visible, visible_line

_FENCES: Final = re.compile("`{3,}")
_LEAST: Final = 3


def quoted(text: str, label: str, whose: str = "others") -> str:
    """The text as a block that only its own fence closes, under a line that says whose it is."""
    shown = visible(text).strip("\n")
    longest = max((len(found.group()) for found in _FENCES.finditer(shown)), default=_LEAST - 1)
    fence = "`" * (longest + 1)
    label = visible_line(label).replace("`", "'")
    return f"Text by {whose} ({label}):\n\n{fence}text\n{shown}\n{fence}"
