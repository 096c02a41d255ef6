"""Agents are checked every minute; three failures in a row make one unavailable, and one success available again."""

from __future__ import annotations

import msgspec
import pytest

from aof.org.health import Watch, checked_health
from aof.org.model import Agent
from aof.scheduler.model import Snapshot
from aof.scheduler.steps import Health
from tests.support.handoff_team import HandoffTeam, started
from tests.support.requirements import requirement

MINUTE = 60.0
PEER = {"id": "peer", "runner": {"kind": "a2a", "url": "http://127.0.0.1:1/"}}


class Card:
    """A peer's card: how long it takes to come, or None; and when it was asked for."""

    def __init__(self, team: HandoffTeam) -> None:
        self.takes: int | None = 0
        self.asked: list[int] = []
        self._team = team

    def __call__(self, agent: Agent) -> int | None:
        """The milliseconds until it came."""
        self.asked.append(self._team.clock.now())
        return self.takes


def watching(team: HandoffTeam) -> Card:
    """The card of the peers of a team, which the team's scheduler looks at."""
    card = Card(team)
    team.scheduler._handoffs.health._probes = {"a2a": card}
    return card


@pytest.fixture
def team() -> HandoffTeam:
    """A peer that has accepted a handoff."""
    made = HandoffTeam(PEER, {"id": "bob"}, started("zoe"))
    handoff = made.hand("peer", timeout="1d")
    made.fabric.handoff_accept(handoff.id, agent="peer")
    return made


@requirement("handoff.unavailable.health-interval")
def test_a_peer_is_checked_once_a_minute(team: HandoffTeam) -> None:
    card = watching(team)
    team.tick()
    for _ in range(600):
        team.clock.sleep(1)
        team.tick()
    assert len(card.asked) == 10
    assert {later - one for one, later in zip(card.asked, card.asked[1:], strict=False)} == {60_000}


@requirement("handoff.unavailable.health-interval")
def test_an_answer_after_ten_seconds_is_none() -> None:
    first = Watch(checked_at=0)
    assert checked_health(first, 9_000, 60_000) == Watch(checked_at=60_000, failures=0)
    assert checked_health(first, 10_000, 60_000).failures == 0
    assert checked_health(first, 11_000, 60_000).failures == 1
    assert checked_health(first, None, 60_000).failures == 1


@requirement("handoff.unavailable.health-interval")
def test_a_process_whose_host_died_fails_and_a_pulling_agent_that_just_called_passes() -> None:
    team = HandoffTeam({"id": "bob"}, started("zoe"))
    health = Health(team.fabric.services.environment)
    for agent in ("bob", "zoe"):
        team.fabric.claim(team.task(agent=agent), agent=agent)
    running = tuple(team.fabric.get(one.id) for one in team.fabric.list(status="in-progress").tasks)
    beats = team.fabric.store.heartbeats([task.id for task in running])
    (lost,) = [task.lease.run_id for task in running if task.lease is not None and task.lease.agent == "zoe"]
    alive = Snapshot(running=running, heartbeats=beats)
    health.watched(running, ())
    chart = team.chart.by_id
    assert health._answered(chart["zoe"], alive) == 0
    assert health._answered(chart["zoe"], msgspec.structs.replace(alive, orphaned=frozenset({lost}))) is None
    assert health._answered(chart["bob"], alive) == 0
    team.clock.sleep(61)
    assert health._answered(chart["bob"], alive) is None


@requirement("handoff.unavailable.health-threshold")
def test_three_failures_in_a_row_make_an_agent_unavailable_and_a_success_available(team: HandoffTeam) -> None:
    card = watching(team)
    team.tick()
    for answer in (None, None, 0, None, None):
        card.takes = answer
        team.clock.sleep(MINUTE)
        assert "health_check" in team.actions()
        assert team.available("peer")
    team.clock.sleep(MINUTE)
    team.tick()
    assert not team.available("peer")
    (shown,) = [one for one in team.fabric.org_show()["agents"] if one["id"] == "peer"]
    assert shown["unavailableReason"] == "3 checks in a row have failed"
    assert shown["active"]
    card.takes = 9_000
    team.clock.sleep(MINUTE)
    team.tick()
    assert team.available("peer")
    told = [event.type for event in team.fabric.events() if event.type.startswith("agent.")]
    assert told == ["agent.unavailable", "agent.available"]


def test_an_agent_that_holds_nothing_is_not_checked() -> None:
    team = HandoffTeam({"id": "bob"}, started("zoe"))
    team.tick()
    team.clock.sleep(10 * MINUTE)
    assert team.actions() == []


def test_an_agent_that_was_lost_is_checked_until_it_can_be_started_again() -> None:
    team = HandoffTeam(started("zoe"), started("dan"))
    team.hand("zoe")
    team.clock.sleep(30)
    team.actions()
    assert not team.available("zoe")
    team.tick()
    team.clock.sleep(MINUTE)
    team.actions()
    assert team.available("zoe")
