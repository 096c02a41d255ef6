"""The filters that all lists share, for type checkers and for the generator of the facade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class Filters(TypedDict, total=False):
    """Which tasks."""

    status: str | Sequence[str] | None
    agent: str | None
    tag: str | None
    search: str | None
    limit: int | None
    archived: bool
