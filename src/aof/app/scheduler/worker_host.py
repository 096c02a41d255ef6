"""What a tick needs of the process that hosts workers. Must not know how a worker is started."""

from __future__ import annotations

from typing import Protocol

from aof.core.model.task import Task
from aof.core.scheduling.view import Snapshot


class WorkerHost(Protocol):
    """Who starts and stops workers. Each call answers why it did nothing, or None."""

    @property
    def hosted(self) -> frozenset[str]:
        """The runs that it keeps alive."""
        ...

    @property
    def orphaned(self) -> frozenset[str]:
        """Running process runs whose host has died on this machine."""
        ...

    def fence(self, snapshot: Snapshot) -> None:
        """End workers whose run was ended by others."""
        ...

    def begin(self, task: Task, agent: str, hop: str | None = None) -> str | None:
        """Claim the task, or a hop of it, for the agent and start it."""
        ...

    def stop(self, run_id: str, why: str) -> str | None:
        """End the worker of a hosted run; what follows comes when it has ended."""
        ...

    def clear(self, task: Task, run_id: str, why: str) -> str | None:
        """End what a dead host has left of a run, and the run."""
        ...
