"""What an agent may do: rights, autonomy, reviews and budgets."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aof.kernel import commands
from aof.kernel.model import Policy
from aof.kernel.needs import needs
from aof.org.budgets import POINTS, AskedAction, Point, Ruling, ruling
from aof.org.chart import validate_chart
from aof.org.model import Agent, Autonomy, AutonomyLimits, OrgChart
from aof.org.operations import waiting_for
from aof.org.rights import RIGHTS, kind_of
from aof.org.routing import BY_LEVEL, capacity_refusal, limits_of, may_take, run_limit_ms, too_little
from aof.runs.brief import prime
from aof.testing import memory_fabric
from tests.support.requirements import requirement
from tests.support.team import chart_of
from tests.support.world import World

# --- who may do what to whose task: every right for every kind, and no way around through another operation


CHART = chart_of(
    agents=[
        {"id": "ada", "team": "eng", "roles": ["dev"]},
        {"id": "bob", "team": "eng", "roles": ["dev"]},
        {"id": "rev", "roles": ["reviewer"]},
        {"id": "lea", "team": "eng"},
        {"id": "orc"},
        {"id": "own"},
        {"id": "qa", "roles": ["checker"]},
        {"id": "boss", "roles": ["chief"]},
    ],
    teams=[{"id": "eng", "lead": "lea", "orchestrator": "orc"}],
    roles={"checker": {"kind": "reviewer"}, "chief": {"kind": "lead"}, "reviewer": {}},
)
STEERING: list[tuple[type[commands.OnTask], str, dict[str, Any]]] = [
    (commands.CancelTask, "ready", {}),
    (commands.CancelTask, "in-progress", {}),
    (commands.Block, "ready", {"reason": "x"}),
    (commands.Block, "in-progress", {"reason": "x"}),
    (commands.Unblock, "blocked", {}),
    (commands.Pause, "ready", {}),
    (commands.RetryTask, "done", {"reason": "x"}),
    (commands.ArchiveTask, "done", {}),
    (commands.Edit, "ready", {"changes": {"title": "y"}}),
    (commands.AddLink, "ready", {"kind": "evidence", "target_id": "outputs/x.md"}),
    (commands.Update, "ready", {"status": "cancelled"}),
    (commands.Update, "ready", {"status": "blocked"}),
    (commands.Update, "ready", {"status": "backlog"}),
    (commands.Update, "ready", {"status": "deadletter"}),
    (commands.Update, "ready", {"body": "mine now"}),
    (commands.Update, "backlog", {"status": "ready"}),
    (commands.Update, "deadletter", {"status": "ready"}),
]
JUDGING: list[tuple[type[commands.OnTask], dict[str, Any]]] = [
    (commands.Approve, {}),
    (commands.Complete, {}),
    (commands.Update, {"status": "done"}),
]
SENDING_BACK: list[tuple[type[commands.OnTask], dict[str, Any]]] = [
    (commands.Reject, {"blockers": ("not yet",)}),
    (commands.Update, {"status": "ready"}),
]


@pytest.fixture
def world() -> World:
    """A world with a chart: ada and bob are workers, pm is a person."""
    return World(Policy(org=CHART, maintainers=("own", "pm")))


@pytest.mark.parametrize(
    ("agent", "kind"),
    [
        ("ada", "worker"),
        ("rev", "reviewer"),
        ("qa", "reviewer"),
        ("lea", "lead"),
        ("orc", "lead"),
        ("boss", "lead"),
        ("own", "maintainer"),
    ],
)
def test_an_agents_kind_comes_from_settings_teams_and_roles(agent: str, kind: str) -> None:
    assert kind_of(CHART, agent, ("own",)) == kind


def test_every_kind_has_every_right_in_the_table() -> None:
    assert {frozenset(rights) for rights in RIGHTS.values()} == {frozenset({"take", "run", "steer", "judge"})}


@pytest.mark.parametrize(("kind", "status", "fields"), STEERING)
def test_a_worker_cannot_steer_a_task_that_is_anothers(
    world: World, kind: type[commands.OnTask], status: str, fields: dict[str, Any]
) -> None:
    task = world.into(status)
    for agent in ("bob", "rev"):
        refusal = world.refuse(kind, task, agent, **fields)
        assert (refusal.code, refusal.kind) == ("not_allowed", "refused")
        assert agent in refusal.message
    world.act(kind, task, "lea", **fields)


@pytest.mark.parametrize(("kind", "status", "fields"), STEERING)
def test_leads_and_maintainers_may_and_whoever_the_chart_does_not_know_may_not(
    kind: type[commands.OnTask], status: str, fields: dict[str, Any]
) -> None:
    policy = Policy(org=CHART, maintainers=("own", "pm"))
    for agent in ("orc", "own", "pm"):
        world = World(policy)
        world.act(kind, world.into(status), agent, **fields)
    world = World(policy)
    assert world.refuse(kind, world.into(status), "stray", **fields).code == "not_allowed"


@pytest.mark.parametrize("proven", [None, "stray"])
def test_a_name_that_the_chart_does_not_know_has_the_rights_of_a_worker(world: World, proven: str | None) -> None:
    running, reviewed, own = world.into("in-progress"), world.into("review"), world.create(actor="stray")
    judging: list[tuple[type[commands.OnTask], dict[str, Any]]] = [
        *JUDGING,
        *SENDING_BACK,
        (commands.Reject, {"blockers": ("no",)}),
    ]
    for kind, fields in judging:
        assert world.refuse(kind, reviewed, "stray", proven=proven, **fields).code == "not_allowed"
    assert world.refuse(commands.CancelTask, running, "stray", proven=proven).code == "not_allowed"
    world.act(commands.CancelTask, own, "stray", proven=proven)
    world.act(commands.CancelTask, running, "own", proven="own" if proven else None)


def test_a_name_that_the_chart_does_not_know_takes_one_task_at_a_time_and_nothing_that_is_for_others() -> None:
    chart = chart_of(agents=[{"id": "ada", "team": "eng", "roles": ["dev"]}], teams=[{"id": "eng"}])
    world = World(Policy(org=chart))
    for routed, code in (
        ({"assignee": "ada"}, "reserved"),
        ({"role": "dev"}, "not_routed"),
        ({"team": "eng"}, "not_routed"),
    ):
        assert world.refuse(commands.Claim, world.create(**routed), "stray").code == code
    first, second = world.create(), world.create()
    world.claim(first, "stray")
    assert world.refuse(commands.Claim, second, "stray").code == "at_capacity"
    world.act(commands.Complete, first, "stray")
    world.claim(second, "stray")


def test_a_name_that_the_chart_does_not_know_never_judges_even_where_every_listed_agent_may() -> None:
    world = World(Policy(org=chart_of(agents=[{"id": "ada"}, {"id": "bob"}])))
    task = world.into("review")
    assert world.refuse(commands.Approve, task, "stray").code == "not_allowed"
    world.act(commands.Approve, task, "bob")


def test_a_name_in_another_spelling_is_no_other_agent_when_work_is_judged() -> None:
    chart = chart_of(agents=[{"id": "ada", "roles": ["reviewer"]}, {"id": "Ada", "roles": ["reviewer"]}])
    world = World(Policy(org=chart))
    task = world.into("review")
    assert world.refuse(commands.Approve, task, "Ada").code == "own_work"


@pytest.mark.parametrize("status", ["deadletter", "cancelled"])
def test_who_ran_a_task_that_was_given_up_does_not_begin_it_anew(world: World, status: str) -> None:
    task = world.create(assignee="ada", actor="lea")
    world.claim(task, "ada")
    if status == "cancelled":
        world.act(commands.Release, task, "ada")
        world.act(commands.CancelTask, task, "lea")
    else:
        world.act(commands.Fail, task, "ada", retryable=False)
    assert world.refuse(commands.RetryTask, task, "ada", reason="once more").code == "not_allowed"
    if status == "deadletter":
        assert world.refuse(commands.Update, task, "ada", status="ready").code == "not_allowed"
    world.act(commands.RetryTask, task, "lea", reason="once more")


def test_a_worker_may_steer_what_it_made_owns_holds_or_is_meant_to_do(world: World) -> None:
    mine = [
        world.create(actor="bob"),
        world.create(owner="bob"),
        world.create(assignee="bob"),
        world.create(),
    ]
    world.claim(mine[-1], "bob")
    for task in mine:
        world.act(commands.Block, task, "bob", reason="x")
        assert world.tasks[task].status == "blocked"


def test_who_was_at_a_task_when_it_got_blocked_may_unblock_it(world: World) -> None:
    task = world.create()
    world.claim(task, "ada")
    world.act(commands.Complete, task, "ada", outcome="blocked", blockers=("no key",))
    assert world.refuse(commands.Unblock, task, "bob").code == "not_allowed"
    world.act(commands.Unblock, task, "ada")
    assert world.refuse(commands.CancelTask, task, "ada").code == "not_allowed"


def test_what_one_is_meant_to_do_is_not_ones_own_while_another_holds_it(world: World) -> None:
    task = world.create(assignee="bob")
    world.claim(task, "pm", steal=True)
    assert world.refuse(commands.CancelTask, task, "bob").code == "not_allowed"


@pytest.mark.parametrize(("kind", "fields"), JUDGING)
def test_whoever_worked_on_a_task_cannot_approve_it_in_any_way(
    kind: type[commands.OnTask], fields: dict[str, Any]
) -> None:
    for agent in ("ada", "lea", "own"):
        world = World(Policy(org=CHART, maintainers=("own",)))
        task = world.create()
        world.claim(task, agent)
        world.act(commands.Complete, task, agent)
        if kind is commands.Complete:  # a repeated report: it changes nothing
            assert world.act(kind, task, agent, **fields).drafts == ()
        else:
            assert world.refuse(kind, task, agent, **fields).code == "own_work"
        assert world.status(task) == "review"
        world.act(kind, task, "rev", **fields)
        assert world.status(task) == "done"


def test_the_acting_agent_counts_and_who_called_must_be_allowed_to_act_for_it(world: World) -> None:
    task = world.into("review")
    assert world.refuse(commands.Approve, task, "own", agent="ada", outside=True).code == "own_work"
    assert world.refuse(commands.Approve, task, "ada", agent="rev", outside=True).code == "own_work"
    for called in ("bob", "stray"):
        assert world.refuse(commands.Approve, task, called, agent="rev", outside=True).code == "actor_mismatch"
    world.act(commands.Approve, task, "pm", agent="rev", outside=True)


def test_naming_anothers_run_does_not_lend_its_rights(world: World) -> None:
    task = world.create()
    run = world.claim(task, "bob")
    assert world.refuse(commands.Block, task, "ada", run=run, reason="x", outside=True).code == "actor_mismatch"
    world.act(commands.Block, task, "pm", run=run, reason="x", outside=True)


def test_a_maintainer_approves_what_an_agent_did_for_them_and_not_their_own_work(world: World) -> None:
    task = world.create()
    world.act(commands.Complete, task, "pm", agent="ada")
    world.act(commands.Approve, task, "pm")
    assert world.status(task) == "done"
    own = world.create()
    world.act(commands.Complete, own, "pm")
    assert world.refuse(commands.Approve, own, "pm").code == "own_work"


@pytest.mark.parametrize(("kind", "fields"), JUDGING + SENDING_BACK)
def test_only_reviewers_and_above_judge_the_work_of_others(kind: type[commands.OnTask], fields: dict[str, Any]) -> None:
    for agent, may in (("bob", False), ("rev", True), ("qa", True), ("lea", True), ("own", True)):
        world = World(Policy(org=CHART, maintainers=("own",)))
        task = world.into("review")
        if may:
            world.act(kind, task, agent, **fields)
        else:
            assert world.refuse(kind, task, agent, **fields).code == "not_allowed"


@pytest.mark.parametrize(("kind", "fields"), SENDING_BACK)
def test_whoever_did_the_work_may_take_it_back(
    world: World, kind: type[commands.OnTask], fields: dict[str, Any]
) -> None:
    task = world.into("review")
    world.act(kind, task, "ada", **fields)
    assert world.status(task) == "ready"


def test_where_nobody_is_named_to_judge_every_agent_judges_the_others() -> None:
    chart = chart_of(agents=[{"id": "ada"}, {"id": "bob"}])
    world = World(Policy(org=chart))
    task = world.into("review")
    assert world.refuse(commands.Approve, task, "ada").code == "own_work"
    world.act(commands.Approve, task, "bob")


def test_a_worker_cannot_do_away_with_the_review_of_its_own_work(world: World) -> None:
    task = world.into("in-progress")
    edit = {"changes": {"metadata": {"reviewRequired": False}}}
    refusal = world.refuse(commands.Edit, task, "ada", **edit)
    assert refusal.code == "own_work"
    assert "may not change whether its work is reviewed (reviewRequired)" in refusal.message
    world.act(commands.Edit, task, "lea", **edit)


def test_a_holder_writes_to_its_run_whatever_its_kind(world: World) -> None:
    task = world.into("in-progress")
    world.act(commands.RecordHeartbeat, task, "ada")
    world.act(commands.ReportProgress, task, "ada", text="half")
    world.act(commands.Update, task, "ada", body="x")
    world.act(commands.Update, task, "ada", status="review")
    assert world.status(task) == "review"


# --- A claim by an agent of the chart: only what it may take, only as much as it may hold


TEAM: dict[str, Any] = {
    "agents": [
        {"id": "ada", "team": "eng", "roles": ["dev"], "capabilities": ["api"], "concurrency": 2},
        {"id": "bob", "team": "eng", "roles": ["dev"]},
        {"id": "lea", "team": "eng", "autonomy": {"maxRisk": "low"}},
        {"id": "zoe", "active": False},
        {"id": "sol"},
    ],
    "teams": [{"id": "eng", "lead": "lea", "limits": {"maxConcurrent": 3}}],
    "routing": [{"tags": ["docs"], "to": {"agent": "bob"}}],
}
TEAM_CHART = chart_of(**TEAM)
STARTS: list[tuple[type[commands.OnTask], dict[str, Any]]] = [
    (commands.Claim, {}),
    (commands.Update, {"status": "in-progress"}),
    (commands.Complete, {}),
]


@pytest.fixture
def charted() -> World:
    """A world with that chart."""
    return World(Policy(org=TEAM_CHART))


@pytest.mark.parametrize(("kind", "more"), STARTS)
@pytest.mark.parametrize(
    ("fields", "who", "words"),
    [
        ({"role": "dev"}, "lea", "it is for role 'dev'"),
        ({"team": "eng"}, "sol", "it is for team 'eng'"),
        ({"tags": ["docs"]}, "ada", "it is for the rule for docs"),
        ({"profile": {"requiredCapabilities": ["api"]}}, "bob", "it lacks api"),
        ({"profile": {"risk": "high"}}, "lea", "low risk at most"),
        ({"tags": ["frob"]}, "sol", "no rule and no capability is about frob"),
    ],
)
def test_an_agent_cannot_take_what_is_not_for_it(
    charted: World, *, fields: dict[str, Any], who: str, words: str, kind: type[commands.OnTask], more: dict[str, Any]
) -> None:
    task = charted.create(**fields)
    refusal = charted.refuse(kind, task, who, **more)
    assert (refusal.code, refusal.kind) == ("not_routed", "refused")
    assert words in refusal.message
    assert refusal.call is not None
    assert (refusal.call.operation, refusal.call.arguments) == ("org_route", {"task_id": task})


@pytest.mark.parametrize(("kind", "more"), STARTS)
def test_an_agent_cannot_take_what_is_reserved_for_another(
    charted: World, *, kind: type[commands.OnTask], more: dict[str, Any]
) -> None:
    refusal = charted.refuse(kind, charted.create(assignee="ada"), "bob", **more)
    assert (refusal.code, refusal.kind, refusal.details["agent"]) == ("reserved", "refused", "ada")


@pytest.mark.parametrize(
    ("fields", "who"),
    [
        ({}, "sol"),
        ({"assignee": "sol"}, "sol"),
        ({"role": "dev"}, "bob"),
        ({"team": "eng"}, "bob"),
        ({"team": "eng"}, "lea"),
        ({"tags": ["docs"]}, "bob"),
        ({"profile": {"requiredCapabilities": ["api"]}}, "ada"),
        ({}, "somebody-else"),
    ],
)
def test_an_agent_takes_what_is_for_it_and_whom_the_chart_does_not_know_what_is_for_anybody(
    charted: World, fields: dict[str, Any], who: str
) -> None:
    assert charted.claim(charted.create(**fields), who)


def test_an_agent_that_is_not_active_takes_nothing(charted: World) -> None:
    refusal = charted.refuse(commands.Claim, charted.create(), "zoe")
    assert refusal.code == "agent_inactive"


def test_an_agent_holds_as_many_tasks_as_it_may_and_one_more_when_one_ends(charted: World) -> None:
    tasks = [charted.create() for _ in range(3)]
    charted.claim(tasks[0])
    charted.claim(tasks[1])
    for kind, more in ((commands.Claim, {}), (commands.Update, {"status": "in-progress"})):
        refusal = charted.refuse(kind, tasks[2], "ada", **more)
        assert (refusal.code, refusal.details["load"]) == ("at_capacity", 2)
        assert "2 of the 2 tasks" in refusal.message
    charted.act(commands.Complete, tasks[0], "ada")
    charted.claim(tasks[2])


def test_a_team_holds_as_many_tasks_together_as_it_may(charted: World) -> None:
    tasks = [charted.create() for _ in range(5)]
    for task, agent in zip(tasks, ("ada", "bob", "bob"), strict=False):
        charted.claim(task, agent)
    refusal = charted.refuse(commands.Claim, tasks[3], "lea")
    assert refusal.code == "at_capacity"
    assert "team 'eng' holds 3 of the 3" in refusal.message
    charted.claim(tasks[3], "sol")
    charted.act(commands.Release, tasks[1], "bob")
    charted.claim(tasks[4], "lea")


def test_what_is_over_at_once_takes_no_capacity(charted: World) -> None:
    for _ in range(2):
        charted.claim(charted.create())
    task = charted.create()
    charted.act(commands.Complete, task, "ada")
    assert charted.status(task) == "review"


def test_who_lost_a_task_learns_that_before_whether_it_was_for_it(charted: World) -> None:
    task = charted.create(assignee="ada")
    charted.claim(task)
    assert charted.refuse(commands.Claim, task, "bob").code == "already_claimed"


@pytest.mark.parametrize(
    ("agent", "names", "counted"),
    [
        ("ada", {"agent:ada", "team:eng"}, {"ada", "bob", "lea"}),
        ("bob", {"team:eng"}, {"ada", "bob", "lea"}),
        ("sol", set(), set()),
        ("somebody-else", {"agent:somebody-else"}, {"somebody-else"}),
    ],
)
def test_a_claim_locks_and_loads_exactly_what_limits_the_agent(
    charted: World, agent: str, names: set[str], counted: set[str]
) -> None:
    claim = commands.Claim(actor=agent, task_id=charted.create())
    wanted = needs(claim, charted.load(claim))
    assert (set(wanted.names), set(wanted.agents)) == (names, counted)


def test_without_a_chart_a_claim_looks_at_nobodys_load() -> None:
    charted = World()
    claim = commands.Claim(actor="ada", task_id=charted.create())
    assert not needs(claim, charted.load(claim)).agents


@pytest.mark.parametrize(
    ("fields", "hint"),
    [({"assignee": "addda"}, "'ada'"), ({"role": "devv"}, "'dev'"), ({"team": "wrong"}, "use one of: eng")],
)
def test_a_task_for_somebody_that_is_not_there_is_refused_with_who_is(
    charted: World, fields: dict[str, Any], hint: str
) -> None:
    refusal = charted.refused(commands.Create(actor="pm", task_id=charted.next_id(), title="x", **fields))
    assert refusal.code == "no_route"
    assert hint in refusal.hint
    task = charted.create()
    routing = {{"assignee": "agent"}.get(name, name): value for name, value in fields.items()}
    assert charted.refuse(commands.Edit, task, changes={"routing": routing}).code == "no_route"


def test_a_limit_is_reached_with_exactly_that_many() -> None:
    ada = TEAM_CHART.by_id["ada"]
    assert capacity_refusal(TEAM_CHART, ada, {"ada": 1, "bob": 1}) is None
    assert capacity_refusal(TEAM_CHART, ada, {"ada": 2}) is not None
    assert capacity_refusal(TEAM_CHART, ada, {"ada": 1, "bob": 2}) is not None
    assert capacity_refusal(TEAM_CHART, TEAM_CHART.by_id["sol"], {"sol": 99}) is None


# --- how far an agent may go: figures by level, its own figures, risk


FIGURES = {
    0: (5, 10, 0, 0, 10),
    1: (20, 30, 10, 1000, 50),
    2: (50, 60, 30, 3000, 200),
    3: (100, 120, 50, 5000, 500),
}


def at(level: int | None = None, **own: int) -> Agent:
    return Agent(id="ada", autonomy=Autonomy(level=level, limits=AutonomyLimits(**own)))


@pytest.mark.parametrize("level", FIGURES)
def test_a_level_gives_its_five_figures(level: int) -> None:
    assert msgspec.structs.astuple(limits_of(at(level))) == FIGURES[level]


def test_an_agents_own_figures_come_before_those_of_its_level() -> None:
    limits = limits_of(at(1, files=3, tool_calls=0))
    assert (limits.files, limits.tool_calls, limits.lines) == (3, 0, BY_LEVEL[1].lines)


def test_nothing_said_is_no_limit() -> None:
    assert set(msgspec.structs.astuple(limits_of(at()))) == {None}
    assert too_little(at(), level=3, risk="high") is None


@pytest.mark.parametrize(
    ("level", "risk", "words"),
    [
        (2, None, None),
        (3, None, "level is 2, and the task needs 3"),
        (None, "low", None),
        (2, "high", "low risk at most"),
    ],
)
def test_a_level_or_risk_above_the_agents_is_too_much(level: int | None, risk: None, words: str | None) -> None:
    agent = Agent(id="ada", autonomy=Autonomy(level=2, max_risk="low"))
    why = too_little(agent, level=level, risk=risk)
    assert (why is None) if words is None else (why is not None and words in why)


# --- what waits for whose review: never one's own work, and only what the org chart allows


REVIEWERS = OrgChart(agents=(Agent(id="ada"), Agent(id="bob"), Agent(id="rita", roles=("reviewer",))))


def test_without_a_chart_everybody_but_the_worker_is_told_of_what_is_in_review() -> None:
    fabric = memory_fabric()
    task = fabric.create("Judge me").task_id
    fabric.complete(task, agent="ada")
    assert [one.id for one in waiting_for(fabric, "bob")] == [task]
    assert not waiting_for(fabric, "ada")
    assert f"Waiting for your review:\n- {task}" in prime(fabric, "bob")
    assert "Waiting for your review" not in prime(fabric, "ada")
    fabric.as_actor("bob").approve(task)
    assert "Waiting for your review" not in prime(fabric, "bob")


def test_with_a_chart_only_those_that_may_judge_are_told() -> None:
    fabric = memory_fabric(org=REVIEWERS)
    task = fabric.create("Judge me").task_id
    fabric.complete(task, agent="ada")
    told = {name: [one.id for one in waiting_for(fabric, name)] for name in ("ada", "bob", "rita", "stranger")}
    assert told == {"ada": [], "bob": [], "rita": [task], "stranger": []}


def test_prime_tells_to_append_notes_and_never_to_rewrite_the_body() -> None:
    text = prime(memory_fabric(), "ada")
    assert "aof_task_update with a note" in text
    assert "body" not in text


# --- what an agent may do on its own: eight enforcement points, five stages, and the figures of each level


def agent(**autonomy: Any) -> Agent:
    (found,) = chart_of(agents=[{"id": "ada", "autonomy": autonomy}]).agents
    return found


def asked(who: Agent, point: Point, subject: str | None = None, amount: int | None = None, calls: int = 0) -> Ruling:
    return ruling(who, AskedAction(point=point, subject=subject, amount=amount), tool_calls=calls)


@requirement("handoff.autonomy.level-limits")
@pytest.mark.parametrize("level", FIGURES)
def test_use_up_to_each_figure_of_a_level_is_allowed_and_one_more_is_not(level: int) -> None:
    who = agent(level=level)
    shown = limits_of(who)
    assert (shown.iterations, shown.minutes, shown.files, shown.lines, shown.tool_calls) == FIGURES[level]
    points: tuple[Point, ...] = ("iterations", "duration", "files", "lines")
    for point, most in zip(points, FIGURES[level], strict=False):
        assert asked(who, point, amount=most).outcome != "blocked"
        assert asked(who, point, amount=most + 1).outcome == "blocked"
    calls = FIGURES[level][4]
    assert asked(who, "read", "src", calls=calls - 1).outcome != "blocked"
    assert asked(who, "read", "src", calls=calls).outcome == "blocked"


PERMITTED: dict[Point, tuple[str | None, int | None]] = {
    "read": ("src/api.py", None),
    "write": ("src/api.py", None),
    "command": ("pytest -q", None),
    "network": ("https://pypi.org/simple", None),
    "iterations": (None, 50),
    "duration": (None, 60),
    "files": (None, 30),
    "lines": (None, 3000),
}
FORBIDDEN: dict[Point, tuple[str | None, int | None]] = {
    "read": ("secrets/key.pem", None),
    "write": ("migrations/1.sql", None),
    "command": ("git push origin", None),
    "network": ("evil.example", None),
    "iterations": (None, 51),
    "duration": (None, 61),
    "files": (None, 31),
    "lines": (None, 3001),
}


@requirement("handoff.autonomy.enforcement-points")
@pytest.mark.parametrize("point", POINTS)
def test_at_each_point_what_is_permitted_passes_and_the_rest_is_denied_by_name(point: Point) -> None:
    who = agent(
        level=2,
        deny={"read": ["secrets"], "write": ["migrations/*"], "command": ["git push*"]},
        allow={"network": ["pypi.org"]},
    )
    fine, wrong = asked(who, point, *PERMITTED[point]), asked(who, point, *FORBIDDEN[point])
    assert (fine.outcome != "blocked", fine.point) == (True, point)
    assert (wrong.outcome, wrong.point) == ("blocked", point)
    assert wrong.reason


@requirement("handoff.autonomy.evaluation-order")
def test_an_earlier_stage_is_never_overruled_by_a_later_one() -> None:
    everything = {"read": ["*"], "write": ["*"], "command": ["*"], "network": ["*"]}
    allowed = agent(level=3, allow=everything)
    both = agent(level=3, allow=everything, deny={"write": ["src/*"]})
    lists = agent(level=3, allow={"write": ["docs"]})
    bare = agent(maxRisk="low")

    def stage(who: Agent, subject: str, calls: int = 0) -> tuple[str, str]:
        ruled = asked(who, "write", subject, calls=calls)
        return ruled.outcome, ruled.stage

    assert stage(allowed, "../outside") == ("blocked", "security")
    assert stage(allowed, ".git/config") == ("blocked", "security")
    assert stage(allowed, ".") == ("blocked", "security")
    assert stage(both, "src/api.py") == ("blocked", "explicit_deny")
    assert stage(allowed, "src/api.py", calls=10_000) == ("proceed", "explicit_allow")
    assert stage(agent(level=3), "src/api.py", calls=10_000) == ("blocked", "limits")
    assert stage(agent(level=3), "src/api.py") == ("proceed", "limits")
    assert stage(lists, "docs/a/b.md") == ("proceed", "explicit_allow")
    assert stage(lists, "src/api.py") == ("blocked", "default_deny")
    assert stage(bare, "src/api.py") == ("blocked", "default_deny")
    assert stage(agent(level=0), "src/api.py") == ("blocked", "default_deny")
    assert stage(Agent(id="ada"), "src/api.py") == ("proceed", "undeclared")
    assert stage(Agent(id="ada"), "/etc/passwd") == ("blocked", "security")


@pytest.mark.parametrize(
    ("address", "outcome"),
    [
        ("http://169.254.169.254/latest", "blocked"),
        ("http://user@169.254.169.254:80/", "blocked"),
        ("[fd00:ec2::254]:80", "blocked"),
        ("METADATA.google.internal", "blocked"),
        ("pypi.org", "proceed"),
        ("https://PyPI.org:443/simple", "proceed"),
        ("pypi.org.evil.example", "blocked"),
        ("https://evil.example/pypi.org", "blocked"),
    ],
)
def test_a_host_is_recognised_in_any_spelling(address: str, outcome: str) -> None:
    assert asked(agent(level=3, allow={"network": ["pypi.org"]}), "network", address).outcome == outcome


def test_near_a_limit_there_is_a_warning() -> None:
    assert asked(agent(level=2), "files", amount=23).outcome == "proceed"
    near = asked(agent(level=2), "files", amount=24)
    assert near.outcome == "proceed_with_warnings"
    assert "24 of the 30 files" in near.warnings[0]


def test_a_run_may_take_the_shorter_of_both_limits() -> None:
    own = {"id": "ada", "maxExecutionTime": "30m"}
    cases = [
        ({"id": "ada"}, None),
        (own, 30),
        ({"id": "ada", "autonomy": {"level": 0}}, 10),
        (own | {"autonomy": {"level": 0}}, 10),
        (own | {"autonomy": {"level": 2}}, 30),
    ]
    for given, minutes in cases:
        (found,) = chart_of(agents=[given]).agents
        assert run_limit_ms(found) == (None if minutes is None else minutes * 60_000)


def test_work_beyond_an_agents_autonomy_is_refused_with_what_it_needs_and_what_there_is() -> None:
    chart = chart_of(agents=[{"id": "ada", "autonomy": {"level": 1, "maxRisk": "low"}}, {"id": "bob"}])
    refusal = may_take(chart, "ada", level=2, risk="medium")
    assert refusal is not None
    assert refusal.details["required"] == {"level": 2, "risk": "medium"}
    assert refusal.details["available"] == {"level": 1, "risk": "low"}
    assert "level is 1" in refusal.message
    assert may_take(chart, "ada", level=1, risk="low") is None
    assert may_take(chart, "bob", level=3, risk="high") is None
    assert may_take(chart, "nobody", level=3, risk="high") is None
    assert may_take(None, "ada", level=3, risk="high") is None


@pytest.mark.parametrize(
    "autonomy", [{"deny": {"write": [""]}}, {"allow": {"fly": ["x"]}}, {"deny": {"read": ["a\nb"]}}]
)
def test_what_is_no_permission_is_reported_by_the_check_of_the_chart(autonomy: dict[str, Any]) -> None:
    judged = validate_chart({"agents": [{"id": "ada", "autonomy": autonomy}]})
    assert any("autonomy" in finding.where and "ada" in finding.detail + finding.where for finding in judged.findings)
