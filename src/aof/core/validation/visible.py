"""Text by others, with everything made visible that a reader would not see: control, bidi, tag and private characters.

What stays is what a person can read in it, line breaks and tabs. Must not know where the text goes.
"""

from __future__ import annotations

import re
from typing import Final

# Cc without tab and line feed; Cf and its kin that change the order, are not shown or hide data; line and paragraph
# separators; surrogates and private use. The joiners of scripts and emoji (U+200C, U+200D) stay.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


def visible(text: str) -> str:
    """The text with each hidden character as its escape in Python's form; CRLF is a plain line break."""
    return _HIDDEN.sub(_escaped, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """The same on one line."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")
