"""What operations about handoffs answer. Must not know any surface."""

from __future__ import annotations

from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType

from aof.app.operations.results import Result, without_secret
from aof.core.model.handoffs.record import Handoff


class StartedHandoff(Result, frozen=True, kw_only=True):
    """A handoff that is on its way: `state` is where it stands, `forwardedTo` the record that took its place at once.

    A broadcast has one handoff for each receiver, and one ID for all of them.
    """

    handoff_id: str
    state: str
    task_id: str
    to_agent: str
    forwarded_to: str | UnsetType = UNSET
    broadcast_group_id: str | UnsetType = UNSET
    handoff_ids: tuple[str, ...] | UnsetType = UNSET
    warnings: tuple[str, ...] | UnsetType = UNSET


class TakenHandoff(Result, frozen=True, kw_only=True):
    """A handoff that was accepted, and the run that this began: the secret proves it, and can be read only here."""

    handoff: Handoff
    run_id: str | UnsetType = UNSET
    epoch: int | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    secret: str | UnsetType = UNSET

    __repr__ = without_secret

    def flat(self) -> dict[str, Any]:
        """The handoff with the run beside its own keys, as other surfaces show it."""
        run = {name: value for name, value in msgspec.to_builtins(self).items() if name != "handoff"}
        shown: dict[str, Any] = msgspec.to_builtins(self.handoff)
        return shown | run


class Handoffs(tuple[Handoff, ...]):  # noqa: SLOT001 - a tuple of any length has none
    """A page of handoffs, which knows how many match in all and where the next page begins."""

    total: int
    next_cursor: str | None

    def __new__(cls, page: tuple[Handoff, ...], *, total: int, next_cursor: str | None) -> Self:
        """The page."""
        made = super().__new__(cls, page)
        made.total, made.next_cursor = total, next_cursor
        return made
