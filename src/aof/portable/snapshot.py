"""The snapshot: all tasks, their attempts and graph, who takes part, what is blocked, at one moment. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import Any

import msgspec

from aof.errors import AofError, Call
from aof.handoffs.delegation import ATTACHED
from aof.jobs.rules import LINK
from aof.kernel.evolve import criteria_status, criterion_name
from aof.kernel.model import OURSELVES, Policy
from aof.org.model import OrgChart
from aof.org.routing import capacity_refusal, run_limit_ms
from aof.portable.model import (
    NOT_APPLICABLE,
    SCHEMA_VERSION,
    SHORT,
    UNKNOWN,
    Attempt,
    FrozenDict,
    Life,
    Lives,
    Relations,
    SnapshotInput,
    active_runs,
    event_ref,
    file_ref,
    finished,
    freeze,
    handoff_ref,
    job_ref,
    log_ref,
    missing_object,
    run_ref,
    shortened,
    task_ref,
)
from aof.portable.schemas import PLAIN_FIELDS
from aof.runs.leases import task_ttl
from aof.tasks.body import comments_of, description
from aof.tasks.model import Failure, Task
from aof.tasks.rules import edge_status

_RECENT = 10
_UNDELIVERED = frozenset({"pending", "queued", "failed", "parent_missing"})
_FAILED = frozenset({"failed", "timed_out"})


class TaskPart:
    """What the snapshot says of one task. Nothing in it is changed any more."""

    __slots__ = ("delivery", "edges", "ended", "held", "record", "status", "turns")

    def __init__(self, given: SnapshotInput, life: Life) -> None:
        task = life.task
        related = freeze(edges(given, life))
        self.record: dict[str, Any] = portable(given, life, related)
        self.status: str = self.record["status"]
        self.delivery: str = self.record["deliveryState"]["state"]
        self.edges = [FrozenDict({"sourceId": task.id} | edge) for edge in related]
        self.held: dict[str, Any] | None = freeze(blocked(given, task))
        self.turns = {agent: freeze(line) for agent, line in turns(given, life).items()} if life.attempts else None
        self.ended = (task.ended_at or task.last_transition_at, task.rev) if finished(task) else None


class KeptView:
    """The parts of all tasks as of the last call, and the lives that they were made from."""

    def __init__(self, policy: Policy) -> None:
        self.lives = Lives()
        self.relations = Relations(self.lives.by_id, policy)
        self._parts: dict[str, TaskPart] = {}
        self._chart: OrgChart | None = None
        self._odd: dict[str, str] = {}
        self._busy: dict[str, str | None] = {}

    def follow(self) -> None:
        """Apply the news of the lives; the parts that these can have changed are rebuilt on demand."""
        self._forget(self.relations.follow(self.lives.changed))
        self.lives.changed.clear()

    def shown(self, *, archived: bool) -> list[Life]:
        """The tasks that a snapshot shows: archived ones only when they are asked for."""
        return [life for life in self.relations.ordered if archived or not life.task.archived]

    def snapshot(self, given: SnapshotInput, shown: Iterable[Life]) -> dict[str, Any]:
        """Everything in the contract's shape."""
        self._look_again(given)
        kept, parts = self._parts, []
        for life in shown:
            part = kept.get(life.task.id)
            if part is None:
                part = kept[life.task.id] = TaskPart(given, life)
            parts.append(part)
        return _assembled(given, parts)

    def _look_again(self, given: SnapshotInput) -> None:
        """Discard the parts of tasks that have changed outside the log."""
        if given.chart is not self._chart:
            self._chart = given.chart
            self._parts.clear()
        self._forget(self.relations.restless)
        odd = self._odd, given.odd
        self._forget(one for one in odd[0].keys() | odd[1].keys() if odd[0].get(one) != odd[1].get(one))
        self._odd = dict(given.odd)
        if given.chart is not None:
            for agent, tasks in self.relations.routed.items():
                why = busy(given, agent)
                if why != self._busy.get(agent):
                    self._busy[agent] = why
                    self._forget(tasks)

    def _forget(self, tasks: Iterable[str]) -> None:
        for task_id in tasks:
            self._parts.pop(task_id, None)


def _assembled(given: SnapshotInput, parts: list[TaskPart]) -> dict[str, Any]:
    lives = given.lives
    view: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "sessionId": lives.session,
        "workspaceId": given.policy.project,
        "sequence": lives.seq,
    }
    if lives.moment is not None:
        view["updatedAt"] = lives.moment
    return view | {
        "threads": threads(part.turns for part in parts if part.turns is not None),
        "tasks": [part.record for part in parts],
        "attempts": _attempts(parts),
        "taskSummary": _summary(parts),
        "taskGraph": {"edges": [edge for part in parts for edge in part.edges]},
        "blockedTasks": [part.held for part in parts if part.held is not None],
        "deliveryState": _snapshot_delivery(parts),
        "evidenceRefs": [log_ref(1, lives.seq)] if lives.seq else [],
    }


def _attempts(parts: list[TaskPart]) -> list[dict[str, Any]]:
    """The runs that are under way, in the order of their tasks, and after them those that ended last, newest first."""
    active = [one for one in _each_attempt(parts) if one[1]["nativeStatus"] == "running"]
    ended = (one for one in _each_attempt(parts) if "endedAt" in one[1])
    recent = nlargest(_RECENT, ended, key=lambda one: (one[1]["endedAt"], one[1]["runId"]))
    return [FrozenDict({"taskId": task_id} | attempt) for task_id, attempt in (*active, *recent)]


def _each_attempt(parts: list[TaskPart]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((part.record["taskId"], one) for part in parts for one in part.record["attempts"])


def _summary(parts: list[TaskPart]) -> dict[str, Any]:
    """Counts by what `tasks[]` says, and the tasks that ended last, newest first."""
    by_status: Counter[str] = Counter([part.status for part in parts])
    ended = [(part.ended, part) for part in parts if part.ended is not None]
    return {
        "totalCount": len(parts),
        "activeCount": len(parts) - len(ended),
        "terminalCount": len(ended),
        "failedCount": sum(by_status[status] for status in _FAILED),
        "lostCount": by_status["lost"],
        "waitingCount": sum(by_status[status] for status in WAITING),
        "byStatus": dict(sorted(by_status.items())),
        "recentTerminalTasks": [
            {
                "taskId": part.record["taskId"],
                "title": part.record["title"],
                "status": part.status,
                "endedAt": moment,
            }
            for (moment, _), part in nlargest(_RECENT, ended, key=lambda one: one[0])
        ],
    }


def _snapshot_delivery(parts: list[TaskPart]) -> dict[str, Any]:
    """How many tasks' output is in which state of delivery, and which finished ones have not reached their receiver."""
    states = Counter([part.delivery for part in parts])
    late = [part.record["taskId"] for part in parts if part.delivery in _UNDELIVERED and "endedAt" in part.record]
    return {"byState": dict(sorted(states.items())), "undelivered": late}


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


def portable(given: SnapshotInput, life: Life, relationships: list[Edge]) -> dict[str, Any]:
    """The whole record. What is not known says so; a moment that has not come is left out."""
    task = life.task
    above = given.relations.above(task.id)
    said = description(task.body)
    shown: dict[str, Any] = {
        "taskId": task.id,
        "parentTaskId": above[0] if above is not None else NOT_APPLICABLE,
        "rootTaskId": given.roots[task.id],
        **_given(task, _CONTEXT),
        "title": task.title,
        "objective": _objective(task, said),
        **_given(task, _CLASSES),
        "visibility": task.visibility,
        "status": given.status(task),
        "nativeStatus": "archive" if task.archived else task.status,
        **_remote(task),
    }
    why = reason(given, task)
    if why is not None:
        shown["statusReason"] = why
    shown["priority"] = task.priority
    shown["requestedBy"] = who(given, task.created_by)
    shown["owner"] = who(given, task.owner)
    held = active_runs(life)  # of several hops the one that was taken last counts
    shown["assignee"] = who(given, held[-1].run.agent_id) if held else missing_object(NOT_APPLICABLE)
    scope = task.metadata.get("scope")
    shown["scope"] = given.scope | scope if isinstance(scope, dict) else given.scope
    shown["constraints"] = task.constraints or missing_object(NOT_APPLICABLE)
    shown["taskProfile"] = task.profile or missing_object(NOT_APPLICABLE)
    criteria = zip(task.acceptance, criteria_status(task), strict=True) if task.acceptance else ()
    shown["acceptance"] = [{"criterion": criterion_name(one) or one, "status": word} for one, word in criteria]
    shown["progress"] = _progress(given, life, said)
    shown["currentRunId"] = held[-1].run.run_id if held else NOT_APPLICABLE
    shown["attempts"] = attempts(given, life)
    shown["relationships"] = relationships
    shown["artifacts"] = _tasks_artifacts(relationships)
    evidence = [edge["targetId"] for edge in relationships if edge["kind"] == "evidence"]
    shown["evidenceRefs"] = [*evidence, log_ref(life.first, task.rev)]
    shown["deliveryState"] = _tasks_delivery(given, life)
    failure = _failure(given, task)
    if failure is not None:
        shown["lastError"] = failure
    for row in PLAIN_FIELDS:
        if (value := getattr(task, row.name)) is not None:
            shown[row.portable] = value
    if said_of_it := comments_of(task.body):
        shown["comments"] = [
            msgspec.to_builtins(one) | {"text": shortened(one.text)} for one in said_of_it[-_NEWEST_COMMENTS:]
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


def _progress(given: SnapshotInput, life: Life, said: str) -> dict[str, Any]:
    """What the current run reported. Children are counted in the graph; a checklist is a hint, and stands apart."""
    shown = life.task.progress or missing_object()
    ticks = _TICK.findall(said) if "[" in said else ()
    if ticks:
        shown = shown | {"checklist": {"done": sum(tick != " " for tick in ticks), "total": len(ticks)}}
    children = given.children.get(life.task.id, ())
    if children:
        done = sum(child.task.status == "done" for child in children)
        reported = shown.get("counters")
        counters = reported if isinstance(reported, dict) else {}
        shown = shown | {"counters": counters | {"childTasks": {"done": done, "total": len(children)}}}
    checked = _validation(life.task)
    return shown | {"validation": checked} if checked is not None else shown


def _validation(task: Task) -> dict[str, Any] | None:
    """Tests and coverage of the criteria; None where there is nothing to check and nothing was reported."""
    if not task.validation:
        return None
    tests = task.validation.get("tests")
    words = criteria_status(task)
    if tests is None and all(word == UNKNOWN for word in words):
        return None
    return {"tests": tests or missing_object(), "acceptance": {"met": words.count("met"), "total": len(words)}}


def _tasks_artifacts(relationships: list[Edge]) -> list[dict[str, Any]]:
    if not relationships:
        return []
    kinds = {"produced_artifact": "produced", "consumed_artifact": "consumed"}
    return [
        {"kind": kinds[edge["kind"]], "ref": edge["targetId"]}
        | ({"sha256": edge["sha256"]} if "sha256" in edge else {})
        for edge in relationships
        if edge["kind"] in kinds
    ]


def _tasks_delivery(given: SnapshotInput, life: Life) -> dict[str, Any]:
    """Whether the output has reached the receiver: what is on record, else what the graph alone tells."""
    if life.task.delivery:
        return dict(life.task.delivery)
    parent = given.relations.above(life.task.id)
    if parent is None:
        return missing_object(NOT_APPLICABLE)
    above, _ = parent
    if given.task(above) is None:
        return {"state": "parent_missing", "targetId": above}
    return {"state": UNKNOWN if finished(life.task) else "pending", "targetId": above}


def _failure(given: SnapshotInput, task: Task) -> dict[str, Any] | None:
    """The last thing that went wrong; a lease that ran out and that nobody has recovered yet is one too."""
    if task.last_error is not None:
        return attempt_error(task.last_error)
    if given.status(task) != "lost" or task.lease is None:
        return None
    lost = {"code": "lease_expired", "message": f"the lease of {task.lease.agent} ran out", "cause": "lost"}
    return lost | {"at": task.lease.expires_at, "runId": task.lease.run_id}


Ref = dict[str, Any]
_STATUSES = {
    "running": "unavailable", "completed": "completed", "failed": "failed", "expired": "unavailable",
    "cancelled": "cancelled", "released": "cancelled", "superseded": "cancelled",
}  # fmt: skip


def attempts(given: SnapshotInput, life: Life) -> list[dict[str, Any]]:
    """Every run, oldest first."""
    running = {one.run.run_id for one in active_runs(life)}
    return [_attempt(given, life, one, held=one.run.run_id in running) for one in life.attempts]


def _attempt(given: SnapshotInput, life: Life, attempt: Attempt, *, held: bool) -> dict[str, Any]:
    run = attempt.run
    agent = given.chart.by_id.get(run.agent_id) if given.chart is not None else None
    person = agent is not None and agent.runner.kind == "human" and run.worker == "pull"
    shown: dict[str, Any] = {
        "runId": run.run_id,
        "attemptId": run.run_id,
        "attemptCount": run.attempt,
        "status": given.run_status(life, attempt) if held else _STATUSES[run.status],
        "nativeStatus": run.status,
        "cause": run.cause,
        "worker": {"agentId": run.agent_id, "kind": "human" if person else run.worker},
        "startedAt": run.started_at,
    }
    if run.ended_at is not None:
        shown["endedAt"] = run.ended_at
    if run.hop is not None:
        shown["hop"] = run.hop
    if run.error is not None and run.status != "released":
        shown["lastError"] = attempt_error(run.error)
    if attempt.result is not None and attempt.result.notes:
        shown["completionSummary"] = shortened(attempt.result.notes)
    points: list[Ref] = []
    if attempt.checkpoint is not None:
        point = {"kind": "sequence", "ref": event_ref(attempt.checkpoint), "sequence": attempt.checkpoint}
        points.append(point | {"hop": run.hop} if run.hop is not None else point)
    policy, longest = given.policy, run_limit_ms(agent) if agent is not None else None
    limits = {"leaseTtlMs": task_ttl(given.records, life.task, run.agent_id)}
    return shown | {
        "inputRefs": _inputs(life, attempt),
        "outputRefs": _outputs(life, attempt),
        "checkpointRefs": points,
        "retryPolicy": {
            "maxAttempts": life.task.retry.max_attempts,
            "backoff": {"initialMs": policy.retry_base_ms, "factor": policy.retry_factor, "maxMs": policy.retry_cap_ms},
            "nonRetryable": "as reported",  # which error is final, the report of a run says
            "limits": limits | {"maxExecutionMs": longest} if longest is not None else limits,
        },
    }


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


def attempt_error(failure: Failure) -> dict[str, Any]:
    """What went wrong."""
    shown = {"code": failure.code, "message": shortened(failure.message), "at": failure.at, "cause": failure.cause}
    return shown | {"runId": failure.run_id} if failure.run_id is not None else shown


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


def edges(given: SnapshotInput, life: Life) -> list[Edge]:
    """Every edge of a task, each once: relatives first, then sources, threads, artifacts and evidence."""
    found: dict[tuple[str, str], Edge] = {}
    for edge in _all(given, life):
        found.setdefault((edge["kind"], edge["targetId"]), edge)
    return list(found.values())


def _all(given: SnapshotInput, life: Life) -> Iterator[Edge]:
    yield from _relatives(given, life)
    for link in life.task.links:
        if link.kind == "handoff":
            continue  # its record is evidence, see below
        if link.kind == LINK:
            why = f"created by the job {link.target_id}"
            yield _edge("evidence", job_ref(link.target_id), "active", link.created_at, reason=why)
            continue
        yield _hashed(_edge(link.kind, link.target_id, "active", link.created_at, reason=link.reason), link.sha256)
    yield from _agents(given, life)
    if life.attempts or life.handoffs or life.reviews:
        yield from _edges_artifacts(life)
        yield from _evidence(life)


def _relatives(given: SnapshotInput, life: Life) -> Iterator[Edge]:
    task = life.task
    parent = given.relations.above(task.id)
    if parent is not None:
        above, since = parent
        yield _between("parent", above, since, task if given.task(above) is not None else None)
    for child in given.children.get(task.id, ()):
        _, since = given.relations.above(child.task.id) or ("", child.task.created_at)
        yield _between("child", child.task.id, since, child.task)
    for blocker in task.depends_on:
        yield _between("blocked_by", blocker, life.since[blocker], given.task(blocker))
    for dependent in given.dependents.get(task.id, ()):
        yield _between("blocks", dependent.task.id, dependent.since[task.id], task)


def _between(kind: str, target: str, since: str, decides: Task | None) -> Edge:
    """An edge to another task; the child and the blocker decide how it stands."""
    if decides is None:
        return _edge(kind, target, "missing", since, reason=f"there is no task {target}")
    moved = max(since, decides.last_transition_at)
    status = edge_status(decides.status)
    if status != "broken":
        return _edge(kind, target, status, since, moved)
    error = decides.last_error
    why = decides.cancel.reason if decides.cancel is not None else error.message if error is not None else None
    said = f"{decides.id} is {decides.status}" + (f": {why}" if why else "")
    return _edge(kind, target, status, since, moved, said)


def _agents(given: SnapshotInput, life: Life) -> Iterator[Edge]:
    """Whose line of work runs the task, or ran it last, and the agents that were started for it."""
    running = {one.run.run_id for one in active_runs(life)}
    last = {one.run.agent_id: one.run for one in life.attempts}
    for agent, run in last.items():
        state = "active" if run.run_id in running else "ended"
        yield _edge("assigned_thread", agent, state, run.started_at, run.ended_at or run.started_at, run.run_id)
    for agent, run in last.items():
        if run.worker in _STARTED:
            state = "active" if run.run_id in running else "ended"
            yield _edge("spawned_subagent", agent, state, run.started_at, run.ended_at or run.started_at, run.run_id)
    for child in given.children.get(life.task.id, ()):
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


def _edges_artifacts(life: Life) -> Iterator[Edge]:
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
    return edge | {"reason": shortened(reason)} if reason else edge


WAITING = frozenset({"waiting_input", "waiting_permission", "waiting_resource", "blocked", "paused"})
_ODD = {
    "stale": "its file was changed by hand and not yet imported",
    "unknown": "its file cannot be read; see 'aof doctor'",
}

_HELD_BY = (("not_before", "time"), ("handoff_id", "handoff"))  # what the ready rule names, and what kind that is


def reason(given: SnapshotInput, task: Task) -> str | None:
    """Why the task is in its status, where the status calls for a reason."""
    status = given.status(task)
    if status in _ODD:
        return _ODD[status]
    if task.archived or status in ("accepted", "draft", "preparing", "running", "completed"):
        return None
    if task.status == "cancelled" or status == "cancelling":
        why = (task.cancel.reason if task.cancel is not None else None) or "it was cancelled"
    elif task.status == "ready":
        why = _queued(given, task)
    elif task.status == "in-progress":
        why = f"the lease of {task.lease.agent} ran out" if task.lease is not None else "its lease ran out"
    elif task.status == "review":
        why = "it waits for an approval"
    elif task.status == "blocked":
        why = task.blocked.reason if task.blocked is not None else "it is blocked"
    else:
        error = task.last_error
        why = f"{error.code}: {error.message}" if error is not None else "it was given up"
    return shortened(why)


def _queued(given: SnapshotInput, task: Task) -> str:
    held = given.refusal(task)
    if held is not None:
        return held.message
    return (busy(given, task.routing.agent) if task.routing.agent else None) or "it waits for its turn"


def busy(given: SnapshotInput, name: str) -> str | None:
    """Why an agent cannot take a task now that is meant for it."""
    agent = given.chart.by_id.get(name) if given.chart is not None else None
    why = capacity_refusal(given.chart, agent, given.load) if given.chart is not None and agent is not None else None
    return f"{name} cannot take another task now: {why}" if why is not None else None


def blocked(given: SnapshotInput, task: Task) -> dict[str, Any] | None:
    """What holds a task that cannot go on by itself, and what would free it; None for one that can."""
    status = given.status(task)
    if task.cancel is not None:
        return None
    if status in WAITING:
        blockers, actions = _by_itself(given, task)
    elif status in ("queued", "retrying"):
        refusal = given.refusal(task)
        if refusal is None:
            return None
        blockers, actions = _by_rule(given, task, refusal)
    else:
        return None
    said = {"taskId": task.id, "status": status, "reason": reason(given, task) or ""}
    since = {"since": task.blocked.since if task.blocked is not None else task.last_transition_at}
    return {**said, **since, "blockers": blockers, "actions": actions}


def _by_itself(given: SnapshotInput, task: Task) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Blockers and actions of a task that is blocked or in review: what would free it."""
    if task.status == "review":
        return [_blocker("review", task.id)], [_action(Call("approve", {"task_id": task.id}))]
    if task.blocked is not None and task.blocked.dependency is not None:
        dead = task.blocked.dependency
        again = Call("retry", {"task_id": dead, "reason": "…"})
        apart = Call("dep_remove", {"task_id": task.id, "blocker_id": dead})
        return [_blocker("task", dead, given.task(dead))], [_action(apart), _action(again)]
    paused = task.blocked is not None and task.blocked.kind == "paused"
    freed = Call("resume" if paused else "unblock", {"task_id": task.id})
    by = task.blocked.by if task.blocked is not None else task.id
    return [_blocker("paused" if paused else "hold", by)], [_action(freed)]


def _by_rule(given: SnapshotInput, task: Task, refusal: AofError) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Blockers and actions of a ready task that may not run yet: open dependencies, or what the ready rule names."""
    unmet = [one for one in task.depends_on if (found := given.task(one)) is None or found.status != "done"]
    if unmet:
        blockers = [_blocker("task", one, given.task(one)) for one in unmet]
        return blockers, [_action(Call("complete", {"task_id": one})) for one in unmet]
    other = refusal.details.get("waits_for")
    if isinstance(other, str):
        kind = "resource" if refusal.code == "resource_busy" else "task"
        return [_blocker(kind, other, given.task(other))], [_action(Call("complete", {"task_id": other}))]
    kind = next((kind for name, kind in _HELD_BY if name in refusal.details), "hold")
    subject = refusal.details.get("handoff_id", task.id)
    return [_blocker(kind, subject)], [_action(refusal.call)] if refusal.call is not None else []


def _blocker(kind: str, name: str, task: Task | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": kind, "id": name}
    return found | {"status": task.status} if task is not None else found


def _action(call: Call) -> dict[str, Any]:
    """An action has an ID of its own: what is to be done, and with which task or handoff."""
    subject = call.arguments.get("task_id") or call.arguments.get("handoff_id")
    return {
        "actionId": f"{call.operation}:{subject}",
        "operation": call.operation,
        "arguments": {_camel(name): value for name, value in call.arguments.items()},
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


Turns = dict[str, list[dict[str, Any]]]
_KINDS = {"human": "person", "a2a": "peer"}


def who(given: SnapshotInput, name: str | None) -> dict[str, Any]:
    """The participant behind a name: a person, agent, team, peer, or AOF itself, as far as the org chart tells."""
    if name is None:
        return missing_object()
    known = given.names.get(name)
    if known is None:
        known = given.names[name] = FrozenDict(id=name, kind=_participants_kind(given, name))
    return known


def _participants_kind(given: SnapshotInput, name: str) -> str:
    if name == OURSELVES:
        return "runtime"
    chart = given.chart
    if chart is not None and name in chart.by_id:
        return _KINDS.get(chart.by_id[name].runner.kind, "agent")
    if chart is not None and name in chart.teams_by_id:
        return "team"
    return "person" if name in given.policy.maintainers else UNKNOWN


def turns(given: SnapshotInput, life: Life) -> Turns:
    """The agents that have run the task, each with its runs that are still active."""
    found: Turns = {}
    running = {one.run.run_id for one in active_runs(life)}
    for attempt in life.attempts:
        run = attempt.run
        line = found.setdefault(run.agent_id, [])
        if run.run_id in running:
            state = "stale" if given.run_status(life, attempt) == "unavailable" else "running"
            turn = {"turnId": run.run_id, "status": state, "startedAt": run.started_at}
            line.append(turn | {"taskId": life.task.id, "runId": run.run_id, "attemptId": run.run_id})
    return found


def threads(by_task: Iterable[Turns]) -> list[dict[str, Any]]:
    """The line of work of each agent that has run one of these tasks, with the runs that go on now as its turns."""
    turns: Turns = {}
    for one in by_task:
        for agent, line in one.items():
            turns.setdefault(agent, []).extend(line)
    found: list[dict[str, Any]] = []
    for agent, line in sorted(turns.items()):
        states = {turn["status"] for turn in line}
        status = "running" if "running" in states else "stale" if states else "idle"
        last = max(line, key=lambda turn: (turn["startedAt"], turn["turnId"]), default=None)
        current = {"activeTurnId": last["turnId"]} if last is not None else {}
        found.append({"threadId": agent, "status": status, **current, "turns": line})
    return found
