"""What routing looks at in a task: who it is for, and what it asks of them. Must not know any chart."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.model.org_chart import Risk
from aof.core.model.task import Routing
from aof.core.org.autonomy import RISKS
from aof.core.validation.required_capabilities import required

_MOST_LEVEL: Final = 3


class WorkProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A task as routing sees it. `capabilities` are names, each with how proficient one must at least be in it."""

    agent: str | None = None
    role: str | None = None
    team: str | None = None
    tags: tuple[str, ...] = ()
    capabilities: tuple[tuple[str, float], ...] = ()
    level: int | None = None
    risk: Risk | None = None


def work_of(routing: Routing, profile: dict[str, Any]) -> WorkProfile:
    """The task's routing, and what its profile asks for; what no one could understand there asks for nothing."""
    level, risk = profile.get("autonomyLevel"), profile.get("risk")
    return WorkProfile(
        agent=routing.agent,
        role=routing.role,
        team=routing.team,
        tags=routing.tags,
        capabilities=tuple(required(profile).items()),
        level=level if type(level) is int and 0 <= level <= _MOST_LEVEL else None,
        risk=next((known for known in RISKS if known == risk), None),
    )
