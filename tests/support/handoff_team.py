"""A team in memory whose handoffs go by a clock that only the test moves."""

from __future__ import annotations

from typing import Any

from aof.api.fabric import Fabric
from aof.handoffs.audit import AuditRecord
from aof.handoffs.model import Handoff
from aof.kernel.model import Policy
from aof.scheduler.tick import Tick, Ticked
from aof.testing import FakeClock, memory_fabric
from tests.support.team import chart_of

MOMENT = 0.001
PROCESS = {"runner": {"kind": "process", "command": ["agent"]}}


def started(name: str, **more: Any) -> dict[str, Any]:
    """An agent that AOF starts."""
    return {"id": name, **PROCESS, **more}


class HandoffTeam:
    """Agents of a chart, their handoffs, and a scheduler that hosts nobody."""

    def __init__(self, *agents: dict[str, Any], workflows: tuple[dict[str, Any], ...] = (), **parts: Any) -> None:
        self.clock = FakeClock("2026-03-02T09:00:00Z")
        self.chart = chart_of(agents=list(agents), **parts)
        policy = Policy(maintainers=("pm",))
        self.fabric: Fabric = memory_fabric("pm", self.clock, policy, org=self.chart, workflows=workflows)
        services = self.fabric.services
        self.scheduler = Tick(services.environment, services.dispatcher)

    def task(self, title: str = "Something", **given: Any) -> str:
        """A new task."""
        return self.fabric.create(title, **{"review": False, **given}).task_id

    def hand(self, to: str, kind: str = "delegation", *, task: str | None = None, **given: Any) -> Handoff:
        """Hand a task over to somebody, from pm unless said; the record."""
        given.setdefault("timeout", "5m" if kind == "delegation" else None)
        if kind == "escalation":
            given.setdefault("rationale", "beyond me")
        begun = self.fabric.handoff_new(
            type=kind, task_id=task or self.task(), reason="needs it", to=[to] if to else [], **given
        )
        assert isinstance(begun.handoff_id, str)
        return self.fabric.handoff_show(begun.handoff_id)

    def tick(self, *, dry_run: bool = False) -> Ticked:
        """What the scheduler does now, or would do."""
        return self.scheduler.ticked(dry_run=dry_run)

    def actions(self, *, dry_run: bool = False) -> list[str]:
        """The names of what it does about handoffs and agents."""
        done = self.tick(dry_run=dry_run).actions
        return [one.action for one in done if one.action.startswith(("handoff", "health"))]

    def now(self, handoff: Handoff) -> Handoff:
        """The record as it is now."""
        return self.fabric.handoff_show(handoff.id)

    def last(self, handoff: Handoff) -> Handoff:
        """Where the handoff has gone: the record that followed it last."""
        here = self.now(handoff)
        while here.forwarded_to is not None:
            here = self.fabric.handoff_show(here.forwarded_to)
        return here

    def audit(self, handoff: Handoff) -> list[str]:
        """The steps of a handoff, as the audit has them."""
        return [one.event_type for one in self.records(handoff)]

    def records(self, handoff: Handoff) -> tuple[AuditRecord, ...]:
        """Its audit records."""
        return self.fabric.audit(handoff=handoff.id).records

    def events(self, kind: str, handoff: Handoff | None = None) -> list[dict[str, Any]]:
        """The payloads of the events of a type."""
        found = (event.payload for event in self.fabric.events() if event.type == kind)
        return [one for one in found if handoff is None or one.get("handoffId") == handoff.id]

    def available(self, agent: str) -> bool:
        """Whether the org chart's view says that the agent can be reached."""
        (found,) = [one for one in self.fabric.org_show()["agents"] if one["id"] == agent]
        return bool(found["available"])
