"""The latest events, newest first. Must not interpret them beyond a sentence."""

from __future__ import annotations

from typing import Any

from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.views.spec import PageView

_EACH, _MOST = 100, 1_000
_BACK = 20_000  # events among which those of a type are looked for


def activity(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The last events that match."""
    limit, task_id, kind = (
        asked.number("n", _EACH, least=1, most=_MOST),
        ask.task(asked.text("task")),
        asked.text("type"),
    )
    back = limit if kind is None else _BACK
    after = max(ask.head() - back, 0) if task_id is None else None
    found = ask("log", task_id=task_id, type=kind, after=after, limit=limit)["events"]
    return {"events": found[::-1], "limit": limit, "more": min(limit + _EACH, _MOST)}


VIEW = PageView(
    name="activity", path="/activity", template="activity.html", title="Activity", key="v", context=activity
)
