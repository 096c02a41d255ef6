"""The catalogue: every operation in one table, from which tools, routes, schemas and the reference are made.

A new operation is a row in a module below `operations/rows`. Must not know any surface.
"""

from __future__ import annotations

from typing import Final

from aof.app.operations.rows import (
    audit,
    control,
    handoffs,
    history,
    jobs,
    maintenance,
    org,
    queries,
    review,
    shared_work,
    tasks,
    workflows,
)
from aof.app.operations.rows.batches import bulk, interchange
from aof.app.operations.rows.documents import charter, conflicts, mail, worklog
from aof.app.operations.rows.supervision import inbox, questions, views
from aof.app.operations.spec import SCOPES, Effect, Operation, Params, Scope, Tier
from aof.core.errors.base import InvalidInput

__all__ = [
    "BY_NAME",
    "BY_TOOL",
    "OPERATIONS",
    "SCOPES",
    "TIERS",
    "Effect",
    "Operation",
    "Params",
    "Scope",
    "Tier",
    "listed_in",
    "tiers_of",
]

OPERATIONS: Final[tuple[Operation, ...]] = (
    *tasks.ROWS, *questions.ROWS, *review.ROWS, *control.ROWS, *bulk.ROWS, *inbox.ROWS, *queries.ROWS, *history.ROWS,
    *views.ROWS, *org.ROWS, *handoffs.ROWS, *audit.ROWS, *shared_work.ROWS, *mail.ROWS, *charter.ROWS, *conflicts.ROWS,
    *workflows.ROWS, *worklog.ROWS, *jobs.ROWS, *maintenance.ROWS, *interchange.ROWS,
)  # fmt: skip
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
BY_TOOL: Final = {operation.tool: operation for operation in OPERATIONS}
TIERS: Final[tuple[Tier, ...]] = ("core", "worker", "handoff", "mail", "all")


def tiers_of(names: str | None) -> tuple[str, ...]:
    """The tiers that a list such as `core,handoff` names; none: the core."""
    tiers = tuple(name.strip() for name in (names or "core").split(","))
    if unknown := [name for name in tiers if name not in TIERS]:
        raise InvalidInput(f"there is no set of tools {unknown[0][:40]!r}", f"use one or more of: {', '.join(TIERS)}")
    return tiers


def listed_in(tiers: tuple[str, ...]) -> tuple[Operation, ...]:
    """The operations that a client of these tiers is told about; the core is always among them."""
    if "all" in tiers:
        return OPERATIONS
    works = "worker" in tiers
    return tuple(one for one in OPERATIONS if one.tier in ("core", *tiers) or (works and one.worker))
