"""Tasks that pass through the hops of a workflow, and always come to an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidTransition, OwnWork
from aof.kernel import commands
from aof.kernel.model import Policy
from aof.org.model import Agent, OrgChart
from aof.store.files.store import FilesystemStore
from aof.store.memory import FixedChart, FixedWorkflows
from aof.testing import FakeClock, memory_fabric
from aof.workflows.model import Workflow, workflow_of
from aof.workflows.outcomes import due_hops
from tests.support.desk import contents
from tests.support.requirements import requirement
from tests.support.workflows import DIAMOND, REVIEW, Gated, hop, templates
from tests.support.world import MINUTE

# --- what the tools promise of gated tasks, on a data directory with its templates and its org chart


CHART = OrgChart(
    agents=(
        Agent(id="dev", roles=("developer",)),
        Agent(id="rev", roles=("reviewer",)),
        Agent(id="rel", roles=("releaser",)),
    )
)
BACK = {
    "name": "back",
    "hops": [hop("a"), hop("b", "a"), hop("c", "b", canReject=True, rejectionStrategy="predecessors")],
}
ORIGIN = {"name": "origin", "hops": [hop("a"), hop("b", "a"), hop("c", "b", canReject=True)]}
RISKY = {
    "name": "risky",
    "hops": [hop("a"), hop("audit", "a", condition={"has_tag": "security"}), hop("ship", "audit")],
}


class Place:
    """A data directory with workflows."""

    def __init__(self, root: Path, chart: OrgChart | None = None) -> None:
        self.root = root
        self.clock = FakeClock("2026-03-02T09:00:00Z")
        FilesystemStore.create(str(root))
        self.fabric = Fabric(
            FilesystemStore(str(root), self.clock, durable=False),
            self.clock,
            Policy(),
            "pm",
            org=FixedChart(chart) if chart is not None else None,
            workflows=FixedWorkflows(REVIEW, DIAMOND, BACK, ORIGIN, RISKY),
        )

    def at(self, workflow: str, *done: str, **given: Any) -> str:
        """A task of that workflow in which these hops are done, each by an agent of its own."""
        task = self.fabric.create("Gated", workflow=workflow, **given).task_id
        for name in done:
            self.fabric.complete(task, hop=name, outcome="complete", agent=f"doer-{name}")
        return task

    def flow(self, task: str) -> Workflow:
        """The task's workflow."""
        return workflow_of(self.fabric.get(task))

    def refused(self, call: Callable[..., object], *given: Any, **named: Any) -> AofError:
        """Refused, with a hint, and nothing changed."""
        before = contents(self.root)
        with pytest.raises(AofError) as caught:
            call(*given, **named)
        assert caught.value.hint
        assert contents(self.root) == before
        return caught.value

    def said(self, error: AofError) -> str:
        """All that a caller reads."""
        return f"{error.message} {error.hint} {error.call.arguments if error.call is not None else ''}"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / ".aof")
    yield made
    made.fabric.close()


@pytest.fixture
def charted(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / ".aof", CHART)
    yield made
    made.fabric.close()


@requirement("tools.workflow.advance")
def test_complete_advances_and_both_branches_of_a_diamond_run_at_once(place: Place) -> None:
    task = place.at("review")
    for name, role, status in (
        ("implement", "developer", "ready"),
        ("code-review", "reviewer", "ready"),
        ("ship", "releaser", "done"),
    ):
        claimed = place.fabric.claim(task, agent=f"doer-{name}")
        assert (claimed.hop, place.flow(task).hop(name).role) == (name, role)
        assert place.fabric.complete(task, run=claimed.run_id, outcome="complete").status == status
    task = place.at("diamond", "build")
    one, two = place.fabric.claim(task, agent="ada"), place.fabric.claim(task, agent="bob")
    assert {one.hop, two.hop} == {"test", "audit"}
    leases = {state.id: state.lease.run_id for state in place.flow(task).running() if state.lease is not None}
    assert leases == {one.hop: one.run_id, two.hop: two.run_id}
    assert all((place.root / "runs" / task / "hops" / str(name) / "run.json").exists() for name in leases)
    assert place.fabric.complete(task, run=one.run_id, outcome="complete").status == "in-progress"
    assert place.flow(task).hop("ship").status == "waiting"
    place.fabric.complete(task, run=two.run_id, outcome="complete")
    assert place.flow(task).hop("ship").status == "ready"


@requirement("tools.workflow.final")
@pytest.mark.parametrize("metadata", [{"reviewRequired": True}, {"reviewRequired": False}, {}])
def test_the_last_hop_ends_the_task_whatever_reviews_are_asked_for(place: Place, metadata: dict[str, Any]) -> None:
    task = place.at("risky", "a", metadata=metadata)
    assert place.fabric.complete(task, outcome="complete", agent="rel").status == "done"
    flow = place.flow(task)
    assert (flow.state, flow.hop("audit").status) == ("done", "skipped")
    assert [past.status for past in flow.hop("ship").history] == ["ready", "running", "done"]
    moves = [event.payload["to"] for event in place.fabric.events(task_id=task) if event.type == "task.transitioned"]
    assert moves[-2:] == ["review", "done"]


@requirement("tools.workflow.reject")
@pytest.mark.parametrize(("workflow", "opened"), [("origin", ["a"]), ("back", ["b"])])
def test_a_rejection_opens_what_its_strategy_says_and_its_blockers_reach_the_next(
    place: Place, workflow: str, opened: list[str]
) -> None:
    task = place.at(workflow, "a", "b")
    given: dict[str, Any] = {"outcome": "needs_review", "blockers": ["no test for expiry"], "summary": "close"}
    assert place.fabric.complete(task, agent="rev", **given).status == "ready"
    flow = place.flow(task)
    assert [state.id for state in flow.hops if state.status == "ready"] == opened
    assert flow.hop("c").status == "rejected"
    assert flow.feedback is not None
    assert (flow.feedback.blockers, flow.feedback.summary, flow.feedback.hop) == (("no test for expiry",), "close", "c")
    assert "no test for expiry" in place.fabric.get(task).body
    (event,) = [event for event in place.fabric.events(task_id=task) if event.type == "task.hop.rejected"]
    assert event.payload["blockers"] == ["no test for expiry"]


@requirement("tools.workflow.first-hop")
@pytest.mark.parametrize("done", [(), ("a",)])
def test_the_first_hop_and_one_without_the_right_cannot_reject(place: Place, done: tuple[str, ...]) -> None:
    task = place.at("origin", *done)
    error = place.refused(place.fabric.complete, task, agent="x", outcome="needs_review", blockers=["no"])
    assert "'complete' or 'blocked'" in error.message


@requirement("tools.workflow.third-rejection")
def test_the_third_rejection_fails_the_hop_and_ends_the_task(place: Place) -> None:
    task = place.at("origin")
    for number in range(3):
        for name in ("a", "b"):
            run = place.fabric.claim(task, agent=f"doer-{name}").run_id
            place.fabric.complete(task, run=run, outcome="complete")
        run = place.fabric.claim(task, agent="rev").run_id
        moved = place.fabric.complete(task, run=run, outcome="needs_review", blockers=[f"flaw {number}"])
        assert moved.status == ("ready" if number < 2 else "deadletter")
    flow, record = place.flow(task), place.fabric.get(task)
    assert (flow.hop("c").status, flow.hop("c").rejections) == ("failed", 3)
    assert record.last_error is not None
    assert "rejected 3 times, last: flaw 2" in record.last_error.message
    assert place.fabric.ready().total == 0


@requirement("tools.workflow.hold")
def test_blocked_holds_the_hop_and_unblocking_takes_it_up_again(place: Place) -> None:
    task = place.at("origin", "a")
    run = place.fabric.claim(task, agent="ada").run_id
    assert place.fabric.complete(task, run=run, outcome="blocked", blockers=["no key"]).status == "blocked"
    record = place.fabric.get(task)
    assert record.blocked is not None
    assert record.blocked.reason == "b: no key"
    assert place.flow(task).hop("b").status == "blocked"
    place.fabric.unblock(task)
    assert place.fabric.claim(task, agent="bob").hop == "b"
    assert place.flow(task).hop("b").rejections == 0


@requirement("tools.workflow.hold")
def test_a_task_with_another_hop_to_go_on_with_is_not_blocked(place: Place) -> None:
    task = place.at("diamond", "build")
    run = place.fabric.claim(task, agent="ada", hop="test").run_id
    assert place.fabric.complete(task, run=run, outcome="blocked", blockers=["no rig"]).status == "ready"
    assert place.fabric.complete(task, agent="bob", outcome="complete").status == "blocked"
    place.fabric.unblock(task)
    assert place.flow(task).hop("test").status == "ready"


@requirement("tools.workflow.caller-role", "tools.errors.gate-role")
def test_the_role_of_who_the_chart_knows_is_checked_at_claim_and_completion(charted: Place) -> None:
    fabric = charted.fabric
    for agent, role, passes in (
        ("rev", "reviewer", True),
        ("rev", None, True),
        ("dev", "reviewer", False),
        ("dev", None, False),
        ("dev", "developer", False),
        ("rev", "developer", False),
    ):
        task = fabric.create("Gated", workflow="review").task_id
        fabric.complete(task, outcome="complete", agent="dev")
        if passes:
            assert fabric.complete(task, agent=agent, caller_role=role, outcome="complete").status == "ready"
        else:
            said = {"agent": agent, "caller_role": role, "outcome": "complete", "summary": "fine"}
            error = charted.refused(fabric.complete, task, **said)
            assert error.code == "wrong_role"
            assert "'code-review'" in error.message
            assert "'reviewer'" in error.message
            assert "developer" in error.message
    task = fabric.create("Gated", workflow="review").task_id
    assert charted.refused(fabric.claim, task, agent="stranger").code == "wrong_role"
    fabric.complete(task, outcome="complete", agent="dev")
    for agent, role in (("dev", None), ("stranger", None), ("stranger", "reviewer")):
        assert charted.refused(fabric.claim, task, agent=agent).code == "wrong_role"
        said = {"agent": agent, "caller_role": role, "outcome": "complete", "summary": "fine"}
        refused = charted.refused(fabric.complete, task, **said)
        assert refused.code == "wrong_role"


@requirement("tools.workflow.no-bypass")
def test_nothing_leads_a_gated_task_to_done_past_its_open_hops(place: Place) -> None:
    fabric, task = place.fabric, place.at("review")
    for status in ("done", "review"):
        error = place.refused(fabric.update, task, status=status)
        assert (error.code, "DAG workflow" in error.message) == ("outcome_required", True)
    place.refused(fabric.approve, task)
    place.refused(fabric.complete, task, agent="ada", outcome="shipped")
    run = fabric.claim(task, agent="ada").run_id
    place.refused(fabric.update, task, status="done", run=run)
    place.refused(fabric.update, task, status="review", run=run)
    place.refused(fabric.edit, task, routing={"workflow": None})
    place.refused(fabric.edit, task, routing={"workflow": "origin"})
    assert fabric.edit(task, metadata={"reviewRequired": False}).updated_fields == ("metadata",)
    assert fabric.complete(task, run=run, outcome="complete").status == "ready"
    assert fabric.block(task, reason="wait").status == "blocked"
    assert fabric.cancel(task).status == "cancelled"
    assert fabric.cancel(place.at("diamond", "build")).status == "cancelled"


@requirement("tools.errors.gate-outcome-missing")
@pytest.mark.parametrize("claimed", [False, True])
def test_a_missing_outcome_means_complete(place: Place, *, claimed: bool) -> None:
    task = place.at("review", "implement")
    if claimed:
        place.fabric.claim(task, agent="rev")
    place.fabric.complete(task, agent="rev", summary="ok")
    hops = {hop["id"]: hop["status"] for hop in place.fabric.get(task).workflow["hops"]}
    assert hops["code-review"] == "done"
    (reported,) = [
        e for e in place.fabric.events(task_id=task) if e.type == "task.completed" and e.payload["hop"] == "code-review"
    ]
    assert reported.payload["result"]["outcome"] == "done"


@requirement("tools.errors.gate-outcome-unknown")
def test_an_unknown_outcome_is_taught(place: Place) -> None:
    task = place.at("review")
    said = place.said(place.refused(place.fabric.complete, task, agent="ada", outcome="maybe"))
    for word in (
        task,
        "DAG workflow",
        "implement",
        "summary",
        "'maybe'",
        "complete (advance)",
        "needs_review (send back",
        "blocked (hold",
        "'outcome': 'complete'",
    ):
        assert word in said


@requirement("tools.errors.gate-blockers-missing")
@pytest.mark.parametrize("outcome", ["needs_review", "blocked"])
@pytest.mark.parametrize("blockers", [(), [], [" "]])
def test_missing_blockers_are_taught(place: Place, outcome: str, blockers: Any) -> None:
    task = place.at("review", "implement")
    run = place.fabric.claim(task, agent="rev").run_id
    before = place.flow(task)
    error = place.refused(place.fabric.complete, task, run=run, outcome=outcome, blockers=blockers)
    assert (f"'{outcome}'" in error.message, "'blockers'" in error.message) == (True, True)
    assert error.call is not None
    assert error.call.arguments["blockers"] == ["no test for expiry"]
    assert place.flow(task) == before


def test_complete_on_a_hop_answers_with_the_next_hops_and_who_may_take_them(charted: Place, place: Place) -> None:
    task = charted.fabric.create("Gated", workflow="review").task_id
    done = charted.fabric.complete(task, agent="dev", outcome="complete")
    assert [(one.hop, one.status, one.role, one.agents) for one in done.next or ()] == [
        ("code-review", "ready", "reviewer", ("rev",))
    ]
    charted.fabric.complete(task, agent="rev", outcome="complete")
    last = charted.fabric.complete(task, agent="rel", outcome="complete")
    assert (last.status, last.next) == ("done", ())
    free = place.at("diamond")
    after = place.fabric.complete(free, hop="build", outcome="complete", agent="ada")
    assert [(one.hop, one.agents) for one in after.next or ()] == [("test", ()), ("audit", ())]
    assert place.fabric.complete(place.fabric.create("Plain").task_id, agent="ada").next is None


def test_complete_on_a_hop_says_what_follows_and_names_nobody_where_anybody_may(place: Place) -> None:
    task = place.fabric.create("Gated", workflow="review").task_id
    done = place.fabric.complete(task, agent="dev", outcome="complete")
    assert done.note == ("code-review is next, for the role reviewer; if the work is sent back, claim the task again")
    assert [*done.to_dict()["next"]] == [{"hop": "code-review", "status": "ready", "role": "reviewer"}]
    back = place.fabric.complete(task, agent="rev", outcome="needs_review", blockers=["no test"])
    assert (back.sent_back, back.note) == (("implement",), None)
    ungated = place.fabric.complete(place.fabric.create("Plain").task_id, agent="ada")
    assert (ungated.sent_back, ungated.note) == (None, None)


def test_a_report_sent_twice_does_not_end_the_next_hop() -> None:
    fabric = memory_fabric(workflows=(REVIEW,))
    task = fabric.create("Gated", workflow="review").task_id
    fabric.claim(task, agent="ada")
    fabric.complete(task, outcome="complete", summary="Built.", agent="ada")
    head = fabric.store.head()
    assert fabric.complete(task, outcome="complete", summary="Built.", agent="ada").status == "ready"
    assert fabric.store.head() == head
    with pytest.raises(OwnWork):
        fabric.complete(task, outcome="complete", summary="Built, and more.", agent="ada")
    assert [one.status for one in workflow_of(fabric.get(task)).hops][:2] == ["done", "ready"]
    run = fabric.claim(task, agent="rev").run_id
    assert fabric.complete(task, outcome="complete", run=run).task_id == task


def test_a_finished_workflow_cannot_be_sent_back_by_an_outcome() -> None:
    fabric = memory_fabric(workflows=({"name": "one", "hops": [hop("a")]},))
    task = fabric.create("Gated", workflow="one").task_id
    fabric.complete(task, outcome="complete", agent="ada")
    for outcome in ("needs_review", "blocked"):
        with pytest.raises(InvalidTransition):
            fabric.complete(task, outcome=outcome, blockers=["no tests"], agent="bob")
    assert fabric.complete(task, outcome="complete", agent="ada").status == "done"


def test_a_hop_that_has_delegated_waits_for_the_children_also_beside_a_running_hop(place: Place) -> None:
    fabric, task = place.fabric, place.at("diamond", "build")
    for others in (True, False):  # whether another hop runs meanwhile
        beside = fabric.claim(task, hop="audit", agent="bob").run_id if others else None
        run = fabric.claim(task, hop="test", agent="ada").run_id
        child = fabric.create("A part", parent_id=task, review=False).task_id
        released = fabric.release(task, run=run, wait_for_children=True)
        assert (released.status, released.waits_for) == ("in-progress" if others else "ready", (child,))
        refused = place.refused(fabric.claim, task, hop="test", agent="ada")
        assert (refused.code, refused.details["children"]) == ("not_ready", [child])
        assert place.refused(fabric.complete, task, hop="test", agent="ada", outcome="complete").code == "not_ready"
        assert [row.id for row in fabric.ready().tasks] == [child]
        fabric.complete(child, agent="cem")
        assert [row.id for row in fabric.ready().tasks] == [task]
        again = fabric.claim(task, hop="test", agent="ada").run_id
        assert not fabric.get(task).waits_for_children
        assert [hop.failures for hop in place.flow(task).hops] == [0, 0, 0, 0]
        fabric.release(task, run=again)
        if beside is not None:
            fabric.release(task, run=beside)
    run = fabric.claim(task, hop="test", agent="ada").run_id
    child = fabric.create("Another part", parent_id=task).task_id
    fabric.release(task, run=run, wait_for_children=True)
    assert place.refused(fabric.claim, task, hop="test", agent="ada").details["children"] == [child]
    fabric.retry(task, reason="go on without it")
    assert fabric.claim(task, hop="test", agent="ada").task_id == task


@pytest.mark.parametrize("claimed", [False, True])
def test_who_wants_to_send_back_is_never_shown_the_call_that_accepts(place: Place, *, claimed: bool) -> None:
    fabric, task = place.fabric, place.at("review", "implement")
    if claimed:
        fabric.claim(task, agent="rev")
    refused = place.refused(fabric.reject, task, blockers=["no test"], actor="rev")
    assert (refused.code, "DAG" in refused.message) == ("outcome_required", False)
    ways = [refused.call, *((refused.otherwise[1],) if refused.otherwise else ())]
    assert [one.operation for one in ways] == (["complete"] if claimed else ["claim", "complete"])
    assert ways[-1].arguments == {"task_id": task, "outcome": "needs_review", "blockers": ["no test"]}
    for one in ways:
        getattr(fabric, one.operation)(**one.arguments, **({} if "agent" in one.arguments else {"agent": "rev"}))
    hops = {hop["id"]: hop["status"] for hop in fabric.get(task).workflow["hops"]}
    assert (hops["implement"], hops["code-review"]) == ("ready", "rejected")


def test_a_rejection_where_nothing_can_be_sent_back_shows_where_each_hop_stands(place: Place) -> None:
    task = place.at("review")
    refused = place.refused(place.fabric.reject, task, blockers=["no test"])
    assert refused.call is not None
    assert refused.call.operation == "workflow_show"


# --- no combination of outcomes hangs a workflow: from wherever it got to, somebody can bring it to an end


AGENTS = ("ada", "bob")
OUTCOMES = ("complete", "complete", "needs_review", "blocked")
SLOW = list(HealthCheck)


def _act(world: Gated, data: st.DataObject) -> None:  # noqa: C901 - one case an action
    """Somebody does something, sensible or not."""
    task = world.task_id
    agent = data.draw(st.sampled_from(AGENTS))
    about: dict[str, Any] = {"actor": agent, "task_id": task}
    hops = [hop.id for hop in world.flow.hops]
    hop = data.draw(st.sampled_from([None, *hops]))
    runs = [hop.run_id for hop in world.flow.hops if hop.run_id]
    run = data.draw(st.sampled_from([None, *runs]))
    match data.draw(st.integers(0, 15)):
        case 0 | 1 | 2 | 3:
            world.attempt(
                commands.Claim(**about, hop=hop, worker=data.draw(st.sampled_from(["pull", "pull", "process"])))
            )
        case 4 | 5 | 6 | 7:
            outcome = data.draw(st.sampled_from(OUTCOMES))
            world.attempt(commands.Complete(**about, hop=hop, run=run, outcome=outcome, blockers=("not good",)))
        case 8:
            world.attempt(commands.Fail(**about, run=run, retryable=data.draw(st.booleans())))
        case 9:
            world.later(world.policy.lease_ttl_ms)
            world.attempt(commands.Expire(actor="aof", task_id=task))
        case 10:
            world.later(data.draw(st.sampled_from([MINUTE, 3 * 60 * MINUTE])))
            for late in due_hops(world.tasks[task], world.now):
                world.attempt(commands.TimeOut(actor="aof", task_id=task, hop=late))
        case 11:
            world.attempt(
                data.draw(st.sampled_from([commands.Approve(**about, hop=hop), commands.Release(**about, run=run)]))
            )
        case 12:
            world.attempt(commands.Reject(**about, hop=hop, blockers=("again",)))
        case 13:
            held = (
                commands.Block(**about, reason="wait"),
                commands.Unblock(**about),
                commands.Pause(**about),
                commands.Resume(**about),
            )
            world.attempt(data.draw(st.sampled_from(held)))
        case 14:
            world.attempt(commands.RetryTask(**about, reason="again"))
        case _:
            status: Any = data.draw(
                st.sampled_from(["ready", "in-progress", "review", "done", "deadletter", "backlog"])
            )
            world.attempt(commands.Update(**about, run=run, status=status))


def _assert_some_action_leads_on(data: st.DataObject, steps: int) -> None:
    world = Gated(Policy(max_attempts=data.draw(st.integers(1, 2))))
    risk = data.draw(st.sampled_from(["low", "high"]))
    world.begin(data.draw(templates()), tags=("api",) * data.draw(st.integers(0, 1)), metadata={"risk": risk})
    world.check_flow()
    for _ in range(data.draw(st.integers(0, steps))):
        _act(world, data)
    end = world.goes_on()
    assert end in ("done", "deadletter", "cancelled")
    world.assert_replay_is_the_same()


@settings(deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_from_every_state_some_action_leads_on_to_an_end(data: st.DataObject) -> None:
    _assert_some_action_leads_on(data, 25)


@pytest.mark.full
@settings(max_examples=1_000, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_from_every_state_of_a_long_walk_some_action_leads_on_to_an_end(data: st.DataObject) -> None:
    _assert_some_action_leads_on(data, 60)


@settings(deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_whatever_the_hops_say_the_workflow_ends_by_itself(data: st.DataObject) -> None:
    """Only outcomes, failures and silence, no helping hand: it ends, or is held with a reason."""
    world = Gated(Policy(max_attempts=2))
    world.begin(data.draw(templates()))
    for _ in range(400):
        task = world.tasks[world.task_id]
        if task.status in ("done", "deadletter"):
            break
        if task.status == "blocked":
            assert task.blocked is not None
            assert task.blocked.reason
            break
        hops = world.flow.hops
        waiting = next((hop for hop in hops if hop.status == "review"), None)
        if waiting is not None and data.draw(st.booleans()):
            judges: list[type[commands.OnTask]] = [commands.Approve, commands.Reject]
            judge = data.draw(st.sampled_from(judges))
            more = {"blockers": ("again",)} if judge is commands.Reject else {}
            world.act(judge, task.id, "pm", hop=waiting.id, **more)
            continue
        running = next((hop for hop in hops if hop.lease is not None), None)
        if running is not None and data.draw(st.booleans()):
            outcome = data.draw(st.sampled_from(OUTCOMES))
            refused = world.attempt(
                commands.Complete(actor="ada", task_id=task.id, run=running.run_id, outcome=outcome, blockers=("no",))
            )
            if refused is not None:
                world.act(commands.Fail, task.id, "ada", run=running.run_id)
            continue
        world.later(20 * MINUTE)
        world.attempt(commands.Expire(actor="aof", task_id=task.id))
        ready = next((hop.id for hop in hops if hop.status == "ready"), "nobody")
        world.attempt(commands.Claim(actor=data.draw(st.sampled_from([*AGENTS, f"zed-{ready}"])), task_id=task.id))
    else:
        raise AssertionError(f"no end: {world.statuses()}")
    world.assert_replay_is_the_same()
