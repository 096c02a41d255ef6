"""Handoffs for a person: one line, a table, and the ten steps of one handoff's life with their times.

Must not know how a handoff came about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aof.adapters.cli.terminal.screen import Screen, complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.handoffs.handoff_results import StartedHandoff, TakenHandoff
    from aof.core.handoffs.lifecycle.aggregation import Group
    from aof.core.model.handoffs.record import Handoff

_SHORT = 8
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
_NARROW = 60
_Step = tuple[str, str | None, str]


def started(screen: Screen, one: StartedHandoff) -> None:
    """A handoff that is on its way; of a broadcast, all of them."""
    for name in one.handoff_ids or (one.handoff_id,):
        screen.line(f"{name}  {screen.paint(one.state, _STATES.get(one.state, 'dim'))}")
    if one.broadcast_group_id:
        screen.line(f"broadcast {one.broadcast_group_id}")
    if one.forwarded_to:
        screen.line(f"went on as {one.forwarded_to}")
    for warning in one.warnings or ():
        complain(f"warning: {warning}", "")


def taken(screen: Screen, one: TakenHandoff) -> None:
    """A handoff that was accepted, and the run that began with it."""
    line(screen, one.handoff)
    if one.run_id:
        screen.line(f"run {one.run_id}, held until {one.expires_at}")


def line(screen: Screen, one: Handoff) -> None:
    """A handoff in one line."""
    state = screen.paint(one.state, _STATES.get(one.state, "dim"))
    screen.line(f"{one.id}  {state}  {one.from_agent} → {one.to_agent}  {one.task_id}")
    if one.forwarded_to is not None:
        screen.line(f"went on as {one.forwarded_to}")


def returned(screen: Screen, one: Handoff) -> None:
    """A handoff that was returned, and what of it was not applied."""
    line(screen, one)
    for warning in one.warnings:
        complain(warning, "")


def table(screen: Screen, found: Sequence[Handoff]) -> None:
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


def group(screen: Screen, whole: Group) -> None:
    """What the returns of a broadcast come to."""
    state = screen.paint(whole.state, _STATES.get(whole.state, "dim"))
    screen.line(f"{whole.broadcast_group_id}  {whole.aggregation}  {state}")
    rows = [
        (one.handoff_id[:_SHORT], one.agent, one.status or one.state, str(one.result or "-")) for one in whole.results
    ]
    screen.table(("HANDOFF", "AGENT", "STATUS", "RESULT"), rows)


def whole(screen: Screen, one: Handoff) -> None:
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
