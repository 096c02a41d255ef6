"""What is wrong with a template is named with its place and what helps."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from aof.workflows.templates import validate_template
from tests.support.strategies import json_values
from tests.support.workflows import DIAMOND, REVIEW, hop, templates


@pytest.mark.parametrize(
    ("hops", "code", "at"),
    [
        ([hop("a"), hop("a")], "duplicate_id", ("hops", 1, "id")),
        ([hop("A b")], "bad_id", ("hops", 0, "id")),
        ([hop("../x")], "bad_id", ("hops", 0, "id")),
        ([hop("a"), hop("b", "aa")], "unknown_hop", ("hops", 1, "dependsOn", 0)),
        ([hop("a"), hop("b", "a", "a")], "duplicate_edge", ("hops", 1, "dependsOn", 1)),
        ([hop("a"), hop("b", "c"), hop("c", "b")], "cycle", ("hops", 1, "dependsOn")),
        ([hop("a"), hop("b", "b"), hop("c", "b")], "unreachable", ("hops", 2, "dependsOn")),
        ([hop("a", "b"), hop("b", "a")], "no_start", ("hops",)),
        ([], "no_hops", ("hops",)),
        ([hop("a", timeout="2 hours")], "bad_duration", ("hops", 0, "timeout")),
        ([hop("a", escalateTo="lead")], "no_timeout", ("hops", 0, "escalateTo")),
        ([hop("a", canReject=True)], "nothing_to_reject", ("hops", 0, "canReject")),
        ([hop("a", role="a b")], "bad_name", ("hops", 0, "role")),
        ([hop(f"h{number}") for number in range(21)], "too_many_hops", ("hops",)),
        ([hop("a", colour="red")], "unknown_key", ("hops", 0, "colour")),
        ([{"id": "a"}], "missing_key", ("hops", 0)),
        ([hop("a", joinType="some")], "wrong_type", ("hops", 0, "joinType")),
    ],
)
def test_each_problem_has_a_code_a_place_and_a_remedy(hops: Any, code: str, at: tuple[Any, ...]) -> None:
    found = validate_template({"name": "flow", "hops": hops})
    assert found.template is None
    one = next(finding for finding in found.findings if finding.code == code)
    assert one.at == at
    assert one.detail
    assert one.fix


def test_a_cycle_is_shown_from_hop_to_hop() -> None:
    found = validate_template({"name": "flow", "hops": [hop("s"), hop("a", "c"), hop("b", "a"), hop("c", "b")]})
    assert "a → c → b → a" in found.findings[0].detail


def test_the_name_is_the_files_name() -> None:
    assert validate_template(REVIEW, "review").template is not None
    assert [finding.code for finding in validate_template(REVIEW, "other").findings] == ["other_name"]


def test_a_strategy_of_who_cannot_reject_is_a_warning() -> None:
    found = validate_template({"name": "flow", "hops": [hop("a"), hop("b", "a", rejectionStrategy="predecessors")]})
    assert found.template is not None
    assert [finding.severity for finding in found.findings] == ["warning"]


def test_sound_templates_are_found_sound() -> None:
    assert validate_template(DIAMOND).findings == validate_template(REVIEW).findings == ()


@given(templates())
def test_every_drawn_template_is_sound(document: dict[str, Any]) -> None:
    assert validate_template(document).template is not None


@settings(max_examples=200)
@given(
    st.fixed_dictionaries(
        {
            "name": json_values(),
            "hops": st.lists(
                st.dictionaries(
                    st.sampled_from(["id", "role", "dependsOn", "condition", "timeout", "canReject"]),
                    json_values(),
                    max_size=4,
                ),
                max_size=3,
            ),
        }
    )
)
def test_any_document_is_judged_without_an_error(document: dict[str, Any]) -> None:
    checked = validate_template(document)
    assert checked.template is not None or checked.findings
