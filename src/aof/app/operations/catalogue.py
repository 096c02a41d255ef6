"""The catalogue: every operation in one table, from which tools, routes, schemas and the reference are made.

A new operation is a row in a module below `operations/rows`. Must not know any surface.
"""

from __future__ import annotations

from typing import Final

from aof.app.operations.rows import (
    audit,
    control,
    handoffs,
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
from aof.app.operations.spec import SCOPES, Effect, Operation, Params, Scope, Tier

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
]

OPERATIONS: Final[tuple[Operation, ...]] = (
    *tasks.ROWS, *review.ROWS, *control.ROWS, *bulk.ROWS, *queries.ROWS, *org.ROWS, *handoffs.ROWS, *audit.ROWS,
    *shared_work.ROWS, *mail.ROWS, *charter.ROWS, *conflicts.ROWS, *workflows.ROWS, *worklog.ROWS, *jobs.ROWS,
    *maintenance.ROWS, *interchange.ROWS,
)  # fmt: skip
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
BY_TOOL: Final = {operation.tool: operation for operation in OPERATIONS}
TIERS: Final[tuple[Tier, ...]] = ("core", "handoff", "mail", "all")


def listed_in(tiers: tuple[str, ...]) -> tuple[Operation, ...]:
    """The operations that a client of these tiers is told about; the core is always among them."""
    if "all" in tiers:
        return OPERATIONS
    return tuple(operation for operation in OPERATIONS if operation.tier in ("core", *tiers))
