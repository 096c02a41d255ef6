"""One task as a portable record: compact, without its body and without what its runs printed. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from aof._support.frozen import FrozenDict, freeze
from aof.app.portable.attempts import attempts, error
from aof.app.portable.blockers import reason
from aof.app.portable.edges import Edge
from aof.app.portable.participants import assignee, who
from aof.app.portable.relations import active
from aof.app.portable.task_histories import Life
from aof.app.portable.view_source import Scene, finished
from aof.app.portable.vocabulary import NOT_APPLICABLE, SHORT, UNKNOWN, file_ref, log_ref, missing, short, task_ref
from aof.core.evolve.comments import comments_of
from aof.core.evolve.task import name_of, standing
from aof.core.evolve.work_log import description
from aof.core.model.task import Task

_CONTEXT = dict.fromkeys(("sessionId", "threadId", "turnId"), UNKNOWN)
_CLASSES = dict.fromkeys(("taskKind", "taskFamily"), UNKNOWN)
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
    above = scene.relations.above(task.id)
    said = description(task.body)
    shown: dict[str, Any] = {
        "taskId": task.id,
        "parentTaskId": above[0] if above is not None else NOT_APPLICABLE,
        "rootTaskId": scene.roots[task.id],
        **_given(task, _CONTEXT),
        "title": task.title,
        "objective": _objective(task, said),
        **_given(task, _CLASSES),
        "visibility": task.visibility,
        "status": scene.status(task),
        "nativeStatus": "archive" if task.archived else task.status,
        **_remote(task),
    }
    why = reason(scene, task)
    if why is not None:
        shown["statusReason"] = why
    shown["priority"] = task.priority
    shown["requestedBy"] = who(scene, task.created_by)
    shown["owner"] = who(scene, task.owner)
    shown["assignee"] = assignee(scene, life)
    shown["scope"] = _scope(scene, task)
    shown["constraints"] = task.constraints or missing(NOT_APPLICABLE)
    shown["taskProfile"] = task.profile or missing(NOT_APPLICABLE)
    shown["acceptance"] = _acceptance(task)
    shown["progress"] = _progress(scene, life, said)
    shown["currentRunId"] = current_run(life) or NOT_APPLICABLE
    shown["attempts"] = attempts(scene, life)
    shown["relationships"] = relationships
    shown["artifacts"] = _artifacts(relationships)
    evidence = [edge["targetId"] for edge in relationships if edge["kind"] == "evidence"]
    shown["evidenceRefs"] = [*evidence, log_ref(life.first, task.rev)]
    shown["deliveryState"] = _delivery(scene, life)
    failure = _failure(scene, task)
    if failure is not None:
        shown["lastError"] = failure
    if task.due is not None:
        shown["due"] = task.due
    if said_of_it := comments_of(task.body):
        shown["comments"] = [
            msgspec.to_builtins(one) | {"text": short(one.text)} for one in said_of_it[-_NEWEST_COMMENTS:]
        ]
    shown["createdAt"], shown["updatedAt"] = task.created_at, task.updated_at
    if task.started_at:
        shown["startedAt"] = task.started_at
    if task.ended_at:
        shown["endedAt"] = task.ended_at
    for name, value in shown.items():
        kind = type(value)
        if kind is dict or kind is list:
            shown[name] = freeze(value)
    return FrozenDict(shown)


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


def _given(task: Task, names: dict[str, str]) -> dict[str, str]:
    """What the task's creator said in its metadata."""
    if not task.metadata:
        return names
    said = {name: task.metadata.get(name) for name in names}
    return {name: text if isinstance(text, str) and text else UNKNOWN for name, text in said.items()}


def _objective(task: Task, said: str) -> str:
    """The description, or where it can be read when it is long."""
    text = said.strip()
    if not text:
        return UNKNOWN
    return text if len(text) <= SHORT else task_ref(task.id, task.rev)


def _scope(scene: Scene, task: Task) -> dict[str, Any]:
    said = task.metadata.get("scope")
    return scene.scope | said if isinstance(said, dict) else scene.scope


def _progress(scene: Scene, life: Life, said: str) -> dict[str, Any]:
    """What the current run reported. Children are counted in the graph; a checklist is a hint, and stands apart."""
    shown = life.task.progress or missing()
    ticks = _TICK.findall(said) if "[" in said else ()
    if ticks:
        shown = shown | {"checklist": {"done": sum(tick != " " for tick in ticks), "total": len(ticks)}}
    children = scene.children.get(life.task.id, ())
    if children:
        done = sum(child.task.status == "done" for child in children)
        reported = shown.get("counters")
        counters = reported if isinstance(reported, dict) else {}
        shown = shown | {"counters": counters | {"childTasks": {"done": done, "total": len(children)}}}
    checked = _validation(life.task)
    return shown | {"validation": checked} if checked is not None else shown


def _acceptance(task: Task) -> list[dict[str, Any]]:
    """Every criterion with how it stands: met, unmet, or unknown where nobody reported on it."""
    if not task.acceptance:
        return []
    words = zip(task.acceptance, standing(task), strict=True)
    return [{"criterion": name_of(one) or one, "status": word} for one, word in words]


def _validation(task: Task) -> dict[str, Any] | None:
    """Tests and coverage of the criteria; None where there is nothing to check and nothing was reported."""
    if not task.validation:
        return None
    tests = task.validation.get("tests")
    words = standing(task)
    if tests is None and all(word == UNKNOWN for word in words):
        return None
    return {"tests": tests or missing(), "acceptance": {"met": words.count("met"), "total": len(words)}}


def _artifacts(relationships: list[Edge]) -> list[dict[str, Any]]:
    if not relationships:
        return []
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
    parent = scene.relations.above(life.task.id)
    if parent is None:
        return missing(NOT_APPLICABLE)
    above, _ = parent
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
