"""Hops in a plan: each goes to who has its role, beside each other, within every limit, and always with a reason."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aof.kernel import commands
from aof.kernel.model import Policy, SchedulingPolicy, iso, run_place
from aof.org.model import Agent, Autonomy, OrgChart, RunnerSettings, Team, TeamLimits
from aof.runs.model import Heartbeat
from aof.scheduler.model import Action, Plan, Snapshot, Workforce
from aof.scheduler.rules import plan
from aof.tasks.model import Task
from aof.workflows.hops import judges_own
from aof.workflows.model import workflow_of
from tests.support.workflows import DIAMOND, REVIEW, Gated, hop, template
from tests.support.world import MINUTE

STARTED = RunnerSettings(kind="process", command=("true",))
WIDE = template(hop("a", role="tester"), hop("b", role="tester"), hop("c", role="auditor"), hop("d", role="tester"))


def agent(name: str, *roles: str, **more: Any) -> Agent:
    """An agent that a service starts."""
    return Agent(id=name, roles=roles, **{"runner": STARTED, **more})


CHART = OrgChart(
    agents=(
        agent("dev", "developer"),
        agent("tess", "tester"),
        agent("aude", "auditor", "tester"),
        agent("rel", "releaser"),
        Agent(id="pat", roles=("reviewer",)),
    )
)


class Desk(Gated):
    """A world, and plans for it."""

    def plan(self, chart: OrgChart | None = CHART, policy: Policy | None = None, **more: Any) -> Plan:
        """What would be done now."""
        by_status = {
            status: tuple(task for task in self.tasks.values() if task.status == status)
            for status in ("in-progress", "ready", "backlog", "blocked", "review")
        }
        free = frozenset(task.id for task in (*by_status["ready"], *by_status["backlog"]))
        snapshot = Snapshot(
            running=by_status["in-progress"],
            ready=by_status["ready"],
            backlog=by_status["backlog"],
            blocked=by_status["blocked"],
            review=by_status["review"],
            free=free,
            heartbeats=self.beats(),
            **more,
        )
        return plan(snapshot, Workforce(chart), policy or Policy(), self.now)

    def beats(self) -> dict[str, Heartbeat | None]:
        """Nobody has given a sign of life since its claim."""
        return {}


def given_out(planned: Plan) -> list[tuple[str | None, str | None]]:
    """Which hop goes to whom."""
    return [(one.hop, one.agent) for one in planned.actions if one.action == "assign"]


def actions(planned: Plan) -> list[tuple[str, str | None]]:
    """What is done with which hop."""
    return [(one.action, one.hop) for one in planned.actions]


class TestGivingOut:
    """Who gets a hop."""

    def test_a_hop_goes_to_who_has_its_role(self) -> None:
        desk = Desk()
        desk.begin(DIAMOND)
        (action,) = desk.plan().actions
        assert (action.action, action.hop, action.agent) == ("assign", "build", "dev")
        assert action.reason == "hop build: dev has the role developer and can take it"

    def test_hops_that_are_open_at_once_are_given_out_at_once(self) -> None:
        desk = Desk()
        desk.begin(DIAMOND)
        desk.end("build", agent="dev")
        assert given_out(desk.plan()) == [("test", "tess"), ("audit", "aude")]
        desk.take("test", "tess")
        assert given_out(desk.plan()) == [("audit", "aude")], "beside the one that runs"

    def test_the_least_busy_of_a_role_comes_first(self) -> None:
        desk = Desk()
        desk.begin(WIDE)
        assert given_out(desk.plan()) == [("a", "tess"), ("b", "aude"), ("c", "aude"), ("d", "tess")]

    def test_who_pulls_is_waited_for_and_the_plan_says_so(self) -> None:
        desk = Desk()
        desk.begin(REVIEW)
        desk.end("implement", agent="dev")
        planned = desk.plan()
        assert [one.action for one in planned.actions] == ["handoff_begin"]
        assert planned.left[0].reason == "hop code-review (reviewer) is ready: waits for pat to claim it"

    def test_who_is_started_comes_before_who_pulls(self) -> None:
        both = OrgChart(agents=(Agent(id="pat", roles=("developer",)), agent("dev", "developer")))
        desk = Desk()
        desk.begin(REVIEW)
        assert given_out(desk.plan(both)) == [("implement", "dev")]

    def test_nobody_judges_its_own_work(self) -> None:
        chart = OrgChart(agents=(agent("ann", "developer", "reviewer"), agent("rev", "reviewer")))
        desk = Desk()
        desk.begin(REVIEW)
        desk.end("implement", agent="ann")
        assert given_out(desk.plan(chart)) == [("code-review", "rev")]
        alone = OrgChart(agents=(agent("ann", "developer", "reviewer"),))
        planned = desk.plan(alone)
        assert not planned.actions
        assert planned.left[0].reason == "hop code-review (reviewer) is ready: ann did what it judges"

    def test_a_role_that_nobody_has_is_named(self) -> None:
        desk = Desk()
        desk.begin(REVIEW)
        planned = desk.plan(OrgChart(agents=(agent("rev", "reviewer"),)))
        assert not planned.actions
        assert "role 'developer': no agent has this role" in planned.left[0].reason

    def test_without_a_chart_nothing_is_started(self) -> None:
        desk = Desk()
        desk.begin(REVIEW)
        planned = desk.plan(None)
        assert not planned.actions
        assert planned.left[0].reason == "hop implement (developer) is ready: any agent may claim it"

    def test_who_may_not_take_the_risk_is_not_given_it(self) -> None:
        careful = agent("dev", "developer", autonomy=Autonomy(level=1, max_risk="low"))
        desk = Desk()
        desk.begin(REVIEW, profile={"risk": "high"})
        planned = desk.plan(OrgChart(agents=(careful,)))
        assert not planned.actions
        assert "role 'developer': dev: " in planned.left[0].reason


class TestLimits:
    """What is running counts by the run, not by the task."""

    def test_an_agent_gets_no_more_hops_of_one_task_than_it_may_have(self) -> None:
        chart = OrgChart(agents=(agent("tess", "tester", "auditor", concurrency=2),))
        desk = Desk()
        desk.begin(WIDE)
        planned = desk.plan(chart)
        assert given_out(planned) == [("a", "tess"), ("b", "tess")]
        assert {one.reason for one in planned.left} == {
            "hop c (auditor) is ready: tess runs 2 of 2",
            "hop d (tester) is ready: tess runs 2 of 2",
        }

    def test_the_limit_of_all_runs_counts_hops(self) -> None:
        desk = Desk()
        desk.begin(WIDE)
        desk.take("a", "tess")
        desk.take("b", "aude")
        limited = Policy(scheduling=SchedulingPolicy(max_concurrent=3))
        assert len(given_out(desk.plan(policy=limited))) == 1

    def test_a_teams_limit_counts_hops(self) -> None:
        chart = OrgChart(
            agents=(agent("tess", "tester", "auditor", team="qa"),),
            teams=(Team(id="qa", limits=TeamLimits(max_concurrent=3)),),
        )
        desk = Desk()
        desk.begin(WIDE)
        assert len(given_out(desk.plan(chart))) == 3

    def test_the_hops_of_a_task_share_its_resource(self) -> None:
        desk = Desk()
        desk.begin(WIDE, resource="lab")
        assert len(given_out(desk.plan())) == 4
        desk.take("a", "tess")
        assert len(given_out(desk.plan())) == 3
        first = desk.task_id
        desk.begin(WIDE, resource="lab")
        planned = desk.plan()
        assert {one.task_id for one in planned.actions} == {first}
        assert "resource 'lab' is used by 1 of 1" in [one.reason for one in planned.left]

    def test_a_more_urgent_task_comes_before_a_hop_of_one_that_runs(self) -> None:
        chart = OrgChart(agents=(agent("tess", "tester", "auditor"),))
        desk = Desk()
        running = desk.begin(WIDE)
        desk.take("a", "tess")
        urgent = desk.begin(WIDE, priority="critical")
        limited = Policy(scheduling=SchedulingPolicy(max_concurrent=3))
        assert {one.task_id for one in desk.plan(chart, limited).actions} == {urgent}
        assert running != urgent


class TestEnding:
    """Vanished, late, orphaned and cancelled runs of hops."""

    def test_each_run_that_gave_no_sign_of_life_is_named(self) -> None:
        desk = Desk()
        desk.begin(DIAMOND)
        desk.end("build", agent="dev")
        desk.take("test", "tess")
        desk.take("audit", "aude")
        desk.now += 6 * MINUTE
        planned = desk.plan()
        assert actions(planned) == [("stale_heartbeat", "test"), ("stale_heartbeat", "audit")]
        assert planned.actions[0].reason == "hop test: no sign of life from tess since its lease ended"

    def test_orphaned_runs_are_requeued_hop_by_hop(self) -> None:
        desk = Desk()
        desk.begin(DIAMOND)
        desk.end("build", agent="dev")
        run, _ = desk.take("test", "tess", worker="process"), desk.take("audit", "aude")
        planned = desk.plan(orphaned=frozenset({run}))
        assert [(one.action, one.hop, one.run_id) for one in planned.actions] == [("requeue", "test", run)]

    def test_a_retry_waits_for_its_time_while_the_other_hop_goes_on(self) -> None:
        desk = Desk()
        desk.begin(DIAMOND)
        desk.end("build", agent="dev")
        run = desk.take("test", "tess")
        desk.take("audit", "aude")
        desk.do(commands.Fail(actor="aof", task_id=desk.task_id, run=run, code="crashed", message="x"))
        planned = desk.plan()
        assert not planned.actions
        (left,) = [one.reason for one in planned.left]
        assert "hop test (tester) is retried at" in left
        assert "hop audit (auditor) is running" in left
        assert planned.next_at is not None
        desk.now += MINUTE + 1
        assert given_out(desk.plan()) == [("test", "tess")]

    def test_a_hop_whose_time_is_over_is_named(self) -> None:
        desk = Desk()
        desk.begin(template(hop("a", role="tester", timeout="2m"), hop("b", role="auditor")))
        desk.take("a", "tess")
        planned = desk.plan()
        assert planned.next_at == desk.now + 2 * MINUTE
        desk.now += 2 * MINUTE
        late = desk.plan().actions[0]
        assert (late.action, late.hop, late.reason) == ("hop_timeout", "a", "hop a: it is not done in time")

    def test_an_agent_that_runs_too_long_is_ended_at_that_hop(self) -> None:
        chart = OrgChart(agents=(agent("tess", "tester", max_execution_time="1m"), agent("aude", "auditor")))
        desk = Desk()
        desk.begin(DIAMOND)
        desk.end("build", agent="dev")
        desk.take("test", "tess")
        desk.take("audit", "aude")
        desk.now += MINUTE
        assert actions(desk.plan(chart)) == [("timeout", "test")]

    def test_a_cancelled_task_stops_each_worker_that_is_hosted_here(self) -> None:
        desk = Desk()
        desk.begin(DIAMOND)
        desk.end("build", agent="dev")
        runs = [desk.take("test", "tess", worker="process"), desk.take("audit", "aude", worker="process")]
        desk.do(commands.CancelTask(actor="pm", task_id=desk.task_id))
        here = desk.plan(hosted=frozenset(runs))
        assert actions(here) == [("cascade", "test"), ("cascade", "audit")]
        elsewhere = desk.plan()
        assert not elsewhere.actions
        assert "the host of" in elsewhere.left[0].reason
        desk.do(commands.Settle(actor="aof", task_id=desk.task_id, run=runs[0]))
        assert desk.tasks[desk.task_id].status == "in-progress", "another worker is still being stopped"
        assert actions(desk.plan(hosted=frozenset(runs[1:]))) == [("cascade", "audit")]
        desk.do(commands.Settle(actor="aof", task_id=desk.task_id, run=runs[1]))
        assert desk.tasks[desk.task_id].status == "cancelled"

    def test_workers_that_vanished_settle_a_cancellation(self) -> None:
        desk = Desk()
        desk.begin(DIAMOND)
        desk.take("build", "dev", worker="process")
        desk.do(commands.CancelTask(actor="pm", task_id=desk.task_id))
        desk.now += 6 * MINUTE
        assert actions(desk.plan()) == [("stale_heartbeat", "build")]


@st.composite
def desks(draw: st.DrawFn) -> Desk:
    """Some gated tasks, each somewhere on its way."""
    desk = Desk()
    for _ in range(draw(st.integers(1, 5))):
        desk.begin(
            draw(st.sampled_from((WIDE, DIAMOND, REVIEW))),
            priority=draw(st.sampled_from(("low", "normal", "critical"))),
        )
        for _ in range(draw(st.integers(0, 5))):
            ready = desk.open_hops()
            if not ready:
                break
            name = draw(st.sampled_from(ready))
            agent = draw(st.sampled_from(("dev", "tess", "stranger")))
            if judges_own(desk.flow, name, agent):
                continue
            if draw(st.booleans()):
                desk.end(name, agent=agent)
            else:
                desk.take(name, agent)
    return desk


TIGHT = OrgChart(
    agents=(
        agent("dev", "developer", "worker", concurrency=2, team="eng"),
        agent("tess", "tester", "reviewer", concurrency=1, team="eng"),
        agent("aude", "auditor", "releaser", "tester"),
    ),
    teams=(Team(id="eng", limits=TeamLimits(max_concurrent=2)),),
)
ROLES = {one.id: set(one.roles) for one in TIGHT.agents}


@given(desks())
def test_no_limit_is_exceeded_no_hop_is_given_out_twice_and_all_have_a_reason(desk: Desk) -> None:
    policy = Policy(scheduling=SchedulingPolicy(max_concurrent=6))
    planned = desk.plan(TIGHT, policy)
    running = Counter(hop.lease.agent for task in _gated(desk) for hop in workflow_of(task).hops if hop.lease)
    found = [one for one in planned.actions if one.action == "assign"]
    assert len({(one.task_id, one.hop) for one in found}) == len(found)
    for one in found:
        state = workflow_of(desk.tasks[one.task_id]).hop(one.hop or "")
        assert state.status == "ready"
        assert state.role in ROLES[one.agent or ""]
        assert one.reason
    given_to = Counter(one.agent for one in found)
    assert running.total() + len(found) <= 6 or not found
    for name, most in (("dev", 2), ("tess", 1)):
        assert running[name] + given_to[name] <= most or not given_to[name]
    eng = given_to["dev"] + given_to["tess"]
    assert running["dev"] + running["tess"] + eng <= 2 or not eng
    said = {one.task_id for one in planned.actions} | {one.task_id for one in planned.left if one.reason}
    assert said >= {task.id for task in _gated(desk) if task.status in ("ready", "in-progress", "review")}


@given(desks())
def test_every_action_of_a_plan_can_be_carried_out(desk: Desk) -> None:
    for action in desk.plan(TIGHT).actions:
        if action.action == "assign":
            desk.do(_claim(action))
    assert not [one for one in desk.plan(TIGHT).actions if one.action == "assign"]


def _claim(action: Action) -> commands.Claim:
    return commands.Claim(actor="aof", agent=action.agent, task_id=action.task_id, hop=action.hop, worker="process")


def _gated(desk: Desk) -> list[Task]:
    return [task for task in desk.tasks.values() if task.gated]


def test_a_sign_of_life_keeps_a_hops_run() -> None:
    desk = Desk()
    desk.begin(DIAMOND)
    run = desk.take("build", "dev")
    desk.now += 6 * MINUTE
    beat = Heartbeat(
        task_id=desk.task_id,
        agent_id="dev",
        run_id=run,
        last_heartbeat=iso(desk.now),
        beat_count=2,
        expires_at=iso(desk.now + MINUTE),
        hop="build",
    )
    where = run_place(desk.task_id, "build")
    snapshot = Snapshot(running=(desk.tasks[desk.task_id],), heartbeats={where: beat})
    planned = plan(snapshot, Workforce(CHART), Policy(), desk.now)
    assert not planned.actions
    assert planned.next_at == desk.now + MINUTE
