"""Templates for tests, drawn and written by hand, and a world with a gated task in it."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st

from aof.errors import AofError
from aof.kernel import commands
from aof.tasks.fields import PLAIN
from aof.workflows.hops import state_of
from aof.workflows.model import ENDED, HopState, Workflow, workflow_of
from aof.workflows.templates import validate_template
from tests.support.present import present
from tests.support.world import World

REVIEW: dict[str, Any] = {
    "name": "review",
    "hops": [
        {"id": "implement", "role": "developer"},
        {"id": "code-review", "role": "reviewer", "dependsOn": ["implement"], "canReject": True},
        {"id": "ship", "role": "releaser", "dependsOn": ["code-review"]},
    ],
}
DIAMOND: dict[str, Any] = {
    "name": "diamond",
    "hops": [
        {"id": "build", "role": "developer"},
        {"id": "test", "role": "tester", "dependsOn": ["build"]},
        {"id": "audit", "role": "auditor", "dependsOn": ["build"]},
        {"id": "ship", "role": "releaser", "dependsOn": ["test", "audit"], "canReject": True},
    ],
}


def hop(name: str, *before: str, **more: Any) -> dict[str, Any]:
    """A hop of a template."""
    return {"id": name, "role": "worker", **({"dependsOn": list(before)} if before else {}), **more}


def template(*hops: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A template that is sound."""
    made = {"name": "flow", "hops": list(hops), **more}
    assert validate_template(made).template is not None, validate_template(made).findings
    return made


class Gated(World):
    """A world with one gated task."""

    def begin(self, document: dict[str, Any], **given: Any) -> str:
        """Create the task and give its ID."""
        plain = {row.key: given.pop(row.name) for row in PLAIN if row.name in given}
        command = commands.CreateGated(
            actor="pm",
            task_id=self.next_id(),
            title="Gated",
            workflow=document["name"],
            template=document,
            fields=plain,
            **given,
        )
        self.do(command)
        self.task_id = command.task_id
        return command.task_id

    @property
    def flow(self) -> Workflow:
        """The task's workflow."""
        return workflow_of(self.tasks[self.task_id])

    def hop(self, name: str) -> HopState:
        """One hop."""
        return self.flow.hop(name)

    def statuses(self) -> dict[str, str]:
        """The status of each hop."""
        return dict(self.flow.statuses())

    def open_hops(self) -> list[str]:
        """What can be claimed."""
        return [one.id for one in self.flow.hops if one.status == "ready"]

    def worker(self, name: str) -> str:
        """Who takes a hop unless a test says otherwise: nobody judges their own work."""
        return "rev" if self.flow.template.by_id[name].can_reject else "ada"

    def take(self, name: str, agent: str | None = None, **more: Any) -> str:
        """Claim a hop; the run's ID."""
        agent = agent or self.worker(name)
        self.do(commands.Claim(actor=agent, task_id=self.task_id, hop=name, **more))
        return present(self.hop(name).run_id)

    def end(self, name: str, outcome: str = "complete", *blockers: str, agent: str | None = None, **more: Any) -> None:
        """Take a hop and give its outcome."""
        agent = agent or self.worker(name)
        run = self.take(name, agent)
        self.act(commands.Complete, self.task_id, agent, run=run, outcome=outcome, blockers=blockers, **more)

    def status_of_task(self) -> str:
        """The task's status."""
        return self.tasks[self.task_id].status

    def check_flow(self) -> None:
        """What holds of every gated task between two commits."""
        task, flow = self.tasks[self.task_id], self.flow
        for one in flow.hops:
            assert (one.lease is not None) == (one.status == "running")
            if one.status in ("skipped", "failed", "timed_out", "blocked"):
                assert one.reason, f"{one.id} is {one.status} and says no reason"
        held = [one.lease.run_id for one in flow.hops if one.lease is not None]
        assert len(held) == len(set(held)), "one run holds one hop"
        if task.status in ("ready", "in-progress", "review"):
            expected = {"running": "in-progress", "ready": "ready", "review": "review"}
            assert expected[state_of(flow)] == task.status
        if task.status == "done":
            assert all(one.status in ENDED for one in flow.hops)
            assert flow.state == "done"
        if task.status == "deadletter":
            assert task.last_error is not None
        if task.status == "blocked":
            assert present(task.blocked).reason

    def goes_on(self, most: int = 400) -> str:
        """From here, who does what can be done brings the task to an end; the status at the end."""
        for _ in range(most):
            if self.status_of_task() in ("done", "deadletter", "cancelled"):
                return self.status_of_task()
            command = self._leads_on()
            self.do(command)
            self.check_flow()
        raise AssertionError(f"this never ends: {self.statuses()}")

    def _leads_on(self) -> commands.OnTask:
        """Something that somebody can do; nothing to do means that the workflow hangs."""
        task, flow = self.tasks[self.task_id], self.flow
        about: dict[str, Any] = {"actor": "zed", "task_id": task.id}
        if task.status == "backlog":
            return commands.Update(**about, status="ready")
        if task.status == "blocked":
            return commands.Unblock(**about)
        for one in flow.hops:
            if one.lease is not None:
                return commands.Complete(**about, run=one.lease.run_id, outcome="complete")
        for one in flow.hops:
            if one.status == "review":
                return commands.Approve(**about | {"actor": "judge"}, hop=one.id)
        for one in flow.hops:
            if one.status == "ready" and (one.not_before is None or task.status == "in-progress"):
                agent = f"zed-{one.id}"  # nobody judges their own work
                return commands.Claim(**about | {"actor": agent}, hop=one.id)
        if any(one.not_before for one in flow.hops):
            return commands.RetryTask(**about, reason="go on")
        raise AssertionError(f"{task.id} is {task.status} and hangs: {self.statuses()}")

    def attempt(self, command: commands.OnTask) -> AofError | None:
        """Accepted or refused, but never an error."""
        verdict = self.verdict(command)
        if isinstance(verdict, AofError):
            assert verdict.hint
            return verdict
        self.commit(command, verdict)
        self.check_flow()
        return None


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    """Any sound template of up to six hops."""
    names = [f"h{number}" for number in range(draw(st.integers(1, 6)))]
    hops = []
    for number, name in enumerate(names):
        before = draw(st.lists(st.sampled_from(names[:number]), unique=True, max_size=3)) if number else []
        made: dict[str, Any] = {"id": name, "role": "worker", "dependsOn": before}
        made["joinType"] = draw(st.sampled_from(["all", "any"]))
        made["autoAdvance"] = draw(st.sampled_from([True, True, False]))
        if before:
            made["canReject"] = draw(st.booleans())
            if made["canReject"]:
                made["rejectionStrategy"] = draw(st.sampled_from(["origin", "predecessors"]))
        if draw(st.booleans()):
            made["timeout"] = "2h"
            if draw(st.booleans()):
                made["escalateTo"] = "architect"
        if draw(st.integers(0, 3)) == 0:
            made["condition"] = draw(_conditions(before))
        hops.append(made)
    return {"name": "flow", "rejectionLimit": draw(st.integers(1, 3)), "hops": hops}


def _conditions(before: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    simple = [
        {"eq": {"field": "metadata.risk", "value": "high"}},
        {"has_tag": "api"},
        {"not": {"has_tag": "api"}},
    ]
    asked = [{"hop_status": {"hop": name, "status": status}} for name in before for status in ("done", "skipped")]
    return st.sampled_from([*simple, *asked])
