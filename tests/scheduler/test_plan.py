"""What the scheduler plans, and what becomes of a plan that time has overtaken."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.kernel import commands
from aof.kernel.model import PRIORITIES, Policy, SchedulingPolicy, iso, priority_rank, split_task_id, task_id
from aof.runs.model import Heartbeat
from aof.scheduler.model import Action, Plan, SchedulableAgent, Snapshot, Workforce
from aof.scheduler.rules import plan
from aof.tasks.model import Blocked, Cancel, Lease, Retry, Routing, Task
from tests.support.world import MINUTE, MONDAY, World

# --- A plan is the same for the same input, keeps every limit, and says why for everything that it does and leaves


AGENTS = ("ada", "bert", "cleo")
SEATS = {
    "ada": SchedulableAgent(agent="ada", kind="process", team="eng", concurrency=2, limit_ms=MINUTE),
    "bert": SchedulableAgent(agent="bert", kind="process", team="eng", concurrency=1),
    "cleo": SchedulableAgent(agent="cleo", kind="pull"),
}
CREW = Workforce(agents=SEATS, team_limits={"eng": 2})
POLICY = Policy(resource_slots={"gpu": 2}, scheduling=SchedulingPolicy(max_concurrent=4))


def make(number: int, status: str = "ready", agent: str | None = "ada", **given: Any) -> Task:
    """A task; in progress under a lease of its agent."""
    name = task_id("2026-03-02", number)
    fields: dict[str, Any] = {"routing": Routing(agent=agent), "priority": "normal", "created_at": iso(MONDAY)} | given
    if status == "in-progress" and "lease" not in fields:
        fields["lease"] = Lease(
            agent=agent or "ada",
            run_id=f"RUN-2026-03-02-{number:03d}-1",
            epoch=1,
            acquired_at=iso(MONDAY),
            expires_at=iso(MONDAY + 5 * MINUTE),
            ttl_ms=5 * MINUTE,
            worker="process",
        )
    if status == "blocked":
        fields.setdefault("blocked", Blocked(kind="blocked", reason="no key", by="pm", since=iso(MONDAY)))
    return msgspec.structs.replace(
        Task(
            schema_version=1,
            id=name,
            title="x",
            status="ready",
            priority="normal",
            rev=number,
            created_at=iso(MONDAY),
            updated_at=iso(MONDAY),
            last_transition_at=iso(MONDAY),
            created_by="pm",
        ),
        status=status,
        **fields,
    )


def free(*tasks: Task, **more: Any) -> Snapshot:
    """Ready tasks that wait for no other."""
    return Snapshot(ready=tasks, free=frozenset(task.id for task in tasks), **more)


def why(planned: Plan, task: Task) -> str:
    """The reason for which a task is left alone."""
    return next(one.reason for one in planned.left if one.task_id == task.id)


def chosen(planned: Plan) -> list[tuple[str, str, str | None]]:
    """Actions in their order."""
    return [(one.action, one.task_id, one.agent) for one in planned.actions]


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Anything that a store could hold; or a few tasks with nothing but the limits in their way."""
    statuses = ("ready", "in-progress", "backlog", "blocked", "review")
    plain = draw(st.booleans())
    found: dict[str, list[Task]] = {status: [] for status in statuses}
    for number in range(1, draw(st.integers(0, 6 if plain else 25)) + 1):
        status = draw(st.sampled_from(("ready", "ready", "ready", "in-progress") if plain else statuses))
        task = make(
            number,
            status,
            draw(st.sampled_from((*AGENTS, "stranger", None))) if status != "in-progress" else draw(_AGENT),
            priority=draw(st.sampled_from(PRIORITIES)),
            created_at=iso(MONDAY + draw(st.integers(0, 3))),
            resource=draw(st.sampled_from((None, "gpu", "lab"))),
            **({} if plain else draw(_HINDRANCES)),
        )
        found[status].append(task)
    waiting = [task.id for task in found["ready"] + found["backlog"]]
    running = [task.lease.run_id for task in found["in-progress"] if task.lease]
    return Snapshot(
        running=tuple(found["in-progress"]),
        backlog=tuple(found["backlog"]),
        ready=tuple(found["ready"]),
        blocked=tuple(found["blocked"]),
        review=tuple(found["review"]),
        free=frozenset(waiting if plain or not waiting else draw(st.lists(st.sampled_from(waiting), unique=True))),
        hosted=frozenset(draw(st.lists(st.sampled_from(running), unique=True)) if running else ()),
    )


_AGENT = st.sampled_from(AGENTS)
_HINDRANCES = st.fixed_dictionaries(
    {
        "retry": st.builds(
            Retry,
            failures=st.integers(0, 4),
            not_before=st.sampled_from((None, iso(MONDAY), iso(MONDAY + 9 * MINUTE))),
        ),
        "metadata": st.sampled_from(({}, {"draft": True})),
        "cancel": st.sampled_from((None, None, None, Cancel(by="pm", at=iso(MONDAY)))),
    }
)


class TestAnyPlan:
    """Whatever there is to plan for."""

    @given(snapshots(), st.integers(0, 20 * MINUTE), st.randoms())
    def test_the_same_tasks_in_any_order_give_the_same_plan(self, snapshot: Snapshot, later: int, chance: Any) -> None:
        first = plan(snapshot, CREW, POLICY, MONDAY + later)
        mixed = {name: chance.sample(group, len(group)) for name in _GROUPS if (group := getattr(snapshot, name))}
        again = msgspec.structs.replace(snapshot, **{name: tuple(group) for name, group in mixed.items()})
        assert plan(snapshot, CREW, POLICY, MONDAY + later) == first == plan(again, CREW, POLICY, MONDAY + later)

    @given(snapshots(), st.integers(0, 20 * MINUTE))
    def test_no_limit_is_exceeded_and_nothing_is_given_out_twice(self, snapshot: Snapshot, later: int) -> None:
        planned = plan(snapshot, CREW, POLICY, MONDAY + later)
        given_out = [action for action in planned.actions if action.action == "assign"]
        assert len({action.task_id for action in planned.actions}) == len(planned.actions)
        running = Counter(task.lease.agent for task in snapshot.running if task.lease)
        assigned = Counter(action.agent for action in given_out)
        for agent in assigned:
            entry = SEATS[agent or ""]
            assert entry.kind == "process"
            assert entry.concurrency is not None
            assert running[entry.agent] + assigned[agent] <= entry.concurrency
        if given_out:
            assert sum(running.values()) + len(given_out) <= 4
            assert running["ada"] + running["bert"] + len(given_out) <= 2, "both are of one team"
        by_id = {task.id: task for task in snapshot.ready}
        used = Counter(task.resource for task in snapshot.running)
        taken = Counter(by_id[action.task_id].resource for action in given_out)
        assert all(used[name] + taken[name] <= slots for name, slots in (("gpu", 2), ("lab", 1)) if taken[name])

    @given(snapshots(), st.integers(0, 20 * MINUTE))
    def test_every_task_has_an_action_or_a_reason_and_the_most_urgent_come_first(
        self, snapshot: Snapshot, later: int
    ) -> None:
        planned = plan(snapshot, CREW, POLICY, MONDAY + later)
        tasks = [task for name in _GROUPS for task in getattr(snapshot, name)]
        told = [action.task_id for action in planned.actions] + [one.task_id for one in planned.left]
        assert sorted(told) == sorted(task.id for task in tasks)
        assert all(one.reason for one in planned.actions)
        assert all(one.reason for one in planned.left)
        by_id = {task.id: task for task in tasks}
        order = [by_id[one.task_id] for one in planned.actions if one.action == "assign"]
        assert order == sorted(order, key=lambda t: (priority_rank(t.priority), t.created_at, split_task_id(t.id)))
        assert planned.next_at is None or planned.next_at > MONDAY + later


_GROUPS = ("running", "backlog", "ready", "blocked", "review")


class TestAssigning:
    """Who gets what."""

    def test_the_order_is_priority_then_age_then_number(self) -> None:
        old, young = make(3), make(1, created_at=iso(MONDAY + 1))
        urgent = make(9, priority="critical", created_at=iso(MONDAY + 5))
        alone = Workforce(agents={"ada": SchedulableAgent(agent="ada", kind="process")})
        planned = plan(free(young, old, make(4), urgent), alone, Policy(), MONDAY)
        assert [task for _, task, _ in chosen(planned)] == [urgent.id, old.id, make(4).id, young.id]

    @pytest.mark.parametrize(
        ("task", "reason"),
        [
            (make(1, agent="cleo"), "waits for cleo to claim it"),
            (make(1, agent="stranger"), "waits for stranger to claim it"),
            (make(1, agent=None), "any agent may claim it"),
            (make(1, metadata={"draft": True}), "it is a draft"),
            (
                make(1, cancel=Cancel(by="pm", at=iso(MONDAY))),
                "cancelled by pm; something below it",
            ),
            (make(1, retry=Retry(failures=1, not_before=iso(MONDAY + 5))), f"is retried at {iso(MONDAY + 5)}, after"),
        ],
    )
    def test_what_is_not_given_out_says_why(self, task: Task, reason: str) -> None:
        planned = plan(free(task), CREW, POLICY, MONDAY)
        assert not planned.actions
        assert why(planned, task).startswith(reason)

    def test_who_waits_for_others_names_them(self) -> None:
        waiting = make(2, depends_on=(make(1).id,))
        assert why(plan(Snapshot(ready=(waiting,)), CREW, POLICY, MONDAY), waiting) == f"waits for {make(1).id}"
        parent = make(3)
        assert why(plan(Snapshot(ready=(parent,)), CREW, POLICY, MONDAY), parent) == "waits for its children"

    def test_a_full_agent_team_resource_or_house_is_named(self) -> None:
        one, two = make(1, "in-progress", "bert"), make(2, "in-progress", "ada")
        task = make(3, agent="bert")
        assert why(plan(free(task, running=(one,)), CREW, POLICY, MONDAY), task) == "bert runs 1 of 1"
        task = make(3, agent="ada")
        assert why(plan(free(task, running=(one, two)), CREW, POLICY, MONDAY), task) == "team eng runs 2 of 2"
        held = make(2, "in-progress", "cleo", resource="lab")
        task = make(3, agent="ada", resource="lab")
        assert why(plan(free(task, running=(held,)), CREW, POLICY, MONDAY), task) == "resource 'lab' is used by 1 of 1"
        house = Policy(scheduling=SchedulingPolicy(max_concurrent=1))
        task = make(3, agent="ada")
        assert why(plan(free(task, running=(held,)), CREW, house, MONDAY), task) == "1 runs of 1 at once"

    def test_a_route_may_name_several_and_the_first_with_room_gets_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        workforce = Workforce(agents=SEATS)
        monkeypatch.setattr(workforce, "route", lambda _task, _load: ("bert", "ada"))
        planned = plan(free(make(3), running=(make(1, "in-progress", "bert"),)), workforce, POLICY, MONDAY)
        assert chosen(planned) == [("assign", make(3).id, "ada")]
        nobody = Workforce(agents=SEATS, unusable="nobody knows COBOL")
        assert why(plan(free(make(3)), nobody, POLICY, MONDAY), make(3)) == "nobody knows COBOL"


class TestTheOtherRows:
    """What is done besides giving out tasks."""

    def test_a_run_is_stale_from_the_very_end_of_its_lease_on(self) -> None:
        task = make(1, "in-progress")
        beat = Heartbeat(
            task_id=task.id,
            agent_id="ada",
            run_id="RUN-2026-03-02-001-1",
            last_heartbeat=iso(MONDAY + MINUTE),
            beat_count=1,
            expires_at=iso(MONDAY + 6 * MINUTE),
        )
        snapshot = Snapshot(running=(task,), heartbeats={task.id: beat})
        alone = Workforce()
        before = plan(snapshot, alone, POLICY, MONDAY + 6 * MINUTE - 1)
        assert not before.actions
        assert before.next_at == MONDAY + 6 * MINUTE
        assert why(before, task) == f"ada works on it, until {iso(MONDAY + 6 * MINUTE)} without a sign of life"
        (stale,) = plan(snapshot, alone, POLICY, MONDAY + 6 * MINUTE).actions
        assert (stale.action, stale.run_id) == ("stale_heartbeat", "RUN-2026-03-02-001-1")
        assert stale.reason == f"no sign of life from ada since {iso(MONDAY + MINUTE)}"
        others = msgspec.structs.replace(beat, run_id="RUN-2026-03-02-001-9")
        snapshot = Snapshot(running=(task,), heartbeats={task.id: others})
        (stale,) = plan(snapshot, alone, POLICY, MONDAY + 6 * MINUTE).actions
        assert stale.reason == f"no sign of life from ada since {iso(MONDAY)}", "another run's says nothing of this one"

    def test_what_a_person_has_begun_by_hand_is_left_to_people(self) -> None:
        task = make(1, "in-progress", lease=None)
        planned = plan(Snapshot(running=(task,)), CREW, POLICY, MONDAY)
        assert not planned.actions
        assert why(planned, task) == "nobody holds it: it was begun by hand"

    def test_a_run_that_takes_longer_than_its_agent_may_is_timed_out(self) -> None:
        snapshot = Snapshot(running=(make(1, "in-progress"),))
        assert plan(snapshot, CREW, POLICY, MONDAY).next_at == MONDAY + MINUTE
        (action,) = plan(snapshot, CREW, POLICY, MONDAY + MINUTE).actions
        assert (action.action, action.agent, action.reason) == ("timeout", "ada", "ada may run 60 s at most")

    def test_a_cancelled_run_is_stopped_by_its_host_only(self) -> None:
        task = make(1, "in-progress", cancel=Cancel(by="pm", at=iso(MONDAY)))
        other = plan(Snapshot(running=(task,)), CREW, POLICY, MONDAY)
        assert why(other, task) == "cancelled by pm; the host of RUN-2026-03-02-001-1 stops it"
        (action,) = plan(
            Snapshot(running=(task,), hosted=frozenset({"RUN-2026-03-02-001-1"})), CREW, POLICY, MONDAY
        ).actions
        assert action.action == "cascade"
        (stale,) = plan(Snapshot(running=(task,)), CREW, POLICY, MONDAY + 5 * MINUTE).actions
        assert stale.action == "stale_heartbeat", "its host has vanished"

    def test_a_run_whose_host_has_died_does_not_wait_for_its_lease(self) -> None:
        snapshot = Snapshot(running=(make(1, "in-progress"),), orphaned=frozenset({"RUN-2026-03-02-001-1"}))
        assert [one.action for one in plan(snapshot, CREW, POLICY, MONDAY).actions] == ["requeue"]

    def test_only_what_was_put_into_the_backlog_to_wait_is_promoted_unless_the_settings_say_all(self) -> None:
        kept, draft = make(1, "backlog"), make(2, "backlog", metadata={"draft": True})
        waits = make(3, "backlog", depends_on=(make(9).id,), metadata={"waitForDependencies": True})
        waited = make(4, "backlog", depends_on=(make(8).id,), metadata={"waitForDependencies": True})
        snapshot = Snapshot(backlog=(kept, draft, waits, waited), free=frozenset({kept.id, draft.id, waited.id}))
        planned = plan(snapshot, CREW, POLICY, MONDAY)
        assert chosen(planned) == [("promote", waited.id, None)]
        assert why(planned, kept) == "it stays in the backlog until somebody makes it ready"
        assert why(planned, draft) == "it is a draft"
        assert why(planned, waits) == f"waits for {make(9).id}"
        everything = plan(snapshot, CREW, Policy(scheduling=SchedulingPolicy(promote=True)), MONDAY)
        assert chosen(everything) == [("promote", kept.id, None), ("promote", waited.id, None)]

    def test_a_task_that_has_used_up_its_attempts_is_given_up(self) -> None:
        (action,) = plan(free(make(1, retry=Retry(failures=2, max_attempts=2))), CREW, POLICY, MONDAY).actions
        assert (action.action, action.reason) == ("deadletter", "failed 2 times, 2 are allowed")

    def test_a_task_that_waits_for_people_too_long_is_said_once(self) -> None:
        patient = Policy(scheduling=SchedulingPolicy(patience_ms={"review": MINUTE}))
        task = make(1, "review")
        assert plan(Snapshot(review=(task,)), CREW, patient, MONDAY).next_at == MONDAY + MINUTE
        planned = plan(Snapshot(review=(task,)), CREW, patient, MONDAY + MINUTE)
        assert [one.action for one in planned.actions] == ["sla_alert"]
        said = msgspec.structs.replace(task, metadata={"slaAlert": {"status": "review", "since": iso(MONDAY)}})
        quiet = plan(Snapshot(review=(said,)), CREW, patient, MONDAY + MINUTE)
        assert not quiet.actions
        assert why(quiet, said) == "waits for approval"

    def test_a_blocked_task_says_what_blocks_it(self) -> None:
        task = make(1, "blocked")
        assert why(plan(Snapshot(blocked=(task,)), CREW, POLICY, MONDAY), task) == "no key"

    def test_an_action_reads_the_same_in_json_on_every_surface(self) -> None:
        told = msgspec.to_builtins(Action(action="assign", task_id="T", reason="r", agent="ada"))
        assert told == {"action": "assign", "taskId": "T", "reason": "r", "agent": "ada"}


# --- what the scheduler wants is judged again when it is carried out; what has changed in between is left alone


def cut(world: World, task: str, most: int) -> None:
    """Somebody lowers the number of attempts."""
    before: Task = world.tasks[task]
    world.tasks[task] = msgspec.structs.replace(before, retry=msgspec.structs.replace(before.retry, max_attempts=most))


def test_a_task_whose_attempts_were_cut_is_given_up_with_its_last_error() -> None:
    world = World()
    task = world.into("in-progress")
    dependent = world.create(depends_on=[task])
    world.act(commands.Fail, task, "ada", code="boom")
    assert world.act(commands.DeadLetter, task, "aof", reason="enough").drafts == ()
    cut(world, task, 1)
    world.act(commands.DeadLetter, task, "aof", reason="enough")
    dead = world.tasks[task]
    assert (dead.status, dead.last_error and dead.last_error.code) == ("deadletter", "boom")
    assert world.status(dependent) == "blocked"
    assert world.act(commands.DeadLetter, task, "aof", reason="enough").drafts == ()


@pytest.mark.parametrize("status", ["ready", "in-progress", "review", "blocked", "done", "cancelled", "deadletter"])
def test_only_backlog_is_promoted(status: str) -> None:
    world = World()
    assert world.act(commands.Promote, world.into(status), "aof", reason="x").drafts == ()


def test_what_waits_or_is_a_draft_is_not_promoted() -> None:
    world = World()
    first = world.create()
    waits = world.create(status="backlog", depends_on=[first])
    draft = world.create(status="backlog", metadata={"draft": True})
    for task in (waits, draft):
        assert world.act(commands.Promote, task, "aof", reason="x").drafts == ()
    world.act(commands.Complete, first, "ada")
    world.act(commands.Approve, first)
    world.act(commands.Promote, waits, "aof", reason="its dependencies are done")
    assert world.path(waits) == ["ready"]
    kept = world.create(status="backlog", depends_on=[first])
    world.act(commands.Update, kept, status="ready")
    world.act(commands.Update, kept, status="backlog")
    assert world.act(commands.Promote, kept, "aof", reason="x").drafts == (), "a person has put it there"


def test_a_task_that_was_blocked_in_the_backlog_still_waits_for_its_dependencies_there() -> None:
    world = World()
    first, second = world.create(), world.create()
    waits = world.create(status="backlog", depends_on=[first, second])
    world.act(commands.CancelTask, first)
    assert world.status(waits) == "blocked"
    world.act(commands.RemoveDependency, waits, blocker_id=first)
    assert world.status(waits) == "backlog"
    world.act(commands.Complete, second, "ada")
    world.act(commands.Approve, second)
    world.act(commands.Promote, waits, "aof", reason="its dependencies are done")
    assert world.status(waits) == "ready"
    assert (
        world.refuse(commands.Promote, world.create(status="backlog", depends_on=[second]), "aof", reason="").code
        == "invalid"
    )


def test_an_alert_for_a_status_that_was_left_is_not_recorded() -> None:
    world = World()
    task = world.into("review")
    assert world.act(commands.Alert, task, "aof", status="blocked", reason="x").drafts == ()
    world.act(commands.Alert, task, "aof", status="review", reason="too long")
    assert world.act(commands.Alert, task, "aof", status="review", reason="too long").drafts == ()
    assert world.log(task, "task.sla_alert")[0].payload["reason"] == "too long"


def test_the_end_of_a_worker_is_recorded_under_its_run_and_under_no_other() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(commands.Complete, task, "ada")
    world.act(commands.Exited, task, "aof", run=run, exit_code=0, output={"stdout": {"path": "output.log", "bytes": 3}})
    (event,) = world.log(task, "run.exited")
    assert (event.run_id, event.payload["exitCode"]) == (run, 0)
    assert world.status(task) == "review"
    for other in (None, "RUN-2026-03-02-999-1", "x"):
        assert world.refuse(commands.Exited, task, "aof", run=other, exit_code=0).code == "invalid"
