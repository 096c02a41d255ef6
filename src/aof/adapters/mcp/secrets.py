"""Keeps the secrets of runs out of what a model reads: a session holds them, or the client's program gets them apart.

Must not know what a secret is good for.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof.app.operations.rows.org import SentMessages

SECRETS = "aof/runSecrets"
_NAME = "secret"


def parted(result: Any) -> tuple[Any, list[str]]:
    """A result without its secrets, and those."""
    if isinstance(result, SentMessages):
        rows = [{name: value for name, value in row.items() if name != _NAME} for row in result.results]
        return SentMessages(results=rows), [row[_NAME] for row in result.results if _NAME in row]
    secret = getattr(result, _NAME, None)
    if not isinstance(secret, str):
        return result, []
    return msgspec.structs.replace(result, secret=msgspec.UNSET), [secret]


def without_secret(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of such a result."""
    properties = schema.get("properties", {})
    return schema | {"properties": {name: one for name, one in properties.items() if name != _NAME}}
