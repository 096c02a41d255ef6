"""The bounds themselves; that every command applies them is shown with the commands."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from aof.kernel import limits as kernel_limits
from tests.support.present import present

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8", exclude_characters="\x00")), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(("size", "code"), [(10, None), (11, "payload_too_large")])
def test_a_text_may_be_exactly_as_long_as_its_limit(size: int, code: str | None) -> None:
    problem = kernel_limits.text("note", "x" * size, 10)
    assert (problem.code if problem else None) == code


@pytest.mark.parametrize("value", ["", " ", "\n", None])
def test_a_blank_text_is_refused_only_where_one_is_required(value: str | None) -> None:
    assert kernel_limits.text("note", value, 10) is None
    assert kernel_limits.text("note", value, 10, required=True) is not None


@pytest.mark.parametrize("value", ["\x00", "a\ud800", 5, ["x"], b"x"])
def test_what_no_text_file_can_hold_is_refused(value: Any) -> None:
    assert kernel_limits.text("note", value, 10) is not None


@pytest.mark.parametrize("char", ["\n", "\r", "\t", "\x0b", "\x0c", "\x1b", "\x7f", "\x85", "\u2028", "\u2029"])
def test_a_line_holds_nothing_that_breaks_one_or_drives_a_terminal(char: str) -> None:
    assert kernel_limits.line("title", f"a{char}b", 10) is not None
    assert kernel_limits.text("body", f"a{char}b", 10) is None


@pytest.mark.parametrize("values", ["abc", None, {"a": 1}, 5])
def test_a_list_is_a_list(values: Any) -> None:
    assert kernel_limits.items("tags", values, 5) is not None


def test_a_choice_names_the_values_that_there_are() -> None:
    problem = present(kernel_limits.choice("priority", "urgent", ("high", "low")))
    assert problem.hint == "priority: one of high, low"


@given(value=JSON)
def test_what_is_accepted_as_data_comes_back_from_json_the_same(value: Any) -> None:
    assert kernel_limits.data("metadata", value) is None
    assert msgspec.json.decode(msgspec.json.encode(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        2**64,
        -(2**63) - 1,
        {1: 2},
        {"a": {1}},
        b"x",
        object(),
        "\ud800",
        {"\ud800": 1},
        {"a": "\x00"},
    ],
)
def test_what_would_come_back_different_is_refused(value: Any) -> None:
    assert kernel_limits.data("metadata", value) is not None


def test_data_has_a_size_and_a_depth() -> None:
    assert present(kernel_limits.data("metadata", ["x" * 50_000])).code == "payload_too_large"
    deep: list[Any] = []
    for _ in range(16):
        deep = [deep]
    assert kernel_limits.data("metadata", deep) is not None
    assert kernel_limits.data("metadata", deep[0]) is None
