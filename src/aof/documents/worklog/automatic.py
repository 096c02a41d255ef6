"""Entries that AOF writes by itself: one line for each claim, completion and handoff, and nothing else.

A pure function of the event, but for the title of the task, which is there for people. Must not know where it goes.
"""

from __future__ import annotations

from typing import Any, Final

from aof.core.model.events import SUPERSEDED, Event, as_written
from aof.documents.projection import Facts
from aof.documents.worklog.forms import NONE, quick_line

TYPES: Final = ("task.attempt.", "task.completed", "delegation.requested", "handoff.initiated", SUPERSEDED)
CLAIMED, COMPLETED, HANDED_BACK, HANDED = "claimed", "completed", "handed back", "handed over"
_TITLE: Final = 80


def line(event: Event, facts: Facts) -> str | None:
    """The line that an event leaves in the WORKLOG; None for most of them."""
    event = as_written(event)  # it was written in its clone, and a merge takes no line away
    if event.type == "task.attempt.started":
        return _claimed(event, facts)
    if event.type == "task.completed":
        return _completed(event, facts)
    if event.type in ("delegation.requested", "handoff.initiated"):
        return _handed(event, facts)
    return None


def agent_of(event: Event) -> str | None:
    """The agent whose work an event begins or ends."""
    agent = event.payload.get("agent") if event.type.startswith("task.attempt.") else None
    return agent if isinstance(agent, str) else None


def _claimed(event: Event, facts: Facts) -> str:
    agent = str(event.payload.get("agent"))
    hop = event.payload.get("hop")
    attempt = f"attempt {event.payload.get('attempt', 1)}"
    result = f"hop {hop}, {attempt}" if hop else attempt
    return quick_line(_time(event), agent, f"{CLAIMED} {_named(event, facts)}", result, (agent, event.task_id))


def _completed(event: Event, facts: Facts) -> str | None:
    result: dict[str, Any] = event.payload.get("result") or {}
    agent, outcome = str(result.get("agentId") or event.agent or event.actor), str(result.get("outcome", "done"))
    what = COMPLETED if outcome == "done" else HANDED_BACK
    said = f"{outcome}; Tests run: {_tests(result.get('tests'))}"
    return quick_line(_time(event), agent, f"{what} {_named(event, facts)}", said)


def _tests(tests: object) -> str:
    if not isinstance(tests, dict):
        return NONE
    return f"{tests.get('passed', 0)} of {tests.get('total', 0)} passed, {tests.get('failed', 0)} failed"


def _handed(event: Event, facts: Facts) -> str | None:
    said: dict[str, Any] = event.payload.get("request") or event.payload.get("audit") or event.payload
    sender = said.get("fromAgent") or said.get("from_agent") or event.agent or event.actor
    target = said.get("toAgent") or said.get("to_agent")
    if not isinstance(sender, str) or not isinstance(target, str):
        return None
    what = f"{HANDED} {_named(event, facts)}"
    return quick_line(_time(event), sender, what, f"to {target}", (target, event.task_id))


def _named(event: Event, facts: Facts) -> str:
    title = facts.title(event.task_id) or ""
    shown = title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…"
    return f'{event.task_id} "{shown}"' if shown else event.task_id


def _time(event: Event) -> str:
    return event.timestamp[11:16]
