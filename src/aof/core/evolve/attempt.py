"""What an attempt leaves on its task, whether it is a run of the task or of a hop: lease, count of runs, progress.

Must not know events.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof.core.model.task import Lease, Retry, Task


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


def progressed(task: Task, payload: dict[str, Any], run_id: str | None, at: str) -> dict[str, Any]:
    """The progress after a report, of the task's own run or of a hop's."""
    facts = {name: value for name, value in payload.items() if name not in ("workLog", "note", "blockers")}
    return task.progress | facts | {"at": at, "runId": run_id}
