"""Conditions are data: each operator says yes and no, and nothing is ever run."""

from __future__ import annotations

from typing import Any

import pytest

from aof.workflows.conditions import DEPTH, OPERATORS, condition_holds, condition_problems
from aof.workflows.templates import validate_template
from tests.support.requirements import requirement
from tests.support.workflows import hop

FACTS: dict[str, Any] = {
    "priority": "high",
    "routing": {"tags": ["api"]},
    "metadata": {"risk": 3, "flag": True, "name": "b"},
    "hops": {"test": {"status": "done", "tests": {"failed": 0}}},
}


def _is(operator: str, field: str, value: Any) -> dict[str, Any]:
    return {operator: {"field": field, "value": value}}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "eq": (_is("eq", "priority", "high"), _is("eq", "priority", "low")),
    "neq": (_is("neq", "metadata.absent", 1), _is("neq", "metadata.risk", 3)),
    "gt": (_is("gt", "metadata.risk", 2), _is("gt", "metadata.risk", 3)),
    "gte": (_is("gte", "metadata.risk", 3), _is("gte", "metadata.absent", 0)),
    "lt": (_is("lt", "metadata.name", "c"), _is("lt", "metadata.risk", "9")),
    "lte": (_is("lte", "hops.test.tests.failed", 0), _is("lte", "metadata.flag", 1)),
    "in": (_is("in", "priority", ["high", "critical"]), _is("in", "metadata.flag", [1])),
    "has_tag": ({"has_tag": "api"}, {"has_tag": "ap"}),
    "hop_status": (
        {"hop_status": {"hop": "test", "status": ["done", "skipped"]}},
        {"hop_status": {"hop": "test", "status": "failed"}},
    ),
    "and": (
        {"and": [{"has_tag": "api"}, _is("gt", "metadata.risk", 0)]},
        {"and": [{"has_tag": "api"}, {"has_tag": "x"}]},
    ),
    "or": ({"or": [{"has_tag": "x"}, {"has_tag": "api"}]}, {"or": [{"has_tag": "x"}]}),
    "not": ({"not": {"has_tag": "x"}}, {"not": {"has_tag": "api"}}),
}


@requirement("tools.workflow.conditions-are-data")
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_says_yes_and_no(operator: str) -> None:
    yes, no = CASES[operator]
    assert not [*condition_problems(yes), *condition_problems(no)]
    assert condition_holds(yes, FACTS)
    assert not condition_holds(no, FACTS)


@requirement("tools.workflow.conditions-are-data")
@pytest.mark.parametrize(
    "condition",
    [
        "__import__('pathlib').Path('ran').touch()",
        "metadata.risk > 3",
        ["has_tag", "api"],
        {"eval": "1 + 1"},
        {"eq": "priority"},
        {"eq": {"field": "__class__.__mro__", "value": 1}},
        {"and": []},
        {"and": [{"exec": "x"}]},
        {"hop_status": {"hop": "a", "status": "perfect"}},
        {"in": {"field": "priority", "value": "high"}},
        {"has_tag": 3},
        {"eq": {"field": "priority", "value": 1}, "neq": {"field": "priority", "value": 1}},
    ],
)
def test_what_is_no_condition_is_refused_when_the_workflow_is_loaded(condition: Any, tmp_path: Any) -> None:
    found = validate_template({"name": "flow", "hops": [hop("a"), hop("b", "a", condition=condition)]})
    assert found.template is None
    assert [finding.code for finding in found.findings] == ["bad_condition"]
    assert found.findings[0].at[:3] == ("hops", 1, "condition")
    assert found.findings[0].fix
    assert not [*tmp_path.iterdir()]


def test_a_condition_is_bounded_in_depth_and_size() -> None:
    deep: dict[str, Any] = {"has_tag": "x"}
    for _ in range(DEPTH):
        deep = {"not": deep}
    assert [*condition_problems(deep)]
    assert [*condition_problems({"or": [{"has_tag": "x"}] * 100})]


def test_a_condition_asks_only_for_hops_that_are_over_by_then() -> None:
    asks = {"hop_status": {"hop": "b", "status": "done"}}
    for hops in ([hop("a", condition=asks), hop("b", "a")], [hop("a", condition={"not": asks})]):
        assert [one.code for one in validate_template({"name": "flow", "hops": hops}).findings] == ["bad_condition"]
    field = {"eq": {"field": "hops.c.outcome", "value": "done"}}
    assert validate_template({"name": "flow", "hops": [hop("a"), hop("b", "a", condition=field)]}).template is None
