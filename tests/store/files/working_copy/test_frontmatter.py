"""A person's frontmatter, read strictly and changed byte by byte only where it must be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aof.errors import UnreadableTask
from aof.store.files.frontmatter import read, rewrite, same
from tests.support.strategies import json_values


def test_yaml_words_and_dates_stay_text() -> None:
    assert read("a: yes\nb: 2026-01-01\nc: 1:30\nd: 1_000\ne: off\n") == {
        "a": "yes",
        "b": "2026-01-01",
        "c": "1:30",
        "d": "1_000",
        "e": "off",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: b & c *d* !e", "b & c *d* !e"),
        ("a: '&b *c !d <<: [['", "&b *c !d <<: [["),
        ('a: "&b *c !d [[{ # e"', "&b *c !d [[{ # e"),
        ("a: |\n  &b\n  *c* [\n  # d\n", "&b\n*c* [\n# d\n"),
        ("a: >2-\n   &b\n  !c\n", " &b\n!c"),
        ("a: b\n  *c*\n  !d", "b *c* !d"),
        ("a:\n  b\n  &c", "b &c"),
        ("a: b # &c *d !e [", "b"),
        ("a:\n- b\n  *c*\n- |\n *d*\n", ["b *c*", "*d*\n"]),
        ("a:\n- k: |\n   *d*\n  l: '<<'\n", [{"k": "*d*\n", "l": "<<"}]),
        ("a: [b &c, 'd'\n , e\n  *f]", ["b &c", "d", "e *f"]),
        ("a: [\n  1,\n]", [1]),
        ("a: {'<<': 1}", {"<<": 1}),
        ('a: "\\ud83d\\ude00 \\\\ud83d\\\\ude00"', "\U0001f600 \\ud83d\\ude00"),
        ("a: 18446744073709551615", 2**64 - 1),
        ("a: x#y", "x#y"),
        ("a: " + "[ " * 31 + "]" * 31, eval("[" * 31 + "]" * 31)),
    ],
)
def test_signs_inside_a_text_are_text(text: str, value: Any) -> None:
    assert read(text) == {"a": value}


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 1",
        "&x a: 1",
        "a: [1, &x 2]",
        "a: *x",
        "a: {b: *x}",
        "a:\n- *x",
        "a: !x 1",
        "a: !!str 1",
        "!x a: 1",
        "a: ! b",
        "<<: {a: 1}",
        "a: {<<: {b: 1}}",
        "a:\n  <<: {b: 1}",
        "a:\n  - k: |\n    *x",
        "a: 1\na: 2",
        "a: 1 # c\n'a': 2",
        "a: {b: 1, b: 2}",
        "? a\n: b",
        "1: 2",
        "true: 1",
        "~: 1",
        "a: {1: 2}",
        "- a",
        "a",
        "[1]",
        "a: 1\n...\nb: 2",
        "%YAML 1.2",
        "--- a",
        "a: [1,\nb: 2\n]",
        'a: "x\ny"',
        "a: [",
        "a: ]",
        "a: 'b",
        "a: .inf",
        "a: " + "9" * 50,
        "a: 18446744073709551616",
        "a: [b]]",
        "a: @b",
        "a: \x07",
        "a: b\u2028c: d",
        "a: b\x85c: d",
        "a: b\rc: d",
        "  a: 1\n",
        "a: " + "- " * 40 + "1",
        "a:\n " + "- " * 40 + "1",
        "a: " + "[ " * 33 + "]" * 33,
        "a: " + "[" * 60_000,
        "a: " + "{b: " * 15_000,
        "a: " + "x" * 66_000,
        "".join(" " * depth + "a:\n" for depth in range(40)),
        "{a: 1}\nb: 2",
        "a: b: c",
        "a: 1\n  b: 2",
    ],
)
def test_what_is_not_taken_is_refused(text: str) -> None:
    with pytest.raises(UnreadableTask) as refused:
        read(text)
    assert refused.value.hint


LAYOUT = """# first

a: 1   # one
b:  # two
  - x # three
  # four

  - y

# five
c: |
  text
  # no comment

'd' : "e"
  # six
f: 2 # seven
"""


def test_nothing_changes_when_no_value_does() -> None:
    assert rewrite(LAYOUT, read(LAYOUT)) == LAYOUT


def test_only_what_changed_is_written_and_comments_stay() -> None:
    values = {"a": 2, "b": ["z"], "c": "new", "d": "e", "g": {"h": None}}
    assert (
        rewrite(LAYOUT, values)
        == """# first

a: 2   # one
b: ["z"]  # two
# three
# four

# five
c: "new"

'd' : "e"
  # six
# seven
g: {"h":null}
"""
    )


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("a: |\n  text\nb: 1\n  # c\n", "a: |\n  text\n# c\n"),
        ("a: |+\n  text\nb: x y\n\n# c\n\n", "a: |+\n  text\n# c\n\n"),
        ("a: >\nb: 'x' # c\n", "a: >\n# c\n"),
    ],
)
def test_what_outlives_a_key_does_not_become_part_of_the_text_before(layout: str, expected: str) -> None:
    before = read(layout)["a"]
    assert rewrite(layout, {"a": before}) == expected
    assert read(expected) == {"a": before}


def test_a_mapping_in_braces_stays_until_something_changes() -> None:
    layout = "# a\n{b: 1, # c\n 'd': [2,\n3] }\n# e\n"
    assert rewrite(layout, {"b": 1, "d": [2, 3]}) == layout
    assert rewrite(layout, {"b": 1, "d": 4}) == "# a\n# c\n# e\nb: 1\nd: 4\n"


def test_line_ends_are_those_of_the_person() -> None:
    assert rewrite("a: x # c\r\nb: y\r\n", {"a": "z", "b": "y", "d": 1}) == 'a: "z" # c\r\nb: y\r\nd: 1\r\n'


def test_a_last_line_without_its_end_gets_one_before_more_follows() -> None:
    assert rewrite("a: x", {"a": "x", "b": 1}) == "a: x\nb: 1\n"
    assert rewrite("# c", {"b": 1}) == "# c\nb: 1\n"
    assert rewrite("", {"b": 1}) == "b: 1\n"


def test_equal_means_equal_in_json() -> None:
    assert same({"a": 1, "b": (2,)}, {"b": [2], "a": 1})
    assert not same([1], [True])
    assert not same(1, 1.0)


_VALUES = st.sampled_from(
    [
        "plain text",
        "'it''s'",
        '"a \\" # b"',
        "12",
        "~",
        "",
        "a & b",
        "[1, 'a#b', {c: d}]",
        "{e: [f, g], h: }",
        "|\n  one\n  # two\n\n  three",
        ">-\n   folded\n   *text*",
        "\n  - a\n  -  b: c\n     d: |\n      e\n  - [f]",
        "\n- a\n- b",
        "\n  k: v\n  l:\n    m: 'n'",
        "several\n  lines *of\n\n  text",
        "[\n  a,\n  b\n]",
        '"x\n  y"',
    ]
)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A frontmatter as people write it, and its comments."""
    comments: list[str] = []

    def comment() -> str:
        comments.append(f"# comment {len(comments)} \"'[{{&")
        return comments[-1]

    def trivia() -> str:
        kinds = draw(st.lists(st.sampled_from(["\n", "  \n", "#", "  #"]), max_size=2))
        return "".join(f"{kind[:-1]}{comment()}\n" if "#" in kind else kind for kind in kinds)

    pieces = [trivia()]
    for key in draw(st.lists(st.sampled_from("abcdefg"), unique=True, max_size=5)):
        written = draw(st.sampled_from([key, f"'{key}'", f'"{key}" ']))
        first, *rest = draw(_VALUES).split("\n")
        beside = f" {comment()}" if not first.startswith(('"x', "several")) and draw(st.booleans()) else ""
        inside = f"  {comment()}\n" if not first and rest and draw(st.booleans()) else ""
        pieces.append(f"{written}: {first}{beside}\n{inside}" + "".join(f"{line}\n" for line in rest))
        gap = trivia()
        pieces.append(gap.replace("  #", "#"))  # an indented one could belong to a text of several lines
    return "".join(pieces), comments


@given(
    layouts(), st.dictionaries(st.sampled_from("abcdefghi"), json_values(), max_size=5), st.sets(st.sampled_from("abc"))
)
@settings(max_examples=150, deadline=None)
def test_a_rewritten_layout_says_the_new_values_and_keeps_every_comment(
    written: tuple[str, list[str]], changes: dict[str, Any], gone: set[str]
) -> None:
    layout, comments = written
    old = read(layout)
    assert rewrite(layout, old) == layout
    values = {key: value for key, value in {**old, **changes}.items() if key not in gone}
    new = rewrite(layout, values)
    assert same(read(new), values)
    assert [comment for comment in comments if f"{comment}\n" not in new] == []
    assert rewrite(new, values) == new
    for line in layout.splitlines():
        if line[:1] in values.keys() - changes.keys():
            assert f"{line}\n" in new
