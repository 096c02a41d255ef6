"""The words of a text, as they are compared when somebody searches. Must not know what is searched.

Case makes no difference. Scripts that write without spaces are taken character by character, and so are emoji.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_EMOJI = "\u2600-\u27bf\U0001f300-\U0001faff"
_WORD = re.compile(rf"[{_UNSPACED}{_EMOJI}]|[^\W_{_UNSPACED}{_EMOJI}]+")
MOST_WORDS = 32  # of what is searched for; the rest is not looked at


def words(text: str) -> list[str]:
    """All words of a text, in its order."""
    return _WORD.findall(text.casefold())


def wanted(text: str) -> list[str]:
    """The words that are searched for, each once."""
    return list(dict.fromkeys(words(text)))[:MOST_WORDS]


def hold(texts: Iterable[str], sought: Sequence[str]) -> bool:
    """Whether each word that is sought begins some word of these texts."""
    there = {word for text in texts for word in words(text)}
    return all(any(word.startswith(one) for word in there) for one in sought)
