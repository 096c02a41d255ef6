"""The catalogue and the tests agree, both ways. A finding names the row or the test that has to change."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.requirements import harness

HERE: Final = Path(__file__).parent


def test_every_row_is_planned_or_cited_and_every_citation_names_rows_and_asserts_something() -> None:
    """One test, as all tests are read for it."""
    rows, citations = harness.load_rows(HERE / "catalogue"), harness.load_citations(HERE.parent)
    assert rows
    assert harness.duplicate_ids(rows) == []
    assert harness.unknown_ids(rows, citations) == []
    assert harness.unproven_rows(rows, citations) == []
    assert harness.stale_plans(rows, citations) == []
    assert harness.crowded_citations(citations) == []
    assert harness.empty_citations(citations) == []
