"""What the WORKLOG says to an agent whose turn begins, in few lines. Must not know where the text goes."""

from __future__ import annotations

from typing import Any

from aof.app.documents.worklog import WorklogView
from aof.app.runs.fenced_text import quoted
from aof.documents.worklog.forms import NONE
from aof.documents.worklog.model import IDLE

MOST = 20  # entries; whoever was away for longer reads the file
_DECISIONS = 5
_LONGEST = 200


def worklog_brief(view: WorklogView) -> list[str]:
    """The section about the WORKLOG; nothing where it says nothing. Oldest first, and of many the last."""
    pinned = [f"{one['key']}: {one['text']}" for one in view.status if one["text"] not in (IDLE, NONE)]
    parts = [
        _block(pinned, len(pinned), "the pinned lines"),
        _block(
            [f"{one['decision']} ({one['owner']})" for one in view.decisions[-_DECISIONS:]],
            len(view.decisions),
            "decisions",
        ),
        _block([_entry(one) for one in view.entries], view.total, "entries since your previous turn"),
    ]
    found = [part for part in parts if part]
    return ["## WORKLOG", *found] if found else []


def _entry(one: dict[str, Any]) -> str:
    return f"{one['event_id']} {one['timestamp']} {one['actor']}, {one['event_type']}: {one['subject']}"


def _block(lines: list[str], total: int, label: str) -> str:
    if not lines:
        return ""
    earlier = f", the last {len(lines)} of {total}; all: `aof worklog show`" if total > len(lines) else ""
    return quoted("\n".join(line[:_LONGEST] for line in lines), f"{label}{earlier}")
