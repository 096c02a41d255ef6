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


def worklog_brief(view: WorklogView, agent: str) -> list[str]:
    """The section about the WORKLOG for an agent; nothing where it says nothing new. Oldest first, of many the last.

    What the agent works on itself is no news, and what it wrote is not called the text of others.
    """
    pinned = [one for one in view.status if one["text"] not in (IDLE, NONE) and one["key"] != agent]
    decisions = view.decisions[-_DECISIONS:]
    parts = [
        _block([f"{one['key']}: {one['text']}" for one in pinned], len(pinned), "the pinned lines", "others"),
        _block(
            [f"{one['decision']} ({one['owner']})" for one in decisions],
            len(view.decisions),
            "decisions",
            _writers(agent, [one["owner"] for one in decisions]),
        ),
        _block(
            [_entry(one) for one in view.entries],
            view.total,
            "entries since your previous turn",
            _writers(agent, [one["actor"] for one in view.entries]),
        ),
    ]
    found = [part for part in parts if part]
    return ["## WORKLOG", *found] if found else []


def _writers(agent: str, named: list[str]) -> str:
    """Whose text it is, as the agent is told: its own lines quote titles and words of others, too."""
    return "you and others" if agent in named else "others"


def _entry(one: dict[str, Any]) -> str:
    return f"{one['event_id']} {one['timestamp']} {one['actor']}, {one['event_type']}: {one['subject']}"


def _block(lines: list[str], total: int, label: str, whose: str) -> str:
    if not lines:
        return ""
    earlier = f", the last {len(lines)} of {total}; all: `aof worklog show`" if total > len(lines) else ""
    return quoted("\n".join(line[:_LONGEST] for line in lines), f"{label}{earlier}", whose)
