"""The contract that a snapshot keeps, as a JSON schema, and a camera that takes snapshots of a room and checks them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from aof.core.model.ids import attempt_of, task_of_run
from tests.support.room import Room

Fields = dict[str, Any]

STATUSES = (
    "draft", "accepted", "queued", "preparing", "running", "waiting_input", "waiting_permission", "waiting_resource",
    "blocked", "paused", "retrying", "cancelling", "cancelled", "timed_out", "failed", "lost", "completed", "archived",
    "stale", "unknown",
)  # fmt: skip
KINDS = (
    "parent", "child", "blocked_by", "blocks", "source_task", "source_attempt", "spawned_subagent", "assigned_thread",
    "produced_artifact", "consumed_artifact", "evidence",
)  # fmt: skip
EVENTS = (
    "task.created", "task.accepted", "task.queued", "task.started", "task.updated", "task.progress", "task.waiting",
    "task.blocked", "task.paused", "task.resumed", "task.retrying", "task.cancel_requested", "task.cancelled",
    "task.timed_out", "task.failed", "task.lost", "task.completed", "task.archived", "task.delegated",
    "task.dependency.updated", "task.attempt.started", "task.attempt.completed", "task.attempt.failed",
)  # fmt: skip
_TASK_ID = {"type": "string", "pattern": r"^TASK-\d{4}-\d\d-\d\d-\d{3,}$"}
_RUN_ID = {"type": "string", "pattern": r"^RUN-\d{4}-\d\d-\d\d-\d{3,}-\d+-[0-9a-f]{8}$"}
_TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"}
_TEXT = {"type": "string", "minLength": 1}
_SHORT = {"type": "string", "minLength": 1, "maxLength": 512}
_REF = {"type": "string", "pattern": "^[^ ]+$"}


def _object(required: Fields, optional: Fields | None = None, *, more: bool = False) -> Fields:
    return {
        "type": "object",
        "required": list(required),
        "properties": required | (optional or {}),
        "additionalProperties": more,
    }


def _list(items: Fields) -> Fields:
    return {"type": "array", "items": items}


_STATE = _object({"state": {"enum": ["unknown", "stale", "not_applicable"]}})
_WHO = {"anyOf": [_STATE, _object({"id": _TEXT, "kind": _TEXT})]}
_REFS = _list(_object({"kind": _TEXT, "ref": _REF}, more=True))
_ERROR = _object({"code": _TEXT, "message": _SHORT, "at": _TIME, "cause": _TEXT}, {"runId": _RUN_ID})
EDGE = _object(
    {
        "kind": {"enum": list(KINDS)},
        "targetId": _TEXT,
        "status": {"enum": ["active", "satisfied", "broken", "missing", "ended"]},
        "createdAt": _TIME,
        "updatedAt": _TIME,
    },
    {"reason": _SHORT},
)
_ATTEMPT = _object(
    {
        "runId": _RUN_ID,
        "attemptId": _RUN_ID,
        "attemptCount": {"type": "integer", "minimum": 1},
        "status": {"enum": ["preparing", "running", "completed", "failed", "cancelled", "unavailable"]},
        "nativeStatus": _TEXT,
        "cause": _TEXT,
        "worker": _object({"agentId": _TEXT, "kind": _TEXT}),
        "startedAt": _TIME,
        "inputRefs": _REFS,
        "outputRefs": _REFS,
        "checkpointRefs": _REFS,
        "retryPolicy": {"type": "object", "required": ["maxAttempts", "backoff", "nonRetryable", "limits"]},
    },
    {"endedAt": _TIME, "hop": _TEXT, "lastError": _ERROR, "completionSummary": _SHORT},
)
TASK = _object(
    {
        "taskId": _TASK_ID,
        "parentTaskId": {"anyOf": [_TASK_ID, {"const": "not_applicable"}]},
        "rootTaskId": _TASK_ID,
        "sessionId": _TEXT,
        "threadId": _TEXT,
        "turnId": _TEXT,
        "title": _SHORT,
        "objective": _SHORT,
        "taskKind": _TEXT,
        "taskFamily": _TEXT,
        "visibility": {"enum": ["foreground", "background", "internal", "hidden"]},
        "status": {"enum": list(STATUSES)},
        "nativeStatus": _TEXT,
        "priority": {"enum": ["low", "normal", "high", "critical"]},
        "requestedBy": _WHO,
        "owner": _WHO,
        "assignee": _WHO,
        "scope": _object({"project": _TEXT}, more=True),
        "constraints": {"type": "object", "minProperties": 1},
        "taskProfile": {"type": "object", "minProperties": 1},
        "acceptance": _list(_object({"criterion": {}, "status": {"enum": ["met", "unmet", "unknown"]}})),
        "progress": {"type": "object", "minProperties": 1},
        "currentRunId": {"anyOf": [_RUN_ID, {"const": "not_applicable"}]},
        "attempts": _list(_ATTEMPT),
        "relationships": _list(EDGE),
        "artifacts": _REFS,
        "evidenceRefs": _list(_REF),
        "deliveryState": {"type": "object", "required": ["state"]},
        "createdAt": _TIME,
        "updatedAt": _TIME,
    },
    {"statusReason": _SHORT, "lastError": _ERROR, "startedAt": _TIME, "endedAt": _TIME},
)
_COUNTS = ("totalCount", "activeCount", "terminalCount", "failedCount", "lostCount", "waitingCount")
_SUMMARY = _object(
    {name: {"type": "integer", "minimum": 0} for name in _COUNTS}
    | {
        "byStatus": {"type": "object", "propertyNames": {"enum": list(STATUSES)}},
        "recentTerminalTasks": _list(
            _object({"taskId": _TASK_ID, "title": _TEXT, "status": {"enum": list(STATUSES)}, "endedAt": _TIME})
        ),
    }
)
_ACTION = _object({"actionId": _TEXT, "operation": _TEXT, "arguments": {"type": "object"}})
_BLOCKED = _object(
    {
        "taskId": _TASK_ID,
        "status": {"enum": list(STATUSES)},
        "reason": _SHORT,
        "since": _TIME,
        "blockers": _list(_object({"kind": _TEXT, "id": _TEXT}, {"status": _TEXT})) | {"minItems": 1},
        "actions": _list(_ACTION) | {"minItems": 1},
    }
)
_TURN = _object(
    {"turnId": _RUN_ID, "status": _TEXT, "startedAt": _TIME, "taskId": _TASK_ID, "runId": _RUN_ID, "attemptId": _RUN_ID}
)
_THREAD = _object(
    {"threadId": _TEXT, "status": {"enum": ["running", "stale", "idle"]}, "turns": _list(_TURN)},
    {"activeTurnId": _RUN_ID},
)
SNAPSHOT = _object(
    {
        "schemaVersion": _TEXT,
        "sessionId": _TEXT,
        "workspaceId": _TEXT,
        "sequence": {"type": "integer", "minimum": 0},
        "threads": _list(_THREAD),
        "tasks": _list(TASK),
        "taskSummary": _SUMMARY,
        "taskGraph": _object({"edges": _list(_object({"sourceId": _TASK_ID}, more=True))}),
        "blockedTasks": _list(_BLOCKED),
        "deliveryState": {"type": "object"},
        "evidenceRefs": _list(_REF),
    },
    {"updatedAt": _TIME},
)
_VALIDATOR = Draft202012Validator(SNAPSHOT, format_checker=FormatChecker())


def valid(view: Fields) -> Fields:
    """The snapshot as plain JSON, once it is known to keep the contract."""
    plain: Fields = json.loads(json.dumps(view))
    problems = [f"{error.json_path}: {error.message}" for error in _VALIDATOR.iter_errors(plain)]
    assert problems == []
    return plain


class Camera:
    """Takes snapshots of a room."""

    def __init__(self, room: Room) -> None:
        self.room = room

    def view(self, at: int | None = None, *, archived: bool = False) -> Fields:
        """A snapshot, which changes nothing."""
        return valid(self.room.idle(self.room.fabric.snapshot, at=at, archived=archived))

    def tasks(self, at: int | None = None) -> dict[str, Fields]:
        """All tasks by their IDs, also those that were put away."""
        return {task["taskId"]: task for task in self.view(at, archived=True)["tasks"]}

    def task(self, task_id: str, at: int | None = None) -> Fields:
        """One task."""
        return self.tasks(at)[task_id]

    def status(self, task_id: str) -> str:
        """Its normalized status."""
        return str(self.task(task_id)["status"])

    def edges(self, task_id: str, kind: str | None = None) -> dict[tuple[str, str], Fields]:
        """Its relationships by kind and target."""
        found = self.task(task_id)["relationships"]
        return {(edge["kind"], edge["targetId"]): edge for edge in found if kind in (None, edge["kind"])}

    def resolve(self, ref: str) -> Any:
        """What a ref leads to, as the manual says."""
        if found := re.fullmatch(r"aof://tasks/([A-Z0-9-]+)\?at=(\d+)", ref):
            return self.room.fabric.show(found[1], at=int(found[2]))
        if found := re.fullmatch(r"aof://tasks/([A-Z0-9-]+)/(.+)", ref):
            return (self.room.file(found[1]).with_suffix("") / found[2]).read_text()
        if found := re.fullmatch(r"aof://log/(\d+)(?:-(\d+))?", ref):
            first, last = int(found[1]), int(found[2] or found[1])
            return [event for event in self.room.fabric.events(after=first - 1) if event.seq <= last]
        if found := re.fullmatch(r"aof://handoffs/([A-Z0-9-]+)", ref):
            return json.loads((self.room.root / "handoffs" / f"{found[1]}.json").read_text())
        found = re.fullmatch(r"aof://runs/(RUN-[0-9a-f-]+)/([a-z.]+)", ref)
        assert found is not None, ref
        return run_file(self.room.root, found[1], found[2]).read_text()


def run_file(root: Path, run_id: str, name: str) -> Path:
    """A file of a run, also of one that was put away."""
    below = f"runs/{task_of_run(run_id)}/attempts/{attempt_of(run_id)}/{name}"
    return next(path for path in (root / below, root / "archive" / below) if path.exists())
