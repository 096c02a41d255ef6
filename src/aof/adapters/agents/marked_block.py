"""A marked block at the end of a text file: put there, renewed in its place, and taken away without a trace.

A mark is a line of its own: where people only write about it, and where one of a pair is missing, there is no block.
"""

from __future__ import annotations

import re


def with_block(text: str | None, begin: str, content: str, end: str) -> str:
    """The text with the block, or a new file with nothing else; a block that is there is renewed where it stands."""
    newline = "\r\n" if text and "\r\n" in text else "\n"
    block = newline.join([begin, *content.splitlines(), end])
    if text is None:
        return block + newline
    found = _find(text, begin, end)
    if found is not None:
        return text[: found.start()] + block + text[found.end() :]
    # A text without a last line end keeps having none: that is how it is recognised when the block goes.
    if text.endswith("\n"):
        return text + newline + block + newline
    return text + newline * 2 + block if text else block


def without_block(text: str, begin: str, end: str) -> str | None:
    """The text as it was before the block; None for no file at all."""
    found = _find(text, begin, end)
    if found is None:
        return text
    before, after = text[: found.start()], text[found.end() :]
    if not after:
        return re.sub(r"(\r?\n){2}\Z", "", before)
    after = re.sub(r"\A\r?\n", "", after)
    return re.sub(r"(?<=\n)\r?\n\Z", "", before) + after if before or after else None


def block_in(text: str, begin: str, end: str) -> str | None:
    """The block itself, with its marks."""
    found = _find(text, begin, end)
    return found.group() if found else None


def _find(text: str, begin: str, end: str) -> re.Match[str] | None:
    """From a mark to the end of its block, with no other beginning between them."""
    mark = rf"^{re.escape(begin)}(?=\r?$)"
    return re.search(rf"{mark}(?:(?!{mark}).)*?^{re.escape(end)}(?=\r?$)", text, re.DOTALL | re.MULTILINE)
