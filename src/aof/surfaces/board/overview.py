"""Views of the whole project: what needs a person, the board, the agents, the graph."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from itertools import groupby
from typing import Any, Final

from aof.errors import AofError
from aof.kernel.model import FINISHED, STATUSES
from aof.surfaces.board import view
from aof.surfaces.board.actions import BY_NAME, PageAction, last_entries
from aof.surfaces.board.view import Operations, PageAddress, PageView, short, words

_NEEDS, _MOST_NEEDS = 30, 500
_LABELS: Final = {
    "question": "asks",
    "gate": "review",
    "overdue": "overdue",
    "blocked": "blocked",
    "deadletter": "given up",
    "lease": "lease ran out",
    "agent": "does not answer",
    "mail": "mail",
    "handoff": "handoff",
    "edit": "edited by hand",
}
_ACTIONS: Final = {
    "blocked": ("unblock", "cancel"),
    "deadletter": ("retry", "archive"),
    "overdue": ("edit",),
    "lease": ("release",),
}
_IN_PLACE: Final = {"gate": ("approve", "reject"), "question": ("answer",)}
_MOMENT: Final = re.compile(r"(?m)(?<=^- )\d{4}-\d\d-\d\dT[\d:.]+Z ")
_COLUMNS: Final = (
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
_FOLDED: Final = ("deadletter", "done", "cancelled")  # and the latest first in them
_ONLY_FILLED: Final = ("waiting", "deadletter")  # nothing is ever moved there by hand
_FIRST: Final = ("in-progress", "review", "ready", "blocked", "waiting", "backlog")  # where one column is shown only
_GROUPS: Final = ("agent", "parent")
_CARDS, _MOST_CARDS = 50, 1_000  # of a column
_MOST_AGENTS: Final = 500
_MOST_DRAWN: Final = 200  # tasks in a graph
_MOST_LISTED: Final = 1_000  # tasks of each status that a graph is made of
_OPEN: Final = [status for status in STATUSES if status not in FINISHED or status == "deadletter"]


def needs(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """The inbox, each with what can be done about it."""
    kind, limit = page.text("kind"), page.number("n", _NEEDS, least=1, most=_MOST_NEEDS)
    kind = kind if kind in _LABELS else None
    found = ask("inbox", kind=[kind] if kind else None, limit=limit)
    return {
        "items": [one | _offered(ask, one) for one in found["items"]],
        "total": found["total"],
        "counts": found["byKind"],
        "kind": kind,
        "labels": _LABELS,
        "more": min(limit + _NEEDS, _MOST_NEEDS),
    }


def _offered(ask: Operations, one: dict[str, Any]) -> dict[str, Any]:
    """What can be done about one item: in place, or in a dialog; for a review also what was reported."""
    kind = one["kind"]
    named = (BY_NAME[name] for name in _ACTIONS.get(kind, ()))
    actions: list[PageAction] = [action for action in named if ask.may(action.operation)]
    works = {call["operation"] for call in one["next"]}
    withheld = [name for name in _IN_PLACE.get(kind, ()) if name not in works]  # from this caller
    inline = [name for name in _IN_PLACE.get(kind, ()) if name in works and ask.may(name)]
    offered = {"actions": actions, "inline": inline, "withheld": withheld, "key": secrets.token_hex(8)}
    return offered | ({"report": _report(ask, one["taskId"])} if kind == "gate" else {})


def _report(ask: Operations, task_id: str) -> dict[str, Any]:
    """The result of a task, and the last entries of its work log."""
    try:
        task = ask("show", task_id=task_id)
    except AofError:
        return {"result": None, "last_entries": ""}  # it was removed or damaged meanwhile; the rest is shown
    return {"result": task.get("result"), "last_entries": _MOMENT.sub("", last_entries(task))}


def board(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """The columns, each with its first tasks."""
    chosen = {
        "search": page.text("q"),
        "agent": page.text("agent"),
        "tag": page.text("tag"),
        "priority": page.text("priority"),
        "overdue": True if page.flag("overdue") else None,
    }
    agents = ask("agents", limit=_MOST_AGENTS)["agents"] if ask.may("agents") else []
    counts = _counts(ask, chosen)
    opened, group, here = page.words("open"), page.text("group"), page.text("column")
    here = here if here in _COLUMNS else next((name for name in _FIRST if counts[name]), "ready")
    columns: list[dict[str, Any]] = []
    for name in _COLUMNS:
        total, limit = counts[name], page.number(f"n-{name}", _CARDS, least=1, most=_MOST_CARDS)
        if not total and name in _ONLY_FILLED:
            continue
        folds = name in _FOLDED
        is_open = not folds or name in opened or name == page.text("column") or (chosen["search"] and total)
        tasks = _tasks(ask, name, limit, chosen) if total and is_open else []
        if name == "in-progress":
            leases = (one for agent in agents for one in agent["holds"])  # of several hops, the least time left counts
            held = {one["taskId"]: one for one in sorted(leases, key=lambda one: one["leaseEnds"], reverse=True)}
            tasks = [task | {"held": held.get(task["id"])} for task in tasks]
        columns.append(
            {
                "name": name,
                "total": total,
                "shown": len(tasks),
                "groups": _group(tasks, group),
                "open": is_open,
                "folds": folds,
                "toggled": ",".join(sorted({*opened} ^ {name})) or None,
                "more": limit + _CARDS,
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
        "tags": view.tag_names(shown),
    }


def _counts(ask: Operations, chosen: dict[str, Any]) -> dict[str, int]:
    """The number of tasks in each column."""
    found: dict[str, int] = ask("status", compact=True, **chosen)["byStatus"]
    waiting = ask("list", waits=True, limit=0, **chosen)["total"] if found.get("ready") else 0
    return dict.fromkeys(_COLUMNS, 0) | found | {"waiting": waiting, "ready": found.get("ready", 0) - waiting}


def _tasks(ask: Operations, name: str, limit: int, chosen: dict[str, Any]) -> list[dict[str, Any]]:
    order = {"sort": "id", "reverse": True} if name in _FOLDED else {"sort": "priority"}
    if name in ("waiting", "ready"):
        order |= {"status": "ready", "waits": name == "waiting"}
    found: list[dict[str, Any]] = ask("list", **({"status": name} | order), limit=limit, full=True, **chosen)["tasks"]
    return found


def _group(tasks: list[dict[str, Any]], group: str | None) -> list[tuple[dict[str, str], list[dict[str, Any]]]]:
    """The tasks under their agents or parents, those without one last; all in one group where no groups are wanted."""
    if group not in _GROUPS:
        return [({}, tasks)]

    def key(task: dict[str, Any]) -> tuple[bool, str, str]:
        name, title = task.get("agent" if group == "agent" else "parentId", ""), task.get("parentTitle", "")
        return not name, name, title if group == "parent" else name

    together = groupby(sorted(tasks, key=key), key=key)
    return [({"id": name, "title": title}, list(some)) for (_, name, title), some in together]


def agents(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """All agents, or those whose name or team has this text."""
    found = ask("agents", limit=_MOST_AGENTS)
    text = (page.text("q") or "").casefold()
    kept = [one for one in found["agents"] if text in f"{one['id']} {one.get('name')} {one.get('team')}".casefold()]
    return {"agents": kept, "total": found["total"], "text": page.text("q") or ""}


def graph(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """The whole project, or the tasks around the one that is asked for."""
    task_id = page.text("task")
    return _around(ask, task_id, page) if task_id else _project(ask, page)


def around(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """The neighbourhood of a task."""
    return _around(ask, page.path["task_id"], page)


def _project(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """Every task that is connected with another one; what is finished is only counted, unless it is asked for."""
    finished = page.flag("finished")
    chosen = {"search": page.text("q"), "agent": page.text("agent"), "tag": page.text("tag")}
    lists = [ask("list", status=one, limit=_MOST_LISTED, **chosen) for one in (STATUSES if finished else _OPEN)]
    rows = {one["id"]: one for found in lists for one in found["tasks"]}
    every = [(source, target, kind) for source, target, kind in ask("graph")["edges"]]
    edges = [edge for edge in every if edge[0] in rows and edge[1] in rows]
    groups, alone = _groups(rows, edges)
    drawn = [task_id for group in groups for task_id in group][:_MOST_DRAWN]
    shown = set(drawn)
    before = Counter(target for source, target, kind in every if kind == "blocks" and source not in rows)
    nodes = [_node(rows[one], behind=0 if any(chosen.values()) else before[one]) for one in drawn]
    return {
        "near": None,
        "nodes": [rows[one] for one in drawn],
        "edges": [_edge(edge) for edge in edges if edge[0] in shown and edge[1] in shown],
        "drawing": {"nodes": nodes, "edges": _drawn(edges, shown)},
        "alone": [rows[one] for one in alone],
        "left_out": sum(map(len, groups)) - len(drawn) + sum(found["total"] for found in lists) - len(rows),
        "filters": chosen,
        "finished": finished,
        "agents": view.agent_names(ask),
        "tags": view.tag_names(rows.values()),
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


def _around(ask: Operations, task_id: str, page: PageAddress) -> dict[str, Any]:
    limit = page.number("n", _MOST_DRAWN, least=1, most=_MOST_DRAWN)
    found = ask("neighbourhood", task_id=task_id, limit=limit)
    waiting = {one["id"] for one in ask("list", waits=True, limit=_MOST_LISTED)["tasks"]}
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


NEEDS = PageView(name="needs", path="/", template="needs.html", title="Needs you", key="n", context=needs)
BOARD = PageView(name="board", path="/tasks", template="board.html", title="Board", key="b", context=board)
AGENTS = PageView(name="agents", path="/agents", template="agents.html", title="Agents", key="a", context=agents)
AROUND = PageView(name="around", path="/graph/{task_id}", template="graph.html", title="Graph", context=around)
GRAPH = PageView(name="graph", path="/graph", template="graph.html", title="Graph", key="d", context=graph)
