"""The reference of operations is what the catalogue says."""

from __future__ import annotations

from aof.api.reference import reference
from tests.support.repository import ROOT

PAGE = ROOT / "docs" / "reference" / "operations.md"


def test_the_page_is_what_the_catalogue_says() -> None:
    assert PAGE.read_text() == reference(), "write it anew: python -m aof.api.reference > docs/reference/operations.md"
