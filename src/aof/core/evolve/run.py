"""What each kind of event makes of a run and of its result. Must not know where their files lie."""

from __future__ import annotations

from typing import Any

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.events import Event
from aof.core.model.run import ARTIFACT_PATHS, Run, RunResult
from aof.core.model.task import Failure

RUN_EVENTS = frozenset({"task.attempt.started", "task.attempt.completed", "task.attempt.failed", "task.completed"})


def evolve_run(run: Run | None, event: Event) -> Run | None:
    """The run after the event; a new one begins with `task.attempt.started`."""
    payload = event.payload
    if event.type == "task.attempt.started":
        return Run(
            task_id=event.task_id,
            agent_id=payload["agent"],
            started_at=event.timestamp,
            status="running",
            artifact_paths=ARTIFACT_PATHS,
            metadata={},
            run_id=event.run_id or "",
            epoch=payload["epoch"],
            attempt=payload["attempt"],
            worker=payload["worker"],
            cause=payload["cause"],
            hop=payload.get("hop"),
        )
    if run is None or event.run_id != run.run_id:
        return run
    if event.type == "task.attempt.completed":
        return msgspec.structs.replace(run, status="completed", ended_at=event.timestamp)
    if event.type == "task.attempt.failed":
        error = msgspec.convert(payload["error"], prepare_type(Failure))
        return msgspec.structs.replace(run, status=payload["status"], ended_at=event.timestamp, error=error)
    return run


def evolve_result(result: RunResult | None, event: Event) -> RunResult | None:
    """The current run's result after the event; a new run starts without one."""
    if event.type == "task.attempt.started":
        return None
    if event.type != "task.completed":
        return result
    return result_of(event)


def result_of(event: Event) -> RunResult:
    """The result that a `task.completed` event reports."""
    fields: dict[str, Any] = dict(event.payload["result"])
    fields |= {"taskId": event.task_id, "runId": event.run_id, "completedAt": event.timestamp}
    if "hop" in event.payload:
        fields["hop"] = event.payload["hop"]
    return msgspec.convert(fields, prepare_type(RunResult))
