"""The edges of the task graph, as each task sees them, with since when and how they stand. Pure.

An edge between tasks is `active` while its other end is unfinished, `satisfied` once that is done, `broken` when it
was cancelled or died, and `missing` when it is not there. A thread's edge is `active` or `ended`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aof.app.portable.relations import active
from aof.app.portable.task_histories import Life
from aof.app.portable.view_source import Scene
from aof.app.portable.vocabulary import event_ref, file_ref, handoff_ref, job_ref, short
from aof.core.handoffs.artifacts import ATTACHED
from aof.core.jobs.job import LINK
from aof.core.model.task import Task
from aof.core.tasks.dependencies import edge_status

Edge = dict[str, Any]
_HANDED = {
    "queued": "active",
    "requested": "active",
    "deferred": "active",
    "accepted": "satisfied",
    "completed": "satisfied",
    "escalated": "ended",
    "rejected": "broken",
    "failed": "broken",
}
_STARTED = frozenset({"process", "a2a"})


def edges(scene: Scene, life: Life) -> list[Edge]:
    """Every edge of a task, each once: relatives first, then sources, threads, artifacts and evidence."""
    found: dict[tuple[str, str], Edge] = {}
    for edge in _all(scene, life):
        found.setdefault((edge["kind"], edge["targetId"]), edge)
    return list(found.values())


def _all(scene: Scene, life: Life) -> Iterator[Edge]:
    yield from _relatives(scene, life)
    for link in life.task.links:
        if link.kind == "handoff":
            continue  # its record is evidence, see below
        if link.kind == LINK:
            why = f"created by the job {link.target_id}"
            yield _edge("evidence", job_ref(link.target_id), "active", link.created_at, reason=why)
            continue
        yield _hashed(_edge(link.kind, link.target_id, "active", link.created_at, reason=link.reason), link.sha256)
    yield from _agents(scene, life)
    if life.attempts or life.handoffs or life.reviews:
        yield from _artifacts(life)
        yield from _evidence(life)


def _relatives(scene: Scene, life: Life) -> Iterator[Edge]:
    task = life.task
    parent = scene.relations.above(task.id)
    if parent is not None:
        above, since = parent
        yield _between("parent", above, since, task if scene.task(above) is not None else None)
    for child in scene.children.get(task.id, ()):
        _, since = scene.relations.above(child.task.id) or ("", child.task.created_at)
        yield _between("child", child.task.id, since, child.task)
    for blocker in task.depends_on:
        yield _between("blocked_by", blocker, life.since[blocker], scene.task(blocker))
    for dependent in scene.dependents.get(task.id, ()):
        yield _between("blocks", dependent.task.id, dependent.since[task.id], task)


def _between(kind: str, target: str, since: str, decides: Task | None) -> Edge:
    """An edge to another task; the child and the blocker decide how it stands."""
    if decides is None:
        return _edge(kind, target, "missing", since, reason=f"there is no task {target}")
    moved = max(since, decides.last_transition_at)
    status = edge_status(decides.status)
    why = f"{decides.id} is {decides.status}{_why(decides)}" if status == "broken" else None
    return _edge(kind, target, status, since, moved, why)


def _why(task: Task) -> str:
    reason = task.cancel.reason if task.cancel is not None else task.last_error.message if task.last_error else None
    return f": {reason}" if reason else ""


def _agents(scene: Scene, life: Life) -> Iterator[Edge]:
    """Whose line of work runs the task, or ran it last, and the agents that were started for it."""
    running = {one.run.run_id for one in active(life)}
    last = {one.run.agent_id: one.run for one in life.attempts}
    for agent, run in last.items():
        state = "active" if run.run_id in running else "ended"
        yield _edge("assigned_thread", agent, state, run.started_at, run.ended_at or run.started_at, run.run_id)
    for agent, run in last.items():
        if run.worker in _STARTED:
            state = "active" if run.run_id in running else "ended"
            yield _edge("spawned_subagent", agent, state, run.started_at, run.ended_at or run.started_at, run.run_id)
    for child in scene.children.get(life.task.id, ()):
        for handoff in child.handoffs.values():
            moved = handoff.answered_at or handoff.created_at
            why = f"{child.task.id} was handed to {handoff.to_agent}"
            yield _edge("spawned_subagent", handoff.to_agent, _HANDED[handoff.state], handoff.created_at, moved, why)
    for handoff in life.handoffs.values():
        if handoff.parent_task_id is None:  # the task itself, or a part of it, has gone to another agent
            moved = handoff.answered_at or handoff.created_at
            yield _edge(
                "spawned_subagent", handoff.to_agent, _HANDED[handoff.state], handoff.created_at, moved, handoff.id
            )


def _artifacts(life: Life) -> Iterator[Edge]:
    for attempt in life.attempts:
        result = attempt.result
        for path in (result.deliverables or ()) if result is not None else ():
            assert result is not None
            target = file_ref(life.task.id, path)
            edge = _edge("produced_artifact", target, "active", result.completed_at, reason=attempt.run.run_id)
            yield _hashed(edge, attempt.digests.get(path))
    for handoff in life.handoffs.values():
        if handoff.request is None:
            continue
        for path in ATTACHED:
            target = file_ref(life.task.id, path)
            yield _edge("consumed_artifact", target, "active", handoff.created_at, reason=handoff.id)
        for ref in handoff.request.context_refs:
            yield _edge("consumed_artifact", ref, "active", handoff.created_at, reason=handoff.id)


def _evidence(life: Life) -> Iterator[Edge]:
    for attempt in life.attempts:
        result = attempt.result
        if result is not None and result.tests and attempt.reported is not None:
            said = ", ".join(f"{name} {count}" for name, count in sorted(result.tests.items()))
            target = event_ref(attempt.reported)
            yield _edge("evidence", target, "active", result.completed_at, reason=f"tests: {said}")
    for review in life.reviews:
        said = f"{review.by}: {review.reason}"
        yield _edge("evidence", event_ref(review.seq), "active", review.at, reason=said)
    for handoff in life.handoffs.values():
        moved = handoff.answered_at or handoff.created_at
        target = handoff_ref(handoff.id)
        why = handoff.acceptance.reason if handoff.acceptance is not None else None
        yield _edge("evidence", target, _HANDED[handoff.state], handoff.created_at, moved, why)


def _hashed(edge: Edge, sha256: str | None) -> Edge:
    """An edge that knows the content at its other end."""
    return edge if sha256 is None else edge | {"sha256": sha256}


def _edge(  # noqa: PLR0917 - in the order of the keys
    kind: str, target: str, status: str, since: str, moved: str | None = None, reason: str | None = None
) -> Edge:
    edge = {"kind": kind, "targetId": target, "status": status, "createdAt": since, "updatedAt": moved or since}
    return edge | {"reason": short(reason)} if reason else edge
