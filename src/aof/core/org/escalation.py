"""Where an agent escalates when it cannot go on: its own target first, then the chart's chain, at most three steps.

Must not know why somebody escalates, nor what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from aof.core.model.org_chart import HUMAN, OrgChart
from aof.core.org.chart.references import DEPTH


def chain(chart: OrgChart, agent: str) -> tuple[str, ...]:
    """The agents that are asked, in order: active ones, each once, and `human` last."""
    asked: list[str] = []
    for target in _targets(chart, agent):
        found = _somebody(chart, target, (agent, *asked))
        if found is not None:
            asked.append(found)
        if found == HUMAN or len(asked) == DEPTH:
            break
    return tuple(asked)


def _targets(chart: OrgChart, agent: str) -> Iterator[str]:
    """The way over the agents' own targets, as far as that goes without a circle, then the roles of the chain."""
    passed = {agent}
    current = chart.by_id.get(agent)
    while current is not None and (target := current.escalates_to) is not None and target not in passed:
        yield target
        passed.add(target)
        current = chart.by_id.get(target)
    yield from chart.escalation


def _somebody(chart: OrgChart, target: str, taken: tuple[str, ...]) -> str | None:
    """The one that a target stands for: a person, an active agent, or the first active holder of a role."""
    if target == HUMAN:
        return HUMAN
    named = (target,) if target in chart.by_id else chart.holders.get(target, ())
    return next((one for one in named if chart.by_id[one].active and one not in taken), None)
