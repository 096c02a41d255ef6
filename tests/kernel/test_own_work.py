"""Nobody approves their own work, a repeated report changes nothing, and one that comes too late is kept.

By name, in a session of MCP and with a token of HTTP, with an org chart and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.call import Caller
from aof.api.fabric import Fabric
from aof.config import load_settings
from aof.errors import AofError, OwnWork, StaleLease
from aof.kernel.model import Policy
from aof.runs.brief import brief
from aof.runs.model import RunResult
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.tasks.model import Task
from aof.testing import FakeClock, memory_fabric
from aof.workflows.model import workflow_of
from tests.kernel.test_callers import CHART, WORKFLOW, ask, code, fabric_with, sent, session, token
from tests.support.messages import report, update

WAYS: list[tuple[str, dict[str, Any]]] = [("approve", {}), ("update", {"status": "done"})]
LATE = [(end, True) for end in ("in-progress", "review", "done", "ready", "cancelled", "blocked")]
LATE += [(end, False) for end, _ in LATE if end != "ready"]  # without a run, it is new work on a ready task
CALLERS: list[Callable[[str], Caller]] = [Caller, session, token]
EndedWith = Callable[..., Task]


def _done_by(fabric: Fabric, caller: Caller, agent: str | None = None) -> str:
    task_id: str = fabric.create("Work").task_id
    ask(fabric, caller, "claim", taskId=task_id, agent=agent or caller.actor)
    ask(fabric, caller, "complete", taskId=task_id, agent=agent or caller.actor, summary="Built.")
    return task_id


def _claimed_and_done(fabric: Fabric, caller: Caller, task_id: str, summary: str, **given: Any) -> Any:
    run = ask(fabric, caller, "claim", taskId=task_id).run_id
    return ask(fabric, caller, "complete", taskId=task_id, run=run, summary=summary, **given)


@pytest.mark.parametrize("chart", [True, False])
@pytest.mark.parametrize("caller", CALLERS)
def test_who_ran_the_work_approves_it_in_no_way(chart: bool, caller: Callable[[str], Caller]) -> None:  # noqa: FBT001
    fabric = fabric_with(chart=chart)
    task_id = _done_by(fabric, caller("ada"))
    for operation, given in WAYS:
        assert code(fabric, caller("ada"), operation, taskId=task_id, **given) == "own_work"
    answer = sent(fabric, caller("ada"), update(task_id, "ada", status="done"))
    assert fabric.get(task_id).status == "review", answer
    assert ask(fabric, caller("rev"), "approve", taskId=task_id).status == "done"


@pytest.mark.parametrize("chart", [True, False])
def test_a_second_report_of_the_same_work_changes_nothing_from_wherever_it_comes(chart: bool) -> None:  # noqa: FBT001
    fabric = fabric_with(chart=chart)
    task_id = _done_by(fabric, session("ada"))
    head = fabric.store.head()
    for caller in (session("ada"), Caller("ada"), token("ada")):
        for said in ({"summary": "Built."}, {}):
            assert ask(fabric, caller, "complete", taskId=task_id, **said).status == "review"
    assert fabric.store.head() == head
    ask(fabric, Caller("rev"), "approve", taskId=task_id)
    head = fabric.store.head()
    assert ask(fabric, session("ada"), "complete", taskId=task_id, summary="Built.").status == "done"
    assert fabric.store.head() == head


def test_another_report_of_the_same_run_changes_no_status_and_is_kept() -> None:
    fabric = fabric_with(chart=False)
    task_id = _done_by(fabric, session("ada"))
    for _ in range(2):
        assert ask(fabric, session("ada"), "complete", taskId=task_id, summary="Built, and more.").status == "review"
    assert [one.summary for one in fabric.get(task_id).late_results] == ["Built, and more."]


def test_a_report_that_is_sent_again_after_a_rejection_submits_nothing_again() -> None:
    fabric = fabric_with(chart=False)
    task_id = _done_by(fabric, session("ada"))
    ask(fabric, Caller("rev"), "reject", taskId=task_id, blockers=["no tests"])
    assert code(fabric, session("ada"), "complete", taskId=task_id, summary="Built.") == "run_required"
    assert _claimed_and_done(fabric, session("ada"), task_id, "With tests.").status == "review"


def test_the_session_behind_a_run_approves_it_under_no_name_where_names_are_free() -> None:
    fabric = fabric_with(chart=False)
    task_id = _done_by(fabric, session("host"), agent="ada")
    for actor in ("bob", "host", "own"):
        assert code(fabric, session("host"), "approve", taskId=task_id, actor=actor) == "own_work"
    assert ask(fabric, session("rev"), "approve", taskId=task_id).status == "done"


def test_a_maintainer_at_the_command_line_approves_what_an_agent_did_for_them() -> None:
    fabric = memory_fabric("mia")
    task_id = fabric.create("Work").task_id
    fabric.claim(task_id, agent="ada")
    fabric.complete(task_id, agent="ada")
    assert fabric.complete(task_id, agent="ada").status == "review"
    assert fabric.approve(task_id).status == "done"
    own = fabric.create("Own").task_id
    fabric.claim(own, agent="mia")
    fabric.complete(own, agent="mia")
    with pytest.raises(OwnWork) as refused:
        fabric.approve(own)
    assert "selfReview" in refused.value.hint


def test_a_person_who_is_no_maintainer_does_not_approve_what_they_let_an_agent_do() -> None:
    fabric = memory_fabric("bob", policy=Policy(maintainers=("mia",)))
    task_id = _done_by(fabric, Caller("bob"), agent="ada")
    assert code(fabric, Caller("bob"), "approve", taskId=task_id) == "own_work"
    assert ask(fabric, Caller("bob"), "complete", taskId=task_id).status == "review"
    assert fabric.approve(task_id, actor="eve").status == "done"


def test_only_what_was_run_since_the_last_verdict_counts() -> None:
    fabric = fabric_with(chart=False)
    task_id = _done_by(fabric, session("ada"))
    ask(fabric, session("eve"), "reject", taskId=task_id, blockers=["no tests"])
    _claimed_and_done(fabric, session("bob"), task_id, "Tests.")
    assert code(fabric, session("bob"), "approve", taskId=task_id) == "own_work"
    assert ask(fabric, session("ada"), "approve", taskId=task_id).status == "done"


def test_taking_ones_own_work_back_does_not_make_it_anothers() -> None:
    fabric = fabric_with(chart=False)
    task_id = _done_by(fabric, session("ada"))
    ask(fabric, session("ada"), "reject", taskId=task_id, blockers=["wait"])
    _claimed_and_done(fabric, session("mule"), task_id, "Nothing to add.")
    assert code(fabric, session("ada"), "approve", taskId=task_id) == "own_work"


@pytest.mark.parametrize("caller", [Caller("BOB"), Caller("BOB", session="BOB", default=True)])
@pytest.mark.parametrize("workflow", [None, "approved"])
def test_taking_ones_own_work_back_under_another_spelling_does_not_make_it_anothers(
    caller: Caller, workflow: str | None
) -> None:
    approved = {"name": "approved", "hops": [{"id": "build", "role": "developer", "autoAdvance": False}]}
    fabric = memory_fabric("own", policy=Policy(maintainers=("own",)), org=CHART, workflows=[approved])
    task_id = fabric.create("Work", workflow=workflow).task_id
    _claimed_and_done(fabric, session("bob"), task_id, "Built.")
    ask(fabric, caller, "reject", taskId=task_id, blockers=["wait"])
    _claimed_and_done(fabric, session("ada"), task_id, "Nothing to add.")
    assert code(fabric, session("bob"), "approve", taskId=task_id) == "own_work"


@pytest.mark.parametrize(("operation", "given"), [("reject", {"blockers": ["wait"]}), ("update", {"status": "ready"})])
def test_a_worker_of_an_earlier_run_does_not_send_back_what_another_did_since(
    operation: str, given: dict[str, Any]
) -> None:
    fabric = fabric_with()
    task_id = _done_by(fabric, session("ada"))
    ask(fabric, session("rev"), "reject", taskId=task_id, blockers=["no tests"])
    _claimed_and_done(fabric, session("bob"), task_id, "Tests.")
    assert code(fabric, session("ada"), operation, taskId=task_id, **given) == "not_allowed"
    assert code(fabric, Caller("ada", session="ada", default=True), operation, taskId=task_id, **given) == "not_allowed"
    assert ask(fabric, session("bob"), operation, taskId=task_id, **given).status == "ready"


def test_two_agents_in_turn_are_both_authors_and_a_reopened_task_begins_anew() -> None:
    clock = FakeClock()
    fabric = memory_fabric("mia", clock)
    task_id = fabric.create("Work").task_id
    fabric.claim(task_id, agent="ada")
    fabric.release(task_id, agent="ada")
    fabric.claim(task_id, agent="bob")
    fabric.complete(task_id, agent="bob")
    for agent in ("ada", "bob"):
        assert code(fabric, session(agent), "approve", taskId=task_id) == "own_work"
    fabric.approve(task_id)
    fabric.reopen(task_id)
    fabric.complete(task_id, agent="cem", summary="Again.")
    assert ask(fabric, session("ada"), "approve", taskId=task_id).status == "done"


@pytest.mark.parametrize("chart", [True, False])
def test_who_did_a_hop_does_not_judge_it_in_the_next_one(chart: bool) -> None:  # noqa: FBT001
    fabric = fabric_with(chart=chart)
    task_id = fabric.create("Gated", workflow="review").task_id
    _claimed_and_done(fabric, session("bob"), task_id, "Built.")
    for operation, given in (("claim", {"agent": "bob"}), ("complete", {"outcome": "complete", "summary": "Fine."})):
        assert code(fabric, session("bob"), operation, taskId=task_id, **given) == "own_work"
    head = fabric.store.head()
    ask(fabric, session("bob"), "complete", taskId=task_id, outcome="complete", summary="Built.")
    assert fabric.store.head() == head
    _claimed_and_done(fabric, session("rev"), task_id, "Fine.")
    assert fabric.get(task_id).status == "done"


def test_self_review_is_allowed_by_the_settings_and_the_log_says_so() -> None:
    fabric = memory_fabric("mia", policy=Policy(maintainers=("mia",), self_review=True), workflows=[WORKFLOW])
    own = fabric.create("Own").task_id
    fabric.complete(own, agent="mia")
    assert fabric.approve(own).status == "done"
    (approved,) = [one for one in fabric.events(task_id=own) if one.payload.get("to") == "done"]
    assert approved.payload["selfReview"] is True
    gated = fabric.create("Gated", workflow="review").task_id
    for name in ("build", "check"):
        fabric.claim(gated, agent="mia", hop=name)
        fabric.complete(gated, agent="mia", hop=name, outcome="complete", run=_run(fabric, gated, name))
    assert fabric.get(gated).status == "done"
    started = [one for one in fabric.events(task_id=gated) if one.type == "task.attempt.started"]
    assert [one.payload.get("selfReview") for one in started] == [None, True]


def _run(fabric: Fabric, task_id: str, hop: str) -> str:
    return str(workflow_of(fabric.get(task_id)).hop(hop).run_id)


def test_what_needs_no_review_is_done_as_before() -> None:
    fabric = fabric_with(chart=False)
    task_id = fabric.create("Work", review=False).task_id
    assert _claimed_and_done(fabric, session("ada"), task_id, "Built.").status == "done"


# --- late reports


def _replaced(fabric: Fabric) -> tuple[str, str]:
    """A task that bob has reported, and the run that ada had of it before."""
    task_id = fabric.create("Work").task_id
    old = fabric.claim(task_id, agent="ada").run_id
    fabric.release(task_id, agent="ada")
    fabric.claim(task_id, agent="bob")
    fabric.complete(task_id, agent="bob", summary="Bob's.")
    return task_id, old


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("end", "named"), LATE)
def test_a_report_of_a_replaced_worker_changes_no_status_and_is_kept(
    end: str,
    caller: Callable[[str], Caller],
    named: bool,  # noqa: FBT001
) -> None:
    fabric = memory_fabric("mia")
    task_id, old = _replaced(fabric)
    if end == "done":
        fabric.approve(task_id)
    if end == "blocked":
        fabric.block(task_id, reason="wait")
    if end == "cancelled":
        fabric.cancel(task_id)
    if end in ("in-progress", "ready"):
        fabric.reject(task_id, blockers=["no"])
    if end == "in-progress":
        fabric.claim(task_id, agent="cem")
    given = {"run": old} if named else {}
    for _ in range(2):
        with pytest.raises(StaleLease, match="late result"):
            ask(fabric, caller("ada"), "complete", taskId=task_id, summary="Ada's.", deliverables=["a.md"], **given)
    task = fabric.get(task_id)
    (late,) = task.late_results
    assert task.status == end
    assert (late.agent, late.run_id) == ("ada", old if named else None)
    assert (late.outcome, late.summary, late.deliverables) == ("done", "Ada's.", ("a.md",))


def test_a_replaced_worker_sends_nothing_back_either() -> None:
    fabric = memory_fabric("mia")
    task_id, _ = _replaced(fabric)
    with pytest.raises(StaleLease, match="late result"):
        fabric.complete(task_id, agent="ada", outcome="needs_review", blockers=["mine is better"])
    assert fabric.get(task_id).status == "review"


def test_late_results_do_not_flood_a_task_and_only_who_ran_it_leaves_one() -> None:
    fabric = fabric_with()
    task_id = fabric.create("Work").task_id
    fabric.claim(task_id, agent="ada")
    fabric.release(task_id, agent="ada")
    fabric.claim(task_id, agent="bob")
    for number in range(12):
        with pytest.raises(StaleLease):
            fabric.complete(task_id, agent="ada", summary=f"{number} " + "x" * 9_000)
    task = fabric.get(task_id)
    assert len(task.late_results) == 8
    assert all(len(one.summary or "") <= 500 for one in task.late_results)
    with pytest.raises(StaleLease, match="not kept"):
        fabric.complete(task_id, agent="ada", summary="one more")
    invented = "RUN-" + task_id[5:] + "-1-0123abcd"
    assert code(fabric, session("out"), "complete", taskId=task_id, run=invented, summary="x") == "stale_lease"


def test_a_late_message_is_refused_and_kept() -> None:
    fabric = memory_fabric("mia")
    task_id, old = _replaced(fabric)
    for given in ({}, {"runId": old}):
        (answer,) = fabric.send(report(task_id, "ada") | given)
        assert (answer.outcome, answer.reason) == ("rejected", "stale_lease")
    assert [(one.agent, one.run_id) for one in fabric.get(task_id).late_results] == [("ada", None), ("ada", old)]
    fabric.approve(task_id)
    (answer,) = fabric.send(report(task_id, "ada", notes="still here"))
    assert (answer.outcome, answer.reason, fabric.get(task_id).status) == ("rejected", "stale_lease", "done")


@pytest.fixture(params=["session_end", "recover"])
def ended_with(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Fabric, EndedWith]]:
    """A fabric on files, and how a run of it ends with a result file that says this."""
    root, clock = Path(init_data_dir(tmp_path / ".aof", actor="mia")[0]), FakeClock()
    with open_fabric(root, actor="mia", clock=clock) as fabric:

        def end(current: str, task_id: str, **said: Any) -> Task:
            result = RunResult(**said, task_id=task_id, completed_at="2026-01-05T09:00:00Z", outcome="done")
            (root / "runs" / task_id / "run_result.json").write_bytes(msgspec.json.encode(result))
            if request.param == "session_end":
                fabric.session_end(run=current)
            else:
                clock.sleep(301)
                fabric.recover()
            return fabric.get(task_id)

        yield fabric, end


def test_a_result_file_of_an_earlier_run_is_kept_and_applied_to_no_other(ended_with: tuple[Fabric, EndedWith]) -> None:
    fabric, end = ended_with
    task_id = fabric.create("Work").task_id
    old = fabric.claim(task_id, agent="ada").run_id
    fabric.release(task_id, agent="ada")
    task = end(fabric.claim(task_id, agent="bob").run_id, task_id, agent_id="ada", run_id=old, notes="Ada's.")
    assert task.status == "ready"
    assert [(one.agent, one.run_id, one.summary) for one in task.late_results] == [("ada", old, "Ada's.")]


def test_a_result_file_that_names_another_agent_does_not_make_the_work_that_ones(
    ended_with: tuple[Fabric, EndedWith],
) -> None:
    fabric, end = ended_with
    task_id = fabric.create("Work", actor="ada").task_id
    run = fabric.claim(task_id, agent="ada").run_id
    task = end(run, task_id, agent_id="bob", run_id=run)
    assert (task.status, task.retry.agents, task.retry.ran_by) == ("review", ("ada",), ("ada",))


def test_the_reviewer_and_the_next_worker_see_what_came_too_late() -> None:
    fabric = memory_fabric("mia")
    task_id, _ = _replaced(fabric)
    with pytest.raises(StaleLease):
        fabric.complete(task_id, agent="ada", summary="Ada's.", deliverables=["a.md"])
    assert fabric.show(task_id)["lateResults"][0]["summary"] == "Ada's."
    text = brief(fabric.get(task_id), "RUN-x", ())
    assert "## Late results" in text
    assert "Ada's.\nFiles: a.md" in text


# --- policy


@pytest.mark.parametrize("required", [True, ("security",)])
def test_only_a_maintainer_takes_a_task_out_of_a_review_that_is_required(required: Any) -> None:
    fabric = memory_fabric("mia", policy=Policy(maintainers=("mia",), review_required=required))
    for caller in (Caller("bob"), session("bob"), token("bob")):
        given = {"title": "x", "brief": "y", "tags": ["security"]}
        assert code(fabric, caller, "create", review=False, **given) == "review_required"
        assert code(fabric, caller, "create", metadata={"reviewRequired": False}, **given) == "review_required"
        task_id = ask(fabric, caller, "create", **given).task_id
        assert code(fabric, caller, "edit", taskId=task_id, metadata={"reviewRequired": False}) == "review_required"
        if required is not True:
            assert code(fabric, caller, "edit", taskId=task_id, routing={"tags": []}) == "review_required"
            assert ask(fabric, caller, "create", title="x", brief="y", review=False).status == "ready"
    assert code(fabric, session("bob"), "create", review=False, actor="mia", **given) == "review_required"
    assert fabric.create("x", brief="y", tags=["security"], review=False).status == "ready"


@pytest.mark.parametrize("chart", [True, False])
def test_open_children_below_anothers_task_need_a_right_to_it(chart: bool) -> None:  # noqa: FBT001
    fabric = fabric_with(chart=chart)
    parent = ask(fabric, Caller("own"), "create", title="Parent", brief="x", owner="rev").task_id
    ask(fabric, session("ada"), "claim", taskId=parent, agent="ada")
    child = {"title": "Child", "brief": "x", "parentId": parent}
    free = ask(fabric, session("out"), "create", title="Free", brief="x").task_id
    assert code(fabric, session("out"), "create", **child) == "not_allowed"
    assert code(fabric, session("out"), "edit", taskId=free, parentId=parent) == "not_allowed"
    assert code(fabric, session("out"), "link", taskId=free, kind="parent", target=parent) == "not_allowed"
    for name in ("ada", "rev", "own", *(("lea",) if chart else ())):
        assert ask(fabric, session(name), "create", **child).status == "ready"


def test_without_a_chart_nobody_owns_a_task_that_nobody_runs() -> None:
    fabric = fabric_with(chart=False)
    parent = fabric.create("Parent").task_id
    assert ask(fabric, session("out"), "create", title="Child", brief="x", parentId=parent).status == "ready"
    bound = fabric_with()
    parent = bound.create("Parent").task_id
    assert code(bound, session("out"), "create", title="Child", brief="x", parentId=parent) == "not_allowed"


def test_a_person_who_works_alone_says_so_once(tmp_path: Path) -> None:
    for first in (True, False):
        root = tmp_path / f"{first}" / ".aof"
        if not first:
            init_data_dir(root, actor="mia")
        init_data_dir(root, actor="mia", solo=True)
        init_data_dir(root, actor="mia", solo=True)
        said = [line for line in (root / "aof.toml").read_text().splitlines() if line.startswith("selfReview")]
        assert len(said) == 1
        with open_fabric(root, actor="mia") as fabric:
            task_id = fabric.create("Own").task_id
            fabric.complete(task_id, agent="mia")
            assert fabric.approve(task_id).status == "done"


def test_the_settings_say_which_tasks_are_always_reviewed(tmp_path: Path) -> None:
    root = Path(init_data_dir(tmp_path / ".aof", actor="mia")[0])
    for said, required in (("true", True), ('["security"]', ("security",)), ("false", False)):
        (root / "aof.toml").write_text(f'maintainers = ["mia"]\n[review]\nrequired = {said}\n')
        assert load_settings(str(root)).policy().review_required == required
    (root / "aof.toml").write_text("[review]\nrequired = 3\n")
    with pytest.raises(AofError, match=r"review\.required"):
        load_settings(str(root))
