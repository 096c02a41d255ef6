"""The settings that a plan depends on. Must not know where they are written."""

from __future__ import annotations

import msgspec


class Scheduling(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs there may be at once, whether backlog is promoted, and how long a task may stay in a status."""

    max_concurrent: int | None = None
    promote: bool = True
    patience_ms: dict[str, int] = {}
