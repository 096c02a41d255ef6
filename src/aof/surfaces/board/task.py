"""Views of one task: its page, what it was after an event, and its workflow. Must not decide what may be done."""

from __future__ import annotations

import difflib
import json
from typing import Any

import msgspec

from aof.errors import AofError, InvalidInput, TaskNotFound
from aof.kernel.model import Event
from aof.queries.stories import stories
from aof.support.typed import prepare_type
from aof.surfaces.board.actions import BY_NAME, description, offered
from aof.surfaces.board.rendering import words
from aof.surfaces.board.view import Asker, PageAddress, PageView
from aof.tasks.body import parts
from aof.tasks.fields import FIELDS

_EVENTS, _MOST_EVENTS = 100, 1_000
_RELATED = 30  # tasks that are shown with their titles
_TAIL = 8_192  # bytes
_FIRST = ("answer", "approve", "reject", "resume", "unblock", "promote", "retry")
_APART = ("comment", "unlink")


def task(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """Everything about the task that the address names."""
    shown = ask("show", task_id=asked.path["task_id"])
    may = offered(shown, ask)
    buttons = [offer.action for offer in may.values() if offer.action.name not in _APART]
    limit = asked.number("n", _EVENTS, least=1, most=_MOST_EVENTS)
    events = ask("log", task_id=shown["id"], limit=limit)["events"]
    return {
        "title": f"{shown['title']} · {shown['id']}",
        "live_task": shown["id"],
        "task": shown,
        "brief": description(shown),
        "said": [f"{row.label} {row.in_words(shown[row.key])}" for row in FIELDS if row.label and row.key in shown],
        "worklog": parts(shown["body"])[2].strip(),
        "first": [action for action in buttons if action.name in _FIRST],
        "others": [action for action in buttons if action.name not in _FIRST],
        "may_comment": "comment" in may,
        "may_unlink": "unlink" in may,
        "events": events,
        "history": [*stories(msgspec.convert(events, prepare_type(list[Event])))][::-1],
        "reports": _reports(shown, events),
        "more_events": min(limit + _EVENTS, _MOST_EVENTS) if len(events) == limit else None,
        "related": _related(ask, shown["relationships"]),
        "output": _output(ask, shown, asked.number("attempt", len(shown["attempts"]), least=1)),
    }


def _related(ask: Asker, relationships: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The other ends; those that are tasks with title and status."""
    found: list[dict[str, Any]] = []
    for place, edge in enumerate(edge for edge in relationships if edge["kind"] != "child"):
        other: dict[str, Any] | None = None
        if place < _RELATED and edge["targetId"].startswith("TASK-"):
            try:
                other = ask("show", task_id=edge["targetId"], full=False)
            except AofError:
                other = None  # it is gone or cannot be read; the edge is shown all the same
        found.append({"kind": edge["kind"], "id": edge["targetId"], "task": other})
    return found


def _reports(shown: dict[str, Any], events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What earlier runs reported, and why it was sent back, newest first."""
    attempts = {run["runId"]: run["attempt"] for run in shown["attempts"]}
    found: list[dict[str, Any]] = []
    for event in events:
        payload, run = event.get("payload", {}), event.get("runId", "")
        if event["type"] == "task.completed":
            told = {"seq": event["seq"], "runId": run, "attempt": attempts.get(run), "at": event["timestamp"]}
            found.append(payload["result"] | told)
        elif event["type"] == "task.transitioned" and payload.get("blockers") and found:
            found[-1]["sentBack"] = {"by": event["actor"], "blockers": payload["blockers"]}
    return [one for one in found if one["runId"] != shown.get("result", {}).get("runId")][::-1]


def _output(ask: Asker, shown: dict[str, Any], attempt: int) -> dict[str, Any] | None:
    """The end of what a run printed, of both streams."""
    if not shown["attempts"]:
        return None
    tails = []
    for stream in ("stdout", "stderr"):
        try:
            size = ask("output", task_id=shown["id"], attempt=attempt, stream=stream, offset=0, limit=4)["size"]
            start = max(size - _TAIL, 0)
            piece = ask("output", task_id=shown["id"], attempt=attempt, stream=stream, offset=start, limit=_TAIL)
        except AofError:
            continue  # a run that printed nothing here, or that is not there
        if piece["text"]:
            tails.append({"stream": stream, "size": size, "start": start, "text": piece["text"].lstrip("\ufffd")})
    return {"attempt": attempt, "tails": tails}


TASK = PageView(name="task", path="/tasks/{task_id}", template="task.html", title="Task", context=task)


_SKIPPED = frozenset({"rev", "updatedAt", "lastTransitionAt", "body", "schemaVersion", "requests"})
_LONGEST = 400  # lines of a text that are compared
_DIGITS = 12


def past(ask: Asker, asked: PageAddress) -> dict[str, Any]:
    """The task at an event, beside how it was before."""
    given = asked.path["seq"]
    if not (given.isascii() and given.isdigit() and len(given) <= _DIGITS):
        raise InvalidInput(f"{given[:40]!r} is not an event's number", "open the task's history")
    seq, task_id = int(given), asked.path["task_id"]
    then = ask("show", task_id=task_id, at=seq)
    try:
        before: dict[str, Any] = ask("show", task_id=task_id, at=max(seq - 1, 0))
    except TaskNotFound:
        before = {}  # it was created by this event
    names = [name for name in (then | before) if name not in _SKIPPED and then.get(name) != before.get(name)]
    changed = [{"name": name, "was": _said(before.get(name)), "is": _said(then.get(name))} for name in names]
    return {
        "title": f"{then['id']} at event {seq}",
        "live": False,
        "task": then,
        "seq": seq,
        "brief": description(then),
        "changed": changed,
        "lines": _compared(before.get("body", ""), then.get("body", "")),
    }


def _said(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _compared(before: str, then: str) -> list[tuple[str, str]]:
    """The lines of a text that were added or removed, with what stands around them."""
    if before == then:
        return []
    was, now = before.splitlines()[:_LONGEST], then.splitlines()[:_LONGEST]
    found = list(difflib.unified_diff(was, now, n=1, lineterm=""))[2:]
    return [(line[:1], line[1:]) for line in found if not line.startswith("@@")]


PAST = PageView(name="past", path="/tasks/{task_id}/at/{seq}", template="past.html", title="The past", context=past)


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


WORKFLOW = PageView(
    name="workflow", path="/workflow/{task_id}", template="workflow.html", title="Workflow", context=workflow
)
WORKFLOWS = PageView(
    name="workflows",
    path="/workflow",
    template="workflow.html",
    title="Workflow",
    key="w",
    context=workflow,
    wanted=Asker.has_workflows,
)
