"""The catalogue and the tests agree, both ways. A finding names the row or the test that has to change."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.requirements import harness

HERE: Final = Path(__file__).parent


@pytest.fixture(scope="module")
def rows() -> list[harness.Row]:
    return harness.load_rows(HERE / "catalogue")


@pytest.fixture(scope="module")
def citations() -> list[harness.Citation]:
    return harness.load_citations(HERE.parent)


def test_the_catalogue_has_rows(rows: list[harness.Row]) -> None:
    assert rows


def test_every_id_names_one_row(rows: list[harness.Row]) -> None:
    assert harness.duplicate_ids(rows) == []


def test_every_cited_id_is_in_the_catalogue(rows: list[harness.Row], citations: list[harness.Citation]) -> None:
    assert harness.unknown_ids(rows, citations) == []


def test_every_row_that_is_not_planned_is_cited(rows: list[harness.Row], citations: list[harness.Citation]) -> None:
    assert harness.unproven_rows(rows, citations) == []


def test_no_planned_row_is_cited(rows: list[harness.Row], citations: list[harness.Citation]) -> None:
    assert harness.stale_plans(rows, citations) == []


def test_no_test_cites_more_ids_than_it_can_prove(citations: list[harness.Citation]) -> None:
    assert harness.crowded_citations(citations) == []


def test_every_citation_stands_on_a_test_that_asserts_something(citations: list[harness.Citation]) -> None:
    assert harness.empty_citations(citations) == []
