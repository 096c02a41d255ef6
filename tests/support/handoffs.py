"""Handoffs for tests: a team that they go around in, and short ways to start, answer and look at them."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.handoffs.model import Handoff
from aof.kernel.events import Event
from aof.kernel.model import Policy
from aof.store.memory import FixedChart
from aof.store.port import Clock, Store
from tests.support.team import chart_of

CHART: dict[str, Any] = {
    "schemaVersion": 1,
    "agents": [
        {"id": "wes", "roles": ["worker"], "concurrency": 1},
        {"id": "rita", "roles": ["reviewer"], "capabilities": ["python", {"id": "security", "proficiency": 0.6}]},
        {"id": "ari", "roles": ["architect"], "capabilities": ["python", "design"]},
        {"id": "bea", "roles": ["worker"], "capabilities": ["python"], "concurrency": 2},
        {"id": "cai", "roles": ["worker"], "capabilities": ["python"], "concurrency": 1},
        {"id": "low", "roles": ["worker"], "autonomy": {"level": 0, "maxRisk": "low"}},
        {"id": "off", "roles": ["worker"], "active": False},
        {"id": "petra", "runner": {"kind": "human"}},
    ],
    "escalation": ["reviewer", "architect", "human"],
}


def charted(store: Store, clock: Clock, chart: dict[str, Any] | None = None, **parts: Any) -> Fabric:
    """A fabric on the store with a chart; `boss` is a maintainer outside of it."""
    settings = Policy(maintainers=("boss",))
    return Fabric(store, clock, settings, "boss", org=FixedChart(chart_of(**(chart or CHART))), **parts)


def held(fabric: Fabric, agent: str, title: str = "Work", **given: Any) -> str:
    """A task that the agent runs."""
    task_id = fabric.create(title, **given).task_id
    fabric.claim(task_id, agent=agent)
    return task_id


def start(fabric: Fabric, kind: str, task_id: str, sender: str, *to: str, **given: Any) -> Handoff:
    """A new handoff with what its type needs."""
    needed: dict[str, dict[str, Any]] = {
        "sequential": {"segment_complete": True},
        "delegation": {"timeout": "5m"},
        "escalation": {"rationale": "beyond me"},
    }
    given = {"reason": "needs it"} | needed.get(kind, {}) | given
    started = fabric.handoff_new(type=kind, task_id=task_id, from_agent=sender, to=list(to), **given)
    return fabric.handoff_show(started.handoff_id)


def broadcast(fabric: Fabric, task_id: str, *to: str, **given: Any) -> list[Handoff]:
    """What ada tells several at once: the handoff of each."""
    started = fabric.handoff_new(
        type="broadcast", task_id=task_id, from_agent="ada", to=list(to), **({"reason": "needs it"} | given)
    )
    assert isinstance(started.handoff_ids, tuple)
    return [fabric.handoff_show(one) for one in started.handoff_ids]


def refuses(code: str, call: Any, /, *args: Any, **given: Any) -> AofError:
    """The refusal of a call, which must have this code."""
    with pytest.raises(AofError) as caught:
        call(*args, **given)
    assert caught.value.code == code, (caught.value.code, caught.value.message)
    assert caught.value.hint
    return caught.value


def audited(fabric: Fabric, handoff_id: str) -> list[str]:
    """The steps of a handoff that are audit records, in order."""
    return [event.payload["audit"]["event_type"] for event in told(fabric, handoff_id) if "audit" in event.payload]


def told(fabric: Fabric, handoff_id: str | None = None, kind: str | None = None) -> list[Event]:
    """The events about a handoff, or about all of them; of one kind."""
    return [
        event
        for event in fabric.events()
        if event.type.startswith(("handoff.", "delegation."))
        and (handoff_id is None or event.payload.get("handoffId") == handoff_id)
        and kind in (None, event.type)
    ]


def shown(fabric: Fabric, handoff: Handoff) -> Handoff:
    """The handoff as it is now."""
    return fabric.handoff_show(handoff.id)
