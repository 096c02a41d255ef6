"""The settings that decisions depend on. Plain classes, because read-only commands load them too.

Must not know where they are written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.core.model.gate import Gate
    from aof.core.model.org_chart import OrgChart

_NONE: Mapping[str, int] = MappingProxyType({})


class SchedulingPolicy:
    """How many runs there may be at once, and how long a task may stay in a status.

    With `promote`, all of the backlog becomes ready once it waits for nothing, not only what was put there to wait.
    `handoff_ms` is how long a handoff without a due date may stay unanswered by an agent that AOF does not start, and
    how long a delegation without a timeout waits for its result.
    `archive_ms` is how long a task that is done or cancelled stays before it is archived; None keeps it for good.
    """

    def __init__(
        self,
        *,
        max_concurrent: int | None = None,
        promote: bool = False,
        patience_ms: Mapping[str, int] = _NONE,
        handoff_ms: int = 3_600_000,
        archive_ms: int | None = None,
    ) -> None:
        self.max_concurrent = max_concurrent
        self.promote = promote
        self.patience_ms = patience_ms
        self.handoff_ms = handoff_ms
        self.archive_ms = archive_ms


class WorklogPolicy:
    """Whether claims, completions and handoffs write lines by themselves, and the length that compaction begins at."""

    def __init__(self, *, automatic: bool = True, longest: int = 500) -> None:
        self.automatic = automatic
        self.longest = longest


_USUAL = SchedulingPolicy()
_KEPT = WorklogPolicy()


class Policy:
    """What is in force.

    `has_maintainers` says that there are any, whether or not this caller may be one. `only_said` are maintainers' names
    that this caller has only said: what they made is not its own. `self_review` lets whoever ran the
    work approve it. `review_required` lists the tags whose tasks only a maintainer takes out of review; True stands for
    every task.
    """

    def __init__(
        self,
        *,
        lease_ttl_ms: int = 300_000,
        kept_ttl_ms: int = 3_600_000,
        max_attempts: int = 3,
        retry_base_ms: int = 60_000,
        retry_factor: int = 3,
        retry_cap_ms: int = 900_000,
        resource_slots: Mapping[str, int] = _NONE,
        scheduling: SchedulingPolicy = _USUAL,
        maintainers: tuple[str, ...] = (),
        require_secret: bool = False,
        strict: bool = False,
        refuse_unlisted: bool = False,
        self_review: bool = False,
        review_required: bool | tuple[str, ...] = False,
        org: OrgChart | None = None,
        project: str = "unknown",
        messages_per_send: int = 1000,
        gates: tuple[Gate, ...] = (),
        worklog: WorklogPolicy = _KEPT,
        has_maintainers: bool = False,
        only_said: tuple[str, ...] = (),
    ) -> None:
        self.lease_ttl_ms = lease_ttl_ms
        self.kept_ttl_ms = kept_ttl_ms
        self.max_attempts = max_attempts
        self.retry_base_ms = retry_base_ms
        self.retry_factor = retry_factor
        self.retry_cap_ms = retry_cap_ms
        self.resource_slots = resource_slots
        self.scheduling = scheduling
        self.maintainers = maintainers
        self.require_secret = require_secret
        self.strict = strict
        self.refuse_unlisted = refuse_unlisted
        self.self_review = self_review
        self.review_required = review_required
        self.org = org
        self.project = project
        self.messages_per_send = messages_per_send
        self.gates = gates
        self.worklog = worklog
        self.has_maintainers = has_maintainers or bool(maintainers)
        self.only_said = only_said

    @property
    def binds(self) -> bool:
        """Whether callers are bound and gates are protected: with an org chart, or with strict identity."""
        return self.strict or self.org is not None

    def without(self, names: Collection[str | None]) -> Policy:
        """The same policy for a caller that has only said that it is one of these: no maintainer's name is its own."""
        said = tuple(name for name in self.maintainers if name in names)
        return self.but(maintainers=tuple(name for name in self.maintainers if name not in said), only_said=said)

    def but(self, **changes: Any) -> Policy:
        """The same policy with something changed."""
        return Policy(**(vars(self) | changes))
