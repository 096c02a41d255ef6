"""What each kind of event makes of a run and of its result, and what an attempt leaves on its task.

The same holds for a run of a hop: lease, count of runs, progress, and what it has used. Must not judge, nor know where
files lie.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.events import SUPERSEDED, Event, as_written
from aof.core.model.run import ARTIFACT_PATHS, Run, RunResult, RunStatus
from aof.core.model.task import Failure, Lease, Retry, Task

_CALLS: Final = frozenset({"read", "write", "command", "network"})
_ENDS: Final = frozenset({"task.attempt.completed", "task.attempt.failed"})
RUN_EVENTS = frozenset({"task.attempt.started", "task.attempt.completed", "task.attempt.failed", "task.completed"})


def begun_lease(payload: dict[str, Any], run_id: str | None, at: str) -> Lease:
    """The lease of a run, or of a hop's, that begins."""
    return Lease(
        agent=payload["agent"],
        run_id=run_id or "",
        epoch=payload["epoch"],
        acquired_at=at,
        expires_at=payload["expiresAt"],
        ttl_ms=payload["ttlMs"],
        worker=payload["worker"],
        key=payload.get("key"),
        secret_digest=payload.get("secretDigest"),
        kept_by=payload.get("keptBy"),
    )


def run_by(retry: Retry, agent: str, **changes: Any) -> Retry:
    """The count of runs after one that this agent has had."""
    agents = retry.agents if agent in retry.agents else (*retry.agents, agent)
    return msgspec.structs.replace(retry, agents=agents, **changes)


def named(ran_by: tuple[str, ...], payload: dict[str, Any]) -> tuple[str, ...]:
    """Who ran the work, once the names in this event count too; events of earlier versions have none."""
    return tuple(dict.fromkeys((*ran_by, *payload.get("ranBy", ()))))


def is_named(ran_by: tuple[str, ...], *names: str | None) -> bool:
    """Whether one of these names is among those who ran the work, told apart without regard to upper and lower case."""
    return not {name.casefold() for name in names if name is not None}.isdisjoint(name.casefold() for name in ran_by)


def progressed(task: Task, payload: dict[str, Any], run_id: str | None, at: str) -> dict[str, Any]:
    """The progress after a report, of the task's own run or of a hop's."""
    facts = {name: value for name, value in payload.items() if name not in ("workLog", "note", "blockers")}
    return task.progress | facts | {"at": at, "runId": run_id}


def checked(task: Task, event: Event) -> dict[str, Any]:
    """One more tool call of a run, where it may do what it asked for."""
    payload = event.payload
    if event.run_id is None or payload["outcome"] == "blocked" or payload["point"] not in _CALLS:
        return {}
    used = task.usage.get("toolCalls", 0) if task.usage.get("runId") == event.run_id else 0
    return {"usage": {"runId": event.run_id, "toolCalls": used + 1}}


def evolve_run(run: Run | None, event: Event) -> Run | None:
    """The run after the event; a new one begins with `task.attempt.started`."""
    payload = event.payload
    if event.type == "task.attempt.started":
        return _begun(event, payload, "running")
    if event.type == SUPERSEDED:
        return _superseded(run, event)
    if run is None or event.run_id != run.run_id:
        return run
    if event.type == "task.attempt.completed":
        return msgspec.structs.replace(run, status="completed", ended_at=event.timestamp)
    if event.type == "task.attempt.failed":
        error = msgspec.convert(payload["error"], prepare_type(Failure))
        return msgspec.structs.replace(run, status=payload["status"], ended_at=event.timestamp, error=error)
    return run


def _begun(event: Event, payload: dict[str, Any], status: RunStatus) -> Run:
    return Run(
        task_id=event.task_id,
        agent_id=payload["agent"],
        started_at=event.timestamp,
        status=status,
        artifact_paths=ARTIFACT_PATHS,
        metadata={},
        run_id=event.run_id or "",
        epoch=payload["epoch"],
        attempt=payload["attempt"],
        worker=payload["worker"],
        cause=payload["cause"],
        hop=payload.get("hop"),
    )


def _superseded(run: Run | None, event: Event) -> Run | None:
    """A run of another clone: it is kept, and its end is known where it had one; it stays superseded."""
    was = event.payload["was"]
    if was == "task.attempt.started":
        return _begun(event, event.payload["told"], "superseded")
    if run is None or run.run_id != event.run_id or run.status != "superseded" or was not in _ENDS:
        return run
    return msgspec.structs.replace(run, ended_at=event.timestamp)


def evolve_result(result: RunResult | None, event: Event) -> RunResult | None:
    """The current run's result after the event; a new run starts without one."""
    if event.type == "task.attempt.started":
        return None
    if event.type != "task.completed":
        return result
    return result_of(event)


def result_of(event: Event) -> RunResult:
    """The result that a `task.completed` event reports, also where it was superseded."""
    payload = as_written(event).payload
    fields: dict[str, Any] = dict(payload["result"])
    fields |= {"taskId": event.task_id, "runId": event.run_id, "completedAt": event.timestamp}
    if "hop" in payload:
        fields["hop"] = payload["hop"]
    return msgspec.convert(fields, prepare_type(RunResult))
