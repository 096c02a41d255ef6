"""What each event makes of a workflow and of the task that it gates. The log alone rebuilds both this way.

Must not judge, nor work out what follows: every step of every hop is an event of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.evolve.run import begun_lease, is_named, named, progressed, run_by
from aof.core.model.task import Failure, Task
from aof.core.model.times import iso, millis
from aof.core.model.workflow import ENDED, UNOPENED, Feedback, HopState, Past, Workflow, builtins, workflow_of

STEPS: Final = "task.hop."
_KEPT: Final = 40  # steps of all hops together; the log has the others
_SHORT: Final = 80
_replace = msgspec.structs.replace

Payload = dict[str, Any]


def apply(workflow: Workflow, kind: str, payload: Payload, run_id: str | None, at: str) -> Workflow:
    """The workflow after an event about one of its hops."""
    hop = next(one for one in workflow.hops if one.id == payload["hop"])
    handler = _stepped if kind.startswith(STEPS) else _KINDS.get(kind)
    changes = handler(hop, payload, run_id, at) if handler else {}
    status = changes.get("status", hop.status)
    if status != hop.status or kind.startswith(STEPS):
        past = Past(
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


def _started(hop: HopState, payload: Payload, run_id: str | None, at: str) -> dict[str, Any]:
    return {
        "status": "running",
        "lease": begun_lease(payload, run_id, at),
        "run_id": run_id,
        "agent": payload["agent"],
        "ran_by": named(hop.ran_by, payload),
        "epoch": hop.epoch + 1,
        "not_before": None,
        "outcome": None,
        "reason": None,
        "ended_at": None,
        "tests": None,
    }


def _reported(hop: HopState, payload: Payload, _run_id: str | None, _at: str) -> dict[str, Any]:
    tests = payload["result"].get("tests")
    said = {"outcome": payload["result"]["outcome"], "ran_by": named(hop.ran_by, payload)}
    return said | ({"tests": tests} if tests else {})


def _completed(_hop: HopState, payload: Payload, _run_id: str | None, _at: str) -> dict[str, Any]:
    """The run is over; what becomes of the hop is the next step."""
    return {"lease": None, "outcome": payload["outcome"]}


def _failed(hop: HopState, payload: Payload, _run_id: str | None, at: str) -> dict[str, Any]:
    """The hop can be taken again, unless the next step says otherwise. Its time goes on."""
    failures = hop.failures + (1 if payload["counts"] else 0)
    return {"status": "ready", "lease": None, "failures": failures, "opened_at": hop.opened_at or at}


def _retrying(_hop: HopState, payload: Payload, _run_id: str | None, _at: str) -> dict[str, Any]:
    return {"not_before": payload.get("notBefore")}


def _stepped(hop: HopState, payload: Payload, _run_id: str | None, at: str) -> dict[str, Any]:
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


_KINDS: Final[dict[str, Callable[[HopState, Payload, str | None, str], dict[str, Any]]]] = {
    "task.attempt.started": _started,
    "task.completed": _reported,
    "task.attempt.completed": _completed,
    "task.attempt.failed": _failed,
    "task.retrying": _retrying,
}


def resumed(workflow: dict[str, Any], at: str) -> dict[str, Any]:
    """A task that was held goes on: the time of its open hops begins again."""
    hops = [hop | {"openedAt": at} if hop.get("status") in ("ready", "review") else hop for hop in workflow["hops"]]
    return workflow | {"hops": hops}


def merged(workflow: dict[str, Any], epochs: dict[str, int], contested: Collection[str]) -> dict[str, Any]:
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
        return {"progress": progressed(task, payload, run_id, at)}
    others = any(hop.lease is not None and hop.id != payload["hop"] for hop in workflow.hops)
    after = apply(workflow, kind, payload, run_id, at)
    retry = _replace(task.retry, not_before=_not_before(after))
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


def _not_before(workflow: Workflow) -> str | None:
    """When the next hop may be taken, where all that are ready wait for a retry."""
    waits = [hop.not_before for hop in workflow.hops if hop.status == "ready"]
    times = [millis(wait) for wait in waits if wait is not None]
    return iso(min(times)) if times and len(times) == len(waits) else None
