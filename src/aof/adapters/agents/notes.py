"""The notes that tell an agent how work is tracked: a marked block in the file that it reads, for one kind or several.

The block says which kinds it is for, so that it goes with the last of them. Must not know which kinds there are.
"""

from __future__ import annotations

import re

from aof.adapters.agents.marked_block import block_in, with_block, without_block

BEGIN = "<!-- aof: begin (written by 'aof init', taken away by 'aof init --remove') -->"
END = "<!-- aof: end -->"
_FOR = re.compile(r"^<!-- for ([a-z, ]+) -->\r?$", re.MULTILINE)
_TEXT = """\
## Tasks

Work in this project is tracked by AOF. Begin a session with `aof prime`, take a task before you work on it, and report
how it ended. If you have `aof_*` tools, use them; else the `aof` command, as the skill `aof` and `aof --help` say.
Do not edit files below `.aof`.
"""


def readers(text: str | None) -> tuple[str, ...] | None:
    """The kinds that the notes are for; None where there are no notes, and none for those that do not say."""
    block = block_in(text, BEGIN, END) if text else None
    if block is None:
        return None
    found = _FOR.search(block)
    return tuple(name.strip() for name in found[1].split(",")) if found else ()


def with_notes(text: str | None, kinds: tuple[str, ...]) -> str:
    """The text with notes for these kinds."""
    return with_block(text, BEGIN, f"<!-- for {', '.join(kinds)} -->\n{_TEXT}", END)


def without_notes(text: str) -> str | None:
    """The text as it was before; None for no file at all."""
    return without_block(text, BEGIN, END)


def is_untouched(text: str) -> bool:
    """Whether nobody has written into the notes."""
    block = block_in(text, BEGIN, END)
    return block is not None and "".join(_TEXT.split()) in "".join(block.split())
