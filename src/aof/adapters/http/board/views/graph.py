"""The tasks around one, as a drawing and as a table. Must not lay anything out: the page does."""

from __future__ import annotations

from typing import Any

from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.rendering import short
from aof.adapters.http.board.views.spec import PageView

_MOST = 200
_OFFERED = 20


def graph(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The neighbourhood of a task; without one, tasks to choose from."""
    task_id = asked.path.get("task_id") or asked.text("task")
    limit = asked.number("n", _MOST, least=1, most=_MOST)
    if task_id is None:
        return {"near": None, "offered": ask("list", limit=_OFFERED, sort="updated", reverse=True)["tasks"]}
    found = ask("neighbourhood", task_id=task_id, limit=limit)
    nodes = [_node(one, root=found["root"]) for one in found["nodes"]]
    edges = [{"from": one["source"], "to": one["target"], "kind": one["kind"]} for one in found["edges"]]
    root = next(one for one in found["nodes"] if one["id"] == found["root"])
    drawing = {"nodes": nodes, "edges": edges, "direction": "LR"}
    return {"near": found, "root": root, "drawing": drawing, "limit": limit, "title": f"Around {root['title'][:80]}"}


def _node(task: dict[str, Any], *, root: str) -> dict[str, Any]:
    """A box: two lines of text, where it leads, and what it looks like."""
    return {
        "id": task["id"],
        "lines": [task["title"], f"{short(task['id'])} · {task['status']}"],
        "link": f"/board/tasks/{task['id']}",
        "status": task["status"],
        "marked": task["id"] == root,
    }


VIEW = PageView(name="graph", path="/graph/{task_id}", template="graph.html", title="Graph", context=graph)
CHOICE = PageView(name="graphs", path="/graph", template="graph.html", title="Graph", key="d", context=graph)
