"""Lines, headings, tables and fields, as people write them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aof.documents import markdown as documents_markdown

_HOSTILE = st.lists(
    st.sampled_from(
        ["a", "|", "\\", "\n", "\r\n", "<br>", "<br", " ", "\t", "`", "*", ":", "-", "é", "```", "<!--", "-->", "#"]
    ),
    max_size=12,
).map("".join)


@given(st.text())
def test_the_lines_of_a_text_joined_again_are_the_text(text: str) -> None:
    assert "".join(documents_markdown.split_lines(text)) == text


def test_only_a_line_feed_ends_a_line() -> None:
    assert documents_markdown.split_lines("a\x0bb\u2028c\r\nd") == ["a\x0bb\u2028c\r\n", "d"]


@given(st.lists(_HOSTILE, min_size=1, max_size=5))
def test_a_row_gives_back_the_cells_that_it_was_made_from(values: list[str]) -> None:
    whole = documents_markdown.row(values)
    assert "\n" not in whole
    assert documents_markdown.cells(whole) == tuple(documents_markdown.unix(value).strip() for value in values)


def test_a_table_knows_its_lines_and_its_uneven_rows() -> None:
    text = "intro\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n| 3 |\n\nafter\n"
    (table,) = documents_markdown.tables(documents_markdown.scan(text))
    assert (table.header, table.begin, table.end) == (("A", "B"), 3, 7)
    assert [(row.number, row.cells) for row in table.uneven()] == [(6, ("3",))]


def test_code_and_comments_are_no_structure() -> None:
    text = "# a\n```\n# b\n```\n<!--\n# c\n-->\n# d\n"
    found = [
        line.number
        for line in documents_markdown.scan(text)
        if line.kind == "text" and documents_markdown.heading(line.text)
    ]
    assert found == [1, 8]


def test_a_fence_or_comment_that_is_never_closed_hides_nothing_and_is_named() -> None:
    lines = documents_markdown.scan("```\n# a\n<!-- x\n# b\n")
    assert [line.kind for line in lines] == ["text"] * 4
    assert list(documents_markdown.unclosed(lines)) == [1, 3]


def test_the_marks_of_a_failed_merge_are_named_and_an_underline_is_not() -> None:
    merged = "a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"
    assert list(documents_markdown.conflict_marks(documents_markdown.scan(merged))) == [2, 4, 6]
    assert list(documents_markdown.conflict_marks(documents_markdown.scan("Title\n=======\n"))) == []


def test_fields_are_read_in_bold_and_plain_form() -> None:
    assert documents_markdown.bold_field("**Status:** unread ") == ("Status", "unread")
    assert documents_markdown.bold_field("**Status**: unread") == ("Status", "unread")
    assert documents_markdown.bold_field("**bold** text") is None
    assert documents_markdown.plain_field("Changed files: a, b") == ("Changed files", "a, b")
    assert documents_markdown.plain_field("Tests run:") == ("Tests run", "")
    assert documents_markdown.plain_field("see http://x") is None


def test_the_line_ending_of_a_file_is_kept() -> None:
    assert documents_markdown.ending("a\r\nb\n") == "\r\n"
    assert documents_markdown.ending("a\nb\r\n") == "\n"
    assert documents_markdown.with_ending("a\nb\n", "\r\n") == "a\r\nb\r\n"
