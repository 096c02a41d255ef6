"""Who may do what to whose task: every right for every kind, and no way around through another operation."""

from __future__ import annotations

from typing import Any

import pytest

from aof.kernel import commands
from aof.kernel.model import Policy
from aof.org.rights import RIGHTS, kind_of
from tests.support.team import chart_of
from tests.support.world import World

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
