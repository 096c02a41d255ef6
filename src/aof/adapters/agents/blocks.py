"""A marked block at the end of a text file: put there, renewed in its place, and taken away without a trace."""

from __future__ import annotations

import re


def with_block(text: str, begin: str, content: str, end: str) -> str:
    """The text with the block; one that is there already is renewed where it stands."""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join([begin, *content.splitlines(), end])
    found = _find(text, begin, end)
    if found is not None:
        return text[: found.start()] + block + text[found.end() :]
    if not text:
        return block + newline
    # A text without a last line end keeps having none: that is how it is recognised when the block goes.
    return text + newline + block + newline if text.endswith("\n") else text + newline * 2 + block


def without_block(text: str, begin: str, end: str) -> str:
    """The text as it was before the block."""
    found = _find(text, begin, end)
    if found is None:
        return text
    before, after = text[: found.start()], text[found.end() :]
    if not after:
        return re.sub(r"(\r?\n){2}\Z", "", before)
    after = re.sub(r"\A\r?\n", "", after)
    return re.sub(r"(?<=\n)\r?\n\Z", "", before) + after


def _find(text: str, begin: str, end: str) -> re.Match[str] | None:
    return re.search(re.escape(begin) + r".*?" + re.escape(end), text, re.DOTALL)
