"""One task: report, brief, comments, runs and their output, relations, history. Must not decide what may be done."""

from __future__ import annotations

from typing import Any

import msgspec

from aof._support.typed import prepare_type
from aof.adapters.http.board.actions import description
from aof.adapters.http.board.calls import Asker, PageAddress
from aof.adapters.http.board.offers import offered
from aof.adapters.http.board.views.spec import PageView
from aof.app.queries.stories import stories
from aof.core.errors.base import AofError
from aof.core.evolve.work_log import parts
from aof.core.model.events import Event

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


VIEW = PageView(name="task", path="/tasks/{task_id}", template="task.html", title="Task", context=task)
