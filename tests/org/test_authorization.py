"""A claim by an agent of the chart: only what it may take, only as much as it may hold."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from aof.kernel.model import Policy
from aof.kernel.needs import needs
from aof.org.routing import capacity_refusal
from tests.support.team import chart_of
from tests.support.world import World

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
CHART = chart_of(**TEAM)
STARTS: list[tuple[type[commands.OnTask], dict[str, Any]]] = [
    (commands.Claim, {}),
    (commands.Update, {"status": "in-progress"}),
    (commands.Complete, {}),
]


@pytest.fixture
def world() -> World:
    """A world with that chart."""
    return World(Policy(org=CHART))


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
    world: World, *, fields: dict[str, Any], who: str, words: str, kind: type[commands.OnTask], more: dict[str, Any]
) -> None:
    task = world.create(**fields)
    refusal = world.refuse(kind, task, who, **more)
    assert (refusal.code, refusal.kind) == ("not_routed", "refused")
    assert words in refusal.message
    assert refusal.call is not None
    assert (refusal.call.operation, refusal.call.arguments) == ("org_route", {"task_id": task})


@pytest.mark.parametrize(("kind", "more"), STARTS)
def test_an_agent_cannot_take_what_is_reserved_for_another(
    world: World, *, kind: type[commands.OnTask], more: dict[str, Any]
) -> None:
    refusal = world.refuse(kind, world.create(assignee="ada"), "bob", **more)
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
    world: World, fields: dict[str, Any], who: str
) -> None:
    assert world.claim(world.create(**fields), who)


def test_an_agent_that_is_not_active_takes_nothing(world: World) -> None:
    refusal = world.refuse(commands.Claim, world.create(), "zoe")
    assert refusal.code == "agent_inactive"


def test_an_agent_holds_as_many_tasks_as_it_may_and_one_more_when_one_ends(world: World) -> None:
    tasks = [world.create() for _ in range(3)]
    world.claim(tasks[0])
    world.claim(tasks[1])
    for kind, more in ((commands.Claim, {}), (commands.Update, {"status": "in-progress"})):
        refusal = world.refuse(kind, tasks[2], "ada", **more)
        assert (refusal.code, refusal.details["load"]) == ("at_capacity", 2)
        assert "2 of the 2 tasks" in refusal.message
    world.act(commands.Complete, tasks[0], "ada")
    world.claim(tasks[2])


def test_a_team_holds_as_many_tasks_together_as_it_may(world: World) -> None:
    tasks = [world.create() for _ in range(5)]
    for task, agent in zip(tasks, ("ada", "bob", "bob"), strict=False):
        world.claim(task, agent)
    refusal = world.refuse(commands.Claim, tasks[3], "lea")
    assert refusal.code == "at_capacity"
    assert "team 'eng' holds 3 of the 3" in refusal.message
    world.claim(tasks[3], "sol")
    world.act(commands.Release, tasks[1], "bob")
    world.claim(tasks[4], "lea")


def test_what_is_over_at_once_takes_no_capacity(world: World) -> None:
    for _ in range(2):
        world.claim(world.create())
    task = world.create()
    world.act(commands.Complete, task, "ada")
    assert world.status(task) == "review"


def test_who_lost_a_task_learns_that_before_whether_it_was_for_it(world: World) -> None:
    task = world.create(assignee="ada")
    world.claim(task)
    assert world.refuse(commands.Claim, task, "bob").code == "already_claimed"


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
    world: World, agent: str, names: set[str], counted: set[str]
) -> None:
    claim = commands.Claim(actor=agent, task_id=world.create())
    wanted = needs(claim, world.load(claim))
    assert (set(wanted.names), set(wanted.agents)) == (names, counted)


def test_without_a_chart_a_claim_looks_at_nobodys_load() -> None:
    world = World()
    claim = commands.Claim(actor="ada", task_id=world.create())
    assert not needs(claim, world.load(claim)).agents


@pytest.mark.parametrize(
    ("fields", "hint"),
    [({"assignee": "addda"}, "'ada'"), ({"role": "devv"}, "'dev'"), ({"team": "wrong"}, "use one of: eng")],
)
def test_a_task_for_somebody_that_is_not_there_is_refused_with_who_is(
    world: World, fields: dict[str, Any], hint: str
) -> None:
    refusal = world.refused(commands.Create(actor="pm", task_id=world.next_id(), title="x", **fields))
    assert refusal.code == "no_route"
    assert hint in refusal.hint
    task = world.create()
    routing = {{"assignee": "agent"}.get(name, name): value for name, value in fields.items()}
    assert world.refuse(commands.Edit, task, changes={"routing": routing}).code == "no_route"


def test_a_limit_is_reached_with_exactly_that_many() -> None:
    ada = CHART.by_id["ada"]
    assert capacity_refusal(CHART, ada, {"ada": 1, "bob": 1}) is None
    assert capacity_refusal(CHART, ada, {"ada": 2}) is not None
    assert capacity_refusal(CHART, ada, {"ada": 1, "bob": 2}) is not None
    assert capacity_refusal(CHART, CHART.by_id["sol"], {"sol": 99}) is None
