"""The agent task contract as JSON Schema: the snapshot and the events that AOF gives. Pure.

`python -m aof.portable.schemas` writes the files in `docs/reference`; a test compares them, and every snapshot and
event of the other tests is checked against them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from aof.kernel.model import PRIORITIES, VISIBILITIES
from aof.tasks.fields import FIELDS, TaskField
from aof.tasks.graph import Normalized

Fields = dict[str, Any]

STATUSES: tuple[str, ...] = get_args(Normalized)
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
DELIVERY_STATES = ("pending", "queued", "delivered", "failed", "parent_missing", "not_applicable", "unknown")
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
_REMOTE: Fields = {  # of a task that a peer works on
    "nativeProtocol": _TEXT,
    "remoteTaskId": _TEXT,
    "remoteContextId": _TEXT,
    "remoteAgentRef": _TEXT,
    "agentCardRef": _TEXT,
    "deliveryMechanism": {
        "enum": ["polling", "streaming", "subscription", "push notification", "custom", "unknown"],
    },
    "remoteStatus": _TEXT,
    "remoteArtifactRefs": _list(_REF),
}
_REFS = _list(_object({"kind": _TEXT, "ref": _REF}, more=True))
_ERROR = _object({"code": _TEXT, "message": _SHORT, "at": _TIME, "cause": _TEXT}, {"runId": _RUN_ID})
_DELIVERY = _object({"state": {"enum": list(DELIVERY_STATES)}}, {"targetId": _TEXT, "at": _TIME, "reason": _SHORT})
EDGE = _object(
    {
        "kind": {"enum": list(KINDS)},
        "targetId": _TEXT,
        "status": {"enum": ["active", "satisfied", "broken", "missing", "ended"]},
        "createdAt": _TIME,
        "updatedAt": _TIME,
    },
    {"reason": _SHORT, "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"}},
)


def _attempt(more: Fields) -> Fields:
    """A run, as its task has it or with `more` beside the others."""
    required: Fields = {
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
    }
    optional = {"endedAt": _TIME, "hop": _TEXT, "lastError": _ERROR, "completionSummary": _SHORT}
    return _object(more | required, optional)


# Those of a task that have no form of their own there; the others are composed in `snapshot.portable`.
PLAIN_FIELDS = tuple(row for row in FIELDS if row.portable and row.kind in ("moment", "whole"))


def _of_field(row: TaskField) -> Fields:
    return {"type": "integer", "minimum": row.least, "maximum": row.most} if row.kind == "whole" else _TEXT


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
        "visibility": {"enum": list(VISIBILITIES)},
        "status": {"enum": list(STATUSES)},
        "nativeStatus": _TEXT,
        "priority": {"enum": list(PRIORITIES)},
        "requestedBy": _WHO,
        "owner": _WHO,
        "assignee": _WHO,
        "scope": _object({"project": _TEXT}, more=True),
        "constraints": {"type": "object", "minProperties": 1},
        "taskProfile": {"type": "object", "minProperties": 1},
        "acceptance": _list(_object({"criterion": {}, "status": {"enum": ["met", "unmet", "unknown"]}})),
        "progress": {"type": "object", "minProperties": 1},
        "currentRunId": {"anyOf": [_RUN_ID, {"const": "not_applicable"}]},
        "attempts": _list(_attempt({})),
        "relationships": _list(EDGE),
        "artifacts": _REFS,
        "evidenceRefs": _list(_REF),
        "deliveryState": _DELIVERY,
        "createdAt": _TIME,
        "updatedAt": _TIME,
    },
    {
        "statusReason": _SHORT,
        "lastError": _ERROR,
        "startedAt": _TIME,
        "endedAt": _TIME,
        **{row.portable: _of_field(row) for row in PLAIN_FIELDS},
        "comments": _list(_object({"text": _SHORT}, {"at": _TIME, "by": _TEXT})),
        **_REMOTE,
    },
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
        "attempts": _list(_attempt({"taskId": _TASK_ID})),
        "taskSummary": _SUMMARY,
        "taskGraph": _object({"edges": _list(_object({"sourceId": _TASK_ID}, more=True))}),
        "blockedTasks": _list(_BLOCKED),
        "deliveryState": _object(
            {
                "byState": {"type": "object", "propertyNames": {"enum": list(DELIVERY_STATES)}},
                "undelivered": _list(_TASK_ID),
            }
        ),
        "evidenceRefs": _list(_REF),
    },
    {"updatedAt": _TIME},
)
EVENT = _object(
    {
        "schemaVersion": _TEXT,
        "type": {"enum": list(EVENTS)},
        "eventId": {"type": "string", "pattern": r"^EVT-\d+$"},
        "timestamp": _TIME,
        "sequence": {"type": "integer", "minimum": 1},
        "sessionId": _TEXT,
        "taskId": _TASK_ID,
        "status": {"enum": list(STATUSES)},
        "nativeStatus": _TEXT,
        "payload": {"type": "object"},
    },
    {"runId": _RUN_ID, "attemptId": _RUN_ID},
)


def snapshot_schema() -> Fields:
    """What `snapshot` answers."""
    return SNAPSHOT


def events_schema() -> Fields:
    """What `portable_log` answers."""
    return _object({"events": _list(EVENT)})


def documents() -> dict[str, str]:
    """The published files by name."""
    return {
        "agent-task-snapshot.schema.json": _document("AOF snapshot", SNAPSHOT),
        "agent-task-event.schema.json": _document("AOF portable event", EVENT),
    }


def _document(title: str, schema: Fields) -> str:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return json.dumps(head | schema, indent=2) + "\n"


def write(folder: Path) -> None:
    """Write the files anew."""
    for name, text in documents().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path("docs/reference"))
