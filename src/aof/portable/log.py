"""The log in portable words: each native event gives at most one line, under a name that others know. Pure.

What has no portable meaning is left out, not renamed; it stays in the native log. A native report of a result is such
an event: only a task that has come to `done` is completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from aof.kernel.events import DELEGATED, Event
from aof.kernel.model import millis
from aof.portable.model import SCHEMA_VERSION, UNKNOWN, Life, Lives, as_logged

Named = tuple[str, dict[str, Any]] | None
_ATTEMPT = "task.attempt."
_HIDDEN = ("workLog", "key", "layout", "secretDigest", "keptBy")
_WAITS = {"waiting_input": "input", "waiting_permission": "permission", "waiting_resource": "resource"}


class Translation:
    """Translates a log, event by event from its beginning: what an event means depends on what came before it."""

    def __init__(self) -> None:
        self._lives = Lives()

    def line(self, event: Event) -> dict[str, Any] | None:
        """The portable line of the next event; None where that has no portable meaning."""
        named = _named(self._lives.by_id.get(event.task_id), event)
        self._lives.add(event)
        life = self._lives.by_id.get(event.task_id)
        return _line(self._lives, life, event, named) if named is not None and life is not None else None


def lines(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """The portable lines of a log that is read from its beginning."""
    translation = Translation()
    return (line for event in events if (line := translation.line(event)) is not None)


def _line(lives: Lives, life: Life, event: Event, named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    name, payload = named
    life = lives.by_id.get(payload.get("parentTaskId", ""), life) if name == DELEGATED else life
    line: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "type": name,
        "eventId": f"EVT-{event.seq}",
        "timestamp": event.timestamp,
        "sequence": event.seq,
        "sessionId": lives.session,
        "taskId": life.task.id,
    }
    if event.run_id is not None:
        line |= {"runId": event.run_id, "attemptId": event.run_id}
    native = "archive" if life.task.archived else life.task.status
    status = as_logged(life.task, millis(event.timestamp))
    return line | {"status": status, "nativeStatus": native, "payload": payload}


def _named(life: Life | None, event: Event) -> Named:
    make = _MAKERS.get(event.type)
    if make is None or (life is None and make is not _created):
        return None
    return make(life, event)


def _same(_life: Life | None, event: Event) -> Named:
    """An event that has its portable name already."""
    return event.type, _plain(event)


def _plain(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.payload.items() if name not in _HIDDEN}


def _created(life: Life | None, event: Event) -> Named:
    if life is not None:
        return None
    task = event.payload["task"]
    told = {"title": task["title"], "parentTaskId": task.get("parentId"), "requestedBy": task.get("createdBy")}
    return "task.created", {name: value for name, value in told.items() if value is not None}


def _updated(life: Life | None, event: Event) -> Named:
    """What was changed, by name only: bodies are not for events. A task that came to be at a peer is one to name."""
    changed = list(event.payload.get("fields", ()))
    if changed == ["metadata"] and (peer := _new_peer(life, event)) is not None:
        return DELEGATED, peer
    if changed == ["parentId"]:
        return "task.dependency.updated", {
            "kind": "parent",
            "targetId": event.payload["changes"]["parentId"] or UNKNOWN,
        }
    return ("task.updated", {"changed": changed, "by": event.agent or event.actor}) if changed else None


def _unarchived(_life: Life | None, event: Event) -> Named:
    return "task.updated", {"changed": ["archived"], "by": event.agent or event.actor}


def _new_peer(life: Life | None, event: Event) -> dict[str, Any] | None:
    """The task at a peer that is known by its ID from this event on."""
    assert life is not None
    for name, value in (event.payload["changes"]["metadata"] or {}).items():
        if name.partition(":")[0] == "remote" and isinstance(value, dict) and value.get("remoteTaskId"):
            before = life.task.metadata.get(name)
            if not isinstance(before, dict) or before.get("remoteTaskId") != value["remoteTaskId"]:
                agent = value.get("remoteAgentRef", UNKNOWN)
                return {"kind": "peer", "targetId": value["remoteTaskId"], "agent": agent}
    return None


def _merged(_life: Life | None, event: Event) -> Named:
    """The event of a merge; only where there is something to report."""
    said = event.payload.get("conflicts")
    return ("task.updated", {"changed": ["merged"], "by": event.actor, "conflicts": said}) if said else None


def _delivery(_life: Life | None, event: Event) -> Named:
    return "task.progress", {"deliveryState": _plain(event)}


def _asked(_life: Life | None, event: Event) -> Named:
    question = event.payload["question"]
    told = {"waitsFor": "input", "by": question["by"], "questionId": question["id"], "reason": question["text"]}
    return "task.waiting", told


def _answered(life: Life | None, event: Event) -> Named:
    """A run that waited goes on; a task that nobody runs is queued by another event."""
    going_on = life is not None and life.task.status == "in-progress"
    told = {"by": event.payload["by"], "questionId": event.payload["question"]}
    return ("task.resumed", told) if going_on else None


def _linked(_life: Life | None, event: Event) -> Named:
    return "task.dependency.updated", _plain(event) | {"change": event.type.rpartition(".")[2]}


def _delegated(_life: Life | None, event: Event) -> Named:
    """By a message: the parent hands a child over."""
    request = event.payload.get("request")
    if "handoffId" not in event.payload or not isinstance(request, dict):
        return None
    told = {"kind": "handoff", "targetId": event.task_id, "handoffId": event.payload["handoffId"]}
    return DELEGATED, told | {"agent": request["toAgent"], "parentTaskId": request["parentTaskId"]}


def _handed(_life: Life | None, event: Event) -> Named:
    """By the engine: the task itself goes to another agent."""
    told = event.payload["handoff"]
    return DELEGATED, {
        "kind": "handoff",
        "targetId": told["to_agent"],
        "handoffId": event.payload["handoffId"],
        "handoffType": told["type"],
    }


def _moved(life: Life | None, event: Event) -> Named:
    assert life is not None
    make = _MOVES.get(event.payload["to"])
    return make(life, event) if make is not None else None


def _said(event: Event, **more: Any) -> dict[str, Any]:
    payload = event.payload
    told = {"from": payload["from"], "to": payload["to"], "reason": payload.get("reason")} | more
    return {name: value for name, value in told.items() if value is not None}


def _ready(life: Life, event: Event) -> Named:
    """From a pause the task is resumed; from anywhere else it waits for a run again."""
    return ("task.resumed" if _paused(life) else "task.queued"), _said(event)


def _backlog(life: Life, event: Event) -> Named:
    return ("task.resumed", _said(event)) if _paused(life) else None


def _paused(life: Life) -> bool:
    return life.task.blocked is not None and life.task.blocked.kind == "paused"


def _running(life: Life, event: Event) -> Named:
    """Later runs show as attempts only."""
    return ("task.started", _said(event)) if not life.attempts else None


def _review(_life: Life, event: Event) -> Named:
    return "task.waiting", _said(event, waitsFor="permission")


def _blocked(_life: Life, event: Event) -> Named:
    held = event.payload["blocked"]
    kind = held["kind"]
    if kind in _WAITS:
        return "task.waiting", _said(event, waitsFor=_WAITS[kind], by=held["by"])
    name = "task.paused" if kind == "paused" else "task.blocked"
    return name, _said(event, by=held["by"], blockerId=held.get("dependency"))


def _done(_life: Life, event: Event) -> Named:
    return "task.completed", _said(event, by=event.payload.get("by"))


def _cancelled(_life: Life, event: Event) -> Named:
    return "task.cancelled", _said(event)


def _dead(_life: Life, event: Event) -> Named:
    """A limit that fired and a worker that vanished have events of their own."""
    error = event.payload.get("error") or {}
    return ("task.failed", _said(event, error=error)) if error.get("cause", "failed") == "failed" else None


_MOVES: dict[str, Callable[[Life, Event], Named]] = {
    "ready": _ready,
    "backlog": _backlog,
    "in-progress": _running,
    "review": _review,
    "blocked": _blocked,
    "done": _done,
    "cancelled": _cancelled,
    "deadletter": _dead,
}
_MAKERS: dict[str, Callable[[Life | None, Event], Named]] = {
    **dict.fromkeys(("task.accepted", "task.queued", "task.progress", "task.retrying", "task.cancel_requested"), _same),
    **dict.fromkeys(("task.timed_out", "task.lost", "task.archived", "task.dependency.updated", DELEGATED), _same),
    **dict.fromkeys((f"{_ATTEMPT}started", f"{_ATTEMPT}completed", f"{_ATTEMPT}failed"), _same),
    "task.created": _created,
    "task.restored": _created,
    "task.updated": _updated,
    "task.unarchived": _unarchived,
    "task.merged": _merged,
    "task.link.added": _linked,
    "task.link.removed": _linked,
    "task.transitioned": _moved,
    "task.delivery.updated": _delivery,
    "task.question.asked": _asked,
    "task.question.answered": _answered,
    "delegation.requested": _delegated,
    "handoff.initiated": _handed,
}
