"""The skill that tells an agent with a shell how to work here, and how it is recognised as nobody's but ours.

Its last line has a digest of the rest: a file that somebody has edited is theirs. Must not know where skills lie.
"""

from __future__ import annotations

import re
from pathlib import Path

from aof._support.hashing import hexdigest

_MARK = re.compile(r"\n<!-- aof: ([0-9a-f]{12}), written by 'aof init', taken away by 'aof init --remove' -->\s*\Z")


def skill() -> str:
    """The whole file."""
    text = Path(__file__).with_name("SKILL.md").read_text(encoding="utf-8")
    return f"{text}\n<!-- aof: {_digest(text)}, written by 'aof init', taken away by 'aof init --remove' -->\n"


def is_untouched(text: str) -> bool:
    """Whether a file is as some version of AOF has written it; git may have changed its line ends."""
    plain = text.replace("\r\n", "\n")
    mark = _MARK.search(plain)
    return mark is not None and mark[1] == _digest(plain[: mark.start()])


def _digest(text: str) -> str:
    return hexdigest(text.encode())[:12]
