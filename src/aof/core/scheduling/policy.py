"""The settings that a plan depends on. Must not know where they are written. Plain, like the policy that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_NONE: Mapping[str, int] = MappingProxyType({})


class Scheduling:
    """How many runs there may be at once, whether backlog is promoted, and how long a task may stay in a status.

    `handoff_ms` is how long a handoff without a due date may stay unanswered by who is not started.
    """

    def __init__(
        self,
        *,
        max_concurrent: int | None = None,
        promote: bool = True,
        patience_ms: Mapping[str, int] = _NONE,
        handoff_ms: int = 3_600_000,
    ) -> None:
        self.max_concurrent = max_concurrent
        self.promote = promote
        self.patience_ms = patience_ms
        self.handoff_ms = handoff_ms
