"""The end of a run: its result, the review, and what is delivered."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import Call
from aof.kernel import commands
from aof.kernel.commands import Records
from aof.kernel.events import Draft
from aof.kernel.model import Policy
from aof.kernel.ports import Notification
from aof.org.model import Agent, OrgChart
from aof.runs.leases import EVENT, to_parent
from aof.store.files.store import FilesystemStore
from aof.store.memory import FixedChart
from tests.support.portable import Camera
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.world import World

# --- how a run ends with a result, by outcome, and what a repeated or wrong report does


@pytest.mark.parametrize(
    "required",
    [{}, {"reviewRequired": True}, {"reviewRequired": None}, {"reviewRequired": "false"}, {"reviewRequired": 0}],
)
@pytest.mark.parametrize("outcome", [None, "complete", "done"])
def test_done_stops_at_review_unless_that_is_exactly_false(required: dict[str, Any], outcome: str | None) -> None:
    world = World()
    task = world.create(metadata=required)
    run = world.claim(task)
    world.act(commands.Complete, task, "ada", outcome=outcome, summary="did it")
    assert world.path(task) == ["in-progress", "review"]
    result = world.results[task]
    assert result is not None
    assert (result.run_id, result.outcome, result.agent_id, result.notes) == (run, "done", "ada", "did it")
    assert world.runs[task][run].status == "completed"
    assert world.tasks[task].body.endswith("ada: did it\n")


def test_a_ready_task_is_not_completed_under_a_name_that_is_none() -> None:
    world = World()
    assert world.refuse(commands.Complete, world.create(), "a b").code == "invalid"


@pytest.mark.parametrize("outcome", ["needs_review", "partial"])
@pytest.mark.parametrize("metadata", [{}, {"reviewRequired": False}])
def test_what_is_not_finished_goes_to_review_and_no_further(outcome: str, metadata: dict[str, Any]) -> None:
    world = World()
    task = world.create(metadata=metadata)
    world.claim(task)
    world.act(commands.Complete, task, "ada", outcome=outcome)
    assert world.path(task) == ["in-progress", "review"]


def test_blocked_keeps_the_blockers_on_the_task() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(commands.Complete, task, "ada", outcome="blocked", blockers=("no key", "no disk"), summary="all is done")
    blocked = world.tasks[task].blocked
    assert blocked is not None
    assert (blocked.reason, blocked.by, blocked.was, blocked.kind) == ("no key; no disk", "ada", "ready", "blocked")
    assert world.log(task, "task.transitioned")[-1].payload["blockers"] == ["no key", "no disk"]


def test_completing_what_is_in_review_is_the_approval() -> None:
    world = World()
    task = world.into("review")
    world.act(commands.Complete, task, "lead", summary="fine")
    assert world.path(task)[-1] == "done"
    assert world.log(task, "task.transitioned")[-1].payload["by"] == "lead"


def test_a_run_that_repeats_its_report_does_not_approve_itself() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    for _ in range(2):
        world.act(commands.Complete, task, "ada", run=run)
    assert world.status(task) == "review"
    assert (
        world.refuse(commands.Complete, task, "ada", run=run, outcome="blocked", blockers=("x",)).code == "stale_lease"
    )


def test_a_run_that_repeats_that_it_is_blocked_changes_nothing() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(commands.Complete, task, "ada", run=run, outcome="blocked", blockers=("x",))
    assert world.act(commands.Complete, task, "ada", run=run, outcome="blocked", blockers=("x",)).drafts == ()


def test_reporting_a_part_of_what_is_in_review_changes_nothing() -> None:
    world = World()
    assert world.act(commands.Complete, world.into("review"), "bob", outcome="partial").drafts == ()


def test_a_reported_block_of_a_task_in_review_is_refused_with_the_way() -> None:
    world = World()
    refusal = world.refuse(commands.Complete, world.into("review"), "bob", outcome="blocked", blockers=("x",))
    assert refusal.call is not None
    assert refusal.call.operation == "approve"


@pytest.mark.parametrize(
    "given",
    [
        {"outcome": "maybe"},
        {"outcome": "x" * 5_000},
        {"outcome": "blocked"},
        {"outcome": "blocked", "blockers": ("",)},
        {"blockers": ("x",) * 21},
        {"summary": "x" * 10_001},
        {"notes": "\x00"},
        {"summary_ref": "/etc/passwd"},
        {"summary_ref": "../secrets.md"},
        {"summary_ref": "outputs/../../x"},
        {"summary_ref": "..\\x"},
        {"summary_ref": "a\nb"},
        {"deliverables": ("ok.md", "../../x")},
        {"deliverables": ("x",) * 51},
        {"acceptance": (object(),)},
        {"tests": {"total": 1, "passed": 1, "failed": 1}},
        {"tests": {"total": -1}},
        {"tests": {"weather": 1}},
        {"tests": {"total": 1.5}},
    ],
)
@pytest.mark.parametrize("status", ["in-progress", "ready", "review"])
def test_a_malformed_report_is_refused_and_leaves_the_task_as_it_was(given: dict[str, Any], status: str) -> None:
    world = World()
    task = world.into(status)
    before = world.tasks[task]
    assert world.refuse(commands.Complete, task, "ada", **given).kind == "invalid"
    assert world.tasks[task] == before


def test_a_full_result_is_kept_with_its_run() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    world.act(
        commands.Complete,
        task,
        "ada",
        summary_ref="outputs/summary.md",
        deliverables=("outputs/a.py",),
        tests={"total": 2, "passed": 2, "failed": 0},
        notes="n",
        acceptance=({"criterion": "works", "met": True},),
    )
    result = world.results[task]
    assert result is not None
    assert (result.summary_ref, result.deliverables, result.notes) == ("outputs/summary.md", ("outputs/a.py",), "n")
    assert (result.tests, result.acceptance) == (
        {"total": 2, "passed": 2, "failed": 0},
        ({"criterion": "works", "met": True},),
    )


# --- approval and rejection


def test_an_approval_finishes_the_task_once() -> None:
    world = World()
    task = world.into("review")
    world.act(commands.Approve, task, reason="well done")
    assert world.act(commands.Approve, task).drafts == ()
    assert world.status(task) == "done"
    assert world.tasks[task].body.endswith("pm: well done\n")


@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress", "blocked", "cancelled", "deadletter"])
def test_only_what_is_in_review_is_approved_or_rejected(status: str) -> None:
    world = World()
    task = world.into(status)
    assert world.refuse(commands.Approve, task).code == "invalid_transition"
    assert world.refuse(commands.Reject, task, blockers=("no",)).code == "invalid_transition"


def test_who_approves_what_still_runs_is_told_who_has_to_complete_it_first() -> None:
    world = World()
    task = world.create()
    run = world.claim(task, "ada")
    assert world.refuse(commands.Approve, task, "pm").call == Call("show", {"task_id": task})
    own = world.refuse(commands.Approve, task, "ada").call
    assert own == Call("complete", {"task_id": task, "summary": "…", "run": run})


def test_a_rejection_leads_to_ready_with_its_reasons_and_a_new_run_follows() -> None:
    world = World()
    task = world.into("review")
    world.act(commands.Reject, task, blockers=("no tests", "no docs"))
    moved = world.log(task, "task.transitioned")[-1].payload
    assert (world.status(task), moved["reason"], moved["blockers"]) == (
        "ready",
        "no tests; no docs",
        ["no tests", "no docs"],
    )
    assert "pm rejected: no tests; no docs" in world.tasks[task].body
    world.claim(task, "bob")
    assert world.tasks[task].retry.attempts == 2
    assert world.results[task] is None


@pytest.mark.parametrize("blockers", [(), ("",), ("x" * 257,), ("x",) * 21])
def test_a_rejection_without_usable_reasons_is_refused(blockers: Any) -> None:
    world = World()
    assert world.refuse(commands.Reject, world.into("review"), blockers=blockers).kind == "invalid"


def test_an_approval_with_an_endless_reason_is_refused() -> None:
    world = World()
    assert world.refuse(commands.Approve, world.into("review"), reason="x" * 513).code == "payload_too_large"


def test_needs_review_on_what_is_in_review_is_a_rejection_with_its_blockers() -> None:
    world = World()
    task = world.into("review")
    assert world.refuse(commands.Complete, task, "rev", outcome="needs_review").code == "invalid"
    world.act(commands.Complete, task, "rev", outcome="needs_review", blockers=("no tests",))
    assert world.status(task) == "ready"
    assert world.log(task, "task.transitioned")[-1].payload["blockers"] == ["no tests"]
    assert "rev rejected: no tests" in world.tasks[task].body


def test_a_report_of_needs_review_that_arrives_twice_is_no_rejection() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    said: dict[str, Any] = {"outcome": "needs_review", "blockers": ("look at the schema",)}
    world.act(commands.Complete, task, "ada", **said)
    assert world.act(commands.Complete, task, "ada", **said).drafts == ()
    assert world.act(commands.Complete, task, "ada", run=run, **said).drafts == ()
    assert world.status(task) == "review"


def test_a_finished_task_is_not_sent_back() -> None:
    world = World()
    task = world.into("done")
    refusal = world.refuse(commands.Complete, task, "rev", outcome="needs_review", blockers=("late",))
    assert (refusal.code, refusal.call and refusal.call.operation) == ("invalid_transition", "retry")


# --- delivery of output as a recorded fact: to the parent, to a channel, and when it fails


class Channel:
    """A notifier that may be out of order."""

    def __init__(self) -> None:
        self.broken = True

    def notify(self, notification: Notification) -> bool:
        """Whether it got through."""
        return not (self.broken and notification.status == "done")


@requirement("task.progress.delivery-state")
def test_the_end_of_a_child_records_whether_its_parent_has_the_output(room: Room, fabric: Fabric) -> None:
    camera = Camera(room)
    alive, dead, gone = room.task(), room.task(), room.task()
    children = {parent: room.task(parent_id=parent, review=False) for parent in (alive, dead, gone)}
    fabric.link(dead, "source_task", alive)
    assert {camera.task(one)["deliveryState"]["state"] for one in children.values()} == {"pending"}
    fabric.fail(dead, run=fabric.claim(dead, agent="ada").run_id, retryable=False)
    for parent in (alive, dead):
        fabric.complete(children[parent], actor="ada")
    states = {parent: camera.task(child)["deliveryState"] for parent, child in children.items()}
    assert (states[alive]["state"], states[alive]["targetId"]) == ("delivered", alive)
    assert (states[dead]["state"], states[dead]["reason"]) == ("failed", f"{dead} is deadletter")
    assert camera.task(room.task("done"))["deliveryState"] == {"state": "not_applicable"}
    (event,) = room.events(children[alive], "task.delivery.updated")
    done = room.events(children[alive], "task.transitioned")[-1]
    assert event.seq == done.seq + 1, "in the same commit"
    assert room.front(children[alive])["delivery"]["state"] == "delivered"
    lines = room.fabric.portable_log(children[alive], type="task.progress")["events"]
    assert [line["payload"]["deliveryState"]["state"] for line in lines] == ["delivered"]


@requirement("task.progress.delivery-state")
def test_a_child_whose_parent_was_lost_with_a_part_of_the_log_says_so(room: Room, fabric: Fabric) -> None:
    child = room.task(parent_id=room.task(), review=False)
    task = fabric.get(child)
    records = Records(tasks={child: task, str(task.parent_id): None})
    moved = Draft(type="task.transitioned", task_id=child, payload={"from": "review", "to": "done"})
    _, told = to_parent(records, (moved,))
    assert (told.type, told.payload) == (EVENT, {"state": "parent_missing", "targetId": task.parent_id})


@requirement("task.snapshot.delivery-state")
def test_finished_work_of_which_nobody_heard_is_found_until_it_is_delivered(room: Room) -> None:
    channel = Channel()
    store = FilesystemStore(str(room.root), room.clock, durable=False)
    chart = FixedChart(OrgChart(agents=(Agent(id="ada"),)))
    room.fabric.close()
    room.fabric = fabric = Fabric(store, room.clock, Policy(maintainers=("pm",)), "pm", notifier=channel, org=chart)
    parent = room.task()
    child = room.task(parent_id=parent, review=False)
    fabric.complete(child, actor="ada")
    camera = Camera(room)
    state = camera.view()["deliveryState"]
    assert (state["byState"]["failed"], state["undelivered"]) == (1, [child])
    assert camera.task(child)["deliveryState"]["targetId"] == "notifications"
    assert camera.task(child)["status"] == "completed", "which is another fact"
    channel.broken = False
    fabric.deliver(child)
    assert camera.view()["deliveryState"]["undelivered"] == []
    assert camera.task(child)["deliveryState"]["state"] == "delivered"
    assert room.idle(fabric.deliver, child).status == "done"
    heard = room.task(parent_id=parent, review=False)
    fabric.complete(heard, actor="ada")
    assert camera.task(heard)["deliveryState"]["state"] == "delivered"


def test_a_task_that_demands_delivery_is_complete_when_its_worker_has_delivered(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", review=False, constraints={"output": {"delivery": True}})
    assert room.refused("not_reconciled", fabric.complete, task_id, agent="ada").details["open"] == [
        "delivery is pending"
    ]
    fabric.deliver(task_id, state="failed", target="channel:releases", reason="no route", agent="ada")
    assert room.refused("not_reconciled", fabric.complete, task_id, agent="ada").details["open"] == [
        "delivery is failed"
    ]
    room.refused("not_lease_holder", fabric.deliver, task_id, agent="bob")
    fabric.deliver(task_id, agent="ada")
    assert fabric.get(task_id).delivery["targetId"] == "channel:releases"
    assert fabric.complete(task_id, agent="ada").status == "done"
    fabric.retry(task_id, reason="again")
    assert fabric.get(task_id).delivery == {}, "the next run has to deliver its own output"


@pytest.mark.parametrize("wrong", [{"state": "sent"}, {"target": "x" * 300}, {"reason": "x" * 600}])
def test_what_is_no_state_of_delivery_is_refused(room: Room, fabric: Fabric, wrong: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"state|target|reason"):
        fabric.deliver(room.task(), **wrong)
