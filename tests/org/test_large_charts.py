"""A chart of any size is read in time that grows with its size only.

Work is counted, not timed: function calls while the chart is judged, and the characters of what is found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest

from aof.org.chart import Judged, validate_chart

SMALL, FACTOR = 400, 4


def counted(document: dict[str, Any]) -> tuple[int, Judged]:
    """How much is done to judge a document, and what comes of it: calls in Python and in C, and letters told."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        judged = validate_chart(document)
        if judged.chart is not None:
            assert judged.chart.holders is not None
            assert judged.chart.roles_of is not None
            assert judged.chart.members is not None
    finally:
        sys.setprofile(before)
    return calls + sum(len(finding.detail) + len(finding.fix) for finding in judged.findings), judged


def names(count: int) -> list[str]:
    """As many names, all of one length."""
    return [f"agent-{number:06d}" for number in range(count)]


def chained(count: int) -> dict[str, Any]:
    """Each agent escalates to the next."""
    known = names(count)
    agents = [{"id": one, "escalatesTo": above} for one, above in pairwise(known)]
    return {"agents": [*agents, {"id": known[-1]}]}


def chained_downward(count: int) -> dict[str, Any]:
    """The same, the last one first."""
    return {"agents": list(reversed(chained(count)["agents"]))}


def circle(count: int) -> dict[str, Any]:
    """The last one escalates to the first."""
    agents = chained(count)["agents"]
    agents[-1]["escalatesTo"] = agents[0]["id"]
    return {"agents": agents}


def in_many_roles(count: int) -> dict[str, Any]:
    """As many roles as agents, each held by a few."""
    known = names(count)
    roles = {f"role-{number:06d}": {"agents": [known[number], known[-1 - number]]} for number in range(count)}
    return {"agents": [{"id": one} for one in known], "roles": roles}


def bring_own_roles(count: int) -> dict[str, Any]:
    """Each agent has a role that the chart does not list, and that is not like one that it does."""
    agents = [{"id": one, "roles": [f"{number:06d}{'x' * 30}"]} for number, one in enumerate(names(count))]
    return {"agents": agents, "roles": {f"r{number}": {"agents": [agents[0]["id"]]} for number in range(count)}}


def rules(count: int) -> dict[str, Any]:
    """Rules of two tags, of which all share one."""
    routing = [{"tags": ["all", f"tag-{number}"], "to": {"agent": "agent-000000"}} for number in range(count)]
    return {"agents": [{"id": "agent-000000"}], "routing": routing}


def same_rules(count: int) -> dict[str, Any]:
    """The same rule again and again."""
    routing = [{"tags": ["all"], "to": {"agent": "agent-000000"}} for _ in range(count)]
    return {"agents": [{"id": "agent-000000"}], "routing": routing}


def teams(count: int) -> dict[str, Any]:
    """As many teams as agents."""
    known = names(count)
    agents = [{"id": one, "team": f"team-{number}"} for number, one in enumerate(known)]
    return {"agents": agents, "teams": [{"id": f"team-{number}", "lead": one} for number, one in enumerate(known)]}


@pytest.mark.parametrize(
    "make", [chained, chained_downward, circle, in_many_roles, rules, same_rules, teams], ids=lambda make: make.__name__
)
def test_a_chart_four_times_as_large_takes_four_times_the_work(make: Callable[[int], dict[str, Any]]) -> None:
    small, _ = counted(make(SMALL))
    large, _ = counted(make(SMALL * FACTOR))

    assert large < small * FACTOR * 1.5


def test_names_that_lead_nowhere_are_compared_within_bounds() -> None:
    def wrong(count: int) -> dict[str, Any]:
        return {"agents": [{"id": one, "team": f"no-{number}"} for number, one in enumerate(names(count))],
                "teams": [{"id": f"team-{number}"} for number in range(count)]}  # fmt: skip

    bounded, judged = counted(wrong(SMALL * FACTOR))
    more, _ = counted(wrong(SMALL * FACTOR * 2))

    assert len([one for one in judged.findings if one.code == "unknown_team"]) == SMALL * FACTOR
    assert more < bounded * 3
    assert all(len(one.fix) < 1_000 for one in judged.findings)


def test_own_roles_of_agents_are_compared_within_bounds() -> None:
    bounded, judged = counted(bring_own_roles(SMALL * FACTOR))
    more, _ = counted(bring_own_roles(SMALL * FACTOR * 2))

    assert judged.chart is not None
    assert more < bounded * 3


def test_twenty_five_thousand_agents_in_one_chain_are_judged() -> None:
    judged = validate_chart(chained(25_000))

    assert judged.chart is not None
    assert len(judged.findings) == 25_000 - 4
    assert judged.findings[0].detail.startswith("an escalation from 'agent-000000' takes 24999 steps: ")
    assert max(len(one.detail) for one in judged.findings) < 500


def test_a_circle_of_many_is_told_once() -> None:
    (finding,) = validate_chart(circle(5_000)).findings

    assert finding.code == "escalation_cycle"
    assert finding.at == ("agents", 0, "escalatesTo")
    assert len(finding.detail) < 500
