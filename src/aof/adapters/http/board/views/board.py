"""The board: a column per status, most urgent or latest first, and tasks that wait apart from those that can be begun.

Must not decide where a task may go, nor load one task after the other.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.views import completion
from aof.adapters.http.board.views.spec import PageView

COLUMNS: Final = (
    "backlog",
    "waiting",
    "ready",
    "in-progress",
    "review",
    "blocked",
    "deadletter",
    "done",
    "cancelled",
)
_LATEST_FIRST: Final = ("deadletter", "done", "cancelled")
_COLLAPSED: Final = _LATEST_FIRST
_ONLY_FILLED: Final = ("waiting", "deadletter")  # nothing is ever moved there by hand
_FIRST: Final = (
    "in-progress",
    "review",
    "ready",
    "blocked",
    "waiting",
    "backlog",
)  # where one column is shown at a time
_GROUPS: Final = ("agent", "parent")
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


def board(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The columns, each with its first tasks."""
    chosen = filters(asked)
    agents = ask("agents", limit=_AGENTS)["agents"] if ask.may("agents") else []
    counts = _counts(ask, chosen)
    opened, group, here = asked.words("open"), asked.text("group"), asked.text("column")
    here = here if here in COLUMNS else next((name for name in _FIRST if counts[name]), "ready")
    columns: list[dict[str, Any]] = []
    for name in COLUMNS:
        total, limit = counts[name], asked.number(f"n-{name}", _EACH, least=1, most=_MOST)
        if not total and name in _ONLY_FILLED:
            continue
        folds = name in _COLLAPSED
        is_open = not folds or name in opened or name == asked.text("column") or (chosen["search"] and total)
        tasks = _tasks(ask, name, limit, chosen) if total and is_open else []
        if name == "in-progress":
            held = _held(agents)
            tasks = [task | {"held": held.get(task["id"])} for task in tasks]
        columns.append(
            {
                "name": name,
                "total": total,
                "shown": len(tasks),
                "groups": _grouped(tasks, group),
                "open": is_open,
                "folds": folds,
                "toggled": ",".join(sorted({*opened} ^ {name})) or None,
                "more": limit + _EACH,
            }
        )
    shown = [task for column in columns for _, tasks in column["groups"] for task in tasks]
    return {
        "columns": columns,
        "here": here,
        "filters": chosen,
        "used": sum(value is not None for name, value in chosen.items() if name != "search"),
        "total": sum(counts.values()),
        "opened": opened,
        "group": group if group in _GROUPS else None,
        "agents": [one["id"] for one in agents],
        "tags": completion.tags(shown),
    }


def _counts(ask: Asker, chosen: dict[str, Any]) -> dict[str, int]:
    """How many tasks are in each column."""
    found: dict[str, int] = ask("status", compact=True, **chosen)["byStatus"]
    waiting = ask("list", waits=True, limit=0, **chosen)["total"] if found.get("ready") else 0
    return dict.fromkeys(COLUMNS, 0) | found | {"waiting": waiting, "ready": found.get("ready", 0) - waiting}


def _tasks(ask: Asker, name: str, limit: int, chosen: dict[str, Any]) -> list[dict[str, Any]]:
    order = {"sort": "id", "reverse": True} if name in _LATEST_FIRST else {"sort": "priority"}
    if name in ("waiting", "ready"):
        order |= {"status": "ready", "waits": name == "waiting"}
    found: list[dict[str, Any]] = ask("list", **({"status": name} | order), limit=limit, full=True, **chosen)["tasks"]
    return found


def _held(agents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is held, by the tasks' IDs; of several hops the one that has least time left."""
    held = (one for agent in agents for one in agent["holds"])
    return {one["taskId"]: one for one in sorted(held, key=lambda one: one["leaseEnds"], reverse=True)}


def _grouped(tasks: list[dict[str, Any]], group: str | None) -> list[tuple[dict[str, str], list[dict[str, Any]]]]:
    """The tasks under their agents or parents, those without one last; all together where nobody asked."""
    if group not in _GROUPS:
        return [({}, tasks)]

    def key(task: dict[str, Any]) -> tuple[bool, str, str]:
        name, title = task.get("agent" if group == "agent" else "parentId", ""), task.get("parentTitle", "")
        return not name, name, title if group == "parent" else name

    together = groupby(sorted(tasks, key=key), key=key)
    return [({"id": name, "title": title}, list(some)) for (_, name, title), some in together]


VIEW = PageView(name="board", path="/tasks", template="board.html", title="Board", key="b", context=board)
