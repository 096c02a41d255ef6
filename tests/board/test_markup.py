"""Text by others on a page: formatted, and never more than text."""

from __future__ import annotations

import json

import pytest

from aof.surfaces.board.view import data, markdown, moment, span, summary

HOSTILE = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "<a href='javascript:alert(1)'>x</a>",
    '[x](https://e.example "onmouseover=alert(1)")',
    "![pixel](https://tracker.example/p.png)",
    '<iframe src="https://e.example"></iframe>',
    '<https://e.example/"onclick=alert(1)>',
    "```html\n<script>alert(1)</script>\n```",
    "| a |\n|---|\n| <b onclick=x> |",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_lets_no_element_of_the_text_through(text: str) -> None:
    html = str(markdown(text)).lower()
    for part in ("<script", "<img", "<iframe", "<b ", 'href="javascript', 'href="vbscript', 'href="data', "<a href='"):
        assert part not in html


def test_markdown_is_formatted() -> None:
    html = str(markdown("# Goal\n\nDo **this**:\n\n- one\n\n[docs](https://example.org)\n"))
    assert "<h4>Goal</h4>" in html
    assert "<strong>this</strong>" in html
    assert "<li>one</li>" in html
    assert 'rel="noopener noreferrer nofollow ugc"' in html


def test_a_text_without_end_is_shown_as_it_is() -> None:
    html = str(markdown("<b>" * 100_000))
    assert html.startswith("<pre>")
    assert "<b>" not in html


def test_deep_nesting_costs_no_more_than_its_text() -> None:
    assert len(str(markdown("> " * 20_000 + "x"))) < 500_000


def test_data_for_a_script_element_cannot_end_it() -> None:
    text = str(data({"title": "</script><script>alert(1)</script>\u2028"}))
    assert "<" not in text
    assert json.loads(text) == {"title": "</script><script>alert(1)</script>\u2028"}


def test_moments_are_told_as_ages_with_the_exact_one_beside() -> None:
    shown = str(moment("2026-03-02T09:00:00.000Z", 1772442300000))
    assert shown.startswith('<time datetime="2026-03-02T09:00:00.000Z" title="2026-03-02 09:00:00 UTC" data-ago>')
    assert shown.endswith("5 min ago</time>")


def test_a_moment_that_is_none_is_shown_as_text() -> None:
    assert str(moment("<soon>", 0)) == "<span>&lt;soon&gt;</span>"


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(0, "0 s"), (59_000, "59 s"), (60_000, "1 min"), (3_600_000, "1 h"), (172_800_000, "2 d")],
)
def test_a_span_is_told_in_its_largest_unit(milliseconds: int, said: str) -> None:
    assert span(milliseconds) == said


def test_a_summary_is_one_short_line() -> None:
    assert summary({"from": "ready", "to": "done", "reason": None}) == "from ready · to done"
    assert len(summary({"text": "x" * 10_000})) < 300
