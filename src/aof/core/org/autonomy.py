"""How far an agent may go on its own: its level, the highest risk it may take, and how much one run may use.

What a chart does not say is not limited. Must not know tasks or callers.
"""

from __future__ import annotations

from typing import Final

import msgspec

from aof.core.model.org_chart import Agent, AutonomyLimits, Risk

RISKS: Final[tuple[Risk, ...]] = ("low", "medium", "high")
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
