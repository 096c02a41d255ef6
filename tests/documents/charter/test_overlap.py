"""In which paths patterns of files meet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.documents.charter_rules import common_path, pattern_takes

_SEGMENT = st.text("ab*?", min_size=1, max_size=4) | st.just("**")
PATTERNS = st.lists(_SEGMENT, min_size=1, max_size=4).map("/".join)
PATHS = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("one", "other", "met"),
    [
        ("src/**", "src/api/*", "src/api/x"),
        ("src/*", "src/api/*", None),
        ("src", "src/api/*", "src/api/x"),
        ("docs/", "docs/guide.md", "docs/guide.md"),
        ("*.md", "docs/*.md", None),
        ("**/*.md", "docs/a*", "docs/a.md"),
        ("src/a*c", "src/*bc", "src/abc"),
        ("src/a", "src/b", None),
        ("", "src", None),
    ],
)
def test_two_patterns_meet_in_a_path(one: str, other: str, met: str | None) -> None:
    assert common_path(one, other) == met


@given(PATTERNS, PATTERNS)
def test_the_path_in_which_two_patterns_meet_is_taken_by_both(one: str, other: str) -> None:
    met = common_path(one, other)
    if met is not None:
        assert pattern_takes(one, met)
        assert pattern_takes(other, met)
    assert (met is None) == (common_path(other, one) is None)


@given(PATTERNS, PATTERNS, PATHS)
def test_no_path_of_both_is_overlooked(one: str, other: str, path: str) -> None:
    if pattern_takes(one, path) and pattern_takes(other, path):
        assert common_path(one, other) is not None


def test_a_pattern_made_to_be_slow_is_not() -> None:
    assert common_path("a*" * 99 + "b", "*a" * 99 + "c") is None
    assert common_path("/".join(["**", "a"] * 40), "/".join(["**", "b"] * 40)) is not None
