"""How far an agent may go on its own: its level, the highest risk it may take, and how much one run may use.

What a chart does not say is not limited. Must not know tasks or callers.
"""

from __future__ import annotations

from typing import Final

import msgspec

from aof.core.errors.base import Call
from aof.core.errors.guards import BudgetTooSmall
from aof.core.model.org_chart import Agent, AutonomyLimits, OrgChart, Risk

RISKS: Final[tuple[Risk, ...]] = ("low", "medium", "high")
_MINUTE: Final = 60_000
BY_LEVEL: Final = {
    0: AutonomyLimits(iterations=5, minutes=10, files=0, lines=0, tool_calls=10),
    1: AutonomyLimits(iterations=20, minutes=30, files=10, lines=1000, tool_calls=50),
    2: AutonomyLimits(iterations=50, minutes=60, files=30, lines=3000, tool_calls=200),
    3: AutonomyLimits(iterations=100, minutes=120, files=50, lines=5000, tool_calls=500),
}


def limits_of(agent: Agent) -> AutonomyLimits:
    """What one run of the agent may use: its own figures, else those of its level, else None for no limit."""
    level = agent.autonomy.level
    base = BY_LEVEL[level] if level is not None else AutonomyLimits()
    own = msgspec.structs.asdict(agent.autonomy.limits)
    return msgspec.structs.replace(base, **{name: value for name, value in own.items() if value is not None})


def too_little(agent: Agent, *, level: int | None, risk: Risk | None) -> str | None:
    """Why the agent's autonomy does not suffice for work of that level and risk; None when it does."""
    own = agent.autonomy
    if level is not None and own.level is not None and own.level < level:
        return f"its autonomy level is {own.level}, and the task needs {level}"
    if risk is not None and own.max_risk is not None and RISKS.index(risk) > RISKS.index(own.max_risk):
        return f"it may take {own.max_risk} risk at most, and the task's is {risk}"
    return None


def run_limit_ms(agent: Agent) -> int | None:
    """How long one run of the agent may take: its own figure or that of its budget, whichever is shorter."""
    own, minutes = agent.max_execution_ms, limits_of(agent).minutes
    if minutes is None:
        return own
    return minutes * _MINUTE if own is None else min(own, minutes * _MINUTE)


def may_take(chart: OrgChart | None, name: str, *, level: int | None, risk: Risk | None) -> BudgetTooSmall | None:
    """The refusal of work that needs more autonomy than the agent has; None where nothing says that it is too much.

    Every agent that work is given to must pass: the one that is named, and each that it is rerouted or escalated to.
    """
    agent = chart.by_id.get(name) if chart is not None else None
    why = too_little(agent, level=level, risk=risk) if agent is not None else None
    if agent is None or why is None:
        return None
    needed = {"level": level, "risk": risk}
    there = {"level": agent.autonomy.level, "risk": agent.autonomy.max_risk}
    return BudgetTooSmall(
        f"the autonomy of {name} is too small: {why}",
        "give it to an agent with a larger budget",
        Call("org_show", {}),
        agent=name,
        required={what: value for what, value in needed.items() if value is not None},
        available={what: value for what, value in there.items() if value is not None},
    )
