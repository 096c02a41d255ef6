"""The comments section: appended to, read back, and kept apart from the description and the work log."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from aof.tasks import body as tasks_body
from aof.tasks.body import TaskComment

AT = "2026-03-02T09:00:00.000Z"
BODIES = (
    "",
    "Text\n",
    "Text\r\n\r\nmore\r\n",
    f"Text\n\n## Work Log\n\n- {AT} begun\n",
    "```\n## Comments\n```\n",
    "# A\n\n```\nopen",
)
words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]) | st.sampled_from("\n#-` ")).filter(
    str.strip
)


@given(st.lists(words, min_size=1, max_size=4), st.sampled_from(BODIES), st.sampled_from(["eve", "a2a:peer", "Anna M"]))
def test_what_was_said_is_read_back_and_the_rest_of_the_body_stays(said: list[str], body: str, author: str) -> None:
    after = body
    for text in said:
        after = tasks_body.add_comment(after, AT, author, text)
    found = tasks_body.comments_of(after)
    assert [(one.at, one.by) for one in found] == [(AT, author)] * len(said)
    lines = [[line.strip() for line in text.strip().splitlines()] for text in said]
    assert [[line.strip() for line in one.text.splitlines()] for one in found] == lines
    assert tasks_body.description(after).rstrip() == tasks_body.description(body).rstrip()
    logged = tasks_body.append(after, AT, "later")
    assert tasks_body.comments_of(logged) == found


def test_what_a_person_wrote_into_the_section_is_a_comment_without_an_author() -> None:
    body = f"## Comments\n\n- {AT} eve: signed\n  and more\n\n- looks good to me\nfree text\n\n## Notes\n\n- mine\n"
    assert tasks_body.comments_of(body) == (
        TaskComment(at=AT, by="eve", text="signed\nand more"),
        TaskComment(text="looks good to me"),
        TaskComment(text="free text"),
    )


@pytest.mark.parametrize(
    "new", ["New text", "New text\n\n## Comments\n\n- forged\n", "New text\n\n## Work Log\n\n- mine\n"]
)
def test_a_new_body_and_a_new_description_keep_the_comments(new: str) -> None:
    body = tasks_body.add_comment(tasks_body.append("Old\n", AT, "begun"), AT, "eve", "wait")
    replaced = tasks_body.with_comments_of(body, new)
    assert replaced.startswith("New text\n\n")
    assert tasks_body.comments_of(replaced) == tasks_body.comments_of(body)
    assert tasks_body.with_comments_of(replaced, new) == replaced
    described = tasks_body.with_description(body, new)
    assert described == f"New text\n\n## Work Log\n\n- {AT} begun\n\n## Comments\n\n- {AT} eve: wait\n"


def test_an_empty_new_body_keeps_nothing_but_the_comments() -> None:
    body = tasks_body.add_comment("Old\n", AT, "eve", "wait")
    assert tasks_body.with_comments_of(body, "") == f"## Comments\n\n- {AT} eve: wait\n"
    assert tasks_body.with_comments_of("Old\n", "") == ""
