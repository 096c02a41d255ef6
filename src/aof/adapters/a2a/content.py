"""Parts of messages and artifacts as text, and text as parts. Must not know tasks or how a part travels."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from a2a.types import Message, Part, Role
from google.protobuf import json_format

_EXACT: Final = 2**53  # below it a fraction holds every whole number
INPUT_MODES = ("text/plain", "application/json", "application/octet-stream")


def text_of(parts: Iterable[Part]) -> str:
    """All that the parts say: data as JSON, of what lies elsewhere only the address, and nothing of files."""
    return "\n\n".join(said for part in parts if (said := _said(part)))


def _said(part: Part) -> str:
    kind = part.WhichOneof("content")
    if kind == "text":
        return part.text.strip()
    if kind == "data":
        said = json_of(part)
        return f"```json\n{said}\n```" if said is not None else ""
    return f"See {part.url}" if kind == "url" else ""


def json_of(part: Part) -> str | None:
    """The data of a part; None where it has numbers that JSON has not."""
    try:
        data = json.loads(json_format.MessageToJson(part.data), parse_float=_number)
    except (json_format.Error, ValueError):
        return None
    return json.dumps(data, indent=2, ensure_ascii=False)


def _number(text: str) -> float:
    """The protocol's library knows only fractions: 3 comes as 3.0."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def is_readable(part: Part) -> bool:
    """Whether it is of a kind that a task can hold, in its description or among its files."""
    kind = part.WhichOneof("content")
    return kind in ("text", "url", "raw") or (kind == "data" and json_of(part) is not None)


def message(message_id: str, text: str, *, task_id: str, context_id: str, ours: bool) -> Message:
    """A message of one text: ours, or what the peer has sent."""
    role = Role.ROLE_AGENT if ours else Role.ROLE_USER
    return Message(message_id=message_id, role=role, parts=[Part(text=text)], task_id=task_id, context_id=context_id)
