"""The task graph as a task sees it.

Whether it may run now, its ancestors, paths along dependencies; and the normalized status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Literal

from aof.errors import AofError, Call, CancelRequested, ChildrenOpen, NotReady, ResourceBusy, TaskNotFound
from aof.kernel.commands import Approve, OnTask, Records, Release
from aof.kernel.model import FINISHED, is_task_id, millis
from aof.runs.model import Heartbeat, lease_end
from aof.tasks.model import Lease, Task
from aof.workflows import model as workflows_model

_SHOWN: Final = 10


def missing(task_id: str, hint: str = "list what there is") -> TaskNotFound:
    """The refusal for an ID that names no task."""
    shown = task_id if is_task_id(task_id) else repr(task_id[:80])
    return TaskNotFound(f"there is no task {shown}", hint, Call("list", {}), asked=task_id[:80])


def being_cancelled(task: Task) -> CancelRequested | None:
    """The refusal for a task whose cancellation is recorded and has not settled yet."""
    if task.cancel is None or task.status in FINISHED:
        return None
    return CancelRequested(
        f"{task.id} is being cancelled",
        "wait until it is cancelled; then it can be retried",
        Call("retry", {"task_id": task.id, "reason": "…"}),
    )


def readiness(records: Records, task: Task, now: int) -> AofError | None:
    """None when the task can be run now, else the refusal that says what it waits for."""
    if refusal := being_cancelled(task) or _not_in_ready(task):
        return refusal
    return (
        _held_by_handoff(task)
        or held_by_dependency(records, task)
        or _held_by_time(task, now)
        or _held_by_children(records, task)
        or occupied(records, task)
    )


def hop_readiness(records: Records, task: Task, now: int) -> AofError | None:
    """None when a hop of the task can be run now, also beside others that run; else the refusal."""
    if task.status == "in-progress":
        return being_cancelled(task) or _held_by_children(records, task)
    return readiness(records, task, now)


def retry_at(task: Task) -> int | None:
    """The moment before which a failed task is not run again."""
    return None if task.retry.not_before is None else millis(task.retry.not_before)


def way_on(task: Task, agent: str = "…") -> tuple[str, Call]:
    """The next step towards a run of the task, in words and as a call that works as the task is now."""
    if task.archived:
        return "reopen it first", Call("reopen", {"task_id": task.id})
    if is_draft(task):
        return "take the draft mark away first", Call("edit", {"task_id": task.id, "metadata": {"draft": None}})
    steps = {
        "ready": ("claim it first", Call("claim", {"task_id": task.id, "agent": agent})),
        "backlog": ("promote it first", Call("update", {"task_id": task.id, "status": "ready"})),
        "in-progress": ("take another task", Call("show", {"task_id": task.id})),
        "blocked": ("unblock it first", Call("unblock", {"task_id": task.id})),
        "review": ("approve or reject it", Call("approve", {"task_id": task.id})),
    }
    return steps.get(task.status, ("retry it first", Call("retry", {"task_id": task.id, "reason": "…"})))


def is_draft(task: Task) -> bool:
    """Whether the task waits, and is marked as not to be begun yet."""
    return task.status in ("ready", "backlog") and bool(task.metadata.get("draft"))


def _not_in_ready(task: Task) -> NotReady | None:
    if task.status == "ready" and not task.archived and not is_draft(task):
        return None
    now = "archived" if task.archived else "a draft" if is_draft(task) else stands(task)
    why = f": {task.blocked.reason}" if task.blocked else ""
    return NotReady(f"{task.id} is {now}{why}", *way_on(task), status=task.status)


def _held_by_handoff(task: Task) -> NotReady | None:
    """The refusal while an agent has not accepted the task; `runs.leases.not_taken_by` tells that agent more."""
    asked = next((one for one in task.handoffs if task.awaits_answer and one.moves and one.state != "accepted"), None)
    if asked is None:
        return None
    return NotReady(
        f"{task.id} was handed to {asked.to_agent}, who has not accepted it",
        f"let {asked.to_agent} accept the handoff",
        Call("handoff_accept", {"handoff_id": asked.id, "agent": asked.to_agent}),
        handoff_id=asked.id,
    )


def held_by_dependency(records: Records, task: Task) -> NotReady | None:
    """The refusal while a dependency is not done."""
    for dependency in task.depends_on:
        blocker = records.find(dependency)
        if blocker is None or blocker.status != "done":
            return NotReady(
                f"{task.id} waits for {dependency}, which is {_standing(blocker)}",
                f"finish {dependency} first, or remove the dependency",
                Call("dep_remove", {"task_id": task.id, "blocker_id": dependency}),
                waits_for=dependency,
            )
    return None


def _standing(blocker: Task | None) -> str:
    """How a dependency stands, in the words of lists: there only what can be claimed at once is called ready."""
    if blocker is None:
        return "missing"
    if blocker.status != "ready":
        return stands(blocker)
    may_wait = blocker.depends_on or blocker.resource or blocker.waits_for_children or blocker.awaits_answer
    return "not claimed yet" if may_wait or is_draft(blocker) or retry_at(blocker) is not None else "ready"


def stands(task: Task) -> str:
    """The status as it reads after `is`."""
    return {"review": "in review", "backlog": "in the backlog"}.get(task.status, task.status)


def _held_by_time(task: Task, now: int) -> NotReady | None:
    at = retry_at(task)
    if at is None or at <= now:
        return None
    return NotReady(
        f"{task.id} is retried at {task.retry.not_before}, after failure {task.retry.failures}",
        "wait until then, or end the wait",
        Call("retry", {"task_id": task.id, "reason": "…"}),
        not_before=task.retry.not_before,
    )


def _held_by_children(records: Records, task: Task) -> NotReady | None:
    if not task.waits_for_children:
        return None
    below = list(unfinished_children(records, task))
    if not below:
        return None
    named = ", ".join(f"{child.id}, which is {_standing(child)}" for child in below[:_SHOWN])
    what = f"{task.id} waits for {'its child' if len(below) == 1 else 'its children'} {named}{_more(below)}"
    hint, call = f"finish {below[0].id} first", Call("show", {"task_id": below[0].id})
    in_review = next((child for child in below if child.status == "review"), None)
    if in_review is not None:
        hint, call = f"have {in_review.id} approved or sent back", Call("show", {"task_id": in_review.id})
    elif task.retry.waits_for_children:
        hint, call = "wait until they have ended, or end the wait", Call("retry", {"task_id": task.id, "reason": "…"})
    return NotReady(what, hint, call, waits_for=below[0].id, children=[child.id for child in below[:_SHOWN]])


def _more(left_out: Sequence[object]) -> str:
    return f" and {len(left_out) - _SHOWN} more" if len(left_out) > _SHOWN else ""


def unfinished_children(records: Records, task: Task) -> Iterator[Task]:
    """The tasks directly below that are neither done nor given up."""
    for child_id in records.children[task.id]:
        child = records.find(child_id)
        if child is not None and child.status not in FINISHED:
            yield child


def awaited_children(records: Records, command: Release) -> list[str]:
    """The first of the children that a task waits for after this release; none where it can be claimed at once."""
    below = unfinished_children(records, records.task(command.task_id)) if command.wait_for_children else ()
    return [child.id for child in islice(below, _SHOWN)]


def before_children(records: Records, command: OnTask) -> ChildrenOpen | None:
    """The refusal to call a parent complete while children of it are unfinished, with each way on."""
    task = records.task(command.task_id)
    unfinished = [child.id for child in unfinished_children(records, task)]
    if not unfinished:
        return None
    run: dict[str, Any] = {} if command.run is None else {"run": command.run}
    without = Call(
        "approve" if isinstance(command, Approve) else "complete",
        {"task_id": task.id, "allow_open_children": True} | run,
    )
    refusal = ChildrenOpen(
        f"{task.id} has unfinished children: {', '.join(unfinished[:_SHOWN])}{_more(unfinished)}",
        "finish or cancel them first, or say that it is complete without them",
        without,
        children=unfinished[:_SHOWN],
    )
    if task.status == "in-progress":
        refusal.hint = "finish or cancel them first, or give the task back until they have ended"
        refusal.call = Call("release", {"task_id": task.id, "wait_for_children": True} | run)
        refusal.otherwise = ("say that it is complete without them", without)
    return refusal


def occupied(records: Records, task: Task) -> ResourceBusy | None:
    """The refusal while others take up every slot of the resource that the task needs."""
    if task.resource is None:
        return None
    holders = [holder for holder in records.resource_holders[task.resource] if holder != task.id]
    slots = records.policy.resource_slots.get(task.resource, 1)
    if len(holders) < slots:
        return None
    who = f"which {', '.join(holders)} occupies" if holders else "which has no slots"
    return ResourceBusy(
        f"{task.id} needs '{task.resource}', {who}",
        "wait until it is free, or give it more slots",
        Call("show", {"task_id": holders[0] if holders else task.id}),
        resource=task.resource,
        waits_for=holders[0] if holders else None,
    )


def ancestors(records: Records, parent_id: str | None) -> Iterator[Task]:
    """The tasks above, from the parent up; a circle that a damaged file made ends the walk."""
    seen: set[str] = set()
    while parent_id is not None and parent_id not in seen:
        seen.add(parent_id)
        parent = records.find(parent_id)
        if parent is None:
            return
        yield parent
        parent_id = parent.parent_id


def closed_to_children(records: Records, parent_id: str) -> AofError | None:
    """Why nothing may be put or run below the parent: it is not there, or it or one above it is cancelled.

    The first unfinished one answers for all above it: a cancellation would have reached it.
    """
    if records.find(parent_id) is None:
        return missing(parent_id, "name a parent that exists")
    for above in ancestors(records, parent_id):
        if above.cancel is not None or above.status == "cancelled":
            return CancelRequested(
                f"{above.id} is cancelled, and nothing below it is started",
                f"retry {above.id} first",
                Call("retry", {"task_id": above.id, "reason": "…"}),
            )
        if above.status not in FINISHED:
            return None
    return None


def stands_below(records: Records, task_id: str, above_id: str) -> bool:
    """Whether a task is the other one, or stands anywhere below it."""
    return above_id == task_id or above_id in records.above[task_id]


def find_path(edges: dict[str, tuple[str, ...]], start: str, goal: str) -> tuple[str, ...]:
    """The way along dependencies from start to goal, both included; empty when there is none."""
    trail: dict[str, str | None] = {start: None}
    queue = [start]
    for current in queue:
        if current == goal:
            path: list[str] = []
            step: str | None = current
            while step is not None:
                path.append(step)
                step = trail[step]
            return tuple(reversed(path))
        for following in edges.get(current, ()):
            if following not in trail:
                trail[following] = current
                queue.append(following)
    return ()


Normalized = Literal[
    "draft",
    "accepted",
    "queued",
    "preparing",
    "running",
    "waiting_input",
    "waiting_permission",
    "waiting_resource",
    "blocked",
    "paused",
    "retrying",
    "cancelling",
    "cancelled",
    "timed_out",
    "failed",
    "lost",
    "completed",
    "archived",
    "stale",
    "unknown",
]


def normalized_status(task: Task | None, heartbeat: Heartbeat | None, now: int, *, stale: bool = False) -> Normalized:
    """Exactly one of the twenty. None stands for a file that cannot be read."""
    if task is None:
        return "unknown"
    if stale:
        return "stale"
    return "archived" if task.archived else _BY_STATUS[task.status](task, heartbeat, now)


def _backlog(task: Task, _heartbeat: Heartbeat | None, _now: int) -> Normalized:
    return "draft" if task.metadata.get("draft") else "accepted"


def _ready(task: Task, _heartbeat: Heartbeat | None, now: int) -> Normalized:
    at = retry_at(task)
    return "queued" if at is None or at <= now else "retrying"


def _running(task: Task, heartbeat: Heartbeat | None, now: int) -> Normalized:
    lease = _last_lease(task, heartbeat) if task.gated else task.lease
    over = lease is None or lease_end(lease, heartbeat) <= now
    if task.cancel is not None and (task.cancel.stopped or not over):
        return "cancelling"
    if lease is None or over:
        return "lost"
    if _is_unclear(task):
        return "unknown"
    if task.questions and _is_asked(task):
        return "waiting_input"
    beaten = heartbeat is not None and heartbeat.run_id == lease.run_id and heartbeat.beat_count > 0
    return "running" if beaten or task.progress else "preparing"


def _is_unclear(task: Task) -> bool:
    """Whether a peer works on it, and is in a state that we do not know."""
    remote = task.metadata.get("remote")
    return isinstance(remote, dict) and remote.get("remoteStatus") == "unknown"


def _is_asked(task: Task) -> bool:
    """Whether a run that goes on waits for an answer."""
    runs = {lease.run_id for lease in workflows_model.leases(task)}
    return any(one.run_id in runs for one in task.open_questions)


def _last_lease(task: Task, heartbeat: Heartbeat | None) -> Lease | None:
    """Of the hops of a gated task the one that lasts longest speaks for all."""
    return max(workflows_model.leases(task), key=lambda lease: lease_end(lease, heartbeat), default=None)


def _dead(task: Task, _heartbeat: Heartbeat | None, _now: int) -> Normalized:
    cause = task.last_error.cause if task.last_error else "failed"
    return cause if cause in ("timed_out", "lost") else "failed"


_BY_STATUS: Final[dict[str, Callable[[Task, Heartbeat | None, int], Normalized]]] = {
    "backlog": _backlog,
    "ready": _ready,
    "in-progress": _running,
    "review": lambda _task, _heartbeat, _now: "waiting_permission",
    "blocked": lambda task, _heartbeat, _now: task.blocked.kind if task.blocked else "blocked",
    "done": lambda _task, _heartbeat, _now: "completed",
    "cancelled": lambda _task, _heartbeat, _now: "cancelled",
    "deadletter": _dead,
}
