"""Which refusals of a claim may pass by themselves, so that a waiting claim is retried. Must not know how to wait."""

from __future__ import annotations

from aof.core.errors.org import AtCapacity
from aof.core.errors.runs import AlreadyClaimed
from aof.core.errors.tasks import NothingReady, NotReady, ResourceBusy
from aof.core.model.lifecycle import FINISHED

PASSING = (NothingReady, AtCapacity, NotReady, AlreadyClaimed, ResourceBusy)
Passing = NothingReady | AtCapacity | NotReady | AlreadyClaimed | ResourceBusy


def may_pass(refusal: Passing) -> bool:
    """Whether waiting could change anything: a task that is over stays so."""
    return refusal.details.get("status") not in FINISHED
