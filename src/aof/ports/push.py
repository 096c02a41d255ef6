"""Where peers want to be told of their tasks, and how far each has been told. Above: the A2A adapter. Below: the store.

A target holds secrets of the peer, so none of it stands in the log or in the task's file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol

import msgspec


class PushTarget(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One address that is told what happens to one task.

    `actor` is the peer that asked for it, `version` the revision of the protocol that it speaks. Everything up to the
    event `seq` has been told, at last the state `state`. `failures` counts those since the last success.
    """

    task_id: str
    id: str
    actor: str
    url: str
    token: str = ""
    scheme: str = ""
    credentials: str = ""
    version: Literal["1.0", "0.3"] = "1.0"
    made_at: str
    seq: int
    state: int
    failures: int = 0
    error: str | None = None

    def __repr__(self) -> str:
        return f"PushTarget({self.task_id!r}, {self.id!r}, {self.actor!r})"

    def is_same(self, other: PushTarget) -> bool:
        """Whether both are the one that the peer has asked for, however far each has come."""
        return (self.id, self.made_at, self.url) == (other.id, other.made_at, other.url)


Targets = tuple[PushTarget, ...]


class PushTargets(Protocol):
    """Keeps the targets of a data directory, durably, and lets one process at a time send."""

    def alone(self) -> AbstractContextManager[bool]:
        """Whether nobody else sends; then nobody else does until the block ends."""
        ...

    def tasks(self) -> frozenset[str]:
        """The tasks that have a target."""
        ...

    def of(self, task_id: str) -> Targets:
        """The targets of a task."""
        ...

    def change(self, task_id: str, edit: Callable[[Targets], Targets]) -> Targets:
        """Replace the targets of a task by what `edit` makes of them, and return those."""
        ...
