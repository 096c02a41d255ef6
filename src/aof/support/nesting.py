"""How deep JSON may be nested: one bound for the log, files, messages, calls and requests. Must not know what it is of.

Python's own limit depends on how deep the caller stands, and its message means nothing to whoever wrote the JSON.
"""

from __future__ import annotations

import re

import msgspec

from aof.support.typed import prepare_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import Any, Final, TypeVar

    _Kind = TypeVar("_Kind")
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

MOST_NESTED: Final = 64  # lists and objects inside each other
_WORDS = f"nested too deeply: more than {MOST_NESTED} lists and objects inside each other"
_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"?'  # also one that does not end, so that nothing is looked at twice
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))
_TOO_MANY = b"[" * (MOST_NESTED + 1)


class NestedTooDeeply(msgspec.DecodeError):
    """JSON that is nested more than `MOST` deep."""

    def __init__(self) -> None:
        super().__init__(_WORDS)


def refuse_nesting(data: bytes | str) -> None:
    """Raise NestedTooDeeply for JSON that is. Takes time in proportion to the data, however it is nested."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if data.count(b"[") + data.count(b"{") <= MOST_NESTED:
        return
    rest = re.sub(_STRING, b"", data, flags=re.DOTALL).translate(_BRACKETS, _OTHERS)
    for _ in range(MOST_NESTED + 1):
        if _TOO_MANY in rest:
            break
        whole, rest = rest, rest.replace(b"[]", b"")  # the innermost of all
        if rest == whole:
            return
    raise NestedTooDeeply


def decode_json(data: bytes | str, kind: type[_Kind]) -> _Kind:
    """The JSON as what it is of; raises msgspec.DecodeError."""
    refuse_nesting(data)
    return msgspec.json.decode(data, type=prepare_type(kind))


def reason(error: BaseException) -> str:
    """What an error says of the data: a value that is nested too deeply may be met by Python's own limit."""
    return _WORDS if isinstance(error, RecursionError) else str(error)


async def inspect_body(receive: Receive, most: int) -> tuple[bytes, Receive]:
    """The body of a request, and a `receive` that yields it once more; raises NestedTooDeeply.

    Of a body with more than `most` bytes only the beginning is read: whoever answers the request refuses it.
    """
    messages: list[MutableMapping[str, Any]] = []
    size, more = 0, True
    while more and size <= most:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = b"".join(message.get("body", b"") for message in messages)
    refuse_nesting(body)
    messages.reverse()

    async def receive_again() -> MutableMapping[str, Any]:
        return messages.pop() if messages else await receive()

    return body, receive_again
