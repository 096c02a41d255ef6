"""Views of one task: its page, what it was after an event, and its workflow."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from aof.errors import AofError, InvalidInput, TaskNotFound
from aof.kernel.events import Event
from aof.queries.history import spaced, stories
from aof.support.typed import prepare_type
from aof.surfaces.board.actions import BY_NAME, description, offered
from aof.surfaces.board.view import Operations, PageAddress, PageView, summary, words
from aof.tasks.body import parts
from aof.tasks.fields import FIELDS

_EVENTS, _MOST_EVENTS = 100, 1_000
_RELATED: Final = 30  # tasks that are shown with their titles
_TAIL: Final = 8_192  # bytes
_FIRST: Final = ("answer", "approve", "reject", "resume", "unblock", "promote", "retry")
_APART: Final = ("comment", "unlink")
_UNCOMPARED: Final = frozenset(
    {"rev", "updatedAt", "lastTransitionAt", "body", "schemaVersion", "requests", "history", "digest"}
)
_MOST_LINES: Final = 400  # of a text that are compared
_DIGITS: Final = 12
_MOST_TASKS: Final = 100  # at their hops
_REVIEWS: Final = ("approve", "reject")


def task(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """Everything about the task that the address names."""
    task = ask("show", task_id=page.path["task_id"])
    may = offered(task, ask)
    buttons = [offer.action for offer in may.values() if offer.action.name not in _APART]
    limit = page.number("n", _EVENTS, least=1, most=_MOST_EVENTS)
    events = ask("log", task_id=task["id"], limit=limit)["events"]
    return {
        "title": f"{task['title']} · {task['id']}",
        "live_task": task["id"],
        "task": task,
        "brief": description(task),
        "said": [f"{row.label} {row.in_words(task[row.key])}" for row in FIELDS if row.label and row.key in task],
        "worklog": parts(task["body"])[2].strip(),
        "first": [action for action in buttons if action.name in _FIRST],
        "others": [action for action in buttons if action.name not in _FIRST],
        "may_comment": "comment" in may,
        "may_unlink": "unlink" in may,
        "events": events,
        "history": [*stories(msgspec.convert(events, prepare_type(list[Event])))][::-1],
        "reports": _reports(task, events),
        "more_events": min(limit + _EVENTS, _MOST_EVENTS) if len(events) == limit else None,
        "related": _related(ask, task["relationships"]),
        "output": _output(ask, task, page.number("attempt", len(task["attempts"]), least=1)),
    }


def _related(ask: Operations, relationships: list[dict[str, str]]) -> list[dict[str, Any]]:
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


def _reports(task: dict[str, Any], events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What earlier runs reported, and why it was sent back, newest first."""
    attempts = {run["runId"]: run["attempt"] for run in task["attempts"]}
    found: list[dict[str, Any]] = []
    for event in events:
        payload, run = event.get("payload", {}), event.get("runId", "")
        if event["type"] == "task.completed":
            source = {"seq": event["seq"], "runId": run, "attempt": attempts.get(run), "at": event["timestamp"]}
            found.append(payload["result"] | source)
        elif event["type"] == "task.transitioned" and payload.get("blockers") and found:
            found[-1]["sentBack"] = {"by": event["actor"], "blockers": payload["blockers"]}
    return [one for one in found if one["runId"] != task.get("result", {}).get("runId")][::-1]


def _output(ask: Operations, task: dict[str, Any], attempt: int) -> dict[str, Any] | None:
    """The end of what a run printed, of both streams."""
    if not task["attempts"]:
        return None
    tails = []
    for stream in ("stdout", "stderr"):
        try:
            size = ask("output", task_id=task["id"], attempt=attempt, stream=stream, offset=0, limit=4)["size"]
            start = max(size - _TAIL, 0)
            piece = ask("output", task_id=task["id"], attempt=attempt, stream=stream, offset=start, limit=_TAIL)
        except AofError:
            continue  # a run that printed nothing here, or that is not there
        if piece["text"]:
            tails.append({"stream": stream, "size": size, "start": start, "text": piece["text"].lstrip("\ufffd")})
    return {"attempt": attempt, "tails": tails}


def past(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """The task at an event, beside how it was before."""
    given = page.path["seq"]
    if not (given.isascii() and given.isdigit() and len(given) <= _DIGITS):
        raise InvalidInput(f"{given[:40]!r} is not an event's number", "open the task's history")
    seq, task_id = int(given), page.path["task_id"]
    then = ask("show", task_id=task_id, at=seq)
    try:
        before: dict[str, Any] = ask("show", task_id=task_id, at=max(seq - 1, 0))
    except TaskNotFound:
        before = {}  # it was created by this event
    return {
        "title": f"{then['id']} at event {seq}",
        "live": False,
        "task": then,
        "seq": seq,
        "brief": description(then),
        "changed": [
            {"name": name, "was": _as_text(name, was), "is": _as_text(name, now)}
            for name, was, now in _differences("", before, then)
        ],
        "lines": _changed_lines(before.get("body", ""), then.get("body", "")),
    }


def _differences(name: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """What is not the same in two values, each with its name in words."""
    was, now = _by_id(was), _by_id(now)
    if isinstance(was, dict) and isinstance(now, dict):
        for key in was | now:
            if key not in _UNCOMPARED and was.get(key) != now.get(key):
                yield from _differences(f"{name} {spaced(key)}".strip(), was.get(key), now.get(key))
    elif isinstance(was, list | tuple) and isinstance(now, list | tuple):
        yield name, [one for one in was if one not in now], [one for one in now if one not in was]
    else:
        yield name, was, now


def _by_id(value: Any) -> Any:
    """A list of things with IDs, such as hops, by these; anything else as it is."""
    if isinstance(value, list | tuple) and value and all(isinstance(one, dict) and "id" in one for one in value):
        return {one["id"]: one for one in value}
    return value


def _as_text(name: str, value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    if name.endswith("status"):
        return words(value)
    return "; ".join(map(summary, value)) if isinstance(value, list | tuple) else summary(value)


def _changed_lines(before: str, then: str) -> list[tuple[str, str]]:
    """The lines of a text that were added or removed, with what stands around them."""
    if before == then:
        return []
    was, now = before.splitlines()[:_MOST_LINES], then.splitlines()[:_MOST_LINES]
    found = list(difflib.unified_diff(was, now, n=1, lineterm=""))[2:]
    return [(line[:1], line[1:]) for line in found if not line.startswith("@@")]


def workflow(ask: Operations, page: PageAddress) -> dict[str, Any]:
    """One task's hops; without a task in a workflow, those that somebody works on or waits for."""
    task_id = page.path.get("task_id") or page.text("task")
    if task_id is None:
        return {"flow": None, "task": None, "tasks": _tasks_at_hops(ask)}
    task = ask("show", task_id=task_id)
    if "template" not in task.get("workflow", {}):
        return {"flow": None, "task": task, "tasks": _tasks_at_hops(ask)}
    flow = ask("workflow_show", name=task["id"])
    hops = flow["hops"]
    gates = [hop for hop in hops if hop["status"] == "review"]
    edges = [{"from": before, "to": hop["id"], "kind": "blocks"} for hop in hops for before in hop.get("dependsOn", ())]
    return {
        "flow": flow,
        "task": task,
        "drawing": {"nodes": [_node(hop, task["id"]) for hop in hops], "edges": edges},
        "gates": gates,
        "actions": {name: BY_NAME[name] for name in _REVIEWS},
        "may": {name: _hops_for(ask, task["id"], name) for name in _REVIEWS} if gates else {},
        "feedback": task.get("workflow", {}).get("feedback"),
        "live_task": task["id"],
        "title": f"Workflow of {task['title'][:80]}",
    }


def _hops_for(ask: Operations, task_id: str, action: str) -> set[str]:
    """The hops that the person may approve or reject now."""
    if not ask.may(action):
        return set()
    calls = ask("moves", task_id=task_id)["actions"]
    return {call["arguments"].get("hop", "") for call in calls if call["operation"] == action}


def _node(hop: dict[str, Any], task_id: str) -> dict[str, Any]:
    who = hop.get("agent") if hop["status"] not in ("waiting", "ready") else None
    return {
        "id": hop["id"],
        "lines": [hop["id"], f"{words(hop['status'])} · {who or hop['role']}"],
        "link": f"/board/workflow/{task_id}#hop-{hop['id']}",
        "status": hop["status"],
        "marked": hop["status"] in ("running", "review"),
    }


def _tasks_at_hops(ask: Operations) -> list[dict[str, Any]]:
    """Tasks with a hop that somebody holds, or that waits for a person."""
    held = [one for agent in ask("agents", limit=500)["agents"] for one in agent["holds"] if one.get("hop")]
    waiting = [one for one in ask("inbox", limit=_MOST_TASKS)["items"] if one.get("hop")]
    found = {one["taskId"]: one["title"] for one in (*waiting, *held)}
    return [{"id": task_id, "title": title} for task_id, title in found.items()][:_MOST_TASKS]


TASK = PageView(name="task", path="/tasks/{task_id}", template="task.html", title="Task", context=task)
PAST = PageView(name="past", path="/tasks/{task_id}/at/{seq}", template="past.html", title="The past", context=past)
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
    wanted=Operations.has_workflows,
)
