"""What routing looks at in a task: who it is for, and what it asks of them. Must not know any chart."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.org.autonomy import RISKS
from aof.core.org.chart import Risk
from aof.core.tasks.task import Routing

_LISTS: Final = ("requiredCapabilities", "required_capabilities", "capabilities")
_NAMES: Final = ("id", "capabilityId", "capability_id")
_LEAST: Final = ("minProficiency", "min_proficiency", "proficiency")
_MOST_LEVEL: Final = 3


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A task as routing sees it. `capabilities` are names, each with how proficient one must at least be in it."""

    agent: str | None = None
    role: str | None = None
    team: str | None = None
    tags: tuple[str, ...] = ()
    capabilities: tuple[tuple[str, float], ...] = ()
    level: int | None = None
    risk: Risk | None = None


def work_of(routing: Routing, profile: dict[str, Any]) -> Work:
    """The task's routing, and what its profile asks for; what no one could understand there asks for nothing."""
    level, risk = profile.get("autonomyLevel"), profile.get("risk")
    return Work(
        agent=routing.agent,
        role=routing.role,
        team=routing.team,
        tags=routing.tags,
        capabilities=tuple(required(profile).items()),
        level=level if type(level) is int and 0 <= level <= _MOST_LEVEL else None,
        risk=next((known for known in RISKS if known == risk), None),
    )


def required(profile: dict[str, Any]) -> dict[str, float]:
    """The capabilities that a profile requires: names, `name:0.8`, or objects with a least proficiency."""
    found: dict[str, float] = {}
    for given in next((profile[key] for key in _LISTS if isinstance(profile.get(key), list | tuple)), ()):
        if isinstance(given, str):
            found |= _asked(*capability(given))
        elif isinstance(given, dict):
            found |= _asked(_first(given, _NAMES, ""), _first(given, _LEAST, 0.0))
    return found


def _asked(name: object, least: object) -> dict[str, float]:
    sound = isinstance(name, str) and name and isinstance(least, int | float)
    return {str(name): float(str(least))} if sound else {}


def capability(text: str) -> tuple[str, float]:
    """A capability as people write it: `python`, or `python:0.8` for a least proficiency."""
    name, colon, least = text.rpartition(":")
    try:
        return (name, float(least)) if colon and 0.0 <= float(least) <= 1.0 else (text, 0.0)
    except ValueError:
        return text, 0.0


def _first(given: dict[str, Any], keys: tuple[str, ...], otherwise: Any) -> Any:
    return next((given[key] for key in keys if key in given), otherwise)
