"""What handoffs carry and what guards them, on every store: context, history, artifacts, locks, budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.errors import InvalidInput
from aof.handoffs.model import Handoff
from aof.handoffs.payload import MESSAGE_KINDS
from aof.kernel.model import PRIORITIES
from aof.store.files.store import FilesystemStore
from aof.store.port import Store
from aof.testing import FakeClock
from tests.support.handoffs import charted, held, refuses, shown, start
from tests.support.present import present
from tests.support.requirements import requirement

FIFTY = [{"content": f"message {number}"} for number in range(50)]
ONE_EACH = [{"content": f"a {kind}", "kind": kind} for kind in MESSAGE_KINDS]
SWITCHES = {
    "system_messages": "system",
    "tool_calls": "tool_call",
    "tool_results": "tool_result",
    "agent_reasoning": "reasoning",
}


@pytest.fixture
def fabric(store: Store, clock: FakeClock) -> Fabric:
    """A team that handoffs go around in."""
    return charted(store, clock)


def carried(handoff: Handoff) -> list[dict[str, Any]]:
    return list(handoff.context.conversation_history)


def mode(handoff: Handoff) -> str:
    assert handoff.history is not None
    return str(handoff.history["transfer_mode"])


@requirement("handoff.context.task-fields")
def test_the_variables_state_the_task_in_listed_words_and_others_are_refused(fabric: Fabric) -> None:
    for priority in PRIORITIES:
        running = held(fabric, "bea", priority=priority)
        said = start(fabric, "delegation", running, "bea", "rita").context.context_variables
        assert (said["task_id"], said["task_status"], said["task_priority"]) == (running, "in_progress", priority)
        fabric.complete(running, run=fabric.get(running).last_run)
    waiting = fabric.create("Waiting", agent="bea").task_id
    assert start(fabric, "delegation", waiting, "bea", "rita").context.context_variables["task_status"] == "pending"
    stuck = fabric.create("Stuck", agent="bea").task_id
    fabric.block(stuck, reason="no key")
    assert start(fabric, "delegation", stuck, "bea", "rita").context.context_variables["task_status"] == "blocked"
    refusal = refuses(
        "invalid",
        fabric.handoff_new,
        type="delegation",
        task_id=waiting,
        from_agent="bea",
        to=["ari"],
        reason="x",
        timeout="5m",
        variables={"task_status": "stuck"},
    )
    assert "task_status" in refusal.message


@requirement("handoff.history.transfer-mode", "handoff.history.max-messages")
def test_the_mode_decides_what_the_receiver_gets_and_max_messages_bounds_it(fabric: Fabric) -> None:
    task_id = held(fabric, "bea")

    def sent(**given: Any) -> list[dict[str, Any]]:
        handoff = start(fabric, "escalation", task_id, "bea", "rita", history=FIFTY, **given)
        fabric.handoff_withdraw(handoff.id, reason="next", agent="bea")
        return carried(handoff)

    assert sent(transfer_mode="full") == FIFTY
    assert sent(transfer_mode="full", max_messages=10) == FIFTY[-10:]
    assert len(sent(transfer_mode="summary")) == 1
    assert len(sent(transfer_mode="relevant_only")) < len(FIFTY)
    assert len(sent(transfer_mode="relevant_only", max_messages=3)) == 3
    with pytest.raises(InvalidInput):
        sent(transfer_mode="none")


@requirement("handoff.history.include-flags")
@pytest.mark.parametrize("switch", SWITCHES)
def test_a_kind_that_is_switched_off_does_not_reach_the_receiver(fabric: Fabric, switch: str) -> None:
    task_id = held(fabric, "bea")
    handoff = start(fabric, "escalation", task_id, "bea", "rita", history=ONE_EACH, include={switch: False})
    kinds = {one.get("kind", "message") for one in carried(handoff)}
    assert set(MESSAGE_KINDS) - kinds == {SWITCHES[switch]}


@requirement("handoff.history.default-by-type")
def test_without_a_mode_the_type_decides_and_a_delegation_describes_the_subtask(fabric: Fabric) -> None:
    escalation = start(fabric, "escalation", held(fabric, "bea"), "bea", "rita", history=FIFTY)
    assert (mode(escalation), carried(escalation)) == ("full", FIFTY)
    sub = fabric.create("Write the endpoint", brief="Tokens expire after an hour.\n", agent="bea").task_id
    delegation = start(fabric, "delegation", sub, "bea", "rita", history=FIFTY)
    assert (mode(delegation), len(carried(delegation))) == ("summary", 1)
    assert delegation.subtask == "Write the endpoint\n\nTokens expire after an hour."
    sequential = start(fabric, "sequential", held(fabric, "bea"), "bea", "ari", history=FIFTY)
    assert mode(sequential) == "relevant_only"
    assert len(carried(sequential)) < len(FIFTY)


@requirement("handoff.artifact.path-or-uri")
def test_a_handoff_carries_the_reference_of_an_artifact_and_never_its_content(fabric: Fabric, store: Store) -> None:
    task_id = held(fabric, "bea")
    path, uri = "outputs/large.bin", "https://example.org/a%20b?x=1#y"
    small = start(fabric, "delegation", task_id, "bea", "rita", artifacts=[{"path": path}, {"path": uri}])
    assert [one["path"] for one in small.context.artifacts] == [path, uri]
    fabric.handoff_withdraw(small.id, reason="next", agent="bea")
    if isinstance(store, FilesystemStore):
        large = Path(store.paths.root, "tasks", "in-progress", task_id, path)
        large.parent.mkdir(parents=True)
        large.write_bytes(b"x" * 1_000_000)
    again = start(fabric, "delegation", task_id, "bea", "rita")
    assert [one["path"] for one in again.context.artifacts] == [path, uri]
    sizes = [len(msgspec.json.encode(one.context.artifacts)) for one in (small, again)]
    assert sizes[0] == sizes[1] < 1_000


@requirement("handoff.locks.released")
def test_a_lock_ends_after_the_write_or_with_the_handoff_and_only_its_owners(fabric: Fabric) -> None:
    mine, other = held(fabric, "bea"), held(fabric, "cai")
    fabric.lock("docs", task_id=mine, actor="bea")
    fabric.unlock("docs", task_id=mine, actor="bea")
    fabric.lock("docs", task_id=other, actor="cai")
    sub = fabric.create("Part", parent_id=mine, agent="rita").task_id
    handoff = start(fabric, "delegation", sub, "bea", "rita")
    fabric.handoff_accept(handoff.id, agent="rita")
    if fabric.get(sub).lease is None:
        fabric.claim(sub, agent="rita")
    fabric.lock("src", task_id=sub, actor="rita")
    files = fabric.context_show(mine).context_variables.files_in_progress
    assert [(one.path, one.owner) for one in files] == [("src", "rita")]
    fabric.handoff_return(handoff.id, agent="rita", status="success")
    assert fabric.context_show(mine).context_variables.files_in_progress == ()
    assert [(one["path"], one["owner"]) for one in fabric.locks().locks] == [("docs", "cai")]


@requirement("handoff.autonomy.insufficient-budget-refused")
def test_work_above_the_targets_budget_is_refused_before_it_is_initiated(fabric: Fabric) -> None:
    task_id = held(fabric, "bea")
    refusal = refuses(
        "budget_too_small", start, fabric, "delegation", task_id, "bea", "low", autonomy_budget=2, risk="low"
    )
    assert refusal.details["required"] == {"level": 2, "risk": "low"}
    assert refusal.details["available"] == {"level": 0, "risk": "low"}
    assert not [event for event in fabric.events() if event.type == "handoff.initiated"]
    assert present(fabric.get(task_id).lease).agent == "bea"
    started = start(fabric, "delegation", task_id, "bea", "low", autonomy_budget=0, risk="low")
    assert started.state == "requested"


@requirement("handoff.autonomy.alternatives-checked")
def test_an_alternative_with_too_small_a_budget_is_passed_over(store: Store, clock: FakeClock) -> None:
    chart = {
        "agents": [
            {"id": "bea", "capabilities": ["python"]},
            {"id": "first", "capabilities": ["python"], "autonomy": {"level": 3, "maxRisk": "high"}},
            {"id": "small", "capabilities": ["python"], "autonomy": {"level": 0, "maxRisk": "low"}},
            {"id": "large", "capabilities": ["python"], "autonomy": {"level": 3, "maxRisk": "high"}},
        ],
        "escalation": ["human"],
    }
    fabric = charted(store, clock, chart)
    task_id = held(fabric, "bea")
    asked = {"autonomy_budget": 2, "risk": "high", "capabilities": ["python"]}
    handoff = start(fabric, "delegation", task_id, "bea", "first", **asked)
    passed = []
    while handoff.to_agent != "human":
        passed.append(handoff.to_agent)
        fabric.handoff_reject(handoff.id, agent=handoff.to_agent, reason="busy")
        handoff = fabric.handoff_show(str(shown(fabric, handoff).forwarded_to))
    assert passed == ["first", "large"]
    assert handoff.to_agent not in ("small", "bea")
