"""What the fields of a task may hold, for every source: a command, an edit or a person's file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aof.errors import AofError, InvalidInput
from aof.kernel import limits as kernel_limits
from aof.kernel.model import PRIORITIES, VISIBILITIES, end_of, is_task_id

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
    return kernel_limits.line(field, value, kernel_limits.TITLE, required=True)


def _text(field: str, value: object) -> AofError | None:
    return kernel_limits.text(field, value, kernel_limits.BODY)


def _routing(field: str, value: object) -> AofError | None:
    given = {} if value is None else value
    if not isinstance(given, dict) or not set(given) <= {*_ROUTES, "tags"}:
        return InvalidInput(f"'{field}' must be an object without other keys", f"use {', '.join(_ROUTES)} or tags")
    tags = given.get("tags")
    return kernel_limits.names(**{f"{field}.{name}": given.get(name) for name in _ROUTES}) or (
        None if tags is None else kernel_limits.items(f"{field}.tags", tags, kernel_limits.ITEMS, single_line=True)
    )


def _metadata(field: str, value: object) -> AofError | None:
    if problem := _object(field, value):
        return problem
    ttl = value.get("leaseTtlMs") if isinstance(value, dict) else None
    return None if ttl is None else bad_ttl(f"{field}.leaseTtlMs", ttl)


def _object(field: str, value: object) -> AofError | None:
    return (
        kernel_limits.data(field, value)
        if _is_object(value)
        else InvalidInput(f"'{field}' must be an object", "use {}")
    )


def _constraints(field: str, value: object) -> AofError | None:
    problem = _object(field, value)
    if problem is not None or not isinstance(value, dict) or value.get("output") is None:
        return problem
    return bad_output(f"{field}.output", value["output"])


def _acceptance(field: str, value: object) -> AofError | None:
    problem = _list(field, value)
    if problem is None and isinstance(value, list | tuple) and len(value) > _MOST_CRITERIA:
        return InvalidInput(f"'{field}' has more than {_MOST_CRITERIA}", "group some of them")
    return problem


def _profile(field: str, value: object) -> AofError | None:
    problem = _object(field, value)
    if problem is not None or not isinstance(value, dict) or "requiredCapabilities" not in value:
        return problem

    return bad_capabilities(f"{field}.requiredCapabilities", value["requiredCapabilities"])


def _list(field: str, value: object) -> AofError | None:
    is_list = value is None or isinstance(value, list | tuple)
    return kernel_limits.data(field, value) if is_list else InvalidInput(f"'{field}' must be a list", "use []")


def _task_ids(field: str, value: object) -> AofError | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(edge, str) and is_task_id(edge) for edge in value):
        return InvalidInput(f"'{field}' must be a list of task IDs", "use full IDs such as TASK-2026-02-21-001")
    if len(value) > kernel_limits.DEPENDENCIES:
        return InvalidInput(
            f"'{field}' has more than {kernel_limits.DEPENDENCIES}", "group some of them under one task"
        )
    return None


def _task_id(field: str, value: object) -> AofError | None:
    if value is None or (isinstance(value, str) and is_task_id(value)):
        return None
    return InvalidInput(f"'{field}' is not a task ID: {str(value)[:80]!r}", "use a full ID such as TASK-2026-02-21-001")


def _due(field: str, value: object) -> AofError | None:
    try:
        if value is not None:
            end_of(value if isinstance(value, str) and len(value) <= kernel_limits.ITEM else "")
    except (ValueError, OverflowError):
        return InvalidInput(f"'{field}' is not a day or a moment: {str(value)[:80]!r}", "use one such as 2026-03-01")
    return None


def _is_object(value: object) -> bool:
    return value is None or isinstance(value, dict)


_CHECKS: Final[dict[str, Callable[[str, Any], AofError | None]]] = {
    "title": _title,
    "body": _text,
    "description": _text,
    "priority": lambda field, value: kernel_limits.choice(field, value, PRIORITIES),
    "visibility": lambda field, value: kernel_limits.choice(field, value, VISIBILITIES),
    "owner": kernel_limits.name,
    "resource": kernel_limits.name,
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


DEMANDS: Final = ("artifacts", "evidence", "delivery")


def bad_output(field: str, value: object) -> AofError | None:
    """What is wrong with the demands on the output."""
    if not isinstance(value, dict) or not _demands(value):
        return None
    if not isinstance(value.get("delivery", False), bool):
        return InvalidInput(f"'{field}.delivery' must be true or false", "say whether delivery is required")
    artifacts, evidence = value.get("artifacts", []), value.get("evidence", [])
    return (
        kernel_limits.items(f"{field}.artifacts", artifacts, kernel_limits.ITEMS, single_line=True)
        or kernel_limits.items(f"{field}.evidence", evidence, kernel_limits.ITEMS, single_line=True)
        or escaping_reference(*((f"{field}.artifacts", ref) for ref in artifacts))
    )


def output_demands(constraints: dict[str, Any]) -> dict[str, Any]:
    """The demands on the output; none where a file was edited so that they make no sense."""
    given = constraints.get("output")
    if not isinstance(given, dict) or not _demands(given) or bad_output("constraints.output", given) is not None:
        return {}
    return given


def _demands(value: dict[str, Any]) -> bool:
    """Whether it names a demand: anything else that is said of the output is for the worker to read."""
    return not set(DEMANDS).isdisjoint(value)


def escaping_reference(*refs: tuple[str, str | None]) -> AofError | None:
    """The refusal for the first reference that leaves its folder."""
    for field, ref in refs:
        if ref is not None and (ref.startswith(("/", "\\")) or ".." in ref.replace("\\", "/").split("/")):
            return InvalidInput(
                f"'{field}' leaves the task's folder: {ref[:80]!r}", "use a path such as outputs/summary.md"
            )
    return None


KEY: Final = "requiredCapabilities"
_NAMES: Final = ("id", "capabilityId", "capability_id")
_LEAST: Final = ("minProficiency", "min_proficiency")
_SHAPE: Final = "use names, 'name:0.8', or objects with id and minProficiency from 0.0 to 1.0"


def required_capabilities(profile: dict[str, Any]) -> dict[str, float]:
    """The capabilities that a profile requires, each with the least proficiency in it."""
    given = profile.get(KEY)
    asked = map(_asked, given) if isinstance(given, list | tuple) else ()
    return {one[0]: one[1] for one in asked if one is not None}


def bad_capabilities(field: str, given: object) -> InvalidInput | None:
    """Refuse a list of required capabilities that asks for something impossible."""
    if given is None:
        return None
    wrong = [one for one in given if _asked(one) is None] if isinstance(given, list | tuple) else [given]
    return InvalidInput(f"'{field}' cannot hold {str(wrong[0])[:80]!r}", _SHAPE) if wrong else None


def _asked(given: object) -> tuple[str, float] | None:
    """One required capability, however it is written; None for what is none."""
    if isinstance(given, dict):
        name = next((given[key] for key in _NAMES if key in given), None)
        least = next((given[key] for key in _LEAST if key in given), 0.0)
    else:
        name, least = _split(given) if isinstance(given, str) else (None, 0.0)
    sound = isinstance(name, str) and bool(name.strip()) and len(name) <= kernel_limits.ITEM
    number = isinstance(least, int | float) and not isinstance(least, bool) and 0.0 <= least <= 1.0
    return (str(name), float(least)) if sound and number else None


def _split(text: str) -> tuple[str, float]:
    """`python:0.8` as name and figure; a colon that no figure follows belongs to the name."""
    name, colon, least = text.rpartition(":")
    try:
        return (name, float(least)) if colon else (text, 0.0)
    except ValueError:
        return text, 0.0
