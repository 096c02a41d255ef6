"""Text by others cannot break out of an entry or a card."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.documents import markdown as documents_markdown
from aof.documents.markdown import contained, original, plain_text

_QUICK = r"\d\d:\d\d — |\*\*Ack:\*\*"
_STRUCTURE = (
    "#",
    "## ",
    "### ",
    "---",
    "===",
    "```",
    "~~~",
    "`",
    "<!--",
    "-->",
    "<div>",
    "<https://a.b>",
    "* * *",
    "|",
)
_MERGE = ("<<<<<<< x", "=======", ">>>>>>> y")
_OTHER = ("|", "\\", " ", "  ", "\t", "\n", "\r\n", "\r", "a", "14:32 — ", "**Ack:** ", "\u202e", "\x00")
_PARTS = st.sampled_from((*_STRUCTURE, *_MERGE, *_OTHER))
_HOSTILE = st.lists(_PARTS, max_size=25).map("".join)


@given(_HOSTILE)
def test_the_original_comes_back_whatever_it_holds(text: str) -> None:
    assert original(contained(text, _QUICK), _QUICK) == plain_text(text)


@given(_HOSTILE)
def test_no_line_of_it_is_structure_and_what_follows_stays_what_it_is(text: str) -> None:
    whole = f"before\n\n{contained(text, _QUICK)}\n\n### After: heading\n"
    lines = documents_markdown.scan(whole)
    assert lines[-1].kind == "text"
    assert not list(documents_markdown.unclosed(lines))
    assert not list(documents_markdown.conflict_marks(line for line in lines if line.kind == "text"))
    inner = [line for line in lines[2:-2] if line.kind != "code"]
    assert all(line.kind == "text" and documents_markdown.heading(line.text) is None for line in inner)
    assert not any(line.text.startswith(("14:32 — ", "**Ack:**", "<div")) for line in inner)
    assert not any(line.text.removeprefix("  ").rstrip() in ("---", "===", "* * *") for line in inner)


@pytest.mark.parametrize("line", ["## Session 9 — 2026-01-01", "---", "<!-- hidden", "```", "<script>"])
def test_a_line_that_begins_a_structure_gets_a_backslash(line: str) -> None:
    assert contained(line) == f"\\{line}"


def test_code_that_is_closed_stays_as_it_is() -> None:
    text = "```python\n# a comment\n```"
    assert contained(text) == text


def test_hidden_characters_are_made_visible() -> None:
    assert contained("a\u202eb\x1bc") == "a\\u202eb\\x1bc"
