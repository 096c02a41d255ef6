"""Text for people: what others wrote is made safe to print, and long work can say how far it is."""

from __future__ import annotations

from collections.abc import Callable

_JOINER = "\u200d"
_HARMLESS = ("Zs", "Co", "Cn")  # spaces, private use, and what this Python does not know yet
_BEYOND = 0x10000


def clean(text: str, *, lines: bool = False) -> str:
    """The text with a replacement character for all that controls; `lines` keeps line breaks and tabs."""
    if text.isprintable():
        return text
    if lines and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(one if one.isprintable() or _harmless(one, lines=lines) else "�" for one in text)


def escaped(json: str) -> str:
    """JSON that means the same, with everything escaped that a terminal would not show as it is."""
    if json.isprintable():
        return json
    return "".join(one if one.isprintable() else _escape(one) for one in json)


def _escape(one: str) -> str:
    number = ord(one)
    if number < _BEYOND:
        return f"\\u{number:04x}"
    high, low = divmod(number - _BEYOND, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _harmless(one: str, *, lines: bool) -> bool:
    if one in "\n\t":
        return lines
    import unicodedata

    return one == _JOINER or unicodedata.category(one) in _HARMLESS


Say = Callable[[str], object]


def silent(_detail: str) -> None:
    """Report no progress: for callers that do not show any."""
