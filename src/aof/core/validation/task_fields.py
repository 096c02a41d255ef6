"""What the fields of a task may hold, for every source: a command, an edit or a person's file.

Names are those of the frontmatter; None takes a field away. Must not know whether the values fit the other tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aof.core.errors.base import AofError, InvalidInput
from aof.core.model.ids import is_task_id
from aof.core.model.lifecycle import PRIORITIES, VISIBILITIES
from aof.core.model.times import end_of
from aof.core.validation import limits, output, required_capabilities

_ROUTES: Final = ("agent", "role", "team", "workflow")
_MOST_CRITERIA: Final = 100
_LONGEST_TTL_MS: Final = 7 * 24 * 3_600_000


def malformed(given: dict[str, Any]) -> AofError | None:
    """The first thing that is wrong with the values; names that are not in the table are not judged."""
    for field, value in given.items():
        check = _CHECKS.get(field)
        if check is not None and (problem := check(field, value)):
            return problem
    return None


def bad_ttl(field: str, value: object) -> InvalidInput | None:
    """Refuse a lease that is too short to keep, or that would hold a task for ever."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LONGEST_TTL_MS:
        return None
    return InvalidInput(f"'{field}' cannot be {str(value)[:80]!r}", "use between 1 ms and 7 days, in milliseconds")


def _title(field: str, value: object) -> AofError | None:
    return limits.line(field, value, limits.TITLE, required=True)


def _text(field: str, value: object) -> AofError | None:
    return limits.text(field, value, limits.BODY)


def _routing(field: str, value: object) -> AofError | None:
    given = {} if value is None else value
    if not isinstance(given, dict) or not set(given) <= {*_ROUTES, "tags"}:
        return InvalidInput(f"'{field}' must be an object without other keys", f"use {', '.join(_ROUTES)} or tags")
    tags = given.get("tags")
    return limits.names(**{f"{field}.{name}": given.get(name) for name in _ROUTES}) or (
        None if tags is None else limits.items(f"{field}.tags", tags, limits.ITEMS, single_line=True)
    )


def _metadata(field: str, value: object) -> AofError | None:
    if problem := _object(field, value):
        return problem
    ttl = value.get("leaseTtlMs") if isinstance(value, dict) else None
    return None if ttl is None else bad_ttl(f"{field}.leaseTtlMs", ttl)


def _object(field: str, value: object) -> AofError | None:
    return limits.data(field, value) if _is_object(value) else InvalidInput(f"'{field}' must be an object", "use {}")


def _constraints(field: str, value: object) -> AofError | None:
    problem = _object(field, value)
    if problem is not None or not isinstance(value, dict) or value.get("output") is None:
        return problem
    return output.bad_output(f"{field}.output", value["output"])


def _acceptance(field: str, value: object) -> AofError | None:
    problem = _list(field, value)
    if problem is None and isinstance(value, list | tuple) and len(value) > _MOST_CRITERIA:
        return InvalidInput(f"'{field}' has more than {_MOST_CRITERIA}", "group some of them")
    return problem


def _profile(field: str, value: object) -> AofError | None:
    problem = _object(field, value)
    if problem is not None or not isinstance(value, dict) or "requiredCapabilities" not in value:
        return problem

    return required_capabilities.bad_capabilities(f"{field}.requiredCapabilities", value["requiredCapabilities"])


def _list(field: str, value: object) -> AofError | None:
    is_list = value is None or isinstance(value, list | tuple)
    return limits.data(field, value) if is_list else InvalidInput(f"'{field}' must be a list", "use []")


def _task_ids(field: str, value: object) -> AofError | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(edge, str) and is_task_id(edge) for edge in value):
        return InvalidInput(f"'{field}' must be a list of task IDs", "use full IDs such as TASK-2026-02-21-001")
    if len(value) > limits.DEPENDENCIES:
        return InvalidInput(f"'{field}' has more than {limits.DEPENDENCIES}", "group some of them under one task")
    return None


def _task_id(field: str, value: object) -> AofError | None:
    if value is None or (isinstance(value, str) and is_task_id(value)):
        return None
    return InvalidInput(f"'{field}' is not a task ID: {str(value)[:80]!r}", "use a full ID such as TASK-2026-02-21-001")


def _due(field: str, value: object) -> AofError | None:
    try:
        if value is not None:
            end_of(value if isinstance(value, str) and len(value) <= limits.ITEM else "")
    except (ValueError, OverflowError):
        return InvalidInput(f"'{field}' is not a day or a moment: {str(value)[:80]!r}", "use one such as 2026-03-01")
    return None


def _is_object(value: object) -> bool:
    return value is None or isinstance(value, dict)


_CHECKS: Final[dict[str, Callable[[str, Any], AofError | None]]] = {
    "title": _title,
    "body": _text,
    "description": _text,
    "priority": lambda field, value: limits.choice(field, value, PRIORITIES),
    "visibility": lambda field, value: limits.choice(field, value, VISIBILITIES),
    "owner": limits.name,
    "resource": limits.name,
    "due": _due,
    "parentId": _task_id,
    "dependsOn": _task_ids,
    "routing": _routing,
    "acceptance": _acceptance,
    "constraints": _constraints,
    "profile": _profile,
    "metadata": _metadata,
    "extra": _object,
}
