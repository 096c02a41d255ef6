"""Errors about disagreements and how they are settled."""

from __future__ import annotations

from aof.core.errors.base import NotFound, Refused


class ConflictNotFound(NotFound):
    """No proposal or disagreement has this ID."""

    code = "conflict_not_found"


class RebuttalUsed(Refused):
    """An agent has one rebuttal in a disagreement."""

    code = "rebuttal_used"


class RebuttalLate(Refused):
    """The window for a rebuttal is over."""

    code = "rebuttal_late"


class ConflictSettled(Refused):
    """The disagreement is settled already."""

    code = "conflict_settled"
