"""The one form that we write frontmatter in: a line a key, the value as JSON, readable as YAML too.

A text is canonical when writing its values again gives the same bytes; so a line holds exactly one value,
nested keys occur once, and nothing that a person laid out differently is lost. Must not know what a task is
apart from the names of its keys, nor any YAML.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from aof.core.model.task import NOT_FRONTMATTER, Task
from aof.core.validation.limits import FRONTMATTER_BYTES

LIMIT: Final = FRONTMATTER_BYTES  # a larger one is refused unread
FIELDS: Final = tuple(field for field in msgspec.structs.fields(Task) if field.name not in NOT_FRONTMATTER)
KEYS: Final = frozenset(field.encode_name for field in FIELDS)
_NAMES: Final = {key.encode(): key for key in KEYS}

encode_lines = msgspec.json.Encoder().encode_lines
_encode = msgspec.json.Encoder().encode
_decode_lines = msgspec.json.Decoder().decode_lines
_decode_key = msgspec.json.Decoder(str).decode
_pack = msgspec.msgpack.Encoder().encode

# What JSON allows in a string but YAML forbids there or takes for a line break.
_SUSPECT = (b"\xc2", *(char.encode() for char in "\x7f\u2028\u2029\ufeff\ufffe\uffff"))  # c2: U+0080 to U+00BF
# Rarely needed, so compiled when they are.
_NOT_YAML: Final = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
_PLAIN_KEY: Final = r"[A-Za-z_][A-Za-z0-9_-]*\Z"
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def escape(encoded: bytes) -> bytes:
    """Make JSON valid YAML as well. Such characters stand only inside strings, so an escape is always right."""
    if encoded.isascii():
        if b"\x7f" not in encoded:
            return encoded
    elif not any(map(encoded.__contains__, _SUSPECT)):
        return encoded
    return re.sub(_NOT_YAML, lambda found: f"\\u{ord(found[0]):04x}", encoded.decode()).encode()


def encode(value: Any) -> str:
    """One value as it stands behind its key."""
    return escape(_encode(value)).decode()


def key_text(key: str) -> str:
    """A key as it stands at the start of its line: quoted unless every YAML reader takes it for a plain text."""
    if re.match(_PLAIN_KEY, key, re.ASCII) and key.lower() not in _YAML_WORDS:
        return key
    return encode(key).replace(": ", ":\\u0020")  # so that the first ": " of a line always ends the key


def decode(front: bytes) -> dict[str, Any] | None:
    """The values by key, or None when the lines (without the last line break) are not canonical."""
    if not front:
        return {}
    try:
        keys, texts = zip(*[line.split(b": ", 1) for line in front.split(b"\n")], strict=True)
        text = b"\n".join(texts) + b"\n"
        values = _decode_lines(text)
        if escape(encode_lines(values)) != text:
            return None
        _pack(values)  # fails for integers beyond 64 bits, which JSON knows and few readers do
        try:
            names = [_NAMES[key] for key in keys]
        except KeyError:
            names = [_NAMES.get(key) or _name(key) for key in keys]
    except (ValueError, OverflowError, RecursionError, msgspec.DecodeError):
        return None
    found = dict(zip(names, values, strict=True))
    return found if len(found) == len(values) else None


def _name(text: bytes) -> str:
    """The key that canonical key text stands for."""
    key = _decode_key(text) if text.startswith(b'"') else text.decode()
    if key_text(key).encode() != text:
        raise ValueError(key)
    return key
