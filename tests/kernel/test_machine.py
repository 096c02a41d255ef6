"""Any mixture of commands, in any order, keeps what must hold of every world (see `tests/support/world.py`)."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from aof.errors import AofError
from aof.kernel import commands
from aof.kernel.model import BLOCKED_KINDS, STATUSES, Policy
from tests.support.world import MINUTE, World

AGENTS = st.sampled_from(["ada", "bob"])
MOST_TASKS = 7
WORLDS = settings(stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck))


class Team(RuleBasedStateMachine):
    """A few agents, people and hosts that do whatever comes to their minds."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(Policy(resource_slots={"gpu": 2}))

    @initialize()
    def begin(self) -> None:
        for _ in range(3):
            self.world.create(metadata={"reviewRequired": False})

    def pick(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.world.tasks)))

    def maybe_run(self, data: st.DataObject, task: str) -> str | None:
        runs: list[str | None] = [None, *self.world.runs.get(task, {})]
        return data.draw(st.sampled_from(runs))

    def attempt(self, command: commands.OnTask) -> None:
        """Accepted or refused, but never an error, and a refusal helps."""
        verdict = self.world.verdict(command)
        if isinstance(verdict, AofError):
            assert verdict.hint
        else:
            self.world.commit(command, verdict)

    @rule(data=st.data())
    def create(self, data: st.DataObject) -> None:
        if len(self.world.tasks) >= MOST_TASKS:
            return
        known = sorted(self.world.tasks)
        fields: dict[str, Any] = {
            "depends_on": tuple(data.draw(st.lists(st.sampled_from(known), max_size=2))),
            "parent_id": data.draw(st.none() | st.sampled_from(known)),
            "status": data.draw(st.sampled_from(["ready", "backlog"])),
            "fields": data.draw(st.sampled_from([{}, {"resource": "gpu"}, {"resource": "rig"}])),
            "key": data.draw(st.sampled_from([None, "k1", "k2"])),
            "metadata": data.draw(
                st.fixed_dictionaries(
                    {},
                    optional={
                        "reviewRequired": st.booleans(),
                        "waitForChildren": st.booleans(),
                        "draft": st.booleans(),
                    },
                )
            ),
        }
        self.attempt(commands.Create(actor="pm", task_id=self.world.next_id(), title="Work", **fields))

    @rule(data=st.data(), agent=AGENTS, worker=st.sampled_from(["pull", "pull", "process"]))
    def claim(self, data: st.DataObject, agent: str, worker: str) -> None:
        self.attempt(commands.Claim(actor=agent, task_id=self.pick(data), worker=worker))

    @rule(
        data=st.data(),
        agent=AGENTS,
        kind=st.sampled_from([commands.RecordHeartbeat, commands.Release, commands.Update]),
    )
    def work(self, data: st.DataObject, agent: str, kind: type[commands.OnTask]) -> None:
        task = self.pick(data)
        self.attempt(kind(actor=agent, task_id=task, run=self.maybe_run(data, task)))

    @rule(data=st.data(), agent=AGENTS, text=st.sampled_from(["x", "## Work Log", "```"]))
    def report(self, data: st.DataObject, agent: str, text: str) -> None:
        task = self.pick(data)
        self.attempt(commands.ReportProgress(actor=agent, task_id=task, run=self.maybe_run(data, task), text=text))
        assert self.world.tasks[task].body.count("\n## Work Log\n") <= 1

    @rule(data=st.data(), agent=AGENTS, outcome=st.sampled_from([None, "needs_review", "partial", "blocked"]))
    def complete(self, data: st.DataObject, agent: str, outcome: str | None) -> None:
        task = self.pick(data)
        blockers = ("no key",) if outcome == "blocked" else ()
        run = self.maybe_run(data, task)
        self.attempt(commands.Complete(actor=agent, task_id=task, run=run, outcome=outcome, blockers=blockers))

    @rule(data=st.data(), agent=AGENTS, retryable=st.booleans(), cause=st.sampled_from(["failed", "timed_out"]))
    def fail(self, data: st.DataObject, agent: str, retryable: bool, cause: Any) -> None:  # noqa: FBT001 - drawn
        task = self.pick(data)
        run = self.maybe_run(data, task)
        self.attempt(commands.Fail(actor=agent, task_id=task, run=run, retryable=retryable, cause=cause))

    @rule(data=st.data(), status=st.sampled_from(STATUSES))
    def update(self, data: st.DataObject, status: Any) -> None:
        task = self.pick(data)
        self.attempt(
            commands.Update(actor="ada", task_id=task, status=status, run=self.maybe_run(data, task), body="New.\n")
        )

    @rule(data=st.data(), status=st.sampled_from([None, *STATUSES]))
    def edit_the_file(self, data: st.DataObject, status: Any) -> None:
        others = sorted(self.world.tasks)
        changes = data.draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "title": st.just("By hand"),
                    "dependsOn": st.none() | st.lists(st.sampled_from(others), max_size=2),
                    "parentId": st.none() | st.sampled_from(others),
                    "metadata": st.none() | st.just({"draft": True}),
                    "lease": st.none(),
                    "retry": st.just({"attempts": 0}),
                },
            )
        )
        self.attempt(commands.ImportEdit(actor="hand", task_id=self.pick(data), changes=changes, status=status))

    @rule(
        data=st.data(),
        kind=st.sampled_from(
            [
                commands.Approve,
                commands.CancelTask,
                commands.Settle,
                commands.Unblock,
                commands.Pause,
                commands.Resume,
                commands.Expire,
            ]
        ),
    )
    def manage(self, data: st.DataObject, kind: type[commands.OnTask]) -> None:
        self.attempt(kind(actor="pm", task_id=self.pick(data)))

    @rule(data=st.data(), kind=st.sampled_from(BLOCKED_KINDS))
    def block(self, data: st.DataObject, kind: Any) -> None:
        self.attempt(commands.Block(actor="pm", task_id=self.pick(data), reason="wait", kind=kind))

    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        self.attempt(commands.Reject(actor="pm", task_id=self.pick(data), blockers=("no tests",)))

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        self.attempt(commands.RetryTask(actor="pm", task_id=self.pick(data), reason="again"))

    @rule(data=st.data())
    def depend(self, data: st.DataObject) -> None:
        self.attempt(commands.AddDependency(actor="pm", task_id=self.pick(data), blocker_id=self.pick(data)))

    @rule(data=st.data())
    def depend_no_longer(self, data: st.DataObject) -> None:
        self.attempt(commands.RemoveDependency(actor="pm", task_id=self.pick(data), blocker_id=self.pick(data)))

    @rule(data=st.data())
    def archive(self, data: st.DataObject) -> None:
        self.attempt(commands.ArchiveTask(actor="pm", task_id=self.pick(data)))

    @rule(data=st.data(), worker=st.sampled_from(["pull", "process"]))
    def claim_what_can_be_claimed(self, data: st.DataObject, worker: str) -> None:
        runnable = [task for task in sorted(self.world.tasks) if self.world.why_not(task) is None]
        if runnable:
            self.attempt(commands.Claim(actor="bob", task_id=data.draw(st.sampled_from(runnable)), worker=worker))

    @rule(data=st.data(), outcome=st.sampled_from(["done", "blocked", "needs_review", "partial"]))
    def report_and_vanish(self, data: st.DataObject, outcome: str) -> None:
        running = [task.id for task in self.world.tasks.values() if task.lease is not None and task.cancel is None]
        if running:
            self.world.report(data.draw(st.sampled_from(running)), outcome, "no key")

    @rule()
    def recover_everything(self) -> None:
        self.world.later(6 * MINUTE)
        for task in sorted(self.world.tasks):
            self.attempt(commands.Expire(actor="aof", task_id=task))

    @rule(data=st.data())
    def stop_a_worker(self, data: st.DataObject) -> None:
        pending = [task.id for task in self.world.tasks.values() if task.cancel is not None and task.lease is not None]
        if pending:
            self.attempt(commands.Settle(actor="host", task_id=data.draw(st.sampled_from(pending))))

    @rule(minutes=st.sampled_from([1, 4, 6, 20]))
    def wait(self, minutes: int) -> None:
        self.world.later(minutes * MINUTE)

    @invariant()
    def every_task_has_a_normalized_status(self) -> None:
        assert all(self.world.normalized(task) for task in self.world.tasks)

    def teardown(self) -> None:
        for task in self.world.tasks:
            self.world.check(task)
        self.world.assert_replay_is_the_same()


def test_whatever_a_team_does_the_rules_hold() -> None:
    run_state_machine_as_test(Team, settings=settings(WORLDS, max_examples=80, derandomize=True))


@pytest.mark.full
def test_whatever_a_thousand_other_teams_do_the_rules_hold() -> None:
    run_state_machine_as_test(Team, settings=settings(WORLDS, max_examples=1_000))
