"""The board: a column per status, most urgent or latest first. Must not decide where a task may go."""

from __future__ import annotations

from typing import Any

from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.views.spec import PageView

COLUMNS = ("backlog", "ready", "in-progress", "review", "blocked", "deadletter", "done", "cancelled")
_LATEST_FIRST = ("deadletter", "done", "cancelled")
_COLLAPSED = ("done", "cancelled")
_ONLY_FILLED = ("deadletter",)  # nothing is ever moved there by hand
_EACH, _MOST, _AGENTS = 50, 1_000, 500


def filters(asked: PageAddress) -> dict[str, Any]:
    """Which tasks, as the address says it."""
    return {
        "search": asked.text("q"),
        "agent": asked.text("agent"),
        "tag": asked.text("tag"),
        "priority": asked.text("priority"),
        "overdue": True if asked.flag("overdue") else None,
    }


def _held(ask: Asker) -> dict[str, dict[str, Any]]:
    """What is held, by the tasks' IDs; of several hops the one that has least time left."""
    if not ask.may("agents"):
        return {}
    held = (one for agent in ask("agents", limit=_AGENTS)["agents"] for one in agent["holds"])
    return {one["taskId"]: one for one in sorted(held, key=lambda one: one["leaseEnds"], reverse=True)}


def board(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The columns, each with its first tasks."""
    chosen = filters(asked)
    counts = ask("status", compact=True, **chosen)["byStatus"]
    opened = asked.words("open")
    columns = []
    for status in COLUMNS:
        total, limit = counts.get(status, 0), asked.number(f"n-{status}", _EACH, least=1, most=_MOST)
        is_open = status in opened if status in _COLLAPSED else bool(total) or status not in _ONLY_FILLED
        tasks: list[dict[str, Any]] = []
        if total and is_open:
            order = {"sort": "id", "reverse": True} if status in _LATEST_FIRST else {"sort": "priority"}
            tasks = ask("list", status=status, limit=limit, **order, **chosen)["tasks"]
            if status == "in-progress":
                held = _held(ask)
                tasks = [one | {"held": held.get(one["id"])} for one in tasks]
        columns.append({"status": status, "total": total, "tasks": tasks, "open": is_open, "more": limit + _EACH})
    return {"columns": columns, "filters": chosen, "total": sum(counts.values()), "opened": opened}


VIEW = PageView(name="board", path="/tasks", template="board.html", title="Board", key="b", context=board)
