"""`aof handoff` and `aof audit`.

Hand work over, answer, return, see the ten steps of a handoff's life, and check its audit records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aof.support import nesting
from aof.surfaces.cli.output import Answer, Context
from aof.surfaces.cli.parser import UsageError
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


def handoff(context: Context, values: dict[str, Any]) -> Answer:
    """Every action of the verb."""
    given = dict(values)
    action = given.pop("action")
    if action not in _REQUIRED:
        raise UsageError(f"'aof handoff' knows {', '.join(_REQUIRED)}, not '{action}'", _EXAMPLE)
    for name, spelled in _REQUIRED[action].items():
        if given.get(name) in (None, ""):
            raise UsageError(f"'aof handoff {action}' needs {spelled}", f"see: aof handoff --help; {_EXAMPLE}")
    perform = _ACTIONS.get(action, _answered(action))
    try:
        return perform(context, given)
    except TypeError as error:
        unknown = str(error).rpartition("argument ")[2].strip("'")
        if "unexpected keyword" not in str(error):
            raise
        raise UsageError(f"'aof handoff {action}' takes no {unknown}", f"see: aof handoff --help; {_EXAMPLE}") from None


def _new(context: Context, given: dict[str, Any]) -> Answer:
    to = [name for one in given.pop("to", ()) for name in one.split(",") if name]
    if given.pop("no_wait", False):
        given["wait"] = False
    started = context.fabric.handoff_new(task_id=given.pop("task"), to=to, **given)
    return Answer(started, lambda screen: show_started(screen, started))


def _accept(context: Context, given: dict[str, Any]) -> Answer:
    taken = context.fabric.handoff_accept(**given)
    return Answer(taken.flat(), lambda screen: show_taken(screen, taken))


def _return(context: Context, given: dict[str, Any]) -> Answer:
    for name, meant in (("variables", "variables_changed"), ("artifacts", "artifacts_produced")):
        if name in given:
            given[meant] = given.pop(name)
    if to := given.pop("to", None):
        given["to_agent"] = to[0]
    if "result" in given:
        given["result"] = _read(given["result"])
    one = context.fabric.handoff_return(**given)
    return Answer(one, lambda screen: show_returned(screen, one))


def _read(text: str) -> Any:
    """A result as JSON, and as plain text where it is none."""
    try:
        nesting.refuse_nesting(text)
        return json.loads(text)
    except nesting.NestedTooDeeply as error:
        raise UsageError(f"--result is {error}", "keep deep structures in a file of the task") from None
    except ValueError:
        return text


def _passed_on(action: str) -> Callable[[Context, dict[str, Any]], Answer]:
    """An action that may name the next agent, and answers with the handoff to that one."""

    def perform(context: Context, given: dict[str, Any]) -> Answer:
        to = given.pop("to", None)
        one = getattr(context.fabric, f"handoff_{action}")(**given, **({"to_agent": to[0]} if to else {}))
        return Answer(one, lambda screen: handoff_line(screen, one))

    return perform


def _list(context: Context, given: dict[str, Any]) -> Answer:
    to = given.pop("to", None)
    found = context.fabric.handoff_list(**given, **({"to_agent": to[0]} if to else {}))
    data = {"total": found.total, "handoffs": tuple(found)}
    if found.next_cursor is not None:
        data["nextCursor"] = found.next_cursor
    return Answer(data, lambda screen: handoff_table(screen, found))


def _show(context: Context, given: dict[str, Any]) -> Answer:
    one = context.fabric.handoff_show(**given)
    return Answer(one, lambda screen: show_whole(screen, one))


def _group(context: Context, given: dict[str, Any]) -> Answer:
    group = context.fabric.handoff_group(given.pop("handoff_id"), **given)
    return Answer(group, lambda screen: show_group(screen, group))


def _chain(context: Context, given: dict[str, Any]) -> Answer:
    drawn = context.fabric.handoff_chain(given.pop("handoff_id"), **given)
    return Answer(drawn, lambda screen: screen.block(drawn["text"].rstrip("\n")))


def _answered(action: str) -> Callable[[Context, dict[str, Any]], Answer]:
    """An action that answers with the handoff as it then is."""

    def perform(context: Context, given: dict[str, Any]) -> Answer:
        one = getattr(context.fabric, f"handoff_{action}")(**given)
        return Answer(one, lambda screen: handoff_line(screen, one))

    return perform


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


def handoff_line(screen: Screen, one: Handoff) -> None:
    """A handoff in one line."""
    state = screen.paint(one.state, _STATES.get(one.state, "dim"))
    screen.line(f"{one.id}  {state}  {one.from_agent} → {one.to_agent}  {one.task_id}")
    if one.forwarded_to is not None:
        screen.line(f"went on as {one.forwarded_to}")


_ACTIONS: dict[str, Callable[[Context, dict[str, Any]], Answer]] = {
    "new": _new,
    "accept": _accept,
    "return": _return,
    "escalate": _passed_on("escalate"),
    "reroute": _passed_on("reroute"),
    "list": _list,
    "show": _show,
    "group": _group,
    "chain": _chain,
}


_SHORT = 8


_NARROW = 60
_Step = tuple[str, str | None, str]


def show_started(screen: Screen, one: StartedHandoff) -> None:
    """A handoff that is on its way; of a broadcast, all of them."""
    for name in one.handoff_ids or (one.handoff_id,):
        screen.line(f"{name}  {screen.paint(one.state, _STATES.get(one.state, 'dim'))}")
    if one.broadcast_group_id:
        screen.line(f"broadcast {one.broadcast_group_id}")
    if one.forwarded_to:
        screen.line(f"went on as {one.forwarded_to}")
    for warning in one.warnings or ():
        complain(f"warning: {warning}", "")


def show_taken(screen: Screen, one: TakenHandoff) -> None:
    """A handoff that was accepted, and the run that began with it."""
    handoff_line(screen, one.handoff)
    if one.run_id:
        screen.line(f"run {one.run_id}, held until {one.expires_at}")


def show_returned(screen: Screen, one: Handoff) -> None:
    """A handoff that was returned, and what of it was not applied."""
    handoff_line(screen, one)
    for warning in one.warnings:
        complain(warning, "")


def handoff_table(screen: Screen, found: Sequence[Handoff]) -> None:
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
    if rows:
        screen.table(head, rows, hide=(1,))
    else:
        screen.line("there is no such handoff")


def show_group(screen: Screen, whole: Group) -> None:
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


_PROBLEMS = 1


def audit(context: Context, values: dict[str, Any]) -> Answer:
    """`aof audit [list]`, `aof audit verify` and `aof audit prune`."""
    actions = {"list": _list_records, "verify": _verify, "prune": _prune}
    given = dict(values)
    action = given.pop("action", "list")
    if action not in actions:
        raise UsageError(f"'aof audit' knows list, verify and prune, not '{action}'", "for example: aof audit verify")
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
        if rows:
            screen.table(("WHEN", "STEP", "FROM → TO", "TYPE", "TASK", "HANDOFF", "REASON"), rows)
        else:
            screen.line("there are no such audit records")
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
