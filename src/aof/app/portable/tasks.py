"""One task as a portable record: compact, without its body and without what its runs printed. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from aof.app.portable.attempts import attempts, error
from aof.app.portable.blockers import reason
from aof.app.portable.checks import acceptance, validation
from aof.app.portable.edges import Edge
from aof.app.portable.participants import assignee, who
from aof.app.portable.task_histories import Life
from aof.app.portable.view_source import Scene, active, finished
from aof.app.portable.vocabulary import NOT_APPLICABLE, SHORT, UNKNOWN, file_ref, log_ref, missing, short, task_ref
from aof.core.evolve.comments import comments_of
from aof.core.evolve.work_log import description
from aof.core.model.task import Task

_CONTEXT = ("sessionId", "threadId", "turnId")
_CLASSES = ("taskKind", "taskFamily")
_REMOTE = (
    "nativeProtocol",
    "remoteTaskId",
    "remoteContextId",
    "remoteAgentRef",
    "agentCardRef",
    "deliveryMechanism",
    "remoteStatus",
)
_NEWEST_COMMENTS = 20
_TICK = re.compile(r"^\s*[-*] \[([ xX])\] ", re.MULTILINE)


def portable(scene: Scene, life: Life, relationships: list[Edge]) -> dict[str, Any]:
    """The whole record. What is not known says so; a moment that has not come is left out."""
    task = life.task
    said = description(task.body)
    shown: dict[str, Any] = {
        "taskId": task.id,
        "parentTaskId": life.parent[0] if life.parent is not None else NOT_APPLICABLE,
        "rootTaskId": scene.roots[task.id],
        **{name: _given(task, name) for name in _CONTEXT},
        "title": task.title,
        "objective": _objective(task, said),
        **{name: _given(task, name) for name in _CLASSES},
        "visibility": task.visibility,
        "status": scene.status(task),
        "nativeStatus": "archive" if task.archived else task.status,
    }
    shown |= _remote(task)
    why = reason(scene, task)
    if why is not None:
        shown["statusReason"] = why
    shown |= {
        "priority": task.priority,
        "requestedBy": who(scene, task.created_by),
        "owner": who(scene, task.owner),
        "assignee": assignee(scene, life),
        "scope": _scope(scene, task),
        "constraints": task.constraints or missing(NOT_APPLICABLE),
        "taskProfile": task.profile or missing(NOT_APPLICABLE),
        "acceptance": acceptance(task),
        "progress": _progress(scene, life, said),
        "currentRunId": current_run(life) or NOT_APPLICABLE,
        "attempts": attempts(scene, life),
        "relationships": relationships,
        "artifacts": _artifacts(relationships),
        "evidenceRefs": [edge["targetId"] for edge in relationships if edge["kind"] == "evidence"]
        + [log_ref(life.first, task.rev)],
        "deliveryState": _delivery(scene, life),
    }
    failure = _failure(scene, task)
    if failure is not None:
        shown["lastError"] = failure
    if task.due is not None:
        shown["due"] = task.due
    if said_of_it := comments_of(task.body):
        shown["comments"] = [
            msgspec.to_builtins(one) | {"text": short(one.text)} for one in said_of_it[-_NEWEST_COMMENTS:]
        ]
    shown |= {"createdAt": task.created_at, "updatedAt": task.updated_at}
    return shown | {
        name: moment for name, moment in (("startedAt", task.started_at), ("endedAt", task.ended_at)) if moment
    }


def _remote(task: Task) -> dict[str, Any]:
    """The counterpart of a task that a peer works on, as the run that follows it has recorded it."""
    kept = task.metadata.get("remote")
    if not isinstance(kept, dict):
        return {}
    shown = {name: kept.get(name, UNKNOWN) for name in _REMOTE}
    paths = kept.get("remoteArtifactRefs", ())
    return shown | {"remoteArtifactRefs": [file_ref(task.id, str(path)) for path in paths]}


def current_run(life: Life) -> str | None:
    """The run that holds the lease; of several hops the one that was taken last."""
    held = active(life)
    return held[-1].run.run_id if held else None


def _given(task: Task, name: str) -> str:
    """What the task's creator said in its metadata."""
    said = task.metadata.get(name)
    return said if isinstance(said, str) and said else UNKNOWN


def _objective(task: Task, said: str) -> str:
    """The description, or where it can be read when it is long."""
    text = said.strip()
    if not text:
        return UNKNOWN
    return text if len(text) <= SHORT else task_ref(task.id, task.rev)


def _scope(scene: Scene, task: Task) -> dict[str, Any]:
    said = task.metadata.get("scope")
    return {"project": scene.policy.project} | (said if isinstance(said, dict) else {})


def _progress(scene: Scene, life: Life, said: str) -> dict[str, Any]:
    """What the current run reported. Children are counted in the graph; a checklist is a hint, and stands apart."""
    shown = dict(life.task.progress) or missing()
    ticks = _TICK.findall(said) if "[" in said else ()
    if ticks:
        shown["checklist"] = {"done": sum(tick != " " for tick in ticks), "total": len(ticks)}
    children = scene.children.get(life.task.id, ())
    if children:
        done = sum(child.task.status == "done" for child in children)
        reported = shown.get("counters")
        counters = reported if isinstance(reported, dict) else {}
        shown["counters"] = counters | {"childTasks": {"done": done, "total": len(children)}}
    checked = validation(life.task)
    return shown | {"validation": checked} if checked is not None else shown


def _artifacts(relationships: list[Edge]) -> list[dict[str, Any]]:
    kinds = {"produced_artifact": "produced", "consumed_artifact": "consumed"}
    return [
        {"kind": kinds[edge["kind"]], "ref": edge["targetId"]}
        | ({"sha256": edge["sha256"]} if "sha256" in edge else {})
        for edge in relationships
        if edge["kind"] in kinds
    ]


def _delivery(scene: Scene, life: Life) -> dict[str, Any]:
    """Whether the output has reached the receiver: what is on record, else what the graph alone tells."""
    if life.task.delivery:
        return dict(life.task.delivery)
    if life.parent is None:
        return missing(NOT_APPLICABLE)
    above, _ = life.parent
    if scene.task(above) is None:
        return {"state": "parent_missing", "targetId": above}
    return {"state": UNKNOWN if finished(life.task) else "pending", "targetId": above}


def _failure(scene: Scene, task: Task) -> dict[str, Any] | None:
    """The last thing that went wrong; a lease that ran out and that nobody has recovered yet is one too."""
    if task.last_error is not None:
        return error(task.last_error)
    if scene.status(task) != "lost" or task.lease is None:
        return None
    lost = {"code": "lease_expired", "message": f"the lease of {task.lease.agent} ran out", "cause": "lost"}
    return lost | {"at": task.lease.expires_at, "runId": task.lease.run_id}
