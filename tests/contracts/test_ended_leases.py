"""What a vanished worker held can be taken by the next claim: no scheduler has to run for that."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from aof.api.fabric import Fabric
from aof.errors import AlreadyClaimed, AofError, NothingReady, NotReady
from aof.kernel.model import Policy
from aof.service.clock import SystemClock
from aof.testing import FakeClock
from tests.contracts.conftest import MakeStore
from tests.support.messages import report

TTL = 300
WAIT = 60


@pytest.fixture
def held(fabric: Fabric, clock: FakeClock) -> str:
    task_id = fabric.create("Left behind", review=False).task_id
    fabric.claim(task_id, agent="hal", ttl=TTL)
    clock.sleep(TTL - 0.001)
    return task_id


def test_a_claim_by_id_recovers_a_run_whose_lease_has_ended_and_says_when_the_task_is_retried(
    fabric: Fabric, clock: FakeClock, held: str
) -> None:
    with pytest.raises(AlreadyClaimed):
        fabric.claim(held, agent="bob")
    clock.sleep(0.001)
    with pytest.raises(NotReady) as refusal:
        fabric.claim(held, agent="bob")
    assert "is retried at 2026-03-02T09:06:00.000Z" in refusal.value.message
    assert "the lease of hal ended at 2026-03-02T09:05:00.000Z" in refusal.value.message
    assert refusal.value.call is not None
    assert refusal.value.call.operation == "retry"
    assert fabric.get(held).status == "ready"
    fabric.retry(held, reason="hal is gone")
    assert fabric.claim(held, agent="bob").attempt == 2


def test_a_claim_by_id_waits_for_the_retry(fabric: Fabric, clock: FakeClock, held: str) -> None:
    clock.sleep(0.001)
    assert fabric.claim(held, agent="bob", wait=2 * WAIT).attempt == 2


def test_its_holder_may_go_on_after_the_end_as_long_as_nobody_else_has_claimed_it(
    fabric: Fabric, clock: FakeClock, held: str
) -> None:
    clock.sleep(TTL)
    with pytest.raises(AlreadyClaimed, match="you hold it as"):
        fabric.claim(held, agent="hal")
    fabric.progress(held, "back again", agent="hal")
    with pytest.raises(AlreadyClaimed):
        fabric.claim(held, agent="bob")


def test_a_claim_of_the_next_task_recovers_what_has_ended_only_where_nothing_else_is_ready(
    fabric: Fabric, clock: FakeClock, held: str
) -> None:
    clock.sleep(0.001)
    other = fabric.create("Ready", review=False).task_id
    assert fabric.claim(agent="bob").task_id == other
    assert fabric.get(held).status == "in-progress"
    with pytest.raises(NothingReady):
        fabric.claim(agent="zoe")
    assert fabric.get(held).status == "ready"
    clock.sleep(WAIT)
    assert fabric.claim(agent="zoe").task_id == held


def test_a_claim_of_the_next_task_waits_for_the_retry_of_what_has_ended(
    fabric: Fabric, clock: FakeClock, held: str
) -> None:
    clock.sleep(0.001)
    assert fabric.claim(agent="zoe", wait=2 * WAIT).task_id == held


def test_what_the_vanished_worker_had_reported_counts(fabric: Fabric, clock: FakeClock, held: str) -> None:
    assert [one.outcome for one in fabric.send(report(held, "hal"))] == ["accepted"]
    after = fabric.create("After it", depends_on=[held]).task_id
    clock.sleep(0.001)
    assert fabric.claim(agent="bob").task_id == after
    assert fabric.get(held).status == "done"


def test_the_answer_why_a_task_is_not_ready_says_that_its_lease_has_ended(
    fabric: Fabric, clock: FakeClock, held: str
) -> None:
    clock.sleep(20.001)
    (row,) = fabric.held_back()
    assert row.reason == (
        f"{held} is held by hal, whose lease ended at 2026-03-02T09:05:00.000Z; a claim of it recovers the run"
    )


def test_of_many_claims_of_a_task_whose_lease_has_ended_one_wins(make_store: MakeStore, clock: FakeClock) -> None:
    store = make_store(SystemClock())  # who waits for a lock really waits
    at_once = Fabric(store, clock, Policy(retry_base_ms=0, retry_cap_ms=0), "tester")
    task_id = at_once.create("Left behind").task_id
    at_once.claim(task_id, agent="hal", ttl=TTL)
    clock.sleep(TTL)

    def claim(number: int) -> str:
        try:
            return str(at_once.claim(task_id if number % 2 else None, agent=f"agent-{number}").attempt)
        except AofError as refusal:
            return refusal.code

    with closing(store), ThreadPoolExecutor(8) as pool:
        answers = Counter(pool.map(claim, range(8)))
        lost = [event for event in store.events(task_id=task_id) if event.type == "task.lost"]
    assert len(lost) == answers.pop("2") == 1
    assert answers.keys() <= {"already_claimed", "nothing_ready"}
