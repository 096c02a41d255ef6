"""The workflow of one task: its hops as a drawing and as a table, with the buttons of its gates.

Must not decide who may approve: the operations do.
"""

from __future__ import annotations

from typing import Any

from aof.adapters.http.board.actions import BY_NAME
from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.rendering import words
from aof.adapters.http.board.views.spec import PageView

_OFFERED = 100
_JUDGED = ("approve", "reject")


def workflow(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """One task's hops; without a task in a workflow, those that somebody works on or waits for."""
    task_id = asked.path.get("task_id") or asked.text("task")
    if task_id is None:
        return {"flow": None, "task": None, "offered": _at_hops(ask)}
    task = ask("show", task_id=task_id)
    if "template" not in task.get("workflow", {}):
        return {"flow": None, "task": task, "offered": _at_hops(ask)}
    found = ask("workflow_show", name=task["id"])
    gates = [hop["id"] for hop in found["hops"] if hop["status"] == "review"]
    may = {name: _judged(ask, task["id"], name) for name in _JUDGED} if gates else {}
    edges = [
        {"from": before, "to": hop["id"], "kind": "blocks"}
        for hop in found["hops"]
        for before in hop.get("dependsOn", ())
    ]
    drawing = {"nodes": [_node(hop, task["id"]) for hop in found["hops"]], "edges": edges}
    return {
        "flow": found,
        "task": task,
        "drawing": drawing,
        "gates": [hop for hop in found["hops"] if hop["id"] in gates],
        "actions": {name: BY_NAME[name] for name in _JUDGED},
        "may": may,
        "feedback": task.get("workflow", {}).get("feedback"),
        "live_task": task["id"],
        "title": f"Workflow of {task['title'][:80]}",
    }


def _judged(ask: Asker, task_id: str, name: str) -> set[str]:
    """The hops that the person may approve or reject now."""
    if not ask.may(name):
        return set()
    offered = ask("moves", task_id=task_id)["actions"]
    return {one["arguments"].get("hop", "") for one in offered if one["operation"] == name}


def _node(hop: dict[str, Any], task_id: str) -> dict[str, Any]:
    who = hop.get("agent") if hop["status"] not in ("waiting", "ready") else None
    return {
        "id": hop["id"],
        "lines": [hop["id"], f"{words(hop['status'])} · {who or hop['role']}"],
        "link": f"/board/workflow/{task_id}#hop-{hop['id']}",
        "status": hop["status"],
        "marked": hop["status"] in ("running", "review"),
    }


def _at_hops(ask: Asker) -> list[dict[str, Any]]:
    """Tasks with a hop that somebody holds, or that waits for a person."""
    held = [one for agent in ask("agents", limit=500)["agents"] for one in agent["holds"] if one.get("hop")]
    waiting = [one for one in ask("inbox", limit=_OFFERED)["items"] if one.get("hop")]
    found = {one["taskId"]: one["title"] for one in (*waiting, *held)}
    return [{"id": task_id, "title": title} for task_id, title in found.items()][:_OFFERED]


VIEW = PageView(
    name="workflow", path="/workflow/{task_id}", template="workflow.html", title="Workflow", context=workflow
)
CHOICE = PageView(
    name="workflows",
    path="/workflow",
    template="workflow.html",
    title="Workflow",
    key="w",
    context=workflow,
    wanted=Asker.has_workflows,
)
