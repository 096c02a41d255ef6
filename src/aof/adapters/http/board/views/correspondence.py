"""What agents hand over, write to each other and note down, as parts of the activity. Must not change any of it."""

from __future__ import annotations

from typing import Any, Final

from aof.adapters.http.board.calls import Asker, PageAddress

_EACH = 50
STATES: Final = (
    "open",
    "queued",
    "requested",
    "deferred",
    "accepted",
    "rejected",
    "escalated",
    "completed",
    "failed",
    "all",
)
MAIL: Final = ("unread", "acknowledged", "actioned", "blocked", "closed")


def handoffs(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """Handoffs, those that something is still to come of unless another state is asked for."""
    state = asked.text("state") if asked.text("state") in STATES else "open"
    found = ask(
        "handoff_list",
        task=ask.task(asked.text("task")),
        from_agent=asked.text("from"),
        to_agent=asked.text("to"),
        state=None if state == "all" else state,
        limit=_EACH,
        cursor=asked.text("cursor"),
    )
    return {"handoffs": found["handoffs"], "total": found["total"], "state": state, "states": STATES, **_next(found)}


def mailbox(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """Messages, newest first."""
    status = asked.text("status") if asked.text("status") in MAIL else None
    found = ask(
        "mail_list",
        agent=asked.text("agent"),
        from_agent=asked.text("from"),
        to=asked.text("to"),
        status=status,
        limit=_EACH,
        cursor=asked.text("cursor"),
    )
    late = {one["messageId"] for one in found["overdue"]}
    shown = [one | {"late": one["messageId"] in late} for one in found["messages"]]
    return {"messages": shown, "total": found["total"], "chosen": status, "statuses": MAIL, **_next(found)}


def worklog(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The pinned lines, the decisions and the last entries."""
    limit = asked.number("n", _EACH, least=1, most=1_000)
    found = ask(
        "worklog_show",
        type=asked.text("type"),
        agent=asked.text("agent"),
        task=ask.task(asked.text("task")),
        limit=limit,
    )
    more = limit + _EACH if found["total"] > len(found["entries"]) else None
    return {
        "pinned": found["status"],
        "decisions": found["decisions"],
        "entries": found["entries"][::-1],
        "total": found["total"],
        "more": more,
    }


def _next(found: dict[str, Any]) -> dict[str, Any]:
    return {"next_cursor": found.get("nextCursor")}
