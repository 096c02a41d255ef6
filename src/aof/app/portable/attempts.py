"""Each run of a task as a portable attempt: how it stands, who ran it, and where its input and output lie. Pure."""

from __future__ import annotations

from typing import Any

from aof.app.portable.relations import active
from aof.app.portable.task_histories import Attempt, Life
from aof.app.portable.view_source import Scene
from aof.app.portable.vocabulary import event_ref, file_ref, handoff_ref, run_ref, short, task_ref
from aof.core.model.task import Failure
from aof.core.org.autonomy import run_limit_ms
from aof.core.runs.lease import task_ttl

Ref = dict[str, Any]
_STATUSES = {
    "running": "unavailable", "completed": "completed", "failed": "failed", "expired": "unavailable",
    "cancelled": "cancelled", "released": "cancelled", "superseded": "cancelled",
}  # fmt: skip


def attempts(scene: Scene, life: Life) -> list[dict[str, Any]]:
    """Every run, oldest first."""
    running = {one.run.run_id for one in active(life)}
    return [_attempt(scene, life, one, held=one.run.run_id in running) for one in life.attempts]


def _attempt(scene: Scene, life: Life, attempt: Attempt, *, held: bool) -> dict[str, Any]:
    run = attempt.run
    shown: dict[str, Any] = {
        "runId": run.run_id,
        "attemptId": run.run_id,
        "attemptCount": run.attempt,
        "status": scene.run_status(life, attempt) if held else _STATUSES[run.status],
        "nativeStatus": run.status,
        "cause": run.cause,
        "worker": {"agentId": run.agent_id, "kind": _kind(scene, attempt)},
        "startedAt": run.started_at,
    }
    if run.ended_at is not None:
        shown["endedAt"] = run.ended_at
    if run.hop is not None:
        shown["hop"] = run.hop
    if run.error is not None and run.status != "released":
        shown["lastError"] = error(run.error)
    if attempt.result is not None and attempt.result.notes:
        shown["completionSummary"] = short(attempt.result.notes)
    return shown | {
        "inputRefs": _inputs(life, attempt),
        "outputRefs": _outputs(life, attempt),
        "checkpointRefs": _checkpoints(attempt),
        "retryPolicy": _retry_policy(scene, life, attempt),
    }


def _kind(scene: Scene, attempt: Attempt) -> str:
    """What ran it: a process, a pulling agent, a peer, a person."""
    agent = scene.chart.by_id.get(attempt.run.agent_id) if scene.chart is not None else None
    person = agent is not None and agent.runner.kind == "human" and attempt.run.worker == "pull"
    return "human" if person else attempt.run.worker


def _inputs(life: Life, attempt: Attempt) -> list[Ref]:
    """The task as it was when the run began, and the handoffs that had been made by then."""
    found: list[Ref] = [{"kind": "brief", "ref": task_ref(life.task.id, attempt.began)}]
    found += [
        {"kind": "handoff", "ref": handoff_ref(handoff.id)}
        for handoff in life.handoffs.values()
        if handoff.created_at <= attempt.run.started_at
    ]
    return found


def _outputs(life: Life, attempt: Attempt) -> list[Ref]:
    result = attempt.result
    found: list[Ref] = []
    if result is not None and attempt.reported is not None:
        found.append({"kind": "result", "ref": event_ref(attempt.reported), "outcome": result.outcome})
        for path in result.deliverables or ():
            known = {"sha256": attempt.digests[path]} if path in attempt.digests else {}
            found.append({"kind": "artifact", "ref": file_ref(life.task.id, path)} | known)
    for stream, told in attempt.output.items():
        ref = run_ref(attempt.run.run_id, str(told["path"]).rpartition("/")[2])
        found.append({"kind": stream, "ref": ref, "bytes": told["bytes"], "kept": told["kept"]})
    return found


def _checkpoints(attempt: Attempt) -> list[Ref]:
    if attempt.checkpoint is None:
        return []
    point = {"kind": "sequence", "ref": event_ref(attempt.checkpoint), "sequence": attempt.checkpoint}
    return [point | {"hop": attempt.run.hop} if attempt.run.hop is not None else point]


def _retry_policy(scene: Scene, life: Life, attempt: Attempt) -> dict[str, Any]:
    """The rules by which a failed run is followed by another one. Which error is final, its report says."""
    policy = scene.policy
    agent = scene.chart.by_id.get(attempt.run.agent_id) if scene.chart is not None else None
    longest = run_limit_ms(agent) if agent is not None else None
    limits = {"leaseTtlMs": task_ttl(scene.records, life.task, attempt.run.agent_id)}
    return {
        "maxAttempts": life.task.retry.max_attempts,
        "backoff": {"initialMs": policy.retry_base_ms, "factor": policy.retry_factor, "maxMs": policy.retry_cap_ms},
        "nonRetryable": "as reported",
        "limits": limits | {"maxExecutionMs": longest} if longest is not None else limits,
    }


def error(failure: Failure) -> dict[str, Any]:
    """What went wrong."""
    shown = {"code": failure.code, "message": short(failure.message), "at": failure.at, "cause": failure.cause}
    return shown | {"runId": failure.run_id} if failure.run_id is not None else shown
