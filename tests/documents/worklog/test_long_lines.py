"""A line of any length and make is read in time that grows with its length; with other patterns this never ends."""

from __future__ import annotations

import pytest

from aof.documents import markdown as documents_markdown
from aof.documents import worklog_rules
from aof.documents.markdown import contained, original
from aof.documents.worklog import envelopes
from aof.documents.worklog_text import RESERVED, Worklog, new_worklog, parse_worklog

LONG = 50_000
BEGINNINGS = (
    "",
    "# ",
    "### ",
    "### 2026-02-08",
    "### ada: ",
    "14:32 — ada: ",
    "14:32 — ",
    "**Decision:** ",
    "**a",
    "Handoff: ",
    "Owner: ",
    "Now Working (ada): ",
    "Maintainer Focus",
    "| ",
    "| --- |",
    "---",
    "```",
    "<!--",
    "https://",
    "src/",
    "REV-",
)

FILLINGS = (" ", "\t ", "(", " (a) ", "a:", "a/", "a.", "- ", "**", "|", "\\", "#", "`", "<!--")


@pytest.mark.parametrize(
    "filling", [" ", "\t ", "(", " (a) ", "a:", "a/", "a.", "- ", "**", "|", "\\", "#", "`", "<!--"]
)
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_long_line_is_read_and_escaped(beginning: str, filling: str) -> None:
    line = beginning + filling * (LONG // len(filling)) + "x"
    known = parse_worklog(f"{new_worklog('p')}\n## Session 1 — 2026-02-08\n\n### ada: Over\n\n{line}\n\n{line}\n")
    assert sum(1 for _ in envelopes(known.entries)) == len(known.entries)
    list(worklog_rules.of_entries(known, lambda _name: True))
    list(worklog_rules.of_index(known, Worklog(title="")))
    assert original(contained(line, RESERVED), RESERVED) == line.strip("\n")
    assert documents_markdown.heading(line) is None or beginning.startswith("#")
