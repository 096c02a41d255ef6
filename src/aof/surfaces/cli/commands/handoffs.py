"""`aof handoff` and `aof audit`.

Hand work over, answer, return, see the ten steps of a handoff's life, and check its audit records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aof.support import nesting
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError, chosen_action
from aof.surfaces.cli.screen import Screen, complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.handoffs.answers import Group
    from aof.handoffs.model import Handoff
    from aof.handoffs.operations import StartedHandoff, TakenHandoff


_EXAMPLE = "for example: aof handoff list --to swe-qa"
_REQUIRED = {
    "new": {"type": "--type", "task": "--task", "reason": "--reason"},
    "accept": {"handoff_id": "ID"},
    "reject": {"handoff_id": "ID", "reason": "--reason"},
    "defer": {"handoff_id": "ID", "reason": "--reason"},
    "return": {"handoff_id": "ID", "status": "--status"},
    "answer": {"handoff_id": "ID", "text": "--text"},
    "escalate": {"handoff_id": "ID", "rationale": "--rationale"},
    "reroute": {"handoff_id": "ID", "reason": "--reason"},
    "withdraw": {"handoff_id": "ID", "reason": "--reason"},
    "resend": {"handoff_id": "ID"},
    "show": {"handoff_id": "ID"},
    "list": {},
    "group": {"handoff_id": "ID"},
    "chain": {"handoff_id": "TASK"},
}
_PARAMETERS = {
    "new": {"task": "task_id"},
    "return": {"variables": "variables_changed", "artifacts": "artifacts_produced"},
    "group": {"handoff_id": "group_id"},
    "chain": {"handoff_id": "task_id"},
}
_TO_ONE = ("return", "escalate", "reroute", "list")


def handoff(context: Context, values: dict[str, Any]) -> Answer:
    """Every action of the verb."""
    given = dict(values)
    action = chosen_action("handoff", given, _REQUIRED, _EXAMPLE)
    for name, spelled in _REQUIRED[action].items():
        if given.get(name) in (None, ""):
            raise UsageError(f"'aof handoff {action}' needs {spelled}", f"see: aof handoff --help; {_EXAMPLE}")
    try:
        result = getattr(context.fabric, f"handoff_{action}")(**_arguments(action, given))
    except TypeError as error:
        unknown = str(error).rpartition("argument ")[2].strip("'")
        if "unexpected keyword" not in str(error):
            raise
        raise UsageError(f"'aof handoff {action}' takes no {unknown}", f"see: aof handoff --help; {_EXAMPLE}") from None
    data, text = result, _TEXTS.get(action, _handoff_line)
    if action == "accept":
        data = result.flat()
    elif action == "list":
        data = {"total": result.total, "handoffs": tuple(result)}
        data |= {"nextCursor": result.next_cursor} if result.next_cursor is not None else {}
    return Answer(data, lambda screen: text(screen, result))


def _arguments(action: str, given: dict[str, Any]) -> dict[str, Any]:
    """What was given, by the names of the operation's parameters."""
    if action == "new":
        given["to"] = [name for one in given.get("to", ()) for name in one.split(",") if name]
        if given.pop("no_wait", False):
            given["wait"] = False
    elif action in _TO_ONE and "to" in given:
        given["to_agent"] = given.pop("to")[0]
    if "result" in given and action == "return":
        given["result"] = _read(given["result"])
    names = _PARAMETERS.get(action, {})
    return {names.get(name, name): value for name, value in given.items()}


def _read(text: str) -> Any:
    """A result as JSON, and as plain text where it is none."""
    try:
        nesting.refuse_nesting(text)
        return json.loads(text)
    except nesting.NestedTooDeeply as error:
        raise UsageError(f"--result is {error}", "keep deep structures in a file of the task") from None
    except ValueError:
        return text


_STATES = {
    "queued": "dim",
    "requested": "ready",
    "deferred": "high",
    "accepted": "in-progress",
    "completed": "good",
    "escalated": "review",
    "rejected": "error",
    "failed": "error",
    "success": "good",
    "open": "in-progress",
}


def _handoff_line(screen: Screen, one: Handoff) -> None:
    """A handoff in one line."""
    state = screen.paint(one.state, _STATES.get(one.state, "dim"))
    screen.line(f"{one.id}  {state}  {one.from_agent} → {one.to_agent}  {one.task_id}")
    if one.forwarded_to is not None:
        screen.line(f"went on as {one.forwarded_to}")


_SHORT = 8
_NARROW = 60
_Step = tuple[str, str | None, str]


def _show_started(screen: Screen, one: StartedHandoff) -> None:
    """A handoff that is on its way; of a broadcast, all of them."""
    for name in one.handoff_ids or (one.handoff_id,):
        screen.line(f"{name}  {screen.paint(one.state, _STATES.get(one.state, 'dim'))}")
    if one.broadcast_group_id:
        screen.line(f"broadcast {one.broadcast_group_id}")
    if one.forwarded_to:
        screen.line(f"went on as {one.forwarded_to}")
    for warning in one.warnings or ():
        complain(f"warning: {warning}", "")


def _show_taken(screen: Screen, one: TakenHandoff) -> None:
    """A handoff that was accepted, and the run that began with it."""
    _handoff_line(screen, one.handoff)
    if one.run_id:
        screen.line(f"run {one.run_id}, held until {one.expires_at}")


def _show_returned(screen: Screen, one: Handoff) -> None:
    """A handoff that was returned, and what of it was not applied."""
    _handoff_line(screen, one)
    for warning in one.warnings:
        complain(warning, "")


def _handoff_table(screen: Screen, found: Sequence[Handoff]) -> None:
    """Many handoffs, by the beginnings of their IDs."""
    head = ("HANDOFF", "TYPE", "STATE", "FROM", "TO", "TASK")
    rows = [
        (
            one.id[:_SHORT] if len(one.id) > _SHORT * 4 else one.id,
            one.type,
            one.state,
            one.from_agent,
            one.to_agent,
            one.task_id,
        )
        for one in found
    ]
    screen.table(head, rows, hide=(1,), none="there is no such handoff")


def _show_group(screen: Screen, whole: Group) -> None:
    """What the returns of a broadcast come to."""
    state = screen.paint(whole.state, _STATES.get(whole.state, "dim"))
    screen.line(f"{whole.broadcast_group_id}  {whole.aggregation}  {state}")
    rows = [
        (one.handoff_id[:_SHORT], one.agent, one.status or one.state, str(one.result or "-")) for one in whole.results
    ]
    screen.table(("HANDOFF", "AGENT", "STATUS", "RESULT"), rows)


def show_whole(screen: Screen, one: Handoff) -> None:
    """One handoff: who, what, the ten steps, and what came back."""
    screen.line(f"{one.id}  {screen.paint(one.state, _STATES.get(one.state, 'dim'))}")
    screen.line(f"{one.type}: {one.from_agent} → {one.to_agent}")
    screen.line(f"{one.task_id}  {one.reason}")
    narrow = bool(screen.width) and screen.width < _NARROW
    screen.line()
    for number, (name, at, told) in enumerate(_steps(one), 1):
        mark = screen.paint("✓", "good") if at else screen.paint("·", "dim")
        shown = _time(at, narrow=narrow)
        screen.say(
            f"{number:>2} ", mark, f" {name:<13} ", (shown, "dim" if not at else ""), f"  {told}" if told else ""
        )
    _more(screen, one)


def _time(at: str | None, *, narrow: bool) -> str:
    """The whole moment, or its time of day where a line is short."""
    if at is None:
        return "-"
    return at[11:19] if narrow else f"{at[:10]} {at[11:19]}"


def _steps(one: Handoff) -> Iterator[_Step]:
    """The ten steps: each with when it was done, if it was, and what there is to say of it."""
    answer, back = one.acceptance, one.returned
    final = answer is not None and answer.status != "deferred"
    checks = one.checks
    found = f"capability {checks.capability}" if checks is not None else ""
    found += f", load {checks.load}/{checks.limit}" if checks is not None and checks.limit is not None else ""
    routed = f"{one.routing.suggested or 'nobody'} suggested, {one.routing.decided} decided" if one.routing else ""
    begun, acknowledged = one.timestamp, answer.acknowledged_at if answer is not None else None
    taken_on = acknowledged if final and answer is not None and answer.status == "accepted" else None
    over = one.closed_at if one.state in ("completed", "failed") else None
    yield "TRIGGER", begun, one.trigger
    yield "PREPARE", begun, f"{len(one.context.artifacts)} artifacts, {len(one.context.conversation_history)} messages"
    yield "VALIDATE", begun, routed
    yield "INITIATE", begun, f"to {one.to_agent}"
    yield "ACKNOWLEDGE", acknowledged, found
    yield "ACCEPT/REJECT", acknowledged if final else None, _answer(one)
    yield "EXECUTE", taken_on, ""
    if one.return_protocol.expected:
        yield (
            "RETURN",
            back.audit.completion_time if back is not None else None,
            back.status if back is not None else "",
        )
    else:
        yield "RETURN", None, "none expected"
    yield "COMPLETE", over, one.outcome or one.closed_reason or ""
    yield "RELEASE", over, ""


def _answer(one: Handoff) -> str:
    if one.acceptance is None:
        return f"waits for {one.to_agent}"
    why = f": {one.acceptance.reason}" if one.acceptance.reason else ""
    return f"{one.acceptance.status}{why}"


def _more(screen: Screen, one: Handoff) -> None:
    lines = [f"assessment {said.level} ({said.agent}): {said.assessment}" for said in one.assessments]
    lines += [f"warning: {warning}" for warning in one.warnings]
    if one.request is not None:
        asked = one.request
        lines += [f"acceptance criteria: {item}" for item in asked.acceptance_criteria]
        lines += [f"expected outputs: {item}" for item in asked.expected_outputs]
        lines += [f"context: {item}" for item in asked.context_refs]
        lines += [f"constraints: {item}" for item in asked.constraints]
        lines += [f"due: {asked.due_by}"] if asked.due_by else []
    if one.returned is not None and one.returned.result is not None:
        lines.append(f"result: {one.returned.result.body}")
    lines += [f"late return, not applied: {late.status}" for late in one.late_returns]
    if one.forwarded_from is not None:
        lines.append(f"came from {one.forwarded_from}")
    if one.forwarded_to is not None:
        lines.append(f"went on as {one.forwarded_to}")
    if lines:
        screen.line()
    for told in lines:
        screen.line(told)


_TEXTS: dict[str, Callable[[Screen, Any], None]] = {
    "new": _show_started,
    "accept": _show_taken,
    "return": _show_returned,
    "list": _handoff_table,
    "show": show_whole,
    "group": _show_group,
    "chain": lambda screen, drawn: screen.block(drawn["text"].rstrip("\n")),
}
_PROBLEMS = 1


def audit(context: Context, values: dict[str, Any]) -> Answer:
    """`aof audit [list]`, `aof audit verify` and `aof audit prune`."""
    actions = {"list": _list_records, "verify": _verify, "prune": _prune}
    given = dict(values)
    action = chosen_action("audit", given, actions, "for example: aof audit verify", "list")
    allowed = {"verify": set[str](), "prune": {"dry_run"}, "list": given.keys() - {"dry_run"}}[action]
    if wrong := sorted(given.keys() - allowed):
        name = f"--{wrong[0].removesuffix('_agent').replace('_', '-')}"
        raise UsageError(f"'aof audit {action}' does not take {name}", f"for example: aof audit {action}")
    return actions[action](context, given)


def _list_records(context: Context, given: dict[str, Any]) -> Answer:
    found = context.fabric.audit(**given)

    def text(screen: Screen) -> None:
        rows = [
            (
                one.timestamp,
                one.event_type if one.status is None else f"{one.event_type} ({one.status})",
                f"{one.from_agent} → {one.to_agent}",
                one.handoff_type,
                one.context_snapshot.task_id,
                one.handoff_id,
                one.reason,
            )
            for one in found.records
        ]
        screen.table(
            ("WHEN", "STEP", "FROM → TO", "TYPE", "TASK", "HANDOFF", "REASON"),
            rows,
            none="there are no such audit records",
        )
        if found.more:
            screen.line(f"there are more: aof audit --after {found.records[-1].seq}")

    return Answer(found, text)


def _verify(context: Context, _given: dict[str, Any]) -> Answer:
    found = context.fabric.audit_verify()

    def text(screen: Screen) -> None:
        for problem in found.problems:
            screen.line(f"{problem.detail} [{problem.code}]")
        if found.ok:
            screen.line(f"{found.checked} audit records are what was written")

    return Answer(found, text, 0 if found.ok else _PROBLEMS)


def _prune(context: Context, given: dict[str, Any]) -> Answer:
    done = context.fabric.audit_prune(**given)

    def text(screen: Screen) -> None:
        verb = "would be removed" if done.dry_run else "removed"
        for one in done.removed:
            screen.line(f"{one.path}: {one.records} records {verb}")
        if not done.removed:
            screen.line("every record is still to be kept")

    return Answer(done, text)
