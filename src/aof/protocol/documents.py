"""A text that holds several messages: one a line, one JSON document, a list of them, or documents one after another.

Must not know which of them are messages of ours.
"""

from __future__ import annotations

import json

import msgspec

from aof._support import nesting
from aof.protocol.detection import LARGEST, MARK, PREFIX, is_meant

_WIDEST = 4  # bytes of a character


def messages_in(text: str) -> list[object]:
    """What the text holds, in order: parsed objects where it is JSON, else its lines that are not blank.

    Lines that together are a message, or broken JSON that was meant as one, stay together.
    """
    text = text.removeprefix(MARK)
    found = _whole(text)
    if found is None:
        found = _sequence(text)
    return found if found is not None else [part for block in _blocks(text) for part in _parts(block)]


def _blocks(text: str) -> list[list[str]]:
    """The lines, parted before each that begins a document or a message."""
    blocks: list[list[str]] = [[]]
    for line in _lines(text):
        if line.startswith(("{", "[", PREFIX)):
            blocks.append([])
        blocks[-1].append(line)
    return blocks


def _lines(text: str) -> list[str]:
    """Parted at line breaks only: what Unicode has besides them may stand inside a JSON string."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _parts(block: list[str]) -> list[str]:
    """A document at the beginning of a block, sound or broken, then the lines after it."""
    whole = "\n".join(block).strip()
    if not is_meant(whole):
        return [line for line in block if line.strip()]
    try:
        _, end = json.JSONDecoder().raw_decode(whole)
    except (ValueError, RecursionError):
        return [whole]
    return [whole[:end], *(line for line in _lines(whole[end:]) if line.strip())]


def _whole(text: str) -> list[object] | None:
    prefixed = text.startswith(PREFIX)
    try:
        value = nesting.decode(text[len(PREFIX) :] if prefixed else text, object)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if prefixed:
        return [text]
    return list(value) if isinstance(value, list) else [_sized(value, text.strip())]


def _sequence(text: str) -> list[object] | None:
    """Objects one after another, however they are laid out; None where it is anything else."""
    decoder = json.JSONDecoder()
    found: list[object] = []
    place, end = 0, len(text)
    while True:
        while place < end and text[place].isspace():
            place += 1
        if place == end:
            return found or None
        if text[place] != "{":
            return None
        try:
            value, after = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return None
        found.append(_sized(value, text[place:after]))
        place = after


def _sized(value: object, text: str) -> object:
    """What is larger than any message may be stays the text that it came as: that is the size that counts."""
    if not isinstance(value, dict) or "protocol" not in value or _WIDEST * len(text) <= LARGEST:
        return value
    return text if len(text.encode("utf-8", "surrogateescape")) > LARGEST else value
