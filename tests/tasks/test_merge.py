"""Three-way merges: both sides' changes where they do not meet, the log where they do."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from aof.tasks.manual_edits import merge_fields, merge_text

FIELDS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2))
LINES = st.lists(st.sampled_from(["one\n", "two\n", "three\n", "four\n"]), max_size=8).map("".join)


def test_what_only_the_person_changed_is_taken() -> None:
    assert merge_fields({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 3, "b": 1}) == ({"a": 3}, ())


def test_what_both_changed_differently_is_a_conflict() -> None:
    assert merge_fields({"a": 1}, {"a": 2}, {"a": 3}) == ({}, ("a",))


def test_what_both_changed_alike_is_neither() -> None:
    assert merge_fields({"a": 1}, {"a": 2}, {"a": 2}) == ({}, ())


def test_what_the_person_took_away_or_added_is_seen() -> None:
    assert merge_fields({"a": 1}, {"a": 1}, {"b": 2}) == ({"a": None, "b": 2}, ())


@given(base=FIELDS, ours=FIELDS, theirs=FIELDS)
def test_a_field_is_theirs_ours_or_in_conflict(
    base: dict[str, int], ours: dict[str, int], theirs: dict[str, int]
) -> None:
    changes, conflicts = merge_fields(base, ours, theirs)
    assert not set(changes) & set(conflicts)
    for name in base.keys() | ours.keys() | theirs.keys():
        result = changes.get(name, ours.get(name)) if name in changes else ours.get(name)
        if base.get(name) == ours.get(name):
            assert result == theirs.get(name)
        else:
            assert result == ours.get(name)
            assert (name in conflicts) == (theirs.get(name) not in (base.get(name), ours.get(name)))


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n", "A\nb\nC\n"),
        ("a\nb\nc\n", "a\nb\nc\nlog\n", "A\nb\nc\n", "A\nb\nc\nlog\n"),
        ("a\nb\nc\n", "a\nb\nc\nlog\n", "b\nc\n", "b\nc\nlog\n"),
        ("a\nb\nc\nd\n", "X\nb\nc\nlog\n", "X\nb\nc\nd\n", "X\nb\nc\nlog\n"),
        ("a\nb\nc\nd\n", "X\nb\nc\nlog\n", "X\nb2\nc\nd\n", None),
        ("a\n", "b\n", "c\n", None),
        ("a\nb\n", "A\nb\n", "a\nB\n", None),
        ("", "ours\n", "theirs\n", None),
    ],
)
def test_texts_merge_by_lines(base: str, ours: str, theirs: str, merged: str | None) -> None:
    assert merge_text(base, ours, theirs) == merged


@given(base=LINES, theirs=LINES)
def test_a_text_that_one_side_left_alone_is_the_other_sides(base: str, theirs: str) -> None:
    assert merge_text(base, base, theirs) == theirs
    assert merge_text(base, theirs, base) == theirs
    assert merge_text(base, theirs, theirs) == theirs


@given(base=LINES, ours=LINES, theirs=LINES)
def test_a_merge_does_not_depend_on_the_side(base: str, ours: str, theirs: str) -> None:
    assert merge_text(base, ours, theirs) == merge_text(base, theirs, ours)


@given(head=LINES, tail=LINES, first=LINES, last=LINES)
def test_changes_that_lie_apart_are_both_kept(head: str, tail: str, first: str, last: str) -> None:
    middle = "fixed 1\nfixed 2\nfixed 3\n"
    merged = merge_text(head + middle + tail, first + middle + tail, head + middle + last)
    assert merged == first + middle + last


def test_large_texts_are_merged_in_time() -> None:
    base = "same\n" * 20_000
    assert merge_text(base, base + "log\n", "mine\n" + base) == "mine\n" + base + "log\n"
    assert merge_text(base, ("same\n" * 9_000 + "x\n" * 9_000) + "log\n", "y\n" * 15_000) is None
