"""The tasks and what connects them, as a drawing and as a list: of the whole project, or around one task.

Must not lay anything out: the page does.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.rendering import short, words
from aof.adapters.http.board.views import completion
from aof.adapters.http.board.views.spec import PageView
from aof.core.model.lifecycle import FINISHED, STATUSES

_MOST: Final = 200  # tasks in a drawing
_LISTED: Final = 1_000  # tasks of each status that are looked at
_OPEN: Final = [status for status in STATUSES if status not in FINISHED or status == "deadletter"]


def graph(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The whole project, or the tasks around the one that is asked for."""
    return _around(ask, asked.text("task") or "", asked) if asked.text("task") else _project(ask, asked)


def around(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The neighbourhood of a task."""
    return _around(ask, asked.path["task_id"], asked)


def _project(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """Every task that is connected with another one; what is finished is only counted, unless it is asked for."""
    finished = asked.flag("finished")
    chosen = {"search": asked.text("q"), "agent": asked.text("agent"), "tag": asked.text("tag")}
    lists = [ask("list", status=one, limit=_LISTED, **chosen) for one in (STATUSES if finished else _OPEN)]
    rows = {one["id"]: one for found in lists for one in found["tasks"]}
    every = [(source, target, kind) for source, target, kind in ask("graph")["edges"]]
    edges = [edge for edge in every if edge[0] in rows and edge[1] in rows]
    groups, alone = _groups(rows, edges)
    drawn = [task_id for group in groups for task_id in group][:_MOST]
    shown = set(drawn)
    before = Counter(target for source, target, kind in every if kind == "blocks" and source not in rows)
    nodes = [_node(rows[one], behind=0 if any(chosen.values()) else before[one]) for one in drawn]
    return {
        "near": None,
        "nodes": [rows[one] for one in drawn],
        "edges": [_edge(edge) for edge in edges if edge[0] in shown and edge[1] in shown],
        "drawing": {"nodes": nodes, "edges": _drawn(edges, shown)},
        "alone": [rows[one] for one in alone],
        "left_out": sum(len(group) for group in groups)
        - len(drawn)
        + sum(found["total"] for found in lists)
        - len(rows),
        "filters": chosen,
        "finished": finished,
        "agents": completion.agents(ask),
        "tags": completion.tags(rows.values()),
    }


def _groups(rows: dict[str, Any], edges: list[tuple[str, str, str]]) -> tuple[list[list[str]], list[str]]:
    """The tasks that are connected with each other, the largest group first, and those that stand alone."""
    near: dict[str, list[str]] = {}
    for source, target, _ in edges:
        near.setdefault(source, []).append(target)
        near.setdefault(target, []).append(source)
    groups: list[list[str]] = []
    seen: set[str] = set()
    for one in rows:
        if one in seen or one not in near:
            continue
        group = [one]
        seen.add(one)
        for member in group:  # it grows while it is gone through
            fresh = [other for other in dict.fromkeys(near[member]) if other not in seen]
            seen.update(fresh)
            group += fresh
        groups.append(group)
    return sorted(groups, key=len, reverse=True), [one for one in rows if one not in near]


def _around(ask: Asker, task_id: str, asked: PageAddress) -> dict[str, Any]:
    limit = asked.number("n", _MOST, least=1, most=_MOST)
    found = ask("neighbourhood", task_id=task_id, limit=limit)
    waiting = {one["id"] for one in ask("list", waits=True, limit=_LISTED)["tasks"]}
    found["nodes"] = [one | {"waits": one["id"] in waiting} for one in found["nodes"]]
    edges = [(one["source"], one["target"], one["kind"]) for one in found["edges"]]
    shown = {one["id"] for one in found["nodes"]}
    nodes = [_node(one, root=found["root"]) for one in found["nodes"]]
    root = next(one for one in found["nodes"] if one["id"] == found["root"])
    return {
        "near": root,
        "nodes": found["nodes"],
        "edges": [_edge(edge) for edge in edges],
        "drawing": {"nodes": nodes, "edges": _drawn(edges, shown)},
        "alone": [],
        "left_out": found["leftOut"],
        "title": f"Around {root['title'][:80]}",
    }


def _edge(edge: tuple[str, str, str]) -> dict[str, str]:
    source, target, kind = edge
    return {"source": source, "target": target, "kind": kind}


def _drawn(edges: list[tuple[str, str, str]], shown: set[str]) -> list[dict[str, str]]:
    return [{"from": one, "to": other, "kind": kind} for one, other, kind in edges if one in shown and other in shown]


def _node(task: dict[str, Any], *, root: str = "", behind: int = 0) -> dict[str, Any]:
    """A box: two lines of text, where it leads, and what it looks like."""
    done = f" · after {behind} finished" if behind else ""
    status = "waiting" if task.get("waits") else task["status"]
    return {
        "id": task["id"],
        "lines": [task["title"], f"{short(task['id'])} · {words(status)}{done}"],
        "link": f"/board/tasks/{task['id']}",
        "status": status,
        "marked": task["id"] == root,
    }


AROUND = PageView(name="around", path="/graph/{task_id}", template="graph.html", title="Graph", context=around)
VIEW = PageView(name="graph", path="/graph", template="graph.html", title="Graph", key="d", context=graph)
