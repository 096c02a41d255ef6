"""Is this a protocol message at all? Tried in a fixed order: a parsed object, JSON text, text behind `AOF/1 `.

Text that is not an AOF/1 message is ignored and is not an error; broken JSON that names the protocol is one. Must not
know what a valid message looks like inside.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof._support import nesting
from aof.core.errors.base import AofError, PayloadTooLarge
from aof.core.errors.messages import InvalidEnvelope, InvalidJson

PROTOCOL: Final = "aof"
PREFIX: Final = "AOF/1 "
MARK: Final = "\ufeff"  # a byte order mark, which some editors write before the text and which means nothing
NONCE: Final = "nonce"  # the field of an envelope that proves which process printed it; never stored
LARGEST: Final = 10_000_000  # bytes of a whole envelope

_HINT: Final = 'send one JSON object: {"protocol":"aof","version":1,"type":…,"taskId":…,…}'
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError, ValueError, TypeError, OverflowError)


class Incoming(msgspec.Struct, frozen=True):
    """Something that arrived: a parsed object, a text, or both, of which the object counts."""

    payload: object = None
    content: object = None


class Detected(msgspec.Struct, frozen=True):
    """A message of ours: its fields as plain JSON, or what is wrong with it."""

    fields: dict[str, Any] = {}
    problem: AofError | None = None


class _Glance(msgspec.Struct):
    """As much of a message as is needed to say whose it is, without building all of it."""

    protocol: object = None
    type: object = None
    taskId: object = None  # noqa: N815 - the wire's name
    fromAgent: object = None  # noqa: N815 - the wire's name


def incoming(given: object) -> Incoming:
    """What a caller handed over, as something that arrived: a message, its text, or an event that holds one."""
    if isinstance(given, Incoming):
        return given
    if isinstance(given, dict):
        if given.get("protocol") != PROTOCOL and ("content" in given or isinstance(given.get("payload"), dict)):
            return Incoming(given.get("payload"), given.get("content"))
        return Incoming(payload=given)
    return Incoming(content=given)


def detect(arrived: Incoming) -> Detected | None:
    """The message in what arrived; None where there is none. Never raises."""
    if isinstance(arrived.payload, dict) and arrived.payload.get("protocol") == PROTOCOL:
        return _parsed(arrived.payload)
    text = arrived.content
    if isinstance(text, bytes | bytearray | memoryview):
        text = _decoded(bytes(text))
    if not isinstance(text, str):
        return None
    text = text.removeprefix(MARK)
    if text.startswith(PREFIX):
        return _prefixed(text[len(PREFIX) :])
    return _bare(text)


def _decoded(data: bytes) -> str:
    """Text in UTF-8; what is none keeps its beginning, by which it may claim to be ours."""
    return data.decode("utf-8", "surrogateescape")


def _parsed(given: dict[Any, Any]) -> Detected:
    """Over JSON, so that nothing but plain data goes any further."""
    try:
        data = msgspec.json.encode(given)
        if len(data) > LARGEST:
            return Detected(_glanced(data), _too_large(len(data)))
        return Detected(nesting.decode(data, dict[str, Any]))
    except _UNREADABLE as error:
        return Detected(problem=InvalidEnvelope(f"the message is not plain JSON: {nesting.reason(error)}", _HINT))


def _prefixed(text: str) -> Detected:
    try:
        data = text.encode()
        if len(data) > LARGEST:
            return Detected(problem=_too_large(len(data)))
        value = nesting.decode(data, object)
    except _UNREADABLE as error:
        return Detected(problem=InvalidJson(f"what follows '{PREFIX}' is not JSON: {error}", _HINT))
    if not isinstance(value, dict):
        return Detected(problem=InvalidEnvelope(f"what follows '{PREFIX}' is not a JSON object", _HINT))
    return Detected(value)


def is_meant(text: str) -> bool:
    """Whether JSON that cannot be read was meant as a message: it looks like JSON and names the protocol."""
    return text.lstrip().startswith(("{", "[")) and '"protocol"' in text and f'"{PROTOCOL}"' in text


def _bare(text: str) -> Detected | None:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        data = text.encode()
        if len(data) > LARGEST:
            glance = _glanced(data)
            return Detected(glance, _too_large(len(data))) if glance.get("protocol") == PROTOCOL else None
        value = nesting.decode(data, object)
    except _UNREADABLE as error:
        problem = InvalidJson(f"the message is not JSON: {error}", _HINT)
        return Detected(problem=problem) if is_meant(text) else None
    return Detected(value) if isinstance(value, dict) and value.get("protocol") == PROTOCOL else None


def _glanced(data: bytes) -> dict[str, Any]:
    found = nesting.decode(data, _Glance)
    return {name: getattr(found, name) for name in _Glance.__struct_fields__}


def _too_large(size: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"the message has {size:,} bytes, the limit is {LARGEST:,}",
        "keep long text in a file under the task's outputs/ and refer to it",
    )
