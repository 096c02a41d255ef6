"""What a hop's outcome leads to, the conditions of hops, and what a template may say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.errors import HopRoleMismatch
from aof.kernel import commands
from aof.kernel.commands import Decision
from aof.kernel.events import Draft
from aof.kernel.model import Policy, run_place
from aof.org.model import Agent, OrgChart
from aof.workflows.outcomes import deadlines, due_hops
from aof.workflows.templates import DEPTH, OPERATORS, condition_holds, condition_problems, validate_template
from tests.support.requirements import requirement
from tests.support.strategies import json_values
from tests.support.workflows import DIAMOND, REVIEW, Gated, hop, template, templates
from tests.support.world import MINUTE

# --- how hops end and what follows: joins, rejections, holds, failures, time, approval, retries


HOUR = 60 * MINUTE


@pytest.fixture
def world() -> Gated:
    return Gated()


def test_a_hop_is_claimed_by_one_only(world: Gated) -> None:
    task = world.begin(REVIEW)
    world.take("implement")
    assert world.heartbeats[run_place(task, "implement")].beat_count == 0
    assert world.refuse(commands.Claim, task, "bob", hop="implement").code == "already_claimed"
    assert world.refuse(commands.Claim, task, "bob").code == "already_claimed"
    assert world.refuse(commands.Claim, task, "bob", hop="ship").code == "not_ready"
    assert world.refuse(commands.Claim, task, "bob", hop="shipp").hint == "did you mean 'ship'?"


def test_an_any_join_opens_with_the_first_and_what_nobody_began_is_skipped(world: Gated) -> None:
    task = world.begin(template(hop("a"), hop("b"), hop("c", "a", "b", joinType="any")))
    world.end("a")
    assert world.statuses() == {"a": "done", "b": "skipped", "c": "ready"}
    assert world.hop("b").reason == "nothing waits for it any more"
    world.end("c")
    assert world.status(task) == "done"


def test_who_runs_beside_an_any_join_may_finish(world: Gated) -> None:
    task = world.begin(template(hop("a"), hop("b"), hop("c", "a", "b", joinType="any")))
    run = world.take("b", "bob")
    world.end("a")
    world.end("c")
    assert world.status(task) == "in-progress"
    world.act(commands.Complete, task, "bob", run=run, outcome="complete")
    assert world.status(task) == "done"


def test_a_failed_predecessor_fails_an_all_join_and_not_an_any_join(world: Gated) -> None:
    for join, end in (("all", "deadletter"), ("any", "done")):
        task = world.begin(template(hop("a"), hop("b"), hop("c", "a", "b", joinType=join)))
        run = world.take("a")
        world.act(commands.Fail, task, "ada", run=run, retryable=False, code="broken", message="no disk")
        if join == "all":
            assert world.statuses() == {"a": "failed", "b": "skipped", "c": "failed"}
        else:
            world.end("b", agent="bob")
            world.end("c", agent="bob")
        assert world.status(task) == end
    error = next(one.last_error for one in world.tasks.values() if one.last_error is not None)
    assert error is not None
    assert error.message == "hop 'a': broken: no disk"


def test_of_several_hops_that_failed_the_first_is_what_the_task_died_of(world: Gated) -> None:
    task = world.begin(template(hop("a"), hop("b"), hop("c", "a", "b", joinType="any")))
    runs = {name: world.take(name, agent) for name, agent in (("a", "ada"), ("b", "bob"))}
    for name, agent in (("b", "bob"), ("a", "ada")):
        world.later(MINUTE)
        world.act(commands.Fail, task, agent, run=runs[name], retryable=False, code="broken", message=f"no {name}")
    error = world.tasks[task].last_error
    assert error is not None
    assert (error.message, error.run_id) == ("hop 'b': broken: no b", runs["b"])


def test_a_gated_task_that_comes_back_to_wait_for_a_dead_dependency_is_blocked(world: Gated) -> None:
    before = world.create(metadata={"reviewRequired": False})
    world.act(commands.Complete, before, "ada")
    task = world.begin(REVIEW, depends_on=(before,))
    run = world.take("implement")
    world.act(commands.RetryTask, before, reason="not good")
    world.act(commands.CancelTask, before)
    world.act(commands.Release, task, "ada", run=run)
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert (blocked.dependency, world.path(task)[-2:]) == (before, ["ready", "blocked"])


def test_a_failed_hop_is_tried_again_after_its_own_wait(world: Gated) -> None:
    task = world.begin(REVIEW)
    world.act(commands.Fail, task, "ada", run=world.take("implement"), code="flaky")
    assert (world.status(task), world.normalized(task)) == ("ready", "retrying")
    assert world.refuse(commands.Claim, task, "bob").code == "not_ready"
    world.later(MINUTE)
    assert world.take("implement", "bob")
    assert (world.hop("implement").failures, world.hop("implement").epoch) == (1, 2)


def test_a_hop_whose_holder_vanished_is_recovered_and_given_up_after_as_many_failures_as_allowed(world: Gated) -> None:
    task = world.begin(DIAMOND)
    world.end("build")
    for _ in range(3):
        world.take("test")
        world.expire(task)
        world.later(20 * MINUTE)
    assert world.statuses()["test"] == "failed"
    assert world.tasks[task].last_error is not None
    assert world.status(task) == "deadletter"
    assert world.open_hops() == []


def test_a_result_that_was_reported_before_the_holder_vanished_counts(world: Gated) -> None:
    task = world.begin(REVIEW)
    run = world.take("implement")
    payload = {"hop": "implement", "result": {"agentId": "ada", "outcome": "done"}}
    draft = Draft(type="task.completed", task_id=task, run_id=run, payload=payload)
    world.commit(commands.RecordHeartbeat(actor="ada", task_id=task), Decision(drafts=(draft,)))
    world.expire(task)
    assert world.statuses()["implement"] == "done"
    assert world.open_hops() == ["code-review"]


def test_a_hop_that_lives_is_left_alone(world: Gated) -> None:
    task = world.begin(REVIEW)
    run = world.take("implement")
    world.later(4 * MINUTE)
    world.act(commands.RecordHeartbeat, task, "ada", run=run)
    world.later(4 * MINUTE)
    assert world.act(commands.Expire, task, "aof").drafts == ()


def test_a_rejection_resets_what_comes_after_and_ends_who_runs_there(world: Gated) -> None:
    task = world.begin(template(hop("a"), hop("b", "a"), hop("c", "a", canReject=True), hop("d", "b", "c")))
    world.end("a")
    beside = world.take("b", "bob")
    world.end("c", "needs_review", "no tests")
    assert world.statuses() == {"a": "ready", "b": "waiting", "c": "rejected", "d": "waiting"}
    assert world.refuse(commands.Complete, task, "bob", run=beside, outcome="complete").code == "stale_lease"
    assert world.runs[task][beside].status == "cancelled"


def test_time_that_is_over_escalates_once_and_then_ends_the_hop(world: Gated) -> None:
    task = world.begin(template(hop("a", timeout="2h", escalateTo="architect"), hop("b", "a")))
    world.later(HOUR)
    assert due_hops(world.tasks[task], world.now) == ()
    assert world.act(commands.TimeOut, task, "aof", hop="a").drafts == ()
    run = world.take("a")
    world.later(HOUR)
    assert due_hops(world.tasks[task], world.now) == ("a",)
    world.act(commands.TimeOut, task, "aof", hop="a")
    assert (world.hop("a").role, world.statuses()["a"]) == ("architect", "ready")
    assert world.refuse(commands.Complete, task, "ada", run=run, outcome="complete").code == "stale_lease"
    world.later(2 * HOUR)
    world.act(commands.TimeOut, task, "aof", hop="a")
    assert world.statuses() == {"a": "timed_out", "b": "failed"}
    assert (world.status(task), world.normalized(task)) == ("deadletter", "timed_out")


def test_time_counts_from_when_the_task_could_run(world: Gated) -> None:
    before = world.create(metadata={"reviewRequired": False})
    task = world.begin(template(hop("a", timeout="2h")), depends_on=(before,))
    world.later(5 * HOUR)
    assert world.act(commands.TimeOut, task, "aof", hop="a").drafts == ()
    world.act(commands.Complete, before, "ada")
    assert world.act(commands.TimeOut, task, "aof", hop="a").drafts == ()
    assert deadlines(world.tasks[task], [world.tasks[before]]) == {"a": world.now + 2 * HOUR}
    world.act(commands.Pause, task)
    world.later(3 * HOUR)
    world.act(commands.Resume, task)
    assert world.act(commands.TimeOut, task, "aof", hop="a").drafts == ()


def test_without_auto_advance_a_hop_waits_for_an_approval(world: Gated) -> None:
    task = world.begin(template(hop("a", autoAdvance=False), hop("b", "a")))
    world.end("a")
    assert (world.status(task), world.normalized(task)) == ("review", "waiting_permission")
    world.act(commands.Reject, task, "pm", blockers=("too short",))
    assert (world.status(task), world.open_hops()) == ("ready", ["a"])
    world.end("a", agent="bob")
    world.act(commands.Approve, task, "pm")
    assert world.open_hops() == ["b"]


def test_a_dead_task_is_retried_from_the_hop_that_failed(world: Gated) -> None:
    task = world.begin(REVIEW)
    world.end("implement")
    world.act(commands.Fail, task, "ada", run=world.take("code-review"), retryable=False)
    assert world.status(task) == "deadletter"
    world.act(commands.RetryTask, task, reason="the service is back")
    assert world.statuses() == {"implement": "done", "code-review": "ready", "ship": "waiting"}
    assert world.status(task) == "ready"
    assert world.goes_on() == "done"
    world.act(commands.RetryTask, task, reason="all of it")
    assert world.statuses() == {"implement": "ready", "code-review": "waiting", "ship": "waiting"}


def test_cancelling_ends_every_run_once_their_hosts_have_stopped_them(world: Gated) -> None:
    task = world.begin(DIAMOND)
    world.end("build")
    first, second = world.take("test", worker="process"), world.take("audit", "bob")
    world.act(commands.CancelTask, task)
    assert world.status(task) == "in-progress"
    assert world.refuse(commands.Complete, task, "bob", run=second, outcome="complete").code == "stale_lease"
    world.act(commands.Settle, task)
    assert world.status(task) == "cancelled"
    assert {world.runs[task][run].status for run in (first, second)} == {"cancelled"}


def test_an_agent_with_two_hops_must_say_which_run_it_means(world: Gated) -> None:
    task = world.begin(template(hop("a"), hop("b")))
    world.take("a")
    world.take("b")
    assert world.refuse(commands.Complete, task, "ada", outcome="complete").code == "run_required"


def test_a_skipped_hop_says_why_and_stands_in_nobodys_way(world: Gated) -> None:
    risky = {"eq": {"field": "metadata.risk", "value": "high"}}
    task = world.begin(template(hop("a"), hop("audit", "a", condition=risky), hop("ship", "audit")))
    world.end("a")
    assert world.statuses() == {"a": "done", "audit": "skipped", "ship": "ready"}
    assert world.hop("audit").reason == "its condition does not hold"
    world.end("ship")
    assert world.status(task) == "done"


def test_a_workflow_whose_hops_are_all_skipped_is_done_at_once(world: Gated) -> None:
    task = world.begin(template(hop("a", condition={"has_tag": "never"})))
    assert world.status(task) == "done"


def test_a_known_agent_judges_no_work_of_its_own() -> None:
    agents = (Agent(id="ada", roles=("developer", "reviewer")), Agent(id="bob", roles=("reviewer",)))
    world = Gated(Policy(org=OrgChart(agents=agents)))
    task = world.begin(REVIEW)
    world.end("implement")
    assert world.refuse(commands.Claim, task, "ada").code == "own_work"
    assert world.take("code-review", "bob")


def test_a_known_agent_without_the_role_is_told_who_has_it() -> None:
    world = Gated(
        Policy(org=OrgChart(agents=(Agent(id="ada", roles=("reviewer",)), Agent(id="dev", roles=("developer",)))))
    )
    task = world.begin(REVIEW)
    refusal = world.refuse(commands.Claim, task, "ada")
    assert isinstance(refusal, HopRoleMismatch)
    assert refusal.hint == "leave it to dev"


# --- conditions are data: each operator says yes and no, and nothing is ever run


FACTS: dict[str, Any] = {
    "priority": "high",
    "routing": {"tags": ["api"]},
    "metadata": {"risk": 3, "flag": True, "name": "b"},
    "hops": {"test": {"status": "done", "tests": {"failed": 0}}},
}


def _is(operator: str, field: str, value: Any) -> dict[str, Any]:
    return {operator: {"field": field, "value": value}}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "eq": (_is("eq", "priority", "high"), _is("eq", "priority", "low")),
    "neq": (_is("neq", "metadata.absent", 1), _is("neq", "metadata.risk", 3)),
    "gt": (_is("gt", "metadata.risk", 2), _is("gt", "metadata.risk", 3)),
    "gte": (_is("gte", "metadata.risk", 3), _is("gte", "metadata.absent", 0)),
    "lt": (_is("lt", "metadata.name", "c"), _is("lt", "metadata.risk", "9")),
    "lte": (_is("lte", "hops.test.tests.failed", 0), _is("lte", "metadata.flag", 1)),
    "in": (_is("in", "priority", ["high", "critical"]), _is("in", "metadata.flag", [1])),
    "has_tag": ({"has_tag": "api"}, {"has_tag": "ap"}),
    "hop_status": (
        {"hop_status": {"hop": "test", "status": ["done", "skipped"]}},
        {"hop_status": {"hop": "test", "status": "failed"}},
    ),
    "and": (
        {"and": [{"has_tag": "api"}, _is("gt", "metadata.risk", 0)]},
        {"and": [{"has_tag": "api"}, {"has_tag": "x"}]},
    ),
    "or": ({"or": [{"has_tag": "x"}, {"has_tag": "api"}]}, {"or": [{"has_tag": "x"}]}),
    "not": ({"not": {"has_tag": "x"}}, {"not": {"has_tag": "api"}}),
}


@requirement("tools.workflow.conditions-are-data")
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_says_yes_and_no(operator: str) -> None:
    yes, no = CASES[operator]
    assert not [*condition_problems(yes), *condition_problems(no)]
    assert condition_holds(yes, FACTS)
    assert not condition_holds(no, FACTS)


@requirement("tools.workflow.conditions-are-data")
@pytest.mark.parametrize(
    "condition",
    [
        "__import__('pathlib').Path('ran').touch()",
        "metadata.risk > 3",
        ["has_tag", "api"],
        {"eval": "1 + 1"},
        {"eq": "priority"},
        {"eq": {"field": "__class__.__mro__", "value": 1}},
        {"and": []},
        {"and": [{"exec": "x"}]},
        {"hop_status": {"hop": "a", "status": "perfect"}},
        {"in": {"field": "priority", "value": "high"}},
        {"has_tag": 3},
        {"eq": {"field": "priority", "value": 1}, "neq": {"field": "priority", "value": 1}},
    ],
)
def test_what_is_no_condition_is_refused_when_the_workflow_is_loaded(condition: Any, tmp_path: Any) -> None:
    found = validate_template({"name": "flow", "hops": [hop("a"), hop("b", "a", condition=condition)]})
    assert found.template is None
    assert [finding.code for finding in found.findings] == ["bad_condition"]
    assert found.findings[0].at[:3] == ("hops", 1, "condition")
    assert found.findings[0].fix
    assert not [*tmp_path.iterdir()]


def test_a_condition_is_bounded_in_depth_and_size() -> None:
    deep: dict[str, Any] = {"has_tag": "x"}
    for _ in range(DEPTH):
        deep = {"not": deep}
    assert [*condition_problems(deep)]
    assert [*condition_problems({"or": [{"has_tag": "x"}] * 100})]


def test_a_condition_asks_only_for_hops_that_are_over_by_then() -> None:
    asks = {"hop_status": {"hop": "b", "status": "done"}}
    for hops in ([hop("a", condition=asks), hop("b", "a")], [hop("a", condition={"not": asks})]):
        assert [one.code for one in validate_template({"name": "flow", "hops": hops}).findings] == ["bad_condition"]
    field = {"eq": {"field": "hops.c.outcome", "value": "done"}}
    assert validate_template({"name": "flow", "hops": [hop("a"), hop("b", "a", condition=field)]}).template is None


# --- what is wrong with a template is named with its place and what helps


@pytest.mark.parametrize(
    ("hops", "code", "at"),
    [
        ([hop("a"), hop("a")], "duplicate_id", ("hops", 1, "id")),
        ([hop("A b")], "bad_id", ("hops", 0, "id")),
        ([hop("../x")], "bad_id", ("hops", 0, "id")),
        ([hop("a"), hop("b", "aa")], "unknown_hop", ("hops", 1, "dependsOn", 0)),
        ([hop("a"), hop("b", "a", "a")], "duplicate_edge", ("hops", 1, "dependsOn", 1)),
        ([hop("a"), hop("b", "c"), hop("c", "b")], "cycle", ("hops", 1, "dependsOn")),
        ([hop("a"), hop("b", "b"), hop("c", "b")], "unreachable", ("hops", 2, "dependsOn")),
        ([hop("a", "b"), hop("b", "a")], "no_start", ("hops",)),
        ([], "no_hops", ("hops",)),
        ([hop("a", timeout="2 hours")], "bad_duration", ("hops", 0, "timeout")),
        ([hop("a", escalateTo="lead")], "no_timeout", ("hops", 0, "escalateTo")),
        ([hop("a", canReject=True)], "nothing_to_reject", ("hops", 0, "canReject")),
        ([hop("a", role="a b")], "bad_name", ("hops", 0, "role")),
        ([hop(f"h{number}") for number in range(21)], "too_many_hops", ("hops",)),
        ([hop("a", colour="red")], "unknown_key", ("hops", 0, "colour")),
        ([{"id": "a"}], "missing_key", ("hops", 0)),
        ([hop("a", joinType="some")], "wrong_type", ("hops", 0, "joinType")),
    ],
)
def test_each_problem_has_a_code_a_place_and_a_remedy(hops: Any, code: str, at: tuple[Any, ...]) -> None:
    found = validate_template({"name": "flow", "hops": hops})
    assert found.template is None
    one = next(finding for finding in found.findings if finding.code == code)
    assert one.at == at
    assert one.detail
    assert one.fix


def test_a_cycle_is_shown_from_hop_to_hop() -> None:
    found = validate_template({"name": "flow", "hops": [hop("s"), hop("a", "c"), hop("b", "a"), hop("c", "b")]})
    assert "a → c → b → a" in found.findings[0].detail


def test_the_name_is_the_files_name() -> None:
    assert validate_template(REVIEW, "review").template is not None
    assert [finding.code for finding in validate_template(REVIEW, "other").findings] == ["other_name"]


def test_a_strategy_of_who_cannot_reject_is_a_warning() -> None:
    found = validate_template({"name": "flow", "hops": [hop("a"), hop("b", "a", rejectionStrategy="predecessors")]})
    assert found.template is not None
    assert [finding.severity for finding in found.findings] == ["warning"]


def test_sound_templates_are_found_sound() -> None:
    assert validate_template(DIAMOND).findings == validate_template(REVIEW).findings == ()


@given(templates())
def test_every_drawn_template_is_sound(document: dict[str, Any]) -> None:
    assert validate_template(document).template is not None


@given(
    st.fixed_dictionaries(
        {
            "name": json_values(),
            "hops": st.lists(
                st.dictionaries(
                    st.sampled_from(["id", "role", "dependsOn", "condition", "timeout", "canReject"]),
                    json_values(),
                    max_size=4,
                ),
                max_size=3,
            ),
        }
    )
)
def test_any_document_is_judged_without_an_error(document: dict[str, Any]) -> None:
    checked = validate_template(document)
    assert checked.template is not None or checked.findings
