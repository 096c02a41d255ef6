"""Who gets a task, and who is asked when nobody takes it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.kernel.commands import Create
from aof.org.chart import escalation_chain, validate_chart
from aof.org.model import HUMAN, OrgChart
from aof.org.routing import Route, WorkProfile, capacity_refusal, pools, route, routing_refusal, stranded, work_of
from aof.tasks.fields import bad_capabilities, required_capabilities
from aof.tasks.model import Routing
from tests.support.requirements import requirement
from tests.support.team import chart_of
from tests.support.world import World

# --- who gets a task: the order of the stages, load, ties, and why not the others


TEAM: dict[str, Any] = {
    "agents": [
        {"id": "pm", "team": "eng"},
        {"id": "lead", "team": "eng"},
        {"id": "ada", "team": "eng", "roles": ["dev"], "capabilities": ["api", {"id": "python", "proficiency": 0.6}]},
        {"id": "bob", "team": "eng", "roles": ["dev"], "capabilities": ["python", "sql"], "concurrency": 2},
        {"id": "qa", "roles": ["tester"], "capabilities": ["tests"], "autonomy": {"level": 1, "maxRisk": "low"}},
        {"id": "off", "roles": ["dev", "gone"], "capabilities": ["cobol"], "active": False},
    ],
    "teams": [{"id": "eng", "orchestrator": "pm", "lead": "lead"}, {"id": "loose"}, {"id": "empty"}],
    "roles": {"nobody": {}},
    "routing": [
        {"tags": ["docs"], "to": {"agent": "qa"}, "weight": 1},
        {"tags": ["docs", "api"], "to": {"role": "dev"}, "weight": 5},
        {"tags": ["old"], "to": {"agent": "off"}, "weight": 9},
        {"tags": ["old"], "to": {"team": "eng"}, "weight": 1},
    ],
}
CHART = chart_of(**TEAM)


def asked(*capabilities: str, **given: Any) -> WorkProfile:
    return WorkProfile(
        capabilities=tuple(required_capabilities({"requiredCapabilities": capabilities}).items()), **given
    )


def routed(work: WorkProfile, **load: int) -> str | None:
    return route(CHART, work, load).agent


@requirement("handoff.routing.precedence")
def test_agent_then_role_then_team_then_rule_then_capability_decides() -> None:
    tags = ("docs",)
    everything: dict[str, Any] = {"agent": "qa", "role": "dev", "team": "eng", "tags": tags}
    expected: list[tuple[dict[str, Any], str, str]] = [
        (everything, "agent", "qa"),
        ({"role": "dev", "team": "eng", "tags": tags}, "role", "ada"),
        ({"team": "eng", "tags": tags}, "team", "pm"),
        ({"tags": tags}, "rule", "qa"),
        ({}, "capability", "bob"),
    ]
    for given_, stage, agent in expected:
        work = asked(*(["sql"] if stage == "capability" else []), **given_)
        answers = [route(CHART, work, {}) for _ in range(3)]
        assert {(answer.stage, answer.agent) for answer in answers} == {(stage, agent)}
        assert answers[0] == answers[1] == answers[2]


def test_a_role_goes_to_the_least_busy_holder_and_a_tie_to_the_first_in_the_chart() -> None:
    assert routed(asked(role="dev")) == "ada"
    assert routed(asked(role="dev"), ada=1) == "bob"
    assert routed(asked(role="dev"), ada=1, bob=1) == "ada"


def test_a_team_gives_to_its_orchestrator_then_its_lead_and_members_only_where_it_has_neither() -> None:
    busy = chart_of(**TEAM | {"agents": [agent | {"concurrency": 1} for agent in TEAM["agents"]]})
    team = WorkProfile(team="eng")
    assert route(busy, team, {}).agent == "pm"
    assert route(busy, team, {"pm": 1}).agent == "lead"
    waiting = route(busy, team, {"pm": 1, "lead": 1})
    assert (waiting.state, waiting.agent, waiting.candidates) == ("waits", None, ("pm", "lead"))
    members = chart_of(agents=[{"id": "a", "team": "t"}, {"id": "b", "team": "t"}], teams=[{"id": "t"}])
    assert route(members, WorkProfile(team="t"), {"a": 1}).agent == "b"


def test_the_heaviest_rule_that_matches_decides_and_one_that_leads_nowhere_gives_way() -> None:
    assert routed(asked(tags=("docs",))) == "qa"
    assert routed(asked(tags=("docs", "api"))) == "ada"
    old = route(CHART, asked(tags=("old",)), {})
    assert (old.stage, old.agent) == ("rule", "pm")
    assert [step.stage for step in old.steps] == ["rule", "rule"]
    assert "not active" in old.steps[0].outcome


def test_capabilities_count_with_their_proficiency_in_every_stage_but_a_named_agent() -> None:
    assert routed(asked("python")) == "ada"
    assert routed(asked("python:0.7")) == "bob"
    assert routed(asked("python:0.7", role="dev")) == "bob"
    assert routed(asked("python:0.7", "api")) is None
    assert routed(asked("cobol", agent="qa")) == "qa"


@requirement("handoff.capability.min-proficiency")
def test_an_agent_of_that_proficiency_matches_and_one_of_less_does_not() -> None:
    chart = chart_of(agents=[{"id": "ada", "capabilities": [{"id": "python", "proficiency": 0.6}]}])
    for least, agent in ((0.6, "ada"), (0.7, None), (None, "ada")):
        wanted = {"capability_id": "python"} | ({} if least is None else {"min_proficiency": least})
        work = work_of(Routing(), {"requiredCapabilities": [wanted]})
        assert route(chart, work, {}).agent == agent
    for wrong in (1.5, -0.1):
        problem = bad_capabilities("x", [{"capability_id": "python", "min_proficiency": wrong}])
        assert problem is not None
        assert problem.code == "invalid"
        assert World().refused(_asking({"id": "python", "minProficiency": wrong})).code == "invalid"
        agents = [{"id": "ada", "capabilities": [{"id": "python", "proficiency": wrong}]}]
        assert [finding.code for finding in validate_chart({"agents": agents}).findings] == ["bad_value"]


def _asking(capability: object) -> Create:
    profile = {"requiredCapabilities": [capability]}
    return Create(actor="pm", task_id="TASK-2026-03-02-001", title="x", fields={"profile": profile})


@pytest.mark.parametrize(
    "wrong", [7, None, "", "python:7", "x:-1", {}, {"id": 7}, {"id": "a", "minProficiency": "1"}, True]
)
def test_a_task_that_asks_for_something_impossible_is_refused(wrong: object) -> None:
    assert World().refused(_asking(wrong)).code == "invalid"


def test_a_tag_that_is_somebodys_capability_asks_for_it() -> None:
    assert routed(asked(tags=("sql",))) == "bob"
    assert routed(asked(tags=("sql", "urgent"))) == "bob"
    assert route(CHART, asked(tags=("sql", "tests")), {}).state == "no_route"


def test_a_tag_means_nothing_where_the_chart_serves_none() -> None:
    assert route(chart_of(agents=[{"id": "ada"}]), asked(tags=("urgent",)), {}).agent == "ada"


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (asked(agent="zoe"), "there is no such agent"),
        (asked(agent="off"), "off: it is not active"),
        (asked(role="zzz"), "no agent has this role"),
        (asked(role="nobody"), "no agent has this role"),
        (asked(role="gone"), "off: it is not active"),
        (asked("python", role="tester"), "qa: it lacks python"),
        (asked(team="zzz"), "there is no such team"),
        (asked(team="empty"), "nobody is in this team"),
        (asked(tags=("frob",)), "no rule and no capability is about frob"),
        (asked("cobol"), "pm: it lacks cobol"),
        (asked("nothing-like-it"), "ada: it lacks nothing-like-it"),
        (asked(role="tester", level=2), "its autonomy level is 1, and the task needs 2"),
        (asked(role="tester", risk="medium"), "it may take low risk at most"),
    ],
)
def test_work_that_nobody_can_take_says_so_and_why(work: WorkProfile, words: str) -> None:
    answer = route(CHART, work, {})
    assert (answer.state, answer.agent) == ("no_route", None)
    assert words in answer.reason
    assert stranded(CHART, work) == answer.reason
    assert set(answer.others) == set(CHART.by_id)


def test_the_answer_says_why_each_other_one_does_not_get_it() -> None:
    answer = route(CHART, asked(role="dev"), {"bob": 1})
    assert answer.others == {
        "pm": "it is for role 'dev'",
        "lead": "it is for role 'dev'",
        "bob": "it holds 1 tasks, ada holds 0",
        "qa": "it is for role 'dev'",
        "off": "it is not active",
    }
    full_ = route(CHART, asked(role="dev"), {"ada": 3, "bob": 2})
    assert full_.agent == "ada"
    assert "2 of the 2 tasks" in full_.others["bob"]


def test_what_a_task_asks_for_is_read_in_every_spelling_and_nonsense_asks_for_nothing() -> None:
    spelt: list[Any] = [
        "a",
        "b:0.5",
        "c:x",
        {"id": "d", "minProficiency": 0.2},
        {"capability_id": "e"},
        7,
        {"id": 7},
        None,
    ]
    assert required_capabilities({"requiredCapabilities": spelt}) == {
        "a": 0.0,
        "b": 0.5,
        "c:x": 0.0,
        "d": 0.2,
        "e": 0.0,
    }
    assert required_capabilities({"requiredCapabilities": "a"}) == {}
    odd = work_of(Routing(), {"risk": "huge", "autonomyLevel": 9})
    assert (odd.risk, odd.level) == (None, None)
    plain = work_of(Routing(tags=("x",)), {"risk": "high", "autonomyLevel": 2})
    assert (plain.risk, plain.level, plain.tags) == ("high", 2, ("x",))


# --- whatever the chart and the task


NAMES = st.sampled_from(["a", "b", "c", "d"])
TAGS = st.lists(st.sampled_from(["x", "y", "z"]), max_size=2, unique=True)


@st.composite
def charts(draw: st.DrawFn) -> OrgChart:
    ids = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    agents = [
        {
            "id": name,
            "active": draw(st.booleans()),
            "roles": draw(st.lists(st.sampled_from(["dev", "ops"]), max_size=2, unique=True)),
            "capabilities": draw(TAGS),
        }
        | draw(st.sampled_from([{}, {"team": "t"}, {"concurrency": 1}, {"team": "t", "concurrency": 2}]))
        for name in ids
    ]
    heads: dict[str, str] = draw(st.fixed_dictionaries({}, optional={"lead": NAMES, "orchestrator": NAMES}))
    limits: dict[str, Any] = draw(st.sampled_from([{}, {"limits": {"maxConcurrent": 2}}]))
    to = st.sampled_from([{"agent": "a"}, {"role": "dev"}, {"team": "t"}])
    rules = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "tags": st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=2, unique=True),
                    "to": to,
                    "weight": st.integers(0, 3),
                }
            ),
            max_size=3,
        )
    )
    return chart_of(agents=agents, teams=[{"id": "t"} | heads | limits], routing=rules)


WORKS = st.builds(
    WorkProfile,
    agent=st.none() | NAMES,
    role=st.none() | st.sampled_from(["dev", "ops", "none"]),
    team=st.none() | st.sampled_from(["t", "none"]),
    tags=TAGS.map(tuple),
    capabilities=st.lists(st.tuples(st.sampled_from(["x", "y"]), st.sampled_from([0.0, 0.5])), max_size=1).map(tuple),
)
LOADS = st.dictionaries(NAMES, st.integers(0, 3))


@given(charts(), WORKS, LOADS)
def test_who_gets_a_task_may_take_it_and_has_room(chart: OrgChart, work: WorkProfile, load: dict[str, int]) -> None:
    answer = route(chart, work, load)
    assert answer == route(chart, work, dict(reversed(load.items())))
    if answer.agent is not None:
        agent = chart.by_id[answer.agent]
        assert agent.active
        assert routing_refusal(chart, work, agent.id) is None
        assert capacity_refusal(chart, agent, load) is None
    _accounts_for_everybody(chart, answer)


def _accounts_for_everybody(chart: OrgChart, answer: Route) -> None:
    assert set(answer.others) == set(chart.by_id) - {answer.agent}
    assert all(answer.others.values())
    assert answer.reason


@given(charts(), WORKS, LOADS)
def test_a_task_is_stranded_exactly_when_nobody_may_take_it(
    chart: OrgChart, work: WorkProfile, load: dict[str, int]
) -> None:
    takers = {agent for agent in chart.by_id if routing_refusal(chart, work, agent) is None}
    assert (stranded(chart, work) is None) == bool(takers)
    state = route(chart, work, load).state
    assert (state == "no_route") == (not takers)
    assert (state == "waits") <= bool(takers)
    assert set(route(chart, work, load).candidates) <= takers


@given(charts(), WORKS, LOADS)
def test_among_equals_nobody_less_busy_is_passed_over(chart: OrgChart, work: WorkProfile, load: dict[str, int]) -> None:
    answer = route(chart, work, load)
    pool = next((pool for pool in pools(chart, work) if answer.agent in pool.agents), None)
    if answer.agent is None or pool is None or pool.ranked:
        return
    free = [one for one in answer.candidates if capacity_refusal(chart, chart.by_id[one], load) is None]
    assert load.get(answer.agent, 0) == min(load.get(one, 0) for one in free)


# --- whom an agent turns to: its own target, then the chain, at most three steps and never in a circle


def agents(**targets: str | None) -> list[dict[str, Any]]:
    return [{"id": name} | ({"escalatesTo": target} if target else {}) for name, target in targets.items()]


@pytest.mark.parametrize(
    ("parts", "asked"),
    [
        ({"agents": agents(a=None)}, ()),
        ({"agents": agents(a="b", b="c", c=None)}, ("b", "c")),
        ({"agents": agents(a="b", b="c", c="d", d="e", e=None)}, ("b", "c", "d")),
        ({"agents": agents(a="b", b="a")}, ("b",)),
        ({"agents": agents(a="b", b=None), "escalation": ["human"]}, ("b", "human")),
        ({"agents": agents(a="human", b=None), "escalation": ["b"]}, ("human",)),
        ({"agents": agents(a="nobody"), "escalation": ["human"]}, ("human",)),
        ({"agents": agents(a=None), "escalation": ["reviewer", "architect", "human"]}, ("human",)),
    ],
)
def test_the_way_up_goes_over_own_targets_and_then_the_chain(parts: dict[str, Any], asked: tuple[str, ...]) -> None:
    assert escalation_chain(chart_of(**parts), "a") == asked


def test_a_role_stands_for_its_first_active_holder_that_was_not_asked_yet() -> None:
    chart = chart_of(
        agents=[{"id": "a", "roles": ["rev"]}, {"id": "off", "active": False}, {"id": "b"}, {"id": "c"}],
        roles={"rev": {"agents": ["off", "b"]}, "arch": {"agents": ["b", "c"]}},
        escalation=["rev", "arch", "human"],
    )
    assert escalation_chain(chart, "a") == ("b", "c", "human")
    assert escalation_chain(chart, "b") == ("a", "c", "human")


@given(st.dictionaries(st.sampled_from("abcde"), st.sampled_from("abcde") | st.just(HUMAN), min_size=1))
def test_nobody_is_asked_twice_and_a_person_is_the_last(targets: dict[str, str]) -> None:
    chart = chart_of(agents=agents(**targets), escalation=["a", "b", "human"])
    for name in targets:
        asked = escalation_chain(chart, name)
        assert len(set(asked)) == len(asked) <= 3
        assert name not in asked
        assert HUMAN not in asked[:-1]
