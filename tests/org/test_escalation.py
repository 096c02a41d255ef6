"""Whom an agent turns to: its own target, then the chain, at most three steps and never in a circle."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from aof.org.chart import escalation_chain
from aof.org.model import HUMAN
from tests.support.team import chart_of


def agents(**targets: str | None) -> list[dict[str, Any]]:
    return [{"id": name} | ({"escalatesTo": target} if target else {}) for name, target in targets.items()]


@pytest.mark.parametrize(
    ("parts", "asked"),
    [
        ({"agents": agents(a=None)}, ()),
        ({"agents": agents(a="b", b="c", c=None)}, ("b", "c")),
        ({"agents": agents(a="b", b="c", c="d", d="e", e=None)}, ("b", "c", "d")),
        ({"agents": agents(a="b", b="a")}, ("b",)),
        ({"agents": agents(a="b", b=None), "escalation": ["human"]}, ("b", "human")),
        ({"agents": agents(a="human", b=None), "escalation": ["b"]}, ("human",)),
        ({"agents": agents(a="nobody"), "escalation": ["human"]}, ("human",)),
        ({"agents": agents(a=None), "escalation": ["reviewer", "architect", "human"]}, ("human",)),
    ],
)
def test_the_way_up_goes_over_own_targets_and_then_the_chain(parts: dict[str, Any], asked: tuple[str, ...]) -> None:
    assert escalation_chain(chart_of(**parts), "a") == asked


def test_a_role_stands_for_its_first_active_holder_that_was_not_asked_yet() -> None:
    chart = chart_of(
        agents=[{"id": "a", "roles": ["rev"]}, {"id": "off", "active": False}, {"id": "b"}, {"id": "c"}],
        roles={"rev": {"agents": ["off", "b"]}, "arch": {"agents": ["b", "c"]}},
        escalation=["rev", "arch", "human"],
    )
    assert escalation_chain(chart, "a") == ("b", "c", "human")
    assert escalation_chain(chart, "b") == ("a", "c", "human")


@given(st.dictionaries(st.sampled_from("abcde"), st.sampled_from("abcde") | st.just(HUMAN), min_size=1))
def test_nobody_is_asked_twice_and_a_person_is_the_last(targets: dict[str, str]) -> None:
    chart = chart_of(agents=agents(**targets), escalation=["a", "b", "human"])
    for name in targets:
        asked = escalation_chain(chart, name)
        assert len(set(asked)) == len(asked) <= 3
        assert name not in asked
        assert HUMAN not in asked[:-1]
