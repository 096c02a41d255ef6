"""Messages as lines of standard input. What is not a message is answered as well: a client that asked must not wait.

The SDK drops such lines, and reads bytes that are not UTF-8 as if something else had been sent. Must not know what they
ask for.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError

_NO_MESSAGE = (
    "this is not a JSON-RPC 2.0 message, or it holds text that is not Unicode or a number of more than 64 bits, or is "
    "nested too deep"
)
_DIGITS = 18  # of a number that surely fits into 64 bits


class Lines:
    """Standard input, line by line; `last` is the line that was read last."""

    def __init__(self) -> None:
        file = open(_own_input(), encoding="utf-8", errors="surrogateescape")  # noqa: SIM115 - open until the process ends
        self._file = anyio.wrap_file(file)
        self.last = ""

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._file:
            if line.strip():
                self.last = line
                yield line


def _own_input() -> int:
    """Standard input under another number, so that nothing that is started here reads from it."""
    own, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return own


async def answering(
    lines: Lines,
    read: ReadStream[SessionMessage | Exception],
    write: WriteStream[SessionMessage],
    understood: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Pass on what is a message, and answer what is none. The reader stands still until we have looked at its line."""
    async with understood:
        async for item in read:
            if isinstance(item, Exception):
                await write.send(SessionMessage(refusal(lines.last)))
            else:
                await understood.send(item)


def refusal(line: str) -> JSONRPCError:
    """The answer to a line that is not a message, for the request that it was meant to be."""
    asked: Any = None
    code, why = INVALID_REQUEST, _NO_MESSAGE
    try:
        given = json.loads(line, parse_int=_number)
        asked = given.get("id") if isinstance(given, dict) else None
        line.encode()
    except UnicodeEncodeError:
        code, why = PARSE_ERROR, "this is not UTF-8"
    except (ValueError, RecursionError):
        code, why = PARSE_ERROR, "this is not JSON"
    known = asked if isinstance(asked, str | int) and not isinstance(asked, bool) and asked != "" else None
    return JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=code, message=why))


def _number(text: str) -> int | float:
    return int(text) if len(text) <= _DIGITS else float("inf")
