"""Conditions of hops: data in the template, compared with the task and its hops, and never evaluated as code."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Iterator
from typing import Any, Final, get_args

from aof.tasks import fields as tasks_fields
from aof.workflows.model import HopStatus, value_at

DEPTH: Final = 8
SIZE: Final = 64
OPERATORS: Final = ("eq", "neq", "gt", "gte", "lt", "lte", "in", "has_tag", "hop_status", "and", "or", "not")
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "gt": operators.gt,
    "gte": operators.ge,
    "lt": operators.lt,
    "lte": operators.le,
}

Path = tuple[str | int, ...]
Problem = tuple[Path, str, str]


def condition_holds(condition: dict[str, Any], facts: dict[str, Any]) -> bool:
    """Whether a condition that was checked holds of the facts: task fields, and `hops` by their IDs."""
    ((operator, operand),) = condition.items()
    match operator:
        case "and":
            return all(condition_holds(part, facts) for part in operand)
        case "or":
            return any(condition_holds(part, facts) for part in operand)
        case "not":
            return not condition_holds(operand, facts)
        case "has_tag":
            return operand in facts.get("routing", {}).get("tags", ())
        case "hop_status":
            wanted = operand["status"]
            status = facts.get("hops", {}).get(operand["hop"], {}).get("status", "waiting")
            return status in (wanted if isinstance(wanted, list | tuple) else (wanted,))
    return _compares(operator, value_at(operand["field"], facts), operand["value"])


def _compares(operator: str, found: Any, wanted: Any) -> bool:
    """Whether the comparison holds. Only two numbers or two texts have an order."""
    match operator:
        case "eq":
            return _equal(found, wanted)
        case "neq":
            return not _equal(found, wanted)
        case "in":
            return any(_equal(found, value) for value in wanted)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (found, wanted))
    texts = isinstance(found, str) and isinstance(wanted, str)
    return (numbers or texts) and bool(_ORDERS[operator](found, wanted))


def _equal(one: Any, other: Any) -> bool:
    """Equality as JSON has it: true is not a number."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def condition_problems(condition: object) -> Iterator[Problem]:
    """The places where a condition is malformed, what is wrong there, and what would be right."""
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
    given, known = operand["status"], get_args(HopStatus)
    for status in given if isinstance(given, list | tuple) else [given]:
        if status not in known:
            yield (*at, "status"), f"there is no hop status {str(status)[:60]!r}", f"use {', '.join(known)}"


def _comparison(operator: str, operand: object, at: Path) -> Iterator[Problem]:
    if not isinstance(operand, dict) or operand.keys() != {"field", "value"} or not isinstance(operand["field"], str):
        yield at, f"'{operator}' needs a field and a value", f"{operator}: {{field: metadata.risk, value: 3}}"
        return
    parts = operand["field"].split(".")
    roots = {"createdBy", "hops", *(row.key for row in tasks_fields.WHOLE if row.asked)}
    if parts[0] not in roots or not all(parts):
        there = ", ".join(sorted(roots))
        yield (*at, "field"), f"no field begins with '{parts[0][:60]}'", f"begin with one of: {there}"
    value = operand["value"]
    if operator == "in" and not isinstance(value, list | tuple):
        yield (*at, "value"), "'in' needs a list of values", "value: [low, medium]"
    if operator in ("gt", "gte", "lt", "lte") and not isinstance(value, int | float | str):
        yield (*at, "value"), f"'{operator}' compares numbers or texts", "value: 3"
