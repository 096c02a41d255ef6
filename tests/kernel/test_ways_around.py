"""Ways around a gate that go by another operation than the one that is guarded: they end at the same refusal."""

from __future__ import annotations

import pytest

from aof.api.call import Caller
from aof.kernel.model import Policy
from tests.kernel.test_callers import ask, code, fabric_with, in_review, sent, token
from tests.support.messages import Fields, message, request, update


def work_token(name: str) -> Caller:
    return Caller(name, "agent", proven=True, scope="work", token="t1")


@pytest.mark.parametrize("chart", [True, False])
def test_a_token_for_work_approves_rejects_and_retries_nothing_by_another_operation(chart: bool) -> None:  # noqa: FBT001
    fabric = fabric_with(chart=chart)
    reviewed, dead = in_review(fabric), fabric.create("Dead").task_id
    fabric.claim(dead, agent="ada")
    fabric.fail(dead, agent="ada", retryable=False)
    rev, lea = work_token("rev"), work_token("lea")
    assert code(fabric, rev, "complete", taskId=reviewed) == "not_allowed"
    assert code(fabric, rev, "update", taskId=reviewed, status="ready") == "not_allowed"
    assert code(fabric, rev, "update", taskId=reviewed, status="in-progress") == "not_allowed"
    assert code(fabric, lea, "update", taskId=dead, status="ready") == "not_allowed"
    for task_id, name, status in ((reviewed, "rev", "done"), (dead, "lea", "ready"), (reviewed, "lea", "cancelled")):
        assert sent(fabric, work_token(name), update(task_id, name, status=status))["reason"] == "not_allowed"
    assert (fabric.get(reviewed).status, fabric.get(dead).status) == ("review", "deadletter")


@pytest.mark.parametrize("chart", [True, False])
@pytest.mark.parametrize(
    ("before", "operation", "given"),
    [
        ((), "pause", {"reason": "x"}),
        (("pause",), "resume", {}),
        (("cancel",), "archive", {}),
        (("cancel", "archive"), "unarchive", {}),
        ((), "cancel", {}),
        (("cancel",), "reopen", {}),
    ],
)
def test_a_token_for_work_undoes_nothing_that_it_could_not_do(
    *,
    chart: bool,
    before: tuple[str, ...],
    operation: str,
    given: dict[str, str],
) -> None:
    fabric = fabric_with(chart=chart)
    task_id = fabric.create("A").task_id
    for name in before:
        getattr(fabric, name)(task_id)
    getattr(fabric, operation)(task_id, **given)
    done, head = fabric.get(task_id), fabric.store.head()
    for dry_run in (True, False):
        assert code(fabric, work_token("lea"), "undo", seq=head, dryRun=dry_run) == "not_allowed"
    assert fabric.get(task_id) == done


def test_a_token_for_work_takes_its_own_work_back() -> None:
    fabric = fabric_with()
    reviewed = in_review(fabric)
    assert ask(fabric, work_token("ada"), "update", taskId=reviewed, status="in-progress").status == "in-progress"


def test_an_unlisted_name_does_not_run_two_tasks_by_taking_both_back_from_review() -> None:
    fabric = fabric_with()
    first, second = in_review(fabric, "zed"), in_review(fabric, "zed")
    ask(fabric, token("zed"), "update", taskId=first, status="in-progress")
    assert code(fabric, token("zed"), "update", taskId=second, status="in-progress") == "at_capacity"


def test_a_reviewer_does_not_take_over_what_is_routed_to_another() -> None:
    fabric = fabric_with()
    reviewed = in_review(fabric, agent="ada")
    routed = fabric.create("For ada", agent="ada").task_id
    fabric.claim(routed, agent="ada")
    fabric.complete(routed, agent="ada")
    assert code(fabric, token("rev"), "update", taskId=routed, status="in-progress") == "reserved"
    assert ask(fabric, token("rev"), "update", taskId=reviewed, status="in-progress").status == "in-progress"


def handoff(task_id: str, parent: str, sender: str) -> Fields:
    return request(task_id, parent, sender, sender, acceptanceCriteria=["something else"])


@pytest.mark.parametrize("name", ["zed", "ada"])
def test_nobody_hands_on_a_task_that_it_may_not_change(name: str) -> None:
    fabric = fabric_with()
    parent, foreign = fabric.create("Parent").task_id, fabric.create("Bob's", agent="bob").task_id
    before = fabric.get(foreign)
    assert sent(fabric, token(name), handoff(foreign, parent, name))["reason"] == "not_allowed"
    after = fabric.get(foreign)
    assert (after.metadata, after.links) == (before.metadata, before.links)


def test_who_runs_a_task_hands_on_its_parts() -> None:
    fabric = fabric_with()
    parent = fabric.create("Parent").task_id
    part, free = fabric.create("Part", parent_id=parent, agent="bob").task_id, fabric.create("Free").task_id
    foreign = fabric.create("Bob's", agent="bob").task_id
    fabric.claim(parent, agent="ada")
    for child in (part, free):
        assert sent(fabric, token("ada"), handoff(child, parent, "ada"))["outcome"] == "accepted"
    assert sent(fabric, token("ada"), handoff(foreign, parent, "ada"))["reason"] == "not_allowed"


@pytest.mark.parametrize("chart", [True, False])
def test_a_message_that_is_only_recorded_names_who_delivered_it(chart: bool) -> None:  # noqa: FBT001
    fabric = fabric_with(chart=chart)
    task_id = fabric.create("Work").task_id
    sent(fabric, token("zed"), message("no.such.type", task_id, "lea", {"taskId": task_id}))
    secret = fabric.claim(task_id, agent="ada").secret
    fabric.as_actor("lea").as_run(str(secret)).send(update(task_id, "lea", notes="x"))
    kept = [event for event in fabric.events(task_id=task_id) if event.type.startswith("protocol.message.")]
    assert [(event.actor, event.payload["calledBy"]) for event in kept] == [("lea", "zed"), ("lea", "ada")]


def test_a_session_that_nobody_named_does_not_approve_with_the_rights_of_the_user() -> None:
    fabric = fabric_with()
    unnamed = Caller("own", session="own", default=True)
    own, others = fabric.create("Own").task_id, in_review(fabric)
    ask(fabric, unnamed, "claim", taskId=own)
    assert ask(fabric, unnamed, "complete", taskId=own).status == "review"
    assert ask(fabric, unnamed, "complete", taskId=own).status == "review"
    assert code(fabric, unnamed, "complete", taskId=others) == "not_allowed"
    for task_id in (own, others):
        assert code(fabric, unnamed, "approve", taskId=task_id) == "not_allowed"
        assert sent(fabric, unnamed, update(task_id, "own", status="done"))["reason"] == "not_allowed"
        assert fabric.get(task_id).status == "review"
    assert ask(fabric, Caller("own", session="own"), "approve", taskId=others).status == "done"


HOLDS: tuple[tuple[str, dict[str, str]], ...] = (
    ("block", {"reason": "not now"}),
    ("pause", {}),
    ("update", {"status": "blocked"}),
)


@pytest.mark.parametrize(("operation", "given"), HOLDS)
def test_who_may_not_reject_takes_no_work_out_of_its_review(operation: str, given: dict[str, str]) -> None:
    fabric = fabric_with()
    reviewed = in_review(fabric, "bob", actor="ada")
    assert code(fabric, token("ada"), operation, taskId=reviewed, **given) == "not_allowed"
    assert sent(fabric, token("ada"), update(reviewed, "ada", status="blocked"))["reason"] == "not_allowed"
    assert ask(fabric, token("rev"), operation, taskId=reviewed, **given).status == "blocked"


def test_a_name_alone_takes_no_work_out_of_its_review_where_secrets_are_asked_for() -> None:
    fabric = fabric_with(Policy(strict=True, require_secret=True, maintainers=("own",)), chart=False)
    task_id = fabric.create("Work").task_id
    work = fabric.as_actor("ada").claim(task_id, agent="ada")
    fabric.as_actor("ada").as_run(str(work.secret)).complete(task_id)
    for operation, given in HOLDS:
        assert code(fabric, Caller("bob", session="bob"), operation, taskId=task_id, **given) == "unauthenticated"
    assert ask(fabric, Caller("own", session="own"), "block", taskId=task_id, reason="x").status == "blocked"


@pytest.mark.parametrize("chart", [True, False])
def test_a_token_for_work_takes_no_work_of_others_out_of_its_review(chart: bool) -> None:  # noqa: FBT001
    fabric = fabric_with(chart=chart)
    reviewed = in_review(fabric)
    assert code(fabric, work_token("rev"), "block", taskId=reviewed, reason="not now") == "not_allowed"
    assert ask(fabric, work_token("ada"), "block", taskId=reviewed, reason="not now").status == "blocked"
