"""A text that holds several messages: one a line, one JSON document, a list of them, or documents one after another.

Must not know which of them are messages of ours.
"""

from __future__ import annotations

import json

import msgspec

from aof.protocol.detection import LARGEST, PREFIX

_WIDEST = 4  # bytes of a character


def messages_in(text: str) -> list[object]:
    """What the text holds, in order: parsed objects where it is JSON, else its lines that are not blank."""
    found = _whole(text)
    if found is None:
        found = _sequence(text)
    return found if found is not None else [line for line in text.splitlines() if line.strip()]


def _whole(text: str) -> list[object] | None:
    prefixed = text.startswith(PREFIX)
    try:
        value = msgspec.json.decode(text[len(PREFIX) :] if prefixed else text)
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
