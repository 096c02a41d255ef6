"""A workflow as data: the template of its hops, and where a gated task stands, as `workflow` holds it.

The keys of `workflows/<name>.yaml` are the camel-case names of the template's fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final, Literal

import msgspec

from aof.kernel.model import FINISHED, duration_ms, run_place
from aof.support.hashing import hexdigest
from aof.support.typed import prepare_type
from aof.tasks import fields as tasks_fields
from aof.tasks.model import Lease, Task

JoinType = Literal["all", "any"]
Strategy = Literal["origin", "predecessors"]
REJECTIONS: Final = 3
HopStatus = Literal[
    "waiting", "ready", "running", "review", "blocked", "rejected", "done", "skipped", "failed", "timed_out"
]
ENDED: Final = frozenset({"done", "skipped", "failed", "timed_out"})
LOST: Final = frozenset({"failed", "timed_out"})
UNOPENED: Final = frozenset({"waiting", "rejected"})


class _TemplatePart(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """Common form of everything in a template."""


class Hop(_TemplatePart, frozen=True, kw_only=True):
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


class Template(_TemplatePart, frozen=True, kw_only=True, dict=True):
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


def template_digest(template: Template) -> str:
    """What tells two versions of a template apart."""
    return hexdigest(msgspec.json.encode(template, order="deterministic"))[:16]


def _reached(starts: Iterable[str], edges: dict[str, tuple[str, ...]]) -> frozenset[str]:
    found: set[str] = set()
    queue = list(starts)
    for current in queue:
        fresh = [following for following in edges.get(current, ()) if following not in found]
        found.update(fresh)
        queue += fresh
    return frozenset(found)


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Common form of every nested record."""


class PastStep(_Part, frozen=True, kw_only=True):
    """One step that a hop made: when, to what, by whom and why. The log has all of them, a task the last ones."""

    at: str
    status: str
    agent: str | None = None
    run_id: str | None = None
    reason: str | None = None


class HopState(_Part, frozen=True, kw_only=True):
    """One hop of a task. `role` is who may take it now, which an escalation changes; `superseded`: nobody needs it.

    `ran_by` are the agents, and the callers behind them, that ran it since it was last sent back.
    """

    id: str
    role: str
    status: HopStatus
    lease: Lease | None = None
    run_id: str | None = None
    agent: str | None = None
    ran_by: tuple[str, ...] = ()
    epoch: int = 0
    failures: int = 0
    rejections: int = 0
    outcome: str | None = None
    reason: str | None = None
    tests: dict[str, int] | None = None
    not_before: str | None = None
    opened_at: str | None = None
    ended_at: str | None = None
    escalated: bool = False
    superseded: bool = False
    history: tuple[PastStep, ...] = ()


class Feedback(_Part, frozen=True, kw_only=True):
    """What the last rejection asks of the next worker."""

    hop: str
    by: str
    at: str
    blockers: tuple[str, ...] = ()
    summary: str | None = None


class Workflow(_Part, frozen=True, kw_only=True):
    """`workflow` in a task's frontmatter. `state` is set once no hop is open any more."""

    name: str
    digest: str
    state: Literal["open", "done", "failed"] = "open"
    hops: tuple[HopState, ...]
    feedback: Feedback | None = None
    template: Template

    def hop(self, hop_id: str) -> HopState:
        """The state of a hop that there is."""
        return next(hop for hop in self.hops if hop.id == hop_id)

    def statuses(self) -> dict[str, HopStatus]:
        """The status of each hop."""
        return {hop.id: hop.status for hop in self.hops}

    def running(self) -> tuple[HopState, ...]:
        """The hops that somebody holds."""
        return tuple(hop for hop in self.hops if hop.lease is not None)


def begun(template: Template) -> Workflow:
    """A task's workflow before anything has happened."""
    hops = tuple(HopState(id=hop.id, role=hop.role, status="waiting") for hop in template.hops)
    return Workflow(name=template.name, digest=template_digest(template), hops=hops, template=template)


def workflow_of(task: Task) -> Workflow:
    """The workflow of a task that has one."""
    return msgspec.convert(task.workflow, prepare_type(Workflow))


def builtins(workflow: Workflow) -> dict[str, Any]:
    """The value as a record holds it: as it comes back from JSON."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(workflow))
    return whole


def leases(task: Task) -> tuple[Lease, ...]:
    """The leases of a task: its own, or those of its hops."""
    return tuple(lease for _, lease in held_leases(task))


def held_leases(task: Task) -> tuple[tuple[str, Lease], ...]:
    """The leases of a task or its hops, each with the place of its run."""
    if task.lease is not None:
        return ((task.id, task.lease),)
    hops = (hop for hop in task.workflow.get("hops", ()) if "lease" in hop)
    return tuple((run_place(task.id, hop["id"]), msgspec.convert(hop["lease"], prepare_type(Lease))) for hop in hops)


def takers(task: Task) -> tuple[str, ...]:
    """Who has accepted a handoff of an unfinished task and works under it without a lease of the task."""
    if not task.handoffs or task.status in FINISHED:
        return ()
    holders = {lease.agent for lease in leases(task)}
    return tuple(one.to_agent for one in task.handoffs if one.state == "accepted" and one.to_agent not in holders)


def occupied_by(task: Task) -> tuple[str, ...]:
    """Everybody whose capacity the task takes up, each as often as it does."""
    return (*(lease.agent for lease in leases(task)), *takers(task))


def has_open_hop(task: Task) -> bool:
    """Whether somebody could take a hop of the task while others of it run."""
    under_way = task.gated and task.status == "in-progress" and task.cancel is None
    return under_way and any(hop.get("status") == "ready" for hop in task.workflow["hops"])


def waits_at_hop(task: Task) -> bool:
    """Whether the task is in `ready` and somebody could take a hop of it."""
    waits = task.gated and task.status == "ready" and task.cancel is None and not task.archived
    return waits and any(hop.get("status") == "ready" for hop in task.workflow["hops"])


def read_fields(task: Task) -> frozenset[str]:
    """The task's fields that the conditions of its workflow name, as paths such as `metadata.risk`.

    A workflow that has not begun may be any: it may ask for whatever conditions can ask for.
    """
    if not task.gated:
        return frozenset(row.key for row in tasks_fields.WHOLE if row.asked and task.routing.workflow)
    found: set[str] = set()
    queue: list[Any] = [hop.get("condition") for hop in task.workflow["template"]["hops"]]
    while queue:
        part = queue.pop()
        if isinstance(part, dict):
            queue += part.values()
            found |= {part["field"]} if isinstance(part.get("field"), str) else set()
        elif isinstance(part, list | tuple):
            queue += part
    return frozenset(found)


def value_at(path: str, fields: dict[str, Any]) -> Any:
    """What a path such as `metadata.risk` leads to; None where it leads nowhere."""
    value: Any = fields
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
