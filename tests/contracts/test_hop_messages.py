"""Messages about hops, on every store: the run names the hop, its holder speaks, and what is stale is refused."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import Policy, run_place
from aof.kernel.results import Claimed, Sent
from aof.org.model import Agent, OrgChart
from aof.runs.model import RunResult
from aof.store.files.store import FilesystemStore
from aof.store.fold import fold
from aof.store.memory import FixedChart, FixedWorkflows
from aof.store.port import Scope, Store
from aof.testing import FakeClock
from aof.workflows.model import HopState, Workflow, workflow_of
from tests.support.messages import report, request, update
from tests.support.present import present
from tests.support.workflows import DIAMOND, REVIEW, hop, template


class Flow:
    """A task in a workflow, and what is said about its hops."""

    def __init__(
        self,
        store: Store,
        clock: FakeClock,
        chart: OrgChart | None = None,
        workflows: tuple[dict[str, Any], ...] = (REVIEW, DIAMOND),
    ) -> None:
        self.store = store
        org = FixedChart(chart) if chart is not None else None
        self.fabric = Fabric(store, clock, Policy(), "pm", org=org, workflows=FixedWorkflows(*workflows))

    def begin(self, workflow: str, *done: str) -> str:
        """Create the task; these hops are over, each by an agent of its own."""
        self.task_id = self.fabric.create("x", workflow=workflow).task_id
        for name in done:
            run = self.take(name, f"{name}-agent").run_id
            self.fabric.complete(self.task_id, run=run, outcome="complete")
        return self.task_id

    def take(self, hop: str, agent: str = "ada") -> Claimed:
        """Claim a hop."""
        return self.fabric.claim(self.task_id, agent=agent, hop=hop)

    def say(self, message: dict[str, Any], run: str | None = None) -> Sent:
        """Send one message; `runId` stands in its envelope."""
        (sent,) = self.fabric.send(message | ({"runId": run} if run is not None else {}))
        return sent

    def report(self, agent: str, outcome: str, *blockers: str, run: str | None = None) -> Sent:
        """A completion report."""
        return self.say(report(self.task_id, agent, outcome, blockers=list(blockers)), run)

    def update(self, agent: str, run: str | None = None, **payload: Any) -> Sent:
        """A status update."""
        return self.say(update(self.task_id, agent, **payload), run)

    @property
    def state(self) -> Workflow:
        """Where the hops stand; the log alone says the same."""
        folded = fold(self.store.events(task_id=self.task_id))[self.task_id].task
        now = workflow_of(self.fabric.get(self.task_id))
        assert folded is not None
        assert workflow_of(folded) == now
        return now

    def hop(self, name: str) -> HopState:
        """One of them."""
        return self.state.hop(name)

    def result(self, hop: str) -> RunResult | None:
        """What the hop's run has reported."""
        with self.store.unit(Scope(read=frozenset({self.task_id}))) as unit:
            found = unit.result(run_place(self.task_id, hop))
        assert found is None or isinstance(found, RunResult)
        return found

    def status(self) -> str:
        """Where the task is."""
        return self.fabric.get(self.task_id).status

    def kinds(self) -> list[str]:
        """The events of the task."""
        return [event.type for event in self.store.events(task_id=self.task_id)]


@pytest.fixture
def flow(store: Store, clock: FakeClock) -> Flow:
    """Two workflows and no chart."""
    return Flow(store, clock)


class TestCompletionReports:
    """What a run says of its hop goes on record, and the hop moves when the session ends."""

    def test_done_goes_on_record_and_the_end_of_the_session_advances(self, flow: Flow) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        assert flow.report("ada", "done", run=run).outcome == "accepted"
        said = present(flow.result("implement"))
        assert (said.outcome, said.run_id, said.hop) == ("done", run, "implement")
        assert flow.hop("implement").status == "running"
        (applied,) = flow.fabric.session_end(run=run)
        assert (applied.outcome, applied.hop, applied.to_status) == ("done", "implement", "ready")
        assert (flow.hop("implement").status, flow.hop("code-review").status) == ("done", "ready")

    def test_parallel_hops_are_told_apart_by_their_runs(self, flow: Flow) -> None:
        flow.begin("diamond", "build")
        first, second = flow.take("test"), flow.take("audit", "bob")
        assert flow.report("bob", "done", run=second.run_id).outcome == "accepted"
        assert flow.result("test") is None
        (applied,) = flow.fabric.session_end(run=second.run_id)
        assert (applied.hop, applied.from_status, applied.to_status) == ("audit", "in-progress", "in-progress")
        assert (flow.hop("test").status, flow.hop("audit").status) == ("running", "done")
        assert flow.report("ada", "done", run=first.run_id).outcome == "accepted"

    def test_without_a_run_the_only_hop_of_the_sender_is_meant(self, flow: Flow) -> None:
        flow.begin("diamond", "build")
        flow.take("test"), flow.take("audit", "bob")
        assert flow.report("bob", "done").outcome == "accepted"
        assert flow.result("test") is None
        assert flow.result("audit") is not None

    def test_who_holds_two_hops_must_name_the_run(self, flow: Flow) -> None:
        flow.begin("diamond", "build")
        flow.take("test"), flow.take("audit")
        assert flow.report("ada", "done").reason == "run_required"
        assert flow.kinds().count("task.completed") == 1, "only that of the hop before"

    def test_needs_review_with_blockers_sends_the_work_back(self, flow: Flow) -> None:
        flow.begin("review", "implement")
        run = flow.take("code-review", "rev").run_id
        assert flow.report("rev", "needs_review", "no test for expiry", run=run).outcome == "accepted"
        flow.fabric.session_end(run=run)
        assert (flow.hop("implement").status, flow.hop("code-review").status) == ("ready", "rejected")
        feedback = present(flow.state.feedback)
        assert (feedback.by, feedback.blockers) == ("rev", ("no test for expiry",))

    def test_a_rejection_that_does_not_say_what_to_change_is_refused(self, flow: Flow) -> None:
        flow.begin("review", "implement")
        run = flow.take("code-review", "rev").run_id
        sent = flow.report("rev", "needs_review", run=run)
        assert (sent.outcome, sent.reason) == ("rejected", "invalid")
        assert flow.result("code-review") is None

    @pytest.mark.parametrize("outcome", ["needs_review", "partial"])
    def test_where_nothing_can_be_sent_back_a_person_looks_at_it(self, flow: Flow, outcome: str) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        flow.report("ada", outcome, run=run)
        flow.fabric.session_end(run=run)
        assert (flow.hop("implement").status, flow.status()) == ("review", "review")
        flow.fabric.approve(flow.task_id)
        assert flow.hop("code-review").status == "ready"

    def test_blocked_holds_the_hop_and_lets_the_other_one_go_on(self, flow: Flow) -> None:
        flow.begin("diamond", "build")
        first, second = flow.take("test"), flow.take("audit", "bob")
        flow.report("bob", "blocked", "no key", run=second.run_id)
        flow.fabric.session_end(run=second.run_id)
        assert (flow.hop("audit").status, flow.hop("audit").reason) == ("blocked", "no key")
        assert flow.status() == "in-progress"
        flow.fabric.complete(flow.task_id, run=first.run_id, outcome="complete")
        assert flow.status() == "blocked"

    def test_the_same_report_again_changes_nothing_also_after_the_end(self, flow: Flow) -> None:
        flow.begin("review", "implement")
        run = flow.take("code-review", "rev").run_id
        assert flow.report("rev", "needs_review", "no test", run=run).outcome == "accepted"
        assert flow.report("rev", "needs_review", "no test", run=run).outcome == "noop"
        flow.fabric.session_end(run=run)
        before = flow.state
        assert flow.report("rev", "needs_review", "no test", run=run).outcome == "noop"
        assert flow.report("rev", "done", run=run).reason == "stale_lease"
        assert flow.state == before

    def test_a_replaced_run_is_stale(self, flow: Flow, clock: FakeClock) -> None:
        flow.begin("review")
        old = flow.take("implement").run_id
        clock.sleep(600)
        flow.fabric.recover()
        clock.sleep(600)
        new = flow.take("implement", "bob").run_id
        for sent in (flow.report("ada", "done", run=old), flow.update("ada", run=old, progress="late")):
            assert (sent.outcome, sent.reason) == ("rejected", "stale_lease")
        assert flow.result("implement") is None
        assert flow.hop("implement").run_id == new

    def test_naming_a_run_does_not_make_one_its_holder(self, flow: Flow) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        for sent in (flow.report("eve", "done", run=run), flow.report("eve", "done"), flow.update("eve", progress="x")):
            assert (sent.outcome, sent.reason) == ("rejected", "not_lease_holder")
        assert flow.result("implement") is None

    def test_a_run_that_nobody_ever_had_is_stale(self, flow: Flow) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        assert flow.report("ada", "done", run=f"{run}7").reason == "stale_lease"

    def test_who_lost_the_hops_role_cannot_report_on_it(self, store: Store, clock: FakeClock) -> None:
        chart = OrgChart(agents=(Agent(id="dev", roles=("developer",)), Agent(id="rev", roles=("reviewer",))))
        flow = Flow(store, clock, chart)
        flow.begin("review")
        run = flow.take("implement", "dev").run_id
        moved = OrgChart(agents=(Agent(id="dev", roles=("tester",)), Agent(id="rev", roles=("developer",))))
        later = Flow(store, clock, moved)
        later.task_id = flow.task_id
        assert later.report("dev", "done", run=run).reason == "wrong_role"
        assert flow.report("dev", "done", run=run).outcome == "accepted"

    def test_a_worker_that_vanished_after_its_report_has_reported(self, flow: Flow, clock: FakeClock) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        flow.report("ada", "done", run=run)
        clock.sleep(600)
        assert [(one.action, one.hop) for one in flow.fabric.tick().actions] == [("stale_heartbeat", "implement")]
        assert (flow.hop("implement").status, flow.hop("implement").failures) == ("done", 0)

    def test_a_file_that_is_not_there_is_warned_of(self, flow: Flow, store: Store) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        flow.report("ada", "done", run=run)
        flow.fabric.session_end(run=run)
        warned = [one.payload["path"] for one in store.events(task_id=flow.task_id) if one.type == "task.warning"]
        files = isinstance(store, FilesystemStore)  # the other one has none that could be missing
        assert warned == (["outputs/summary.md", "outputs/handoff.md"] if files else [])


class TestStatusUpdates:
    """Progress and moves of one hop."""

    def test_progress_is_noted_and_renews_the_hops_lease(self, flow: Flow, clock: FakeClock) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        clock.sleep(200)
        assert flow.update("ada", run=run, progress="half of it").outcome == "accepted"
        clock.sleep(200)
        assert not flow.fabric.tick().actions, "the lease was renewed"
        task = flow.fabric.get(flow.task_id)
        assert "Progress: half of it" in task.body
        assert (task.progress["hop"], task.progress["runId"]) == ("implement", run)

    def test_blocked_ends_the_run_and_holds_only_its_hop(self, flow: Flow) -> None:
        flow.begin("diamond", "build")
        run, other = flow.take("audit", "bob").run_id, flow.take("test").run_id
        assert flow.update("bob", run=run, status="blocked", blockers=["no key"]).outcome == "accepted"
        assert (flow.hop("audit").status, flow.hop("audit").reason) == ("blocked", "no key")
        assert flow.hop("test").run_id == other
        assert flow.status() == "in-progress"
        flow.fabric.unblock(flow.task_id)
        assert (flow.hop("audit").status, flow.hop("audit").failures) == ("ready", 0)

    def test_blocked_holds_the_task_where_no_other_hop_is_open(self, flow: Flow) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        flow.update("ada", run=run, status="blocked", blockers=["no key"])
        task = flow.fabric.get(flow.task_id)
        assert task.blocked is not None
        assert (task.status, task.blocked.reason, task.blocked.by) == ("blocked", "implement: no key", "ada")

    def test_ready_gives_the_hop_back(self, flow: Flow) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        assert flow.update("ada", run=run, status="ready").outcome == "accepted"
        assert (flow.hop("implement").status, flow.hop("implement").failures) == ("ready", 0)

    def test_in_progress_takes_a_hop_that_is_free(self, flow: Flow) -> None:
        flow.begin("diamond", "build")
        first = flow.update("ada", status="in-progress")
        second = flow.update("bob", status="in-progress")
        assert (first.run_id, second.run_id) == (flow.hop("test").run_id, flow.hop("audit").run_id)
        assert (flow.hop("test").agent, flow.hop("audit").agent) == ("ada", "bob")
        assert flow.update("cem", status="in-progress").reason == "not_lease_holder"

    def test_who_holds_several_hops_takes_no_other_by_a_note(self, store: Store, clock: FakeClock) -> None:
        wide = Flow(store, clock, workflows=(template(hop("a"), hop("b"), hop("c")),))
        wide.begin("flow")
        wide.take("a")
        assert wide.update("ada", status="in-progress", notes="on it").outcome == "accepted"
        assert wide.hop("b").status == "ready"
        wide.take("b")
        assert wide.update("ada", status="in-progress", notes="on both").reason == "run_required"
        assert wide.hop("c").status == "ready"

    @pytest.mark.parametrize("status", ["review", "done"])
    def test_what_only_an_outcome_decides_is_noted_instead(self, flow: Flow, status: str) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        sent = flow.update("ada", run=run, status=status, notes="look at it")
        assert (sent.outcome, sent.reason) == ("accepted", "outcome_required")
        assert flow.hop("implement").run_id == run
        assert "look at it" in flow.fabric.get(flow.task_id).body

    def test_without_a_holder_an_old_run_is_stale_and_a_note_is_taken(self, flow: Flow) -> None:
        flow.begin("review")
        run = flow.take("implement").run_id
        flow.fabric.complete(flow.task_id, run=run, outcome="complete")
        assert flow.update("ada", run=run, progress="late").reason == "stale_lease"
        assert flow.update("eve", notes="by the way").outcome == "accepted"


def test_who_holds_a_hop_may_delegate_a_part_and_nobody_else(flow: Flow) -> None:
    parent = flow.begin("review")
    run = flow.take("implement").run_id
    child = flow.fabric.create("Part", agent="bob", parent_id=parent).task_id
    assert flow.say(request(child, parent, "eve")).reason == "not_lease_holder"
    assert flow.say(request(child, parent, "ada"), run).outcome == "accepted"
    assert [one.to_agent for one in flow.fabric.handoff_list(task=child)] == ["bob"]
