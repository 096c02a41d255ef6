"""How far an agent may go: figures by level, its own figures, risk."""

from __future__ import annotations

import msgspec
import pytest

from aof.org.model import Agent, Autonomy, AutonomyLimits
from aof.org.routing import BY_LEVEL, limits_of, too_little

FIGURES = {
    0: (5, 10, 0, 0, 10),
    1: (20, 30, 10, 1000, 50),
    2: (50, 60, 30, 3000, 200),
    3: (100, 120, 50, 5000, 500),
}


def at(level: int | None = None, **own: int) -> Agent:
    return Agent(id="ada", autonomy=Autonomy(level=level, limits=AutonomyLimits(**own)))


@pytest.mark.parametrize("level", FIGURES)
def test_a_level_gives_its_five_figures(level: int) -> None:
    assert msgspec.structs.astuple(limits_of(at(level))) == FIGURES[level]


def test_an_agents_own_figures_come_before_those_of_its_level() -> None:
    limits = limits_of(at(1, files=3, tool_calls=0))
    assert (limits.files, limits.tool_calls, limits.lines) == (3, 0, BY_LEVEL[1].lines)


def test_nothing_said_is_no_limit() -> None:
    assert set(msgspec.structs.astuple(limits_of(at()))) == {None}
    assert too_little(at(), level=3, risk="high") is None


@pytest.mark.parametrize(
    ("level", "risk", "words"),
    [
        (2, None, None),
        (3, None, "level is 2, and the task needs 3"),
        (None, "low", None),
        (2, "high", "low risk at most"),
    ],
)
def test_a_level_or_risk_above_the_agents_is_too_much(level: int | None, risk: None, words: str | None) -> None:
    agent = Agent(id="ada", autonomy=Autonomy(level=2, max_risk="low"))
    why = too_little(agent, level=level, risk=risk)
    assert (why is None) if words is None else (why is not None and words in why)
