"""Agents that work while others attack the service: no call is refused, no lease is lost, no run fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.service.bootstrap import open_fabric
from bench.siege import Attack, Siege, besiege


def _assert_unharmed(siege: Siege, attack: Attack) -> None:
    """Every call of an agent has succeeded already, or the siege would have raised."""
    assert len(siege.besieged) >= attack.agents * 4
    with open_fabric(siege.root, actor="pm") as fabric:
        events = list(fabric.events())
        unfinished = {task.status for task in fabric.list().tasks}
    kinds = {event.type for event in events}
    assert not kinds & {"task.attempt.failed", "task.lease.expired", "task.attempt.expired"}
    assert unfinished <= {"done", "cancelled"}
    assert [line for line in siege.log if line["action"] == "raw"] == [], "a traceback got into the log"
    for action in ("http", "auth"):  # the first line about http is its address
        assert len([line for line in siege.log if line["action"] == action]) <= 1 + 2
    assert "auth" in {line["action"] for line in siege.log}
    assert [one["reason"] for one in siege.sent[attack.per_send :]] == ["too_many_messages"]


def test_a_small_attack_harms_nobody(tmp_path: Path) -> None:
    attack = Attack.quick()
    _assert_unharmed(besiege(tmp_path, attack), attack)


@pytest.mark.full
def test_a_thousand_half_open_connections_and_wrong_tokens_harm_nobody(tmp_path: Path) -> None:
    attack = Attack()
    _assert_unharmed(besiege(tmp_path, attack), attack)
