"""The filters that all lists share, for type checkers and for the generator of the facade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from aof.core.model.kinds import Priority, Sort, Status


class Filters(TypedDict, total=False):
    """Which tasks."""

    status: Status | Sequence[Status] | None
    agent: str | None
    tag: str | None
    search: str | None
    priority: Priority | None
    parent_id: str | None
    created_after: str | None
    created_before: str | None
    updated_after: str | None
    updated_before: str | None
    due_before: str | None
    overdue: bool
    archived: bool
    sort: Sort | None
    reverse: bool
    limit: int | None
    cursor: str | None
