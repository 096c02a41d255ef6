"""The two files that tell a child task's agent what is asked for. Must not know where they lie."""

from __future__ import annotations

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.events import Event
from aof.core.model.handoffs.record import Request

ATTACHED = ("inputs/handoff.json", "inputs/handoff.md")
_encode = msgspec.json.Encoder().encode


def attached(event: Event) -> dict[str, bytes]:
    """The files that an event puts into its task's folder, by their place in it."""
    if event.type not in ("delegation.requested", "delegation.restored"):
        return {}
    request = msgspec.convert(event.payload["request"], prepare_type(Request))
    whole = msgspec.json.format(_encode(request), indent=2) + b"\n"
    return dict(zip(ATTACHED, (whole, _markdown(request).encode()), strict=True))


def _markdown(request: Request) -> str:
    head = ["# Handoff Request", "", f"**From:** {request.from_agent}", f"**To:** {request.to_agent}"]
    if request.due_by:
        head.append(f"**Due By:** {request.due_by}")
    lists = (
        ("Acceptance Criteria", request.acceptance_criteria),
        ("Expected Outputs", request.expected_outputs),
        ("Context References", request.context_refs),
        ("Constraints", request.constraints),
    )
    for title, items in lists:
        head += ["", f"## {title}", *([""] if items else []), *(f"- {_item(item)}" for item in items)]
    return "\n".join(head) + "\n"


def _item(text: str) -> str:
    """More than one line stays one item of the list."""
    return "\n  ".join(text.splitlines())
