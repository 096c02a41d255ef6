"""The reference of operations is what the catalogue says."""

from __future__ import annotations

from pathlib import Path

from aof.app.operations.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "operations.md"


def test_the_page_is_what_the_catalogue_says() -> None:
    assert PAGE.read_text() == reference(), (
        "write it anew: python -m aof.app.operations.reference > docs/reference/operations.md"
    )
