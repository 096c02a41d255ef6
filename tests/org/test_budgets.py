"""What an agent may do on its own: eight enforcement points, five stages, and the figures of each level."""

from __future__ import annotations

from typing import Any

import pytest

from aof.org.budgets import POINTS, AskedAction, Point, Ruling, ruling
from aof.org.chart import validate_chart
from aof.org.model import Agent
from aof.org.routing import limits_of, may_take, run_limit_ms
from tests.org.test_autonomy import FIGURES
from tests.support.requirements import requirement
from tests.support.team import chart_of


def agent(**autonomy: Any) -> Agent:
    (found,) = chart_of(agents=[{"id": "ada", "autonomy": autonomy}]).agents
    return found


def asked(who: Agent, point: Point, subject: str | None = None, amount: int | None = None, calls: int = 0) -> Ruling:
    return ruling(who, AskedAction(point=point, subject=subject, amount=amount), tool_calls=calls)


@requirement("handoff.autonomy.level-limits")
@pytest.mark.parametrize("level", FIGURES)
def test_use_up_to_each_figure_of_a_level_is_allowed_and_one_more_is_not(level: int) -> None:
    who = agent(level=level)
    shown = limits_of(who)
    assert (shown.iterations, shown.minutes, shown.files, shown.lines, shown.tool_calls) == FIGURES[level]
    points: tuple[Point, ...] = ("iterations", "duration", "files", "lines")
    for point, most in zip(points, FIGURES[level], strict=False):
        assert asked(who, point, amount=most).outcome != "blocked"
        assert asked(who, point, amount=most + 1).outcome == "blocked"
    calls = FIGURES[level][4]
    assert asked(who, "read", "src", calls=calls - 1).outcome != "blocked"
    assert asked(who, "read", "src", calls=calls).outcome == "blocked"


PERMITTED: dict[Point, tuple[str | None, int | None]] = {
    "read": ("src/api.py", None),
    "write": ("src/api.py", None),
    "command": ("pytest -q", None),
    "network": ("https://pypi.org/simple", None),
    "iterations": (None, 50),
    "duration": (None, 60),
    "files": (None, 30),
    "lines": (None, 3000),
}
FORBIDDEN: dict[Point, tuple[str | None, int | None]] = {
    "read": ("secrets/key.pem", None),
    "write": ("migrations/1.sql", None),
    "command": ("git push origin", None),
    "network": ("evil.example", None),
    "iterations": (None, 51),
    "duration": (None, 61),
    "files": (None, 31),
    "lines": (None, 3001),
}


@requirement("handoff.autonomy.enforcement-points")
@pytest.mark.parametrize("point", POINTS)
def test_at_each_point_what_is_permitted_passes_and_the_rest_is_denied_by_name(point: Point) -> None:
    who = agent(
        level=2,
        deny={"read": ["secrets"], "write": ["migrations/*"], "command": ["git push*"]},
        allow={"network": ["pypi.org"]},
    )
    fine, wrong = asked(who, point, *PERMITTED[point]), asked(who, point, *FORBIDDEN[point])
    assert (fine.outcome != "blocked", fine.point) == (True, point)
    assert (wrong.outcome, wrong.point) == ("blocked", point)
    assert wrong.reason


@requirement("handoff.autonomy.evaluation-order")
def test_an_earlier_stage_is_never_overruled_by_a_later_one() -> None:
    everything = {"read": ["*"], "write": ["*"], "command": ["*"], "network": ["*"]}
    allowed = agent(level=3, allow=everything)
    both = agent(level=3, allow=everything, deny={"write": ["src/*"]})
    lists = agent(level=3, allow={"write": ["docs"]})
    bare = agent(maxRisk="low")

    def stage(who: Agent, subject: str, calls: int = 0) -> tuple[str, str]:
        ruled = asked(who, "write", subject, calls=calls)
        return ruled.outcome, ruled.stage

    assert stage(allowed, "../outside") == ("blocked", "security")
    assert stage(allowed, ".git/config") == ("blocked", "security")
    assert stage(allowed, ".") == ("blocked", "security")
    assert stage(both, "src/api.py") == ("blocked", "explicit_deny")
    assert stage(allowed, "src/api.py", calls=10_000) == ("proceed", "explicit_allow")
    assert stage(agent(level=3), "src/api.py", calls=10_000) == ("blocked", "limits")
    assert stage(agent(level=3), "src/api.py") == ("proceed", "limits")
    assert stage(lists, "docs/a/b.md") == ("proceed", "explicit_allow")
    assert stage(lists, "src/api.py") == ("blocked", "default_deny")
    assert stage(bare, "src/api.py") == ("blocked", "default_deny")
    assert stage(agent(level=0), "src/api.py") == ("blocked", "default_deny")
    assert stage(Agent(id="ada"), "src/api.py") == ("proceed", "undeclared")
    assert stage(Agent(id="ada"), "/etc/passwd") == ("blocked", "security")


@pytest.mark.parametrize(
    ("address", "outcome"),
    [
        ("http://169.254.169.254/latest", "blocked"),
        ("http://user@169.254.169.254:80/", "blocked"),
        ("[fd00:ec2::254]:80", "blocked"),
        ("METADATA.google.internal", "blocked"),
        ("pypi.org", "proceed"),
        ("https://PyPI.org:443/simple", "proceed"),
        ("pypi.org.evil.example", "blocked"),
        ("https://evil.example/pypi.org", "blocked"),
    ],
)
def test_a_host_is_recognised_in_any_spelling(address: str, outcome: str) -> None:
    assert asked(agent(level=3, allow={"network": ["pypi.org"]}), "network", address).outcome == outcome


def test_near_a_limit_there_is_a_warning() -> None:
    assert asked(agent(level=2), "files", amount=23).outcome == "proceed"
    near = asked(agent(level=2), "files", amount=24)
    assert near.outcome == "proceed_with_warnings"
    assert "24 of the 30 files" in near.warnings[0]


def test_a_run_may_take_the_shorter_of_both_limits() -> None:
    own = {"id": "ada", "maxExecutionTime": "30m"}
    cases = [
        ({"id": "ada"}, None),
        (own, 30),
        ({"id": "ada", "autonomy": {"level": 0}}, 10),
        (own | {"autonomy": {"level": 0}}, 10),
        (own | {"autonomy": {"level": 2}}, 30),
    ]
    for given, minutes in cases:
        (found,) = chart_of(agents=[given]).agents
        assert run_limit_ms(found) == (None if minutes is None else minutes * 60_000)


def test_work_beyond_an_agents_autonomy_is_refused_with_what_it_needs_and_what_there_is() -> None:
    chart = chart_of(agents=[{"id": "ada", "autonomy": {"level": 1, "maxRisk": "low"}}, {"id": "bob"}])
    refusal = may_take(chart, "ada", level=2, risk="medium")
    assert refusal is not None
    assert refusal.details["required"] == {"level": 2, "risk": "medium"}
    assert refusal.details["available"] == {"level": 1, "risk": "low"}
    assert "level is 1" in refusal.message
    assert may_take(chart, "ada", level=1, risk="low") is None
    assert may_take(chart, "bob", level=3, risk="high") is None
    assert may_take(chart, "nobody", level=3, risk="high") is None
    assert may_take(None, "ada", level=3, risk="high") is None


@pytest.mark.parametrize(
    "autonomy", [{"deny": {"write": [""]}}, {"allow": {"fly": ["x"]}}, {"deny": {"read": ["a\nb"]}}]
)
def test_what_is_no_permission_is_reported_by_the_check_of_the_chart(autonomy: dict[str, Any]) -> None:
    judged = validate_chart({"agents": [{"id": "ada", "autonomy": autonomy}]})
    assert any("autonomy" in finding.where and "ada" in finding.detail + finding.where for finding in judged.findings)
