"""Who a caller is decides what it may: a session, a token or a run is one actor, and no name leads around a gate."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME
from aof.api.fabric import Fabric
from aof.errors import ActorMismatch, AofError, NotAddressee, OwnWork
from aof.kernel.model import Policy
from aof.testing import memory_fabric
from tests.support.messages import Fields, prefixed, update
from tests.support.team import chart_of

CHART = chart_of(
    agents=[
        {"id": "ada", "team": "eng", "roles": ["developer"]},
        {"id": "bob", "team": "eng", "roles": ["developer", "reviewer"]},
        {"id": "rev", "roles": ["reviewer"]},
        {"id": "lea"},
        {"id": "orc"},
        {"id": "out", "team": "ops"},
    ],
    teams=[{"id": "eng", "lead": "lea", "orchestrator": "orc"}, {"id": "ops"}],
)
WORKFLOW = {
    "name": "review",
    "hops": [
        {"id": "build", "role": "developer"},
        {"id": "check", "role": "reviewer", "dependsOn": ["build"], "canReject": True},
    ],
}
STRICT = Policy(strict=True, maintainers=("own",))


def fabric_with(policy: Policy | None = None, *, chart: bool = True) -> Fabric:
    return memory_fabric(
        "own", policy=policy or Policy(maintainers=("own",)), org=CHART if chart else None, workflows=[WORKFLOW]
    )


def session(name: str) -> Caller:
    """A session of MCP on stdio that was started for somebody."""
    return Caller(name, session=name)


def token(name: str, role: Any = "agent") -> Caller:
    return Caller(name, role, proven=True)


def ask(fabric: Fabric, caller: Caller, operation: str, /, **given: Any) -> Any:
    row = BY_NAME[operation]
    return perform(fabric, row, parameters(row, given), caller)


def code(fabric: Fabric, caller: Caller, operation: str, /, **given: Any) -> str:
    before = fabric.store.head()
    with pytest.raises(AofError) as refused:
        ask(fabric, caller, operation, **given)
    assert refused.value.hint
    assert fabric.store.head() == before, "a refusal changes nothing"
    return refused.value.code


def sent(fabric: Fabric, caller: Caller, message: Fields) -> dict[str, Any]:
    """The answer to a message that the caller delivers."""
    answer: dict[str, Any] = ask(fabric, caller, "send", messages=[prefixed(message)]).results[0]
    return answer


def in_review(fabric: Fabric, agent: str = "ada", **given: Any) -> str:
    task_id = fabric.create("Work", **given).task_id
    fabric.claim(task_id, agent=agent)
    fabric.complete(task_id, agent=agent)
    return task_id


@pytest.mark.parametrize("caller", [session("ada"), token("ada"), token("ada", "admin")])
@pytest.mark.parametrize("policy", [None, STRICT])
def test_another_actor_agent_or_run_in_a_bound_session_is_a_mismatch(caller: Caller, policy: Policy | None) -> None:
    fabric = fabric_with(policy, chart=policy is None)
    reviewed, free = in_review(fabric), fabric.create("Free").task_id
    bobs = fabric.create("Bob's").task_id
    run = fabric.claim(bobs, agent="bob").run_id
    for operation, given in (
        ("approve", {"taskId": reviewed, "actor": "rev"}),
        ("complete", {"taskId": reviewed, "actor": "rev"}),
        ("complete", {"taskId": reviewed, "agent": "rev"}),
        ("update", {"taskId": reviewed, "status": "done", "agent": "rev"}),
        ("claim", {"taskId": free, "agent": "bob"}),
        ("claim", {"agent": "bob"}),
        ("claim", {"taskId": free, "actor": "bob"}),
        ("create", {"title": "Forged", "actor": "lea"}),
        ("edit", {"taskId": free, "actor": "own", "metadata": {"reviewRequired": False}}),
        ("cancel", {"taskId": free, "actor": "own"}),
        ("progress", {"taskId": bobs, "text": "mine", "run": run}),
        ("complete", {"taskId": bobs, "run": run}),
        ("session_end", {"run": run}),
        ("session_end", {"agent": "bob"}),
    ):
        if operation == "session_end" and "agent" in given:
            fabric.send(update(bobs, "bob", status="in-progress"))
        assert code(fabric, caller, operation, **given) == "actor_mismatch", (operation, given)


def test_the_refusal_says_who_the_session_is() -> None:
    with pytest.raises(ActorMismatch) as refused:
        ask(fabric_with(), session("ada"), "create", title="Forged", actor="lea")
    assert "you are ada" in refused.value.hint


def test_a_message_from_another_is_a_mismatch_and_on_record() -> None:
    fabric = fabric_with()
    task_id = in_review(fabric)
    for caller in (session("ada"), token("ada"), token("ada", "admin")):
        answer = sent(fabric, caller, update(task_id, "rev", status="done"))
        assert (answer["outcome"], answer["reason"]) == ("rejected", "actor_mismatch")
    assert fabric.get(task_id).status == "review"


def test_a_role_that_the_chart_does_not_give_the_caller_is_a_mismatch() -> None:
    fabric = fabric_with()
    task_id = fabric.create("Gated", workflow="review").task_id
    given = {"taskId": task_id, "outcome": "complete"}
    assert code(fabric, session("ada"), "complete", callerRole="reviewer", **given) == "actor_mismatch"
    ask(fabric, session("ada"), "claim", taskId=task_id)
    ask(fabric, session("ada"), "complete", callerRole="developer", **given)
    assert code(fabric, session("ada"), "complete", summary="fine", **given) == "wrong_role"
    assert code(fabric, session("stray"), "complete", callerRole="reviewer", **given) == "actor_mismatch"


def test_an_agent_that_builds_and_reviews_does_not_review_what_it_built() -> None:
    fabric = fabric_with()
    task_id = fabric.create("Gated", workflow="review").task_id
    ask(fabric, session("bob"), "claim", taskId=task_id)
    ask(fabric, session("bob"), "complete", taskId=task_id, outcome="complete")
    assert code(fabric, session("bob"), "claim", taskId=task_id) == "own_work"


def test_a_maintainer_and_the_orchestrator_of_the_tasks_team_act_for_others_and_the_log_says_so() -> None:
    fabric = fabric_with()
    for caller in (session("own"), token("own"), session("orc"), token("orc")):
        task_id = fabric.create("For the team", team="eng").task_id
        ask(fabric, caller, "claim", taskId=task_id, agent="ada")
        started = next(event for event in fabric.events(task_id=task_id) if event.type == "task.attempt.started")
        assert (started.actor, started.agent, started.payload["agent"]) == (caller.actor, "ada", "ada")
        ask(fabric, caller, "complete", taskId=task_id, actor="ada", agent="ada")
        done = next(event for event in fabric.events(task_id=task_id) if event.type == "task.completed")
        assert (done.actor, done.called_by) == ("ada", caller.actor)
    elsewhere = fabric.create("For others", team="ops").task_id
    assert code(fabric, session("orc"), "claim", taskId=elsewhere, agent="out") == "actor_mismatch"
    assert code(fabric, session("orc"), "create", title="As a maintainer", actor="own") == "actor_mismatch"
    assert code(fabric, session("lea"), "claim", taskId=elsewhere, agent="out") == "actor_mismatch"


def test_acting_for_a_reviewer_does_not_let_an_orchestrator_approve_its_own_work() -> None:
    fabric = fabric_with()
    task_id = in_review(fabric, "orc", team="eng")
    assert code(fabric, session("orc"), "approve", taskId=task_id) == "own_work"
    assert code(fabric, session("orc"), "approve", taskId=task_id, actor="bob") == "own_work"


def test_without_a_chart_the_actor_attributes_and_the_log_has_the_session_beside_it() -> None:
    fabric = fabric_with(chart=False)
    made = ask(fabric, session("ada"), "create", title="For bob", actor="bob")
    (created, *_) = fabric.events(task_id=made.task_id)
    assert (created.actor, created.called_by, fabric.get(made.task_id).created_by) == ("bob", "ada", "bob")
    own = ask(fabric, session("ada"), "create", title="Own")
    assert {event.called_by for event in fabric.events(task_id=own.task_id)} == {None}


def test_a_name_that_nobody_chose_acts_for_no_one_else_even_if_it_is_a_maintainers() -> None:
    fabric = fabric_with()
    nameless = Caller("own", session="own", default=True)
    assert code(fabric, nameless, "create", title="Forged", actor="ada") == "actor_mismatch"
    assert ask(fabric, nameless, "create", title="Own").task_id


@pytest.mark.parametrize(("policy", "chart"), [(None, True), (STRICT, True), (STRICT, False)])
def test_a_name_that_nobody_chose_changes_no_gate_of_what_the_maintainer_of_that_name_made(
    policy: Policy | None,
    chart: bool,  # noqa: FBT001
) -> None:
    fabric = fabric_with(policy, chart=chart)
    nameless = Caller("own", session="own", default=True)
    task_id, running = fabric.create("Work").task_id, fabric.create("Running").task_id
    fabric.claim(running, agent="ada")
    for change in ({"metadata": {"reviewRequired": False}}, {"owner": "own"}, {"routing": {"agent": "ada"}}):
        assert code(fabric, nameless, "edit", taskId=task_id, **change) == "not_allowed"
    assert code(fabric, nameless, "create", title="Child", parentId=running) == "not_allowed"
    if chart:
        assert code(fabric, nameless, "cancel", taskId=running) == "not_allowed"
    run = ask(fabric, nameless, "claim", taskId=task_id).run_id
    assert ask(fabric, nameless, "complete", taskId=task_id, run=run, summary="Built.").status == "review"
    assert ask(fabric, session("own"), "edit", taskId=running, owner="lea").updated_fields


def test_with_strict_identity_nobody_judges_in_a_hop_what_it_did_in_the_one_before() -> None:
    fabric = fabric_with(STRICT, chart=False)
    task_id = fabric.create("Gated", workflow="review").task_id
    ask(fabric, session("ada"), "claim", taskId=task_id)
    ask(fabric, session("ada"), "complete", taskId=task_id, outcome="complete")
    assert code(fabric, session("ada"), "claim", taskId=task_id) == "own_work"
    assert ask(fabric, session("bob"), "claim", taskId=task_id).run_id


@pytest.mark.parametrize("policy", [None, STRICT])
def test_what_a_worker_prints_counts_as_its_own_word_only(policy: Policy | None) -> None:
    fabric = fabric_with(policy, chart=policy is None)
    reviewed, other = in_review(fabric), fabric.create("Another").task_id
    run = fabric.claim(other, agent="ada").run_id
    worker = fabric.on_behalf_of(fabric.services.principal.passing_on("ada"))
    (answer,) = worker.send(update(reviewed, "rev", status="done"), run=run)
    assert (answer.outcome, answer.reason) == ("rejected", "actor_mismatch")
    assert fabric.get(reviewed).status == "review"


@pytest.mark.parametrize("caller", [session("stray"), token("stray"), token("stray", "admin"), Caller("stray")])
def test_where_unlisted_names_are_refused_they_read_and_write_nothing(caller: Caller) -> None:
    fabric = fabric_with(Policy(maintainers=("own",), refuse_unlisted=True))
    task_id = fabric.create("Work").task_id
    assert code(fabric, caller, "create", title="Mine") == "not_allowed"
    assert code(fabric, caller, "claim", taskId=task_id) == "not_allowed"
    answer = sent(fabric, caller, update(task_id, "stray", status="in-progress"))
    assert (answer["outcome"], answer["reason"]) == ("rejected", "not_allowed")
    assert ask(fabric, caller, "show", taskId=task_id)["status"] == "ready"
    fabric.tick()
    ask(fabric, session("ada"), "claim", taskId=task_id)


GATED: list[dict[str, Any]] = [
    {"metadata": {"reviewRequired": False}},
    {"metadata": {"risk": "low"}},
    {"metadata": {"maxAttempts": 99}},
    {"metadata": {"delegationDepth": 0}},
    {"profile": {"risk": "low"}},
    {"routing": {"agent": "bob"}},
    {"routing": {"tags": ["other"]}},
    {"acceptance": ["anything goes"]},
    {"constraints": {"network": True}},
    {"resource": "gpu"},
]


@pytest.mark.parametrize("change", GATED)
@pytest.mark.parametrize("policy", [None, STRICT])
def test_who_runs_a_task_does_not_change_what_its_gates_read(change: dict[str, Any], policy: Policy | None) -> None:
    fabric = fabric_with(policy, chart=policy is None)
    given: dict[str, Any] = {"metadata": {"delegationDepth": 1}, "agent": "ada"}
    for creator in ("own", "ada"):
        task_id = fabric.create("Work", actor=creator, **given).task_id
        run = fabric.claim(task_id, agent="ada").run_id
        for caller in (session("ada"), token("ada"), Caller("ada")):
            assert code(fabric, caller, "edit", taskId=task_id, **change) in ("not_allowed", "own_work")
        ask(fabric, session("ada"), "edit", taskId=task_id, description="What I found.", title="Clearer")
        ask(fabric, session("ada"), "progress", taskId=task_id, note="half", run=run)
        fabric.release(task_id, run=run)
        if change.get("routing", {}).keys() == {"agent"}:  # what is reserved for it, it may give away
            assert ask(fabric, session("ada"), "edit", taskId=task_id, **change).updated_fields
            continue
        assert code(fabric, session("ada"), "edit", taskId=task_id, **change) in ("not_allowed", "own_work")
        assert ask(fabric, session("own"), "edit", taskId=task_id, **change).updated_fields


@pytest.mark.parametrize("change", GATED)
def test_a_creator_that_does_not_run_the_task_and_a_lead_change_what_its_gates_read(change: dict[str, Any]) -> None:
    fabric = fabric_with()
    for name in ("bob", "lea"):
        task_id = fabric.create("Work", actor="bob", metadata={"delegationDepth": 1}).task_id
        fabric.claim(task_id, agent="ada")
        assert ask(fabric, session(name), "edit", taskId=task_id, **change).updated_fields


@pytest.mark.parametrize(("policy", "chart"), [(None, True), (STRICT, True), (STRICT, False)])
def test_a_name_that_nobody_chose_answers_no_handoff_to_the_maintainer_of_that_name(
    policy: Policy | None,
    chart: bool,  # noqa: FBT001
) -> None:
    fabric = fabric_with(policy, chart=chart)
    nameless = Caller("own", session="own", default=True)
    task_id = fabric.create("Work").task_id
    fabric.claim(task_id, agent="ada")
    wish = {"type": "escalation", "fromAgent": "ada", "to": ["own"], "reason": "may I?", "rationale": "a choice"}
    handoff = ask(fabric, session("ada"), "handoff_new", taskId=task_id, **wish).handoff_id
    for operation, more in (("handoff_answer", {"text": "approved"}), ("handoff_accept", {"agent": "own"})):
        with pytest.raises(NotAddressee):  # which the audit records
            ask(fabric, nameless, operation, handoffId=handoff, **more)
    assert ask(fabric, session("own"), "handoff_answer", handoffId=handoff, text="no").state


@pytest.mark.parametrize("workflow", [None, "review"])
def test_who_claimed_a_task_for_an_agent_does_not_change_what_its_gates_read(workflow: str | None) -> None:
    fabric = fabric_with()
    task_id = ask(fabric, session("orc"), "create", title="Work", workflow=workflow).task_id
    ask(fabric, session("orc"), "claim", taskId=task_id, agent="ada")
    assert code(fabric, session("orc"), "edit", taskId=task_id, metadata={"reviewRequired": False}) == "own_work"
    assert code(fabric, session("orc"), "edit", taskId=task_id, resource="gpu") == "not_allowed"
    assert ask(fabric, session("lea"), "edit", taskId=task_id, resource="gpu").updated_fields


def test_an_edit_that_changes_no_gate_is_not_refused_for_naming_one() -> None:
    fabric = fabric_with()
    task_id = fabric.create("Work", agent="ada").task_id
    fabric.claim(task_id, agent="ada")
    edited = ask(fabric, session("ada"), "edit", taskId=task_id, title="Clearer", routing={"agent": "ada"})
    assert edited.updated_fields == ("title",)


def test_taking_all_metadata_away_takes_the_review_away_and_is_refused() -> None:
    fabric = fabric_with()
    task_id = fabric.create("Work", agent="ada", metadata={"reviewRequired": True}).task_id
    fabric.claim(task_id, agent="ada")
    with pytest.raises(OwnWork):
        fabric.edit(task_id, actor="ada", metadata=None)


def test_without_a_chart_a_change_of_a_gate_is_recorded_and_not_refused() -> None:
    fabric = fabric_with(chart=False)
    task_id = fabric.create("Work").task_id
    fabric.claim(task_id, agent="ada")
    ask(fabric, session("ada"), "edit", taskId=task_id, metadata={"reviewRequired": False})
    changed = [event for event in fabric.events(task_id=task_id) if event.type == "task.updated"]
    assert [(event.actor, event.payload["fields"]) for event in changed] == [("ada", ["metadata"])]


def test_with_strict_identity_nobody_but_a_maintainer_approves_own_work() -> None:
    fabric = fabric_with(STRICT, chart=False)
    task_id = in_review(fabric)
    assert code(fabric, session("ada"), "approve", taskId=task_id) == "own_work"
    assert ask(fabric, Caller("ada"), "complete", taskId=task_id).status == "review"
    answer = sent(fabric, session("ada"), update(task_id, "ada", status="done"))
    assert fabric.get(task_id).status == "review", answer
    ask(fabric, session("bob"), "approve", taskId=task_id)


def test_a_run_does_not_approve_its_agents_work_with_the_secret_of_another_run() -> None:
    fabric = fabric_with(chart=False)
    reviewed, other = in_review(fabric), fabric.create("Another").task_id
    secret = fabric.claim(other, agent="ada").secret
    assert isinstance(secret, str)
    with pytest.raises(OwnWork):
        fabric.as_run(secret).approve(reviewed, actor="ada")


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("approve", {}),
        ("reject", {"blockers": ["no"]}),
        ("complete", {}),
        ("update", {"status": "done"}),
        ("cancel", {}),
        ("update", {"status": "cancelled"}),
        ("edit", {"metadata": {"reviewRequired": False}}),
    ],
)
def test_where_secrets_are_asked_for_a_name_judges_cancels_and_changes_no_gate(
    operation: str, given: dict[str, Any]
) -> None:
    fabric = fabric_with(Policy(require_secret=True, maintainers=("own",)), chart=False)
    task_id = fabric.create("Work").task_id
    work = fabric.claim(task_id, agent="ada")
    work.complete("done")
    for caller in (Caller("bob"), session("bob")):
        assert code(fabric, caller, operation, taskId=task_id, **given) == "unauthenticated"
    assert code(fabric, session("bob"), operation, taskId=task_id, actor="own", **given) == "unauthenticated"
    ask(fabric, session("own"), "edit", taskId=task_id, description="Read it.")
    ask(fabric, token("bob"), operation, taskId=task_id, **given)


@pytest.mark.parametrize("run", ["RUN-2026-01-05-001-7", "RUN-2026-01-05-009-1", "RUN-nonsense"])
@pytest.mark.parametrize("workflow", [None, "review"])
def test_completing_what_is_done_with_an_invented_run_is_stale(run: str, workflow: str | None) -> None:
    fabric = fabric_with(chart=False)
    task_id = fabric.create("Work", workflow=workflow, review=False).task_id
    for agent in ("ada", "bob") if workflow else ("ada",):
        last = fabric.claim(task_id, agent=agent)
        last.complete("done")
    assert fabric.get(task_id).status == "done"
    assert code(fabric, Caller("ada"), "complete", taskId=task_id, run=run, outcome="complete") == "stale_lease"
    assert ask(fabric, Caller("ada"), "complete", taskId=task_id, run=last.run_id, outcome="complete").status == "done"
    assert ask(fabric, Caller("ada"), "complete", taskId=task_id, outcome="complete").status == "done"


def test_completing_what_is_in_review_with_an_invented_run_approves_nothing() -> None:
    fabric = fabric_with(chart=False)
    task_id = in_review(fabric)
    assert code(fabric, Caller("bob"), "complete", taskId=task_id, run="RUN-2026-01-05-009-1") == "stale_lease"
