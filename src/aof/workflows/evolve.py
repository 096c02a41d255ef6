"""What each event makes of a workflow, and of the task that it gates."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from aof.kernel.model import iso, millis
from aof.runs.model import begun_lease, is_named, named_authors, progress_after, run_by
from aof.support.typed import prepare_type
from aof.tasks.model import Failure, Task
from aof.workflows.model import ENDED, UNOPENED, Feedback, HopState, PastStep, Workflow, builtins, workflow_of

STEPS: Final = "task.hop."
_KEPT: Final = 40  # steps of all hops together; the log has the others
_SHORT: Final = 80  # characters
_replace = msgspec.structs.replace

Payload = dict[str, Any]


def apply_event(workflow: Workflow, kind: str, payload: Payload, run_id: str | None, at: str) -> Workflow:
    """The workflow after an event about one of its hops."""
    hop = next(one for one in workflow.hops if one.id == payload["hop"])
    changes = _step(hop, payload, at) if kind.startswith(STEPS) else _run_changes(hop, kind, payload, run_id, at)
    status = changes.get("status", hop.status)
    if status != hop.status or kind.startswith(STEPS):
        past = PastStep(
            at=at,
            status=payload.get("shown", status),
            agent=payload.get("agent"),
            run_id=run_id,
            reason=_short(payload.get("reason") or payload.get("outcome")),
        )
        changes["history"] = (*hop.history, past)
    after = tuple(_replace(one, **changes) if one.id == hop.id else one for one in workflow.hops)
    feedback = workflow.feedback
    if kind == "task.hop.rejected":
        feedback = Feedback(
            hop=hop.id,
            by=payload["agent"],
            at=at,
            blockers=tuple(_short(text, 3 * _SHORT) or "" for text in payload["blockers"]),
            summary=_short(payload.get("summary"), 10 * _SHORT),
        )
    return _replace(workflow, hops=_trimmed(after), feedback=feedback, state="open")


def _short(text: str | None, most: int = _SHORT) -> str | None:
    return text if text is None or len(text) <= most else f"{text[: most - 1]}…"


def _trimmed(hops: tuple[HopState, ...]) -> tuple[HopState, ...]:
    """The last steps only, so that a task's file stays small however often it goes around."""
    steps = sorted(
        (past.at, number, place) for number, hop in enumerate(hops) for place, past in enumerate(hop.history)
    )
    if len(steps) <= _KEPT:
        return hops
    _, number, place = steps[0]
    hop = hops[number]
    shorter = _replace(hop, history=(*hop.history[:place], *hop.history[place + 1 :]))
    return (*hops[:number], shorter, *hops[number + 1 :])


def _run_changes(hop: HopState, kind: str, payload: Payload, run_id: str | None, at: str) -> dict[str, Any]:
    """What an event about a run of the hop changes."""
    match kind:
        case "task.attempt.started":
            return {
                "status": "running",
                "lease": begun_lease(payload, run_id, at),
                "run_id": run_id,
                "agent": payload["agent"],
                "ran_by": named_authors(hop.ran_by, payload),
                "epoch": hop.epoch + 1,
                "not_before": None,
                "outcome": None,
                "reason": None,
                "ended_at": None,
                "tests": None,
            }
        case "task.completed":  # a report
            result = payload["result"]
            changes = {"outcome": result["outcome"], "ran_by": named_authors(hop.ran_by, payload)}
            return changes | ({"tests": result["tests"]} if result.get("tests") else {})
        case "task.attempt.completed":  # what becomes of the hop is the next step
            return {"lease": None, "outcome": payload["outcome"]}
        case "task.attempt.failed":  # it can be taken again, unless the next step says otherwise; its time goes on
            failures = hop.failures + (1 if payload["counts"] else 0)
            return {"status": "ready", "lease": None, "failures": failures, "opened_at": hop.opened_at or at}
        case "task.retrying":
            return {"not_before": payload.get("notBefore")}
    return {}


def _step(hop: HopState, payload: Payload, at: str) -> dict[str, Any]:
    """What a step of the hop itself changes: it comes to another status."""
    status = payload["status"]
    changes: dict[str, Any] = {"status": status, "lease": None, "reason": _short(payload.get("reason"), 6 * _SHORT)}
    if status in ("ready", "review"):
        changes |= {"opened_at": at, "ended_at": None, "superseded": False}
    if status in ENDED:
        changes |= {"ended_at": at, "not_before": None, "superseded": payload.get("superseded", False)}
    if status in UNOPENED:
        changes |= {"outcome": None, "ended_at": None, "opened_at": None, "not_before": None, "failures": 0}
        changes |= {"superseded": False}
        if not is_named(hop.ran_by, payload.get("agent")):  # else somebody has only taken their own work back
            changes["ran_by"] = ()
    return changes | {name: payload[name] for name in ("rejections", "role", "escalated") if name in payload}


def resumed(workflow: dict[str, Any], at: str) -> dict[str, Any]:
    """A task that was held goes on: the time of its open hops begins again."""
    hops = [hop | {"openedAt": at} if hop.get("status") in ("ready", "review") else hop for hop in workflow["hops"]]
    return workflow | {"hops": hops}


def merged_workflow(workflow: dict[str, Any], epochs: dict[str, int], contested: Collection[str]) -> dict[str, Any]:
    """The workflow of several clones: no epoch is given out again, and some leases were taken elsewhere too."""

    def hop_after(hop: dict[str, Any]) -> dict[str, Any]:
        after = dict(hop)
        if epochs.get(hop["id"], 0) > hop.get("epoch", 0):
            after["epoch"] = epochs[hop["id"]]
        if hop["id"] in contested and "lease" in hop:
            after["lease"] = hop["lease"] | {"contested": True}
        return after

    return builtins(msgspec.convert(workflow | {"hops": [*map(hop_after, workflow["hops"])]}, prepare_type(Workflow)))


def task_changes(task: Task, kind: str, payload: Payload, run_id: str | None, at: str) -> dict[str, Any]:
    """What an event about a hop, or about the whole workflow, changes in the task's record."""
    if kind == "task.workflow.attached":
        return {"workflow": payload["workflow"]}
    workflow = workflow_of(task)
    if kind == "task.workflow.closed":
        return {"workflow": builtins(_replace(workflow, state=payload["state"]))}
    if kind == "task.progress":
        return {"progress": progress_after(task, payload, run_id, at)}
    others = any(hop.lease is not None and hop.id != payload["hop"] for hop in workflow.hops)
    after = apply_event(workflow, kind, payload, run_id, at)
    retry = _replace(task.retry, not_before=_next_try(after))
    changes: dict[str, Any] = {"workflow": builtins(after), "retry": retry}
    match kind:
        case "task.attempt.started":
            changes["retry"] = _replace(retry, attempts=payload["attempt"], cause=None, waits_for_children=False)
            changes["started_at"] = task.started_at or at
            if not others:
                changes["progress"] = {}
        case "task.attempt.completed":
            changes |= {"retry": run_by(retry, payload["agent"]), "last_error": None}
        case "task.attempt.failed":
            waits = retry.waits_for_children or bool(payload.get("waitsForChildren"))
            changes["retry"] = run_by(retry, payload["agent"], cause=payload["cause"], waits_for_children=waits)
            if payload["counts"]:
                changes["last_error"] = msgspec.convert(payload["error"], prepare_type(Failure))
            elif task.cancel is not None:
                changes["cancel"] = _replace(task.cancel, stopped=not others)
    return changes


def _next_try(workflow: Workflow) -> str | None:
    """When the next hop may be taken, where all that are ready wait for a retry."""
    waits = [hop.not_before for hop in workflow.hops if hop.status == "ready"]
    times = [millis(wait) for wait in waits if wait is not None]
    return iso(min(times)) if times and len(times) == len(waits) else None
