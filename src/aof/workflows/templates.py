"""Templates of workflows: everything that can be wrong with `workflows/<name>.yaml`, and the template that it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from aof.errors import Call, InvalidWorkflow
from aof.kernel.findings import Finding, Step, misshapen, suggestion
from aof.kernel.model import EXAMPLES, is_agent_name
from aof.support.typed import prepare_type
from aof.workflows import conditions
from aof.workflows.model import Hop, Template

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
        wrong = [*conditions.condition_problems(hop.condition)]
        for path, detail, fix in wrong:
            yield _wrong("bad_condition", (*at, *path), f"hop '{hop.id}': {detail}", fix)
        above = template.before(hop.id)
        for path, name in [] if wrong else conditions.hops_in(hop.condition):
            if name not in above:
                what = "no hop" if name not in template.by_id else "no hop that comes before it"
                fix = f"use one of: {', '.join(sorted(above)) or 'the task fields, for nothing comes before it'}"
                yield _wrong("bad_condition", (*at, *path), f"hop '{hop.id}' asks for '{name[:80]}', {what}", fix)
