"""Over random agents, failures and timings: every handoff ends or waits for somebody that is named, with its audit.

Locks of files are never held by a run that is over.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.errors import AofError
from aof.handoffs.model import Handoff
from tests.support.handoff_team import HandoffTeam, started

AGENTS = ("a", "b", "c", "d", "e")
MINUTE = 60.0

kinds = st.sampled_from(["process", "pull", "human"])
charts = st.lists(kinds, min_size=len(AGENTS), max_size=len(AGENTS))
acts = st.one_of(
    st.tuples(st.just("hand"), st.sampled_from(AGENTS), st.sampled_from(["sequential", "delegation", "escalation"])),
    st.tuples(st.just("broadcast"), st.sampled_from(["all", "any", "majority"])),
    st.tuples(st.just("answer"), st.integers(0, 9), st.sampled_from(["accept", "reject", "defer", "return", "person"])),
    st.tuples(st.just("take"), st.sampled_from(["keep", "return"])),
    st.tuples(st.just("claim"), st.integers(0, 9), st.sampled_from(AGENTS)),
    st.tuples(st.just("end"), st.integers(0, 9), st.sampled_from(["complete", "cancel", "fail"])),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 3.0, 31.0, 301.0, 3700.0])),
)
scripts = st.tuples(charts, st.lists(acts, max_size=14), st.sampled_from(["retry", "escalate", "fail"]))


class Story:
    """One random life of a team."""

    def __init__(self, kinds: list[str], on_timeout: str) -> None:
        agents = [
            started(name, capabilities=["code"])
            if kind == "process"
            else {"id": name, "capabilities": ["code"], "runner": {"kind": kind}}
            for name, kind in zip(AGENTS, kinds, strict=True)
        ]
        self.team = HandoffTeam(*agents, roles={"lead": {"agents": ["e"]}}, escalation=["lead", "human"])
        self.fabric = self.team.fabric
        self.on_timeout = on_timeout
        self.tasks = [
            self.team.task(f"Task {number}", priority=one) for number, one in enumerate(("normal", "critical"))
        ]

    def act(self, what: str, *given_: Any) -> None:
        """Do it, or be refused: both are fine."""
        with suppress(AofError):
            getattr(self, what)(*given_)
        self.check()

    def hand(self, to: str, kind: str) -> None:
        """Somebody is asked."""
        self.team.hand(to, kind, task=self.tasks[len(to + kind) % 2], on_timeout=self.on_timeout)

    def broadcast(self, mode: str) -> None:
        """Three are asked at once."""
        self.fabric.handoff_new(
            type="broadcast",
            task_id=self.tasks[0],
            reason="look",
            to=["a", "b", "c"],
            aggregation=mode,
            timeout="5m",
            on_timeout=self.on_timeout,
        )

    def answer(self, number: int, how: str) -> None:
        """Somebody that was asked answers."""
        every = self.fabric.handoff_list()
        if not every:
            return
        one = every[number % len(every)]
        if how == "accept":
            self.fabric.handoff_accept(one.id, agent=one.to_agent)
        elif how == "return":
            self.fabric.handoff_return(one.id, agent=one.to_agent, status="success", result="done")
        elif how == "person":
            self.fabric.handoff_answer(one.id, text="so be it", actor="pm")
        else:
            answer = self.fabric.handoff_reject if how == "reject" else self.fabric.handoff_defer
            answer(one.id, agent=one.to_agent, reason="not now")

    def take(self, then: str) -> None:
        """Whoever was asked last accepts, and may return at once."""
        one = self.fabric.handoff_list()[-1:]
        for handoff in one:
            self.fabric.handoff_accept(handoff.id, agent=handoff.to_agent)
            if then == "return":
                self.fabric.handoff_return(handoff.id, agent=handoff.to_agent, status="partial", result="half")

    def claim(self, number: int, agent: str) -> None:
        """An agent takes a task and locks a file; it may never be heard of again."""
        task = self.tasks[number % 2]
        run = self.fabric.claim(task, agent=agent).run_id
        self.fabric.lock("src/main.py", task_id=task, run=run, actor=agent)

    def end(self, number: int, how: str) -> None:
        """A task ends."""
        task = self.tasks[number % 2]
        if how == "cancel":
            self.fabric.cancel(task)
            return
        lease = self.fabric.get(task).lease
        run = lease.run_id if lease is not None else None
        if how == "complete":
            self.fabric.complete(task, run=run)
        else:
            self.fabric.fail(task, run=run)

    def wait(self, seconds: float) -> None:
        """Time passes, and the scheduler looks."""
        self.team.clock.sleep(seconds)
        self.team.tick()

    def check(self) -> None:
        """What holds at every moment."""
        for task in self.fabric.store.locking():
            runs = {task.lease.run_id} if task.lease is not None else set()
            assert {lock.run_id for lock in task.locks} <= runs, "the dead hold no locks"

    def settle(self) -> None:
        """Let a long time pass: longer than every timer together."""
        for _ in range(40):
            self.team.clock.sleep(11 * MINUTE)
            self.team.tick()
            self.check()

    def waiting(self, handoff: Handoff) -> bool:
        """Whether it waits for a named person or pulling agent, and the plan says so."""
        seat = self.team.chart.by_id.get(handoff.to_agent)
        named = handoff.to_agent == "human" or (seat is not None and seat.runner.kind in ("pull", "human"))
        told = any(handoff.id in one.reason for one in self.team.tick(dry_run=True).left)
        return named and told

    def check_end(self) -> None:
        """What holds in the end."""
        for handoff in self.fabric.handoff_list():
            steps = self.team.audit(handoff)
            assert steps[0] == "initiated"
            if handoff.is_open:
                assert self.waiting(handoff), handoff
                continue
            assert {"accepted", "rejected"} & set(steps), (handoff.state, steps)
            if handoff.state in ("completed", "failed"):
                assert sum(step in ("completed", "failed") for step in steps) == 1
        assert self.fabric.audit_verify().ok


def assert_ends_well(script: tuple[list[str], list[tuple[Any, ...]], str]) -> None:
    """Let a story happen, and look at its end."""
    kinds_, acts_, on_timeout = script
    story = Story(kinds_, on_timeout)
    for what, *given_ in acts_:
        story.act(what, *given_)
    story.settle()
    story.check_end()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scripts)
def test_no_handoff_stays_open_for_ever(script: tuple[list[str], list[tuple[Any, ...]], str]) -> None:
    assert_ends_well(script)


@pytest.mark.full
@settings(max_examples=1_500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scripts)
def test_no_handoff_stays_open_for_ever_in_many_more_lives(
    script: tuple[list[str], list[tuple[Any, ...]], str],
) -> None:
    assert_ends_well(script)
