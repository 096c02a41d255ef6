"""The org chart as data: what a document says, and what may be left out."""

from __future__ import annotations

import msgspec
import pytest

from aof.kernel.model import duration_ms
from aof.org.model import EMPTY, OrgChart
from tests.support.team import CHART, chart_of


def test_a_chart_says_what_its_document_says() -> None:
    chart = chart_of(**CHART)
    agent = chart.by_id["swe-backend"]
    assert agent.skills == {"api": 1.0, "python": 0.9}
    assert agent.max_execution_ms == 30 * 60_000
    assert agent.runner.command == ("python", "agents/backend.py")
    assert (chart.members, chart.holders["developer"]) == ({"eng": ("swe-backend",)}, ("swe-backend",))
    assert chart.teams_by_id["eng"].limits.max_concurrent == 4
    assert chart.routing[0].to.role == "developer"


def test_a_chart_survives_the_way_to_json_and_back() -> None:
    chart = chart_of(**CHART)
    assert msgspec.json.decode(msgspec.json.encode(chart), type=OrgChart) == chart


def test_only_the_id_of_an_agent_is_required() -> None:
    agent = chart_of(agents=[{"id": "ada"}]).by_id["ada"]
    assert agent.active
    assert agent.runner.kind == "pull"
    assert (agent.concurrency, agent.autonomy.level, agent.skills) == (None, None, {})


def test_a_role_is_held_whether_the_role_or_the_agent_says_so() -> None:
    chart = chart_of(
        agents=[{"id": "a", "roles": ["dev"]}, {"id": "b"}, {"id": "c", "roles": ["ops"]}],
        roles={"dev": {"agents": ["b"]}},
    )
    assert chart.holders == {"dev": ("a", "b"), "ops": ("c",)}
    assert chart.roles_of == {"a": {"dev"}, "b": {"dev"}, "c": {"ops"}}


def test_a_chart_without_agents_declares_nothing() -> None:
    assert not EMPTY.declared
    assert not chart_of(schemaVersion=1, teams=[{"id": "eng"}]).declared
    assert chart_of(agents=[{"id": "ada"}]).declared


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90s", 90_000),
        ("30m", 1_800_000),
        ("2h", 7_200_000),
        ("1h30m", 5_400_000),
        ("250ms", 250),
        ("1.5d", 129_600_000),
    ],
)
def test_a_duration_is_a_number_with_a_unit(text: str, length: int) -> None:
    assert duration_ms(text) == length


@pytest.mark.parametrize("text", ["", "30", "m", "30 m", "-5m", "0s", "5m5m", "1e3s", "9999d", "30m\n", "٣m", 30, None])
def test_anything_else_is_no_duration(text: object) -> None:
    assert duration_ms(text) is None
