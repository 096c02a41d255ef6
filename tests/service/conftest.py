"""The OpenAPI document, made once for all applications: it depends on no data directory, and takes most of a start."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from aof.surfaces.http import openapi


@pytest.fixture(scope="package", autouse=True)
def described_once() -> Iterator[None]:
    """Every application describes itself as it would, with what was worked out for the first of its kind."""
    document = openapi.document

    @cache
    def once(version: str, mounted: str) -> dict[str, Any]:
        return document(version, json.loads(mounted))

    def known(version: str, mounted: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        return once(version, json.dumps([*mounted]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aof.surfaces.http.app.document", known)
        yield
