"""The one work log section: appended to, never doubled, never confused with code."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from aof.tasks import body as tasks_body

AT = "2026-03-02T09:00:00.000Z"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("", f"## Work Log\n\n- {AT} x\n"),
        ("Text", f"Text\n\n## Work Log\n\n- {AT} x\n"),
        ("Text\n", f"Text\n\n## Work Log\n\n- {AT} x\n"),
        ("## Work Log\n", f"## Work Log\n\n- {AT} x\n"),
        ("## Work Log  \n\n- a\n", f"## Work Log  \n\n- a\n- {AT} x\n"),
        ("A\n\n## Work Log\n\n- a\n\n## Notes\n\nmine\n", f"A\n\n## Work Log\n\n- a\n- {AT} x\n\n## Notes\n\nmine\n"),
        ("## Work Log\n- a\n# Next\n", f"## Work Log\n- a\n- {AT} x\n\n# Next\n"),
    ],
)
def test_an_entry_stands_at_the_end_of_the_section(body: str, result: str) -> None:
    assert tasks_body.append(body, AT, "x") == result


def test_the_lines_of_an_entry_stay_in_its_list_item() -> None:
    body = tasks_body.append("", AT, "one\r\n## two\rthree\n```")
    assert body.splitlines()[2:] == [f"- {AT} one", "  ## two", "  three", "  ```"]
    assert tasks_body.append(body, AT, "later").endswith(f"  ```\n- {AT} later\n")


@pytest.mark.parametrize(
    "code",
    [
        "```\n## Work Log\n```\n",
        "```md\n## Work Log\n```\n",
        "~~~\n## Work Log\n~~~\n",
        "````\n```\n## Work Log\n````\n",
    ],
)
@pytest.mark.parametrize("before", ["", "Text\n\n"])
def test_a_heading_within_code_is_no_section(code: str, before: str) -> None:
    body = tasks_body.append(before + code, AT, "x")
    assert body == f"{before}{code}\n## Work Log\n\n- {AT} x\n"
    assert tasks_body.append(body, AT, "y") == f"{body}- {AT} y\n"


def test_a_heading_within_code_does_not_end_the_section() -> None:
    body = "## Work Log\n\n- a\n\n```sh\n# a comment\n```\n"
    assert tasks_body.append(body, AT, "x") == f"{body}- {AT} x\n"


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    body = "```\ncode\n"
    for number in range(3):
        body = tasks_body.append(body, AT, str(number))
    assert body.count("## Work Log") == 1


def test_windows_line_ends_are_understood_and_kept() -> None:
    body = "Text\r\n\r\n## Work Log\r\n\r\n- a\r\n"
    assert tasks_body.append(body, AT, "x") == f"{body}- {AT} x\r\n"
    assert tasks_body.description(body) == "Text\r\n\r\n"


@given(
    body=st.lists(st.sampled_from(["a", "#", " ", "-", "\n", "\r\n", "```", "~~~", "## Work Log"]), max_size=30).map(
        "".join
    ),
    texts=st.lists(st.text(max_size=30), min_size=1, max_size=4),
)
def test_appending_keeps_what_was_there_and_makes_one_section(body: str, texts: list[str]) -> None:
    grown = tasks_body.append(body, AT, "first")
    headings = grown.count("## Work Log")
    for text in texts:
        before, grown = grown, tasks_body.append(grown, AT, text.replace("## Work Log", ""))
        assert len(grown) > len(before)
        kept = iter(grown)
        assert all(char in kept for char in before.replace("\r", "").replace("\n", "")), (
            "a person's text is never changed"
        )
    assert grown.count("## Work Log") == headings


@given(text=st.text(st.sampled_from(list("ab# \n")), max_size=30))
def test_setting_the_same_description_again_changes_nothing(text: str) -> None:
    body = tasks_body.append("Old\n", AT, "entry")
    once = tasks_body.with_description(body, text)
    assert tasks_body.with_description(once, text) == once
    assert tasks_body.with_description(once, tasks_body.description(once)) == once
    assert once.endswith(f"## Work Log\n\n- {AT} entry\n")


def test_a_body_ends_with_a_newline_unless_it_is_empty() -> None:
    assert [tasks_body.ended(text) for text in ("", "a", "a\n")] == ["", "a\n", "a\n"]
