"""What each event makes of a workflow and of the task that it gates.

And conditions as data, never evaluated as code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import msgspec

from aof.kernel.model import iso, millis
from aof.runs.evolve import begun_lease, is_named, named_authors, progress_after, run_by
from aof.support.typed import prepare_type
from aof.tasks import fields as tasks_fields
from aof.tasks.model import Failure, Task
from aof.workflows.model import ENDED, UNOPENED, Feedback, HopState, Past, Workflow, builtins, workflow_of

STEPS: Final = "task.hop."
_KEPT: Final = 40  # steps of all hops together; the log has the others
_SHORT: Final = 80
_replace = msgspec.structs.replace

Payload = dict[str, Any]


def apply_event(workflow: Workflow, kind: str, payload: Payload, run_id: str | None, at: str) -> Workflow:
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
        "ran_by": named_authors(hop.ran_by, payload),
        "epoch": hop.epoch + 1,
        "not_before": None,
        "outcome": None,
        "reason": None,
        "ended_at": None,
        "tests": None,
    }


def _reported(hop: HopState, payload: Payload, _run_id: str | None, _at: str) -> dict[str, Any]:
    tests = payload["result"].get("tests")
    said = {"outcome": payload["result"]["outcome"], "ran_by": named_authors(hop.ran_by, payload)}
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


DEPTH: Final = 8
SIZE: Final = 64
OPERATORS: Final = ("eq", "neq", "gt", "gte", "lt", "lte", "in", "has_tag", "hop_status", "and", "or", "not")
HOP_STATUSES: Final = (
    "waiting",
    "ready",
    "running",
    "review",
    "blocked",
    "rejected",
    "done",
    "skipped",
    "failed",
    "timed_out",
)
_MISSING: Final = object()

Path = tuple[str | int, ...]
Problem = tuple[Path, str, str]


def condition_holds(condition: dict[str, Any], facts: dict[str, Any]) -> bool:
    """Whether a condition that was checked holds of the facts: task fields, and `hops` by their IDs."""
    ((operator, operand),) = condition.items()
    return _OPERATORS[operator](operand, facts)


def condition_problems(condition: object) -> Iterator[Problem]:
    """Where a condition is not a condition, what is wrong there, and what would be right."""
    if _count(condition) > SIZE:
        yield (), f"it has more than {SIZE} parts", "make it simpler"
        return
    yield from _problems(condition, (), DEPTH)


def hops_in(condition: object) -> Iterator[tuple[Path, str]]:
    """Every hop that a well-formed condition looks at, and where it says so."""
    if not isinstance(condition, dict) or len(condition) != 1:
        return
    ((operator, operand),) = condition.items()
    if operator in ("and", "or") and isinstance(operand, list | tuple):
        for number, part in enumerate(operand):
            yield from (((operator, number, *path), hop) for path, hop in hops_in(part))
    elif operator == "not":
        yield from (((operator, *path), hop) for path, hop in hops_in(operand))
    elif isinstance(operand, dict) and isinstance(hop := operand.get("hop"), str):
        yield (operator, "hop"), hop
    elif isinstance(operand, dict) and isinstance(field := operand.get("field"), str) and field.startswith("hops."):
        yield (operator, "field"), field.split(".")[1]


def _count(value: object) -> int:
    """How many parts a value has, counted no further than is needed."""
    queue, seen = [value], 0
    while queue and seen <= SIZE:
        current = queue.pop()
        seen += 1
        inner = current.values() if isinstance(current, dict) else current if isinstance(current, list | tuple) else ()
        queue += inner
    return seen


def _problems(condition: object, at: Path, depth: int) -> Iterator[Problem]:
    if depth == 0:
        yield at, f"it is nested more than {DEPTH} deep", "make it simpler"
    elif not isinstance(condition, dict) or len(condition) != 1:
        shown = condition if isinstance(condition, str) else type(condition).__name__
        example = "write one operator with its operands, such as eq: {field: metadata.risk, value: high}"
        yield at, f"a condition is data and never text or code, not {str(shown)[:60]!r}", example
    else:
        ((operator, operand),) = condition.items()
        if operator not in OPERATORS:
            yield (*at, operator), f"there is no operator '{str(operator)[:60]}'", f"use one of: {', '.join(OPERATORS)}"
        else:
            yield from _operand(operator, operand, (*at, operator), depth)


def _operand(operator: str, operand: object, at: Path, depth: int) -> Iterator[Problem]:
    match operator:
        case "and" | "or":
            if not isinstance(operand, list | tuple) or not operand:
                yield at, f"'{operator}' needs a list of conditions", f"{operator}: [{{has_tag: api}}, …]"
                return
            for number, part in enumerate(operand):
                yield from _problems(part, (*at, number), depth - 1)
        case "not":
            yield from _problems(operand, at, depth - 1)
        case "has_tag":
            if not isinstance(operand, str) or not operand:
                yield at, "'has_tag' needs the name of a tag", "has_tag: security"
        case "hop_status":
            yield from _hop_status(operand, at)
        case _:
            yield from _comparison(operator, operand, at)


def _hop_status(operand: object, at: Path) -> Iterator[Problem]:
    if not isinstance(operand, dict) or operand.keys() != {"hop", "status"} or not isinstance(operand["hop"], str):
        yield at, "'hop_status' needs a hop and a status", "hop_status: {hop: review, status: done}"
        return
    given = operand["status"]
    wanted = given if isinstance(given, list | tuple) else [given]
    for status in wanted:
        if status not in HOP_STATUSES:
            yield (*at, "status"), f"there is no hop status {str(status)[:60]!r}", f"use {', '.join(HOP_STATUSES)}"


def _comparison(operator: str, operand: object, at: Path) -> Iterator[Problem]:
    if not isinstance(operand, dict) or operand.keys() != {"field", "value"} or not isinstance(operand["field"], str):
        yield at, f"'{operator}' needs a field and a value", f"{operator}: {{field: metadata.risk, value: 3}}"
        return
    parts = operand["field"].split(".")
    roots = {"createdBy", "hops", *(row.key for row in tasks_fields.WHOLE if row.asked)}
    if parts[0] not in roots or not all(parts):
        there = ", ".join(sorted(roots))
        yield (*at, "field"), f"no field begins with '{parts[0][:60]}'", f"begin with one of: {there}"
    value = operand["value"]
    if operator == "in" and not isinstance(value, list | tuple):
        yield (*at, "value"), "'in' needs a list of values", "value: [low, medium]"
    if operator in ("gt", "gte", "lt", "lte") and not isinstance(value, int | float | str):
        yield (*at, "value"), f"'{operator}' compares numbers or texts", "value: 3"


def _field(operand: dict[str, Any], facts: dict[str, Any]) -> Any:
    value: Any = facts
    for part in operand["field"].split("."):
        value = value.get(part, _MISSING) if isinstance(value, dict) else _MISSING
        if value is _MISSING:
            return None
    return value


def _equal(one: Any, other: Any) -> bool:
    """Equality as JSON has it: true is not a number."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _ordered(one: Any, other: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return numbers or (isinstance(one, str) and isinstance(other, str))


def _compare(compare: Callable[[Any, Any], bool]) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    def holds_of(operand: dict[str, Any], facts: dict[str, Any]) -> bool:
        found, wanted = _field(operand, facts), operand["value"]
        return _ordered(found, wanted) and compare(found, wanted)

    return holds_of


def _is_in(operand: dict[str, Any], facts: dict[str, Any]) -> bool:
    found = _field(operand, facts)
    return any(_equal(found, value) for value in operand["value"])


def _has_tag(tag: str, facts: dict[str, Any]) -> bool:
    return tag in facts.get("routing", {}).get("tags", ())


def _is_hop(operand: dict[str, Any], facts: dict[str, Any]) -> bool:
    wanted = operand["status"]
    status = facts.get("hops", {}).get(operand["hop"], {}).get("status", "waiting")
    return status in (wanted if isinstance(wanted, list | tuple) else (wanted,))


_OPERATORS: Final[dict[str, Callable[[Any, dict[str, Any]], bool]]] = {
    "eq": lambda operand, facts: _equal(_field(operand, facts), operand["value"]),
    "neq": lambda operand, facts: not _equal(_field(operand, facts), operand["value"]),
    "gt": _compare(lambda found, wanted: bool(found > wanted)),
    "gte": _compare(lambda found, wanted: bool(found >= wanted)),
    "lt": _compare(lambda found, wanted: bool(found < wanted)),
    "lte": _compare(lambda found, wanted: bool(found <= wanted)),
    "in": _is_in,
    "has_tag": _has_tag,
    "hop_status": _is_hop,
    "and": lambda operand, facts: all(condition_holds(part, facts) for part in operand),
    "or": lambda operand, facts: any(condition_holds(part, facts) for part in operand),
    "not": lambda operand, facts: not condition_holds(operand, facts),
}
