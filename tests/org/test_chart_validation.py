"""The lint: every problem is named with its place and its fix, and only what is unusable keeps a chart from use."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel.findings import Finding
from aof.org.chart import validate_chart
from tests.support.requirements import requirement
from tests.support.team import CHART

ADA = {"id": "ada"}


def only(document: Any) -> Finding:
    """The one thing that is wrong with the document."""
    findings = validate_chart(document).findings
    assert len(findings) == 1, findings
    return findings[0]


def with_agent(**given: Any) -> dict[str, Any]:
    return {"agents": [ADA | given]}


@pytest.mark.parametrize(
    ("document", "code", "where", "words"),
    [
        ({"agent": []}, "unknown_key", "agent", "did you mean 'agents'?"),
        (with_agent(concurency=2), "unknown_key", "agents[0].concurency", "did you mean 'concurrency'?"),
        (with_agent(zzz=2), "unknown_key", "agents[0].zzz", "use one of: id, name"),
        ({"agents": [{"name": "x"}]}, "missing_key", "agents[0]", "add 'id: …'"),
        ({"agents": {"ada": {}}}, "wrong_type", "agents", "give a list"),
        (with_agent(name=7), "wrong_type", "agents[0].name", "put it in quotes"),
        (with_agent(active="no"), "wrong_type", "agents[0].active", "true or false"),
        (with_agent(concurrency=True), "wrong_type", "agents[0].concurrency", "a whole number"),
        (with_agent(runner={"kind": "shell"}), "wrong_type", "agents[0].runner.kind", "one of: "),
        (with_agent(capabilities=[7]), "wrong_type", "agents[0].capabilities[0]", "give"),
        (with_agent(id="a b"), "bad_name", "agents[0].id", "letters, digits"),
        ({"agents": [ADA, ADA]}, "duplicate_id", "agents[1].id", "its own id"),
        ({"agents": [ADA], "teams": [{"id": "t"}, {"id": "t"}]}, "duplicate_id", "teams[1].id", "its own id"),
        (with_agent(capabilities=["x", {"id": "x"}]), "duplicate_id", "agents[0].capabilities[1]", "keep one"),
        (with_agent(concurrency=0), "bad_value", "agents[0].concurrency", "active: false"),
        (with_agent(autonomy={"level": 4}), "bad_value", "agents[0].autonomy.level", "0, 1, 2 or 3"),
        (
            with_agent(autonomy={"limits": {"toolCalls": -1}}),
            "bad_value",
            "agents[0].autonomy.limits.toolCalls",
            "0 or",
        ),
        (
            with_agent(capabilities=[{"id": "x", "proficiency": 1.5}]),
            "bad_value",
            "agents[0].capabilities[0].proficiency",
            "0.0 to 1.0",
        ),
        (with_agent(maxExecutionTime="3x"), "bad_duration", "agents[0].maxExecutionTime", "30m"),
        (with_agent(runner={"grace": "soon"}), "bad_duration", "agents[0].runner.grace", "30m"),
        (with_agent(runner={"kind": "process"}), "empty_command", "agents[0].runner", "command: ["),
        (with_agent(runner={"kind": "process", "command": [" "]}), "empty_command", "agents[0].runner", "command: ["),
        (with_agent(runner={"command": ["x"]}), "unused_command", "agents[0].runner.command", "kind: process"),
        (with_agent(runner={"kind": "a2a"}), "missing_url", "agents[0].runner", "url: "),
        (
            {"agents": [ADA], "routing": [{"tags": [], "to": {"agent": "ada"}}]},
            "never_matches",
            "routing[0].tags",
            "tag",
        ),
        ({"agents": [ADA], "routing": [{"tags": ["x"], "to": {}}]}, "bad_target", "routing[0].to", "exactly one"),
        ({"schemaVersion": 2}, "unknown_version", "schemaVersion", "newer"),
        ({"schemaVersion": "1"}, "unknown_version", "schemaVersion", "newer"),
        ([], "wrong_type", "the document", "a mapping"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_fix(document: Any, code: str, where: str, words: str) -> None:
    finding = only(document)
    assert (finding.code, finding.severity, finding.where) == (code, "error", where)
    assert words in finding.fix
    assert validate_chart(document).chart is None


@pytest.mark.parametrize(
    ("more", "code", "where", "words"),
    [
        ({"teams": [{"id": "t", "lead": "adda"}]}, "unknown_agent", "teams[0].lead", "did you mean 'ada'?"),
        ({"teams": [{"id": "t", "orchestrator": "zoe"}]}, "unknown_agent", "teams[0].orchestrator", "use one of"),
        ({"roles": {"dev": {"agents": ["ada", "bb"]}}}, "unknown_agent", "roles.dev.agents[1]", "did you mean 'bob'?"),
        ({"roles": {"dev": {}}}, "unheld_role", "roles.dev", "list an active agent"),
        ({"roles": {"dev": {"agents": ["off"]}}}, "unheld_role", "roles.dev", "list an active agent"),
        ({"teams": [{"id": "t", "lead": "off"}]}, "inactive_lead", "teams[0].lead", "active agent"),
        ({"routing": [{"tags": ["x"], "to": {"role": "q"}}]}, "unknown_role", "routing[0].to.role", "add the role"),
        ({"routing": [{"tags": ["x"], "to": {"team": "q"}}]}, "unknown_team", "routing[0].to.team", "add the team"),
        ({"routing": [{"tags": ["x"], "to": {"agent": "boob"}}]}, "unknown_agent", "routing[0].to.agent", "'bob'"),
        ({"escalation": ["ada", "bob", "off", "human"]}, "escalation_depth", "escalation", "keep 3"),
        ({"escalation": ["ada", "ada"]}, "duplicate_id", "escalation[1]", "keep one"),
    ],
)
def test_what_leads_nowhere_is_named_and_the_chart_used_all_the_same(
    more: dict[str, Any], code: str, where: str, words: str
) -> None:
    document = {"agents": [ADA, {"id": "bob"}, {"id": "off", "active": False}]} | more
    finding = only(document)
    assert (finding.code, finding.severity, finding.where) == (code, "warning", where)
    assert words in finding.fix
    assert validate_chart(document).chart is not None


@pytest.mark.parametrize(
    ("rules", "dead"),
    [
        ([(["x"], 10), (["x"], 1)], 1),
        ([(["x"], 1), (["x"], 1)], 1),
        ([(["x"], 1), (["x", "y"], 1)], 1),
        ([(["x", "y"], 1), (["x"], 5)], 0),
        ([(["x", "y"], 5), (["x"], 1)], None),
        ([(["x"], 1), (["x", "y"], 2)], None),
        ([(["x"], 1), (["y"], 1)], None),
    ],
)
def test_a_rule_that_another_one_always_precedes_can_never_match(rules: list[Any], dead: int | None) -> None:
    routing = [{"tags": tags, "to": {"agent": "ada"}, "weight": weight} for tags, weight in rules]
    findings = validate_chart({"agents": [ADA], "routing": routing}).findings
    assert [(finding.code, finding.where) for finding in findings] == (
        [("never_matches", f"routing[{dead}]")] if dead is not None else []
    )


def test_a_circle_of_escalations_is_told_once_with_its_way() -> None:
    chain = {"a": "b", "b": "c", "c": "a", "d": "a"}
    finding = only({"agents": [{"id": who, "escalatesTo": to} for who, to in chain.items()]})
    assert (finding.code, finding.where) == ("escalation_cycle", "agents[0].escalatesTo")
    assert "a → b → c → a" in finding.detail


def test_an_escalation_that_takes_more_than_three_steps_is_told() -> None:
    chain = {"a": "b", "b": "c", "c": "d", "d": "human"}
    finding = only({"agents": [{"id": who, "escalatesTo": to} for who, to in chain.items()]})
    assert (finding.code, finding.where) == ("escalation_depth", "agents[0].escalatesTo")
    assert "4 steps" in finding.detail


def test_a_role_of_the_chain_that_nobody_has_is_only_a_note() -> None:
    finding = only({"agents": [ADA], "escalation": ["architect", "human"]})
    assert (finding.code, finding.severity) == ("unheld_role", "note")


def test_an_agent_may_bring_a_role_into_being_but_a_slip_of_the_pen_is_told() -> None:
    roles = {"developer": {"agents": ["ada"]}}
    assert validate_chart({"agents": [ADA | {"roles": ["writer"]}], "roles": roles}).findings == ()
    assert only({"agents": [ADA | {"roles": ["develper"]}], "roles": roles}).code == "unknown_role"


def test_all_problems_are_told_at_once() -> None:
    findings = validate_chart({"agents": [{"id": "a", "x": 1, "active": 2}, {"name": 3}], "extra": 1}).findings
    assert len(findings) == 5


@requirement("handoff.autonomy.org-chart-fields")
def test_levels_and_risks_outside_the_table_are_reported_with_the_agents_id() -> None:
    levels = [{"id": f"l{level}", "autonomy": {"level": level, "maxRisk": "high"}} for level in range(4)]
    assert validate_chart({"agents": [*levels, ADA]}).findings == ()
    for wrong in ({"level": 4}, {"maxRisk": "extreme"}, {"level": -1}):
        finding = only({"agents": [*levels, ADA | {"autonomy": wrong}]})
        assert "'ada'" in finding.detail
        assert finding.severity == "error"


def test_an_older_version_is_brought_up_to_date_step_by_step() -> None:
    def renamed(document: dict[str, Any]) -> dict[str, Any]:
        return {"agents": document["people"]}

    def numbered(document: dict[str, Any]) -> dict[str, Any]:
        return {"agents": [agent | {"concurrency": 1} for agent in document["agents"]]}

    steps = {1: renamed, 2: numbered}
    chart = validate_chart({"schemaVersion": 1, "people": [ADA]}, steps, newest=3).chart
    assert chart is not None
    assert (chart.schema_version, chart.by_id["ada"].concurrency) == (3, 1)
    assert validate_chart({"schemaVersion": 3, "agents": [ADA]}, steps, newest=3).findings == ()


def test_the_whole_example_has_only_the_note_that_nobody_is_an_architect() -> None:
    document = CHART | {"agents": [agent | {"active": True} for agent in CHART["agents"]]}
    assert [(finding.code, finding.severity) for finding in validate_chart(document).findings] == [
        ("unheld_role", "note")
    ]
