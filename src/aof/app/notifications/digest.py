"""Several pieces of news as one message for people: short, bounded, and without anything that a service would obey.

Titles, reasons and names come from anybody. Hidden characters are made visible, and what chat services take for a
mention of everybody is spelled so that it is none. Must not know which service shows it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from aof.core.validation.visible import visible_line
from aof.ports.notifier import Notification

SHOWN: Final = 20  # pieces of news in one message
_TITLE, _REASON, _NAME = 100, 200, 60  # characters
_MENTION: Final = re.compile(r"@(?=\w)")
_COMMAND: Final = re.compile(r"<(?=[!@#])")
_WORDS: Final = {
    "sla": "waits too long in",
    "handoff": "nobody answered its handoff, it is in",
    "status": "is now in",
    "question": "has a question for you, it is",
    "mail": "nobody answered this message, it is",
}


def digest(project: str, news: Sequence[Notification], more: int = 0, *, details: bool = True) -> tuple[str, str]:
    """The subject and the text. `more` is how many others are not shown; without `details` only IDs and statuses."""
    total = len(news) + more
    if total == 1:
        subject = f"{_plain(project, _NAME)}: {news[0].task_id} {_WORDS[news[0].kind]} {news[0].status}"
    else:
        what = "tasks and messages" if any(one.kind == "mail" for one in news) else "tasks"
        subject = f"{_plain(project, _NAME)}: {total} {what} need a look"
    lines = [line for one in news[:SHOWN] for line in _lines(one, details=details)]
    left = total - min(len(news), SHOWN)
    if left:
        lines.append(f"… and {left} more: aof list")
    return subject, "\n".join(lines)


def _lines(news: Notification, *, details: bool) -> list[str]:
    urgent = f" [{news.priority}]" if news.priority in ("high", "critical") else ""
    head = f"{news.task_id}{urgent} {_WORDS[news.kind]} {news.status}"
    if not details:
        return [head]
    by = f" ({_plain(news.agent or news.actor, _NAME)})"
    reason = [f"    {_plain(news.reason, _REASON)}"] if news.reason else []
    return [f"{head}{by}: {_plain(news.title, _TITLE)}", *reason]


def _plain(text: str, limit: int) -> str:
    """One line within bounds that mentions nobody."""
    line = visible_line(text)
    cut = line if len(line) <= limit else f"{line[: limit - 1]}…"
    return _COMMAND.sub("‹", _MENTION.sub("＠", cut))  # noqa: RUF001 - it looks like the sign and is none
