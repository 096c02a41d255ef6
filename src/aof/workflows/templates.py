"""Templates of workflows: everything that can be wrong with `workflows/<name>.yaml`, and the template that it is.

Conditions of hops are data, compared with the task and its hops, and never evaluated as code.
"""

from __future__ import annotations

import operator as operators
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, get_args

import msgspec

from aof.errors import Call, InvalidWorkflow
from aof.kernel.findings import Finding, Step, misshapen, suggestion
from aof.kernel.model import EXAMPLES, is_agent_name
from aof.support.typed import prepare_type
from aof.tasks import fields as tasks_fields
from aof.workflows.model import Hop, HopStatus, Template, value_at

HOPS: Final = 20
BYTES: Final = 8_192
_MOST_REJECTIONS: Final = 20
_HOP_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z", re.ASCII)
_At = tuple[Step, ...]


class Checked(msgspec.Struct, frozen=True):
    """The template, if it can be used, and what was found."""

    template: Template | None
    findings: tuple[Finding, ...]


def validate_template(document: Any, name: str | None = None) -> Checked:
    """Everything that is wrong with a document, and the template that it is; `name` is its file's."""
    findings = tuple(misshapen(document, Template))
    if findings:
        return Checked(None, findings)
    template = msgspec.convert(document, prepare_type(Template))
    findings = (*_whole(template, name), *_hops(template), *_edges(template), *_conditions(template))
    sound = all(finding.severity != "error" for finding in findings)
    return Checked(template if sound else None, findings)


def usable(document: dict[str, Any], name: str | None) -> Template | InvalidWorkflow:
    """The template that a document is, or what is first wrong with it."""
    checked = validate_template(document, name)
    if checked.template is not None:
        return checked.template
    first = next(finding for finding in checked.findings if finding.severity == "error")
    more = f" (and {len(checked.findings) - 1} more)" if len(checked.findings) > 1 else ""
    shown = str(name)[:80]
    return InvalidWorkflow(
        f"the workflow '{shown}' cannot be used: {first.where}: {first.detail}{more}",
        f"{first.fix}; see all of it",
        Call("workflow_check", {"name": shown}),
        workflow=shown,
    )


def _wrong(code: str, at: _At, detail: str, fix: str) -> Finding:
    return Finding(code=code, severity="error", at=at, detail=detail, fix=fix)


def _whole(template: Template, name: str | None) -> Iterator[Finding]:
    if not is_agent_name(template.name):
        yield _wrong("bad_name", ("name",), f"{template.name[:80]!r} is not a valid name", "use letters, digits and -")
    elif name is not None and template.name != name:
        fix = f"write 'name: {name}', or rename the file"
        yield _wrong("other_name", ("name",), f"the file is '{name}.yaml' and the name is '{template.name}'", fix)
    if not 1 <= template.rejection_limit <= _MOST_REJECTIONS:
        detail = f"rejectionLimit {template.rejection_limit} is not possible"
        yield _wrong("bad_limit", ("rejectionLimit",), detail, f"use 1 to {_MOST_REJECTIONS}")
    if not template.hops:
        yield _wrong("no_hops", ("hops",), "there are no hops", "add one: - {id: implement, role: developer}")
    if len(template.hops) > HOPS:
        yield _wrong("too_many_hops", ("hops",), f"there are more than {HOPS} hops", "split it into several tasks")
    elif (size := len(msgspec.json.encode(template))) > BYTES:
        yield _wrong("too_large", ("hops",), f"it takes {size:,} bytes, the limit is {BYTES:,}", "make it shorter")


def _hops(template: Template) -> Iterator[Finding]:
    seen: set[str] = set()
    for number, hop in enumerate(template.hops):
        at: _At = ("hops", number)
        if _HOP_ID.match(hop.id) is None:
            fix = "use up to 64 small letters, digits, - and _, beginning with a letter or digit"
            yield _wrong("bad_id", (*at, "id"), f"{hop.id[:80]!r} cannot name a hop", fix)
        elif hop.id in seen:
            yield _wrong("duplicate_id", (*at, "id"), f"the hop '{hop.id}' is there twice", "give each its own id")
        seen.add(hop.id)
        yield from _hop(hop, at)


def _hop(hop: Hop, at: _At) -> Iterator[Finding]:
    for key, role in (("role", hop.role), ("escalateTo", hop.escalate_to)):
        if role is not None and not is_agent_name(role):
            fix = "use letters, digits and . _ - @ : +"
            yield _wrong("bad_name", (*at, key), f"hop '{hop.id[:80]}': {role[:80]!r} cannot name a role", fix)
    if hop.timeout is not None and hop.timeout_ms is None:
        detail = f"hop '{hop.id[:80]}': {hop.timeout[:80]!r} is not a duration"
        yield _wrong("bad_duration", (*at, "timeout"), detail, f"write {EXAMPLES}")
    if hop.escalate_to is not None and hop.timeout is None:
        detail = f"hop '{hop.id[:80]}' names whom to escalate to, but never times out"
        yield _wrong("no_timeout", (*at, "escalateTo"), detail, "add 'timeout: 2h', or take escalateTo away")
    if hop.can_reject and not hop.depends_on:
        detail = f"hop '{hop.id[:80]}' can reject, but no hop comes before it"
        yield _wrong("nothing_to_reject", (*at, "canReject"), detail, "add dependsOn, or take canReject away")
    if hop.rejection_strategy != "origin" and not hop.can_reject:
        detail = f"hop '{hop.id[:80]}' has a rejectionStrategy and cannot reject"
        fix = "add 'canReject: true', or take it away"
        yield Finding(code="unused", severity="warning", at=(*at, "rejectionStrategy"), detail=detail, fix=fix)


def _edges(template: Template) -> Iterator[Finding]:
    known = set(template.by_id)
    for number, hop in enumerate(template.hops):
        for place, before in enumerate(hop.depends_on):
            at: _At = ("hops", number, "dependsOn", place)
            if before not in known:
                fix = suggestion(before[:80], known, f"use one of: {', '.join(sorted(known))}")
                yield _wrong("unknown_hop", at, f"hop '{hop.id}' waits for '{before[:80]}', which is not a hop", fix)
            elif before in hop.depends_on[:place]:
                yield _wrong("duplicate_edge", at, f"hop '{hop.id}' waits for '{before}' twice", "name it once")
    yield from _circles(template)


def _circles(template: Template) -> Iterator[Finding]:
    """Hops that wait for themselves, and those that only such hops lead to."""
    if template.hops and all(hop.depends_on for hop in template.hops):
        fix = "let one hop have no dependsOn"
        yield _wrong("no_start", ("hops",), "no hop can be the first: each waits for another", fix)
    for number, hop in enumerate(template.hops):
        above = template.before(hop.id)
        at: _At = ("hops", number, "dependsOn")
        if hop.id in above:
            ring = " → ".join(_ring(template, hop.id))
            yield _wrong("cycle", at, f"hop '{hop.id}' waits for itself: {ring}", "take one of these edges away")
        elif any(before in template.before(before) for before in above):
            yield _wrong("unreachable", at, f"hop '{hop.id}' waits for hops that never open", "break the cycle first")


def _ring(template: Template, hop_id: str) -> list[str]:
    """The way from a hop along its predecessors back to itself."""
    trails: list[list[str]] = [[hop_id]]
    seen: set[str] = set()
    for trail in trails:
        for before in template.by_id[trail[-1]].depends_on if trail[-1] in template.by_id else ():
            if before == hop_id:
                return [*trail, before]
            if before not in seen:
                seen.add(before)
                trails.append([*trail, before])
    return [hop_id]


def _conditions(template: Template) -> Iterator[Finding]:
    for number, hop in enumerate(template.hops):
        if hop.condition is None:
            continue
        at: _At = ("hops", number, "condition")
        wrong = [*condition_problems(hop.condition)]
        for path, detail, fix in wrong:
            yield _wrong("bad_condition", (*at, *path), f"hop '{hop.id}': {detail}", fix)
        above = template.before(hop.id)
        for path, name in [] if wrong else hops_in(hop.condition):
            if name not in above:
                what = "no hop" if name not in template.by_id else "no hop that comes before it"
                fix = f"use one of: {', '.join(sorted(above)) or 'the task fields, for nothing comes before it'}"
                yield _wrong("bad_condition", (*at, *path), f"hop '{hop.id}' asks for '{name[:80]}', {what}", fix)


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
