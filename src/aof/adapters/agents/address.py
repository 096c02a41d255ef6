"""The address that clients connect to over HTTP: checked before it is written anywhere. Must not know clients."""

from __future__ import annotations

from urllib.parse import urlsplit

from aof.core.errors.base import InvalidInput

_LONGEST = 2048
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EXAMPLE = "for example: aof init --agent claude --http http://127.0.0.1:8420"


def checked_address(given: str) -> str:
    """The address of the MCP endpoint; raises InvalidInput for one that would not do, or would show the token."""
    if len(given) > _LONGEST or not given.isascii() or not given.isprintable() or set(given) & set(" \"'<>\\`{}$"):
        raise InvalidInput("this is not an address", _EXAMPLE)
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput(f"{given[:80]} is not an address", _EXAMPLE) from None
    if parts.scheme not in ("http", "https") or not host or parts.username is not None or parts.fragment or parts.query:
        raise InvalidInput(f"{given[:80]} is not an address of the form http(s)://HOST:PORT", _EXAMPLE)
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise InvalidInput("the token would be readable on the way", f"use https://{parts.netloc}")
    return given if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}/mcp"
