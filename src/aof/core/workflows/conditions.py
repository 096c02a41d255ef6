"""Conditions as data: an operator and its operands, looked up in a table. No text is ever evaluated as code.

A field that is not there equals nothing and is neither more nor less than anything. Must not know templates' files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

DEPTH: Final = 8
SIZE: Final = 64
OPERATORS: Final = ("eq", "neq", "gt", "gte", "lt", "lte", "in", "has_tag", "hop_status", "and", "or", "not")
HOP_STATUSES: Final = (
    "waiting",
    "ready",
    "running",
    "review",
    "blocked",
    "rejected",
    "done",
    "skipped",
    "failed",
    "timed_out",
)
_ROOTS: Final = frozenset(
    {"title", "priority", "createdBy", "owner", "resource", "visibility", "routing", "metadata", "constraints"}
    | {"profile", "hops"}
)
_MISSING: Final = object()

Path = tuple[str | int, ...]
Problem = tuple[Path, str, str]


def holds(condition: dict[str, Any], facts: dict[str, Any]) -> bool:
    """Whether a condition that was checked holds of the facts: task fields, and `hops` by their IDs."""
    ((operator, operand),) = condition.items()
    return _OPERATORS[operator](operand, facts)


def problems(condition: object) -> Iterator[Problem]:
    """Where a condition is not a condition, what is wrong there, and what would be right."""
    if _count(condition) > SIZE:
        yield (), f"it has more than {SIZE} parts", "make it simpler"
        return
    yield from _problems(condition, (), DEPTH)


def hops_in(condition: object) -> Iterator[tuple[Path, str]]:
    """Every hop that a well-formed condition looks at, and where it says so."""
    if not isinstance(condition, dict) or len(condition) != 1:
        return
    ((operator, operand),) = condition.items()
    if operator in ("and", "or") and isinstance(operand, list | tuple):
        for number, part in enumerate(operand):
            yield from (((operator, number, *path), hop) for path, hop in hops_in(part))
    elif operator == "not":
        yield from (((operator, *path), hop) for path, hop in hops_in(operand))
    elif isinstance(operand, dict) and isinstance(hop := operand.get("hop"), str):
        yield (operator, "hop"), hop
    elif isinstance(operand, dict) and isinstance(field := operand.get("field"), str) and field.startswith("hops."):
        yield (operator, "field"), field.split(".")[1]


def _count(value: object) -> int:
    """How many parts a value has, counted no further than is needed."""
    queue, seen = [value], 0
    while queue and seen <= SIZE:
        current = queue.pop()
        seen += 1
        inner = current.values() if isinstance(current, dict) else current if isinstance(current, list | tuple) else ()
        queue += inner
    return seen


def _problems(condition: object, at: Path, depth: int) -> Iterator[Problem]:
    if depth == 0:
        yield at, f"it is nested more than {DEPTH} deep", "make it simpler"
    elif not isinstance(condition, dict) or len(condition) != 1:
        shown = condition if isinstance(condition, str) else type(condition).__name__
        example = "write one operator with its operands, such as eq: {field: metadata.risk, value: high}"
        yield at, f"a condition is data and never text or code, not {str(shown)[:60]!r}", example
    else:
        ((operator, operand),) = condition.items()
        if operator not in OPERATORS:
            yield (*at, operator), f"there is no operator '{str(operator)[:60]}'", f"use one of: {', '.join(OPERATORS)}"
        else:
            yield from _operand(operator, operand, (*at, operator), depth)


def _operand(operator: str, operand: object, at: Path, depth: int) -> Iterator[Problem]:
    match operator:
        case "and" | "or":
            if not isinstance(operand, list | tuple) or not operand:
                yield at, f"'{operator}' needs a list of conditions", f"{operator}: [{{has_tag: api}}, …]"
                return
            for number, part in enumerate(operand):
                yield from _problems(part, (*at, number), depth - 1)
        case "not":
            yield from _problems(operand, at, depth - 1)
        case "has_tag":
            if not isinstance(operand, str) or not operand:
                yield at, "'has_tag' needs the name of a tag", "has_tag: security"
        case "hop_status":
            yield from _hop_status(operand, at)
        case _:
            yield from _comparison(operator, operand, at)


def _hop_status(operand: object, at: Path) -> Iterator[Problem]:
    if not isinstance(operand, dict) or operand.keys() != {"hop", "status"} or not isinstance(operand["hop"], str):
        yield at, "'hop_status' needs a hop and a status", "hop_status: {hop: review, status: done}"
        return
    given = operand["status"]
    wanted = given if isinstance(given, list | tuple) else [given]
    for status in wanted:
        if status not in HOP_STATUSES:
            yield (*at, "status"), f"there is no hop status {str(status)[:60]!r}", f"use {', '.join(HOP_STATUSES)}"


def _comparison(operator: str, operand: object, at: Path) -> Iterator[Problem]:
    if not isinstance(operand, dict) or operand.keys() != {"field", "value"} or not isinstance(operand["field"], str):
        yield at, f"'{operator}' needs a field and a value", f"{operator}: {{field: metadata.risk, value: 3}}"
        return
    parts = operand["field"].split(".")
    if parts[0] not in _ROOTS or not all(parts):
        there = ", ".join(sorted(_ROOTS))
        yield (*at, "field"), f"no field begins with '{parts[0][:60]}'", f"begin with one of: {there}"
    value = operand["value"]
    if operator == "in" and not isinstance(value, list | tuple):
        yield (*at, "value"), "'in' needs a list of values", "value: [low, medium]"
    if operator in ("gt", "gte", "lt", "lte") and not isinstance(value, int | float | str):
        yield (*at, "value"), f"'{operator}' compares numbers or texts", "value: 3"


def _field(operand: dict[str, Any], facts: dict[str, Any]) -> Any:
    value: Any = facts
    for part in operand["field"].split("."):
        value = value.get(part, _MISSING) if isinstance(value, dict) else _MISSING
        if value is _MISSING:
            return None
    return value


def _equal(one: Any, other: Any) -> bool:
    """Equality as JSON has it: true is not a number."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _ordered(one: Any, other: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return numbers or (isinstance(one, str) and isinstance(other, str))


def _compare(compare: Callable[[Any, Any], bool]) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    def holds_of(operand: dict[str, Any], facts: dict[str, Any]) -> bool:
        found, wanted = _field(operand, facts), operand["value"]
        return _ordered(found, wanted) and compare(found, wanted)

    return holds_of


def _is_in(operand: dict[str, Any], facts: dict[str, Any]) -> bool:
    found = _field(operand, facts)
    return any(_equal(found, value) for value in operand["value"])


def _has_tag(tag: str, facts: dict[str, Any]) -> bool:
    return tag in facts.get("routing", {}).get("tags", ())


def _is_hop(operand: dict[str, Any], facts: dict[str, Any]) -> bool:
    wanted = operand["status"]
    status = facts.get("hops", {}).get(operand["hop"], {}).get("status", "waiting")
    return status in (wanted if isinstance(wanted, list | tuple) else (wanted,))


_OPERATORS: Final[dict[str, Callable[[Any, dict[str, Any]], bool]]] = {
    "eq": lambda operand, facts: _equal(_field(operand, facts), operand["value"]),
    "neq": lambda operand, facts: not _equal(_field(operand, facts), operand["value"]),
    "gt": _compare(lambda found, wanted: bool(found > wanted)),
    "gte": _compare(lambda found, wanted: bool(found >= wanted)),
    "lt": _compare(lambda found, wanted: bool(found < wanted)),
    "lte": _compare(lambda found, wanted: bool(found <= wanted)),
    "in": _is_in,
    "has_tag": _has_tag,
    "hop_status": _is_hop,
    "and": lambda operand, facts: all(holds(part, facts) for part in operand),
    "or": lambda operand, facts: any(holds(part, facts) for part in operand),
    "not": lambda operand, facts: not holds(operand, facts),
}
