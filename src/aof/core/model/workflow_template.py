"""A workflow's template as data: its hops, what each waits for, and what happens when one says no.

The keys of `workflows/<name>.yaml` are the camel-case names of these fields. Must not know files or tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from aof.core.model.times import duration_ms

JoinType = Literal["all", "any"]
Strategy = Literal["origin", "predecessors"]
REJECTIONS: Final = 3


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Common form of everything in a template."""


class Hop(_Part, frozen=True, kw_only=True):
    """One node: who may take it, which hops come before it, and what it may do."""

    id: str
    role: str
    depends_on: tuple[str, ...] = ()
    join_type: JoinType = "all"
    condition: Any = None
    can_reject: bool = False
    rejection_strategy: Strategy = "origin"
    timeout: str | None = None
    escalate_to: str | None = None
    auto_advance: bool = True

    @property
    def timeout_ms(self) -> int | None:
        """How long the hop may stay open, if that is limited."""
        return duration_ms(self.timeout)


class Template(_Part, frozen=True, kw_only=True, dict=True):
    """Everything that `workflows/<name>.yaml` says."""

    name: str
    description: str | None = None
    rejection_limit: int = REJECTIONS
    hops: tuple[Hop, ...]

    @cached_property
    def by_id(self) -> dict[str, Hop]:
        """The hops by their IDs."""
        return {hop.id: hop for hop in self.hops}

    @cached_property
    def dependents(self) -> dict[str, tuple[str, ...]]:
        """The hops that come directly after each one."""
        return {hop.id: tuple(after.id for after in self.hops if hop.id in after.depends_on) for hop in self.hops}

    def before(self, hop_id: str) -> frozenset[str]:
        """All hops that must be over before this one, directly or not."""
        return _reached((hop_id,), {hop.id: hop.depends_on for hop in self.hops})

    def after(self, hop_ids: Iterable[str]) -> frozenset[str]:
        """All hops that come after these, directly or not."""
        return _reached(hop_ids, self.dependents)

    def origins(self, hop_id: str) -> tuple[str, ...]:
        """The first hops of the ways that lead to this one."""
        above = self.before(hop_id)
        return tuple(hop.id for hop in self.hops if hop.id in above and not hop.depends_on)


def digest(template: Template) -> str:
    """What tells two versions of a template apart."""
    return sha256(msgspec.json.encode(template, order="deterministic")).hexdigest()[:16]


def _reached(starts: Iterable[str], edges: dict[str, tuple[str, ...]]) -> frozenset[str]:
    found: set[str] = set()
    queue = list(starts)
    for current in queue:
        fresh = [following for following in edges.get(current, ()) if following not in found]
        found.update(fresh)
        queue += fresh
    return frozenset(found)
