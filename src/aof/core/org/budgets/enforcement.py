"""The eight points at which autonomy is enforced, and one ruling for each: proceed, with warnings, or blocked.

The order is fixed: security, explicit deny, explicit allow, limits, default deny. An earlier stage that decides is
never overruled. An agent whose chart says nothing about autonomy is not limited. Must not know tasks or commands.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from aof.core.model.org_chart import Agent, Autonomy
from aof.core.org.autonomy import limits_of
from aof.core.org.budgets import permissions
from aof.core.org.budgets.permissions import ACCESSES

Point = Literal["read", "write", "command", "network", "iterations", "duration", "files", "lines"]
POINTS: Final[tuple[Point, ...]] = (*ACCESSES, "iterations", "duration", "files", "lines")
Outcome = Literal["proceed", "blocked", "proceed_with_warnings"]
Stage = Literal["security", "explicit_deny", "explicit_allow", "limits", "default_deny", "undeclared"]
_FIGURES: Final = {"iterations": "iterations", "duration": "minutes", "files": "files", "lines": "lines"}
_NEARLY: Final = 0.8


class AskedAction(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is about to do: `subject` is a path, command or host; `amount` what it will have used in all."""

    point: Point
    subject: str | None = None
    amount: int | None = None


class Ruling(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whether the agent may, which stage decided, and why."""

    outcome: Outcome
    point: str
    stage: Stage
    reason: str
    warnings: tuple[str, ...] = ()


def ruling(agent: Agent, action: AskedAction, *, tool_calls: int = 0, unlocked: str | None = None) -> Ruling:
    """The ruling on one action. `tool_calls` are those so far; `unlocked` says which lock a write lacks."""
    for access in ACCESSES:
        if access == action.point:
            return _access(agent, access, action.subject or "", tool_calls, unlocked)
    return _amount(agent, action.point, action.amount or 0)


def _access(agent: Agent, access: permissions.Access, subject: str, tool_calls: int, unlocked: str | None) -> Ruling:
    autonomy = agent.autonomy
    why = permissions.unsafe(access, subject) or unlocked
    if why is not None:
        return _ruled(access, "blocked", "security", why)
    if autonomy == Autonomy():
        return _undeclared(agent, access)
    if (pattern := permissions.denied(autonomy, access, subject)) is not None:
        return _ruled(access, "blocked", "explicit_deny", f"the chart denies {agent.id} '{pattern}'")
    if (pattern := permissions.allowed(autonomy, access, subject)) is not None:
        return _ruled(access, "proceed", "explicit_allow", f"the chart allows {agent.id} '{pattern}'")
    if not permissions.granted(autonomy, access):
        reason = f"nothing in the chart lets {agent.id} {access} this"
        return _ruled(access, "blocked", "default_deny", reason)
    most = limits_of(agent).tool_calls
    return _within(agent, access, "tool calls", tool_calls + 1, most)


def _amount(agent: Agent, point: str, amount: int) -> Ruling:
    if agent.autonomy == Autonomy():
        return _undeclared(agent, point)
    figure = _FIGURES[point]
    most: int | None = getattr(limits_of(agent), figure)
    return _within(agent, point, figure, amount, most)


def _within(agent: Agent, point: str, what: str, amount: int, most: int | None) -> Ruling:
    if most is None:
        return _ruled(point, "proceed", "limits", f"{agent.id} has no limit on {what}")
    reason = f"{agent.id} would use {amount:,} of the {most:,} {what} that it may use"
    if amount > most:
        return _ruled(point, "blocked", "limits", reason)
    if amount >= most * _NEARLY and amount:
        return _ruled(point, "proceed_with_warnings", "limits", reason, (f"nearly at the limit: {reason}",))
    return _ruled(point, "proceed", "limits", reason)


def _undeclared(agent: Agent, point: str) -> Ruling:
    return _ruled(point, "proceed", "undeclared", f"the chart sets no limits for {agent.id}")


def _ruled(point: str, outcome: Outcome, stage: Stage, reason: str, warnings: tuple[str, ...] = ()) -> Ruling:
    return Ruling(outcome=outcome, point=point, stage=stage, reason=reason, warnings=warnings)


def told(ruled: Ruling, agent: str, action: AskedAction) -> dict[str, Any]:
    """A ruling as the log tells of it."""
    asked = {"subject": action.subject, "amount": action.amount}
    whole: dict[str, Any] = msgspec.to_builtins(ruled)
    return {"agent": agent} | {name: one for name, one in asked.items() if one is not None} | whole
