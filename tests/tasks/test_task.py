"""A task from its creation to its end."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidInput
from aof.kernel import commands
from aof.kernel.model import Policy
from aof.testing import FakeClock, memory_fabric
from tests.support.command_line import Aof
from tests.support.processes import Worker
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.world import World

# --- what a task is, what its record holds, and what each of its statuses means


@requirement("task.model.step")
def test_steps_stand_in_order_under_one_run_and_are_no_tasks(room: Room, fabric: Fabric) -> None:
    task_id = room.task()
    run = fabric.claim(task_id, agent="ada").run_id
    before = fabric.list().total

    for step in ("read the brief", "write the draft", "check it"):
        fabric.progress(task_id, agent="ada", text=step)

    steps = room.events(task_id, "task.progress")
    assert [step.payload["text"] for step in steps] == ["read the brief", "write the draft", "check it"]
    assert {step.run_id for step in steps} == {run}
    assert fabric.list().total == before
    assert len(room.attempts(task_id)) == 1


@requirement("task.model.todo")
@pytest.mark.parametrize("by_hand", [False, True])
def test_ticking_a_whole_checklist_changes_no_status(room: Room, fabric: Fabric, *, by_hand: bool) -> None:
    task_id = room.task(brief="- [ ] one\n- [ ] two\n", acceptance=["works"])
    fabric.claim(task_id, agent="ada")

    if by_hand:
        path = room.file(task_id)
        path.write_text(path.read_text().replace("[ ]", "[x]"))
    else:
        fabric.update(task_id, agent="ada", body="- [x] one\n- [x] two\n")

    shown = fabric.show(task_id)
    assert shown["body"].count("[x]") == 2
    assert (shown["status"], shown["normalizedStatus"]) == ("in-progress", "preparing" if by_hand else "running")
    assert list(shown["acceptance"]) == ["works"]
    assert room.moves(task_id) == [("ready", "in-progress")]


@requirement("task.record.task-id")
def test_an_id_is_never_given_again_also_not_after_archiving(room: Room, fabric: Fabric) -> None:
    given = [room.task("done") for _ in range(3)]
    for task_id in given:
        fabric.archive(task_id)
    given += [fabric.create("Another").task_id]
    fabric = room.reopen()
    given += [fabric.create("One more").task_id for _ in range(3)]

    assert len(set(given)) == len(given)
    assert all(task_id.startswith("TASK-2026-03-02-") for task_id in given)
    assert {event.task_id for event in room.events()} == set(given)
    assert all(fabric.get(task_id).id == task_id for task_id in given)


@requirement("task.record.visibility")
def test_whatever_can_be_seen_of_a_task_it_is_run_recovered_and_logged(
    room: Room, fabric: Fabric, clock: FakeClock
) -> None:
    kinds = ("foreground", "background", "internal", "hidden")
    made = {kind: room.task(visibility=kind, review=False) for kind in kinds}
    assert {kind: fabric.get(task_id).visibility for kind, task_id in made.items()} == {kind: kind for kind in kinds}

    for task_id in made.values():
        fabric.claim(task_id, agent="ada", ttl=60)
    clock.sleep(61)
    assert {one.task_id for one in fabric.recover()} == set(made.values())
    clock.sleep(60)
    for _ in kinds:
        claimed = fabric.claim(agent="bob")
        fabric.complete(claimed.task_id, run=claimed.run_id)

    assert {fabric.get(task_id).status for task_id in made.values()} == {"done"}
    assert all(room.events(task_id, "task.completed") for task_id in made.values())
    room.refused("invalid", fabric.create, "Secret", visibility="secret")


@requirement("task.record.progress", "task.progress.phase-and-step")
def test_progress_is_unknown_until_it_is_reported_and_then_what_was_reported(room: Room, fabric: Fabric) -> None:
    task_id = room.task()
    assert fabric.show(task_id)["progress"] == {"state": "unknown"}
    run = fabric.claim(task_id, agent="ada").run_id
    assert fabric.show(task_id)["progress"] == {"state": "unknown"}

    fabric.progress(task_id, agent="ada", percent=20)
    partial = fabric.show(task_id)["progress"]
    assert (partial["percent"], partial["runId"]) == (20, run)
    assert "phase" not in partial

    facts: dict[str, Any] = {
        "step": "3 of 4",
        "checklist": {"done": 3, "total": 4},
        "counters": {"tests": {"done": 9, "total": 12}},
        "outputRefs": ["outputs/draft.md"],
    }
    fabric.progress(task_id, agent="ada", text="almost", percent=90, phase="verifying", facts=facts)
    full = fabric.show(task_id)["progress"]
    assert full.items() >= {"text": "almost", "percent": 90, "phase": "verifying", "runId": run, **facts}.items()

    for phase in ("planning", "working", "verifying", "delivering", "waiting", "brewing tea"):
        fabric.progress(task_id, agent="ada", phase=phase)
        assert fabric.show(task_id)["progress"]["phase"] == phase
        assert fabric.show(task_id)["progress"]["step"] == "3 of 4"


@requirement("task.record.timestamps")
def test_times_are_utc_never_run_backwards_and_are_left_out_until_they_come(
    room: Room, fabric: Fabric, clock: FakeClock
) -> None:
    def times() -> dict[str, str]:
        shown = fabric.show(task_id)
        names = ("createdAt", "updatedAt", "startedAt", "endedAt")
        found: dict[str, str] = {name: shown[name] for name in names if name in shown}
        assert found == {name: room.front(task_id)[name] for name in found}
        assert all(time.endswith("Z") for time in found.values())
        return found

    task_id = room.task(review=False)
    created = times()
    assert created == {"createdAt": "2026-03-02T09:00:00.000Z", "updatedAt": "2026-03-02T09:00:00.000Z"}

    clock.sleep(10)
    run = fabric.claim(task_id, agent="ada").run_id
    claimed = times()
    assert claimed == created | {"updatedAt": "2026-03-02T09:00:10.000Z", "startedAt": "2026-03-02T09:00:10.000Z"}

    clock.sleep(10)
    fabric.complete(task_id, run=run)
    done = times()
    assert done == claimed | {"updatedAt": "2026-03-02T09:00:20.000Z", "endedAt": "2026-03-02T09:00:20.000Z"}

    clock.sleep(10)
    fabric.retry(task_id, reason="once more")
    again = times()
    assert again == claimed | {"updatedAt": "2026-03-02T09:00:30.000Z"}
    clock.set("2026-03-02T08:00:00Z")
    fabric.edit(task_id, title="Turned back")
    assert times()["updatedAt"] >= again["updatedAt"]


@requirement("task.status.accepted")
def test_a_backlog_task_without_the_draft_mark_is_accepted(room: Room, fabric: Fabric) -> None:
    task_id = fabric.create("An idea", metadata={"draft": True}).task_id
    assert room.normalized(task_id) == "draft"
    fabric.edit(task_id, metadata={"draft": None})
    assert fabric.get(task_id).status == "backlog"
    assert room.normalized(task_id) == "accepted"


@requirement("task.status.preparing", "task.status.running")
def test_a_claimed_task_is_preparing_until_the_first_sign_of_life(room: Room, fabric: Fabric) -> None:
    beaten, reported = room.task("in-progress"), room.task("in-progress")
    assert room.normalized(beaten) == room.normalized(reported) == "preparing"
    fabric.heartbeat(beaten, agent="ada")
    fabric.progress(reported, agent="ada", percent=1)
    assert room.normalized(beaten) == room.normalized(reported) == "running"


@requirement("task.status.waiting-permission")
def test_a_task_waits_for_permission_until_somebody_decides(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    reviewed, blocked = room.task("review"), room.task()
    fabric.block(blocked, reason="may we spend it?", kind="waiting_permission")
    clock.sleep(100_000)
    fabric.recover()
    assert room.normalized(reviewed) == room.normalized(blocked) == "waiting_permission"

    fabric.approve(reviewed, actor="lead")
    fabric.unblock(blocked, actor="lead")
    assert (room.normalized(reviewed), room.normalized(blocked)) == ("completed", "queued")
    assert [room.events(one)[-1].actor for one in (reviewed, blocked)] == ["lead", "lead"]
    rejected = room.task("review")
    fabric.reject(rejected, blockers=["no tests"])
    assert room.normalized(rejected) == "queued"


@requirement("task.status.waiting-resource")
def test_a_task_that_waits_for_a_resource_says_so_and_for_which(room: Room, fabric: Fabric) -> None:
    task_id = room.task()
    fabric.block(task_id, reason="the GPU quota is used up", kind="waiting_resource")
    assert room.normalized(task_id) == "waiting_resource"
    assert fabric.show(task_id)["blocked"]["reason"] == "the GPU quota is used up"


@requirement("task.status.blocked")
def test_a_blocked_task_names_what_is_in_the_way(room: Room, fabric: Fabric) -> None:
    by_hand, dependency = room.task(), room.task()
    waiting = room.task(depends_on=[dependency])
    fabric.block(by_hand, reason="no credentials")
    fabric.cancel(dependency)
    assert room.normalized(by_hand) == room.normalized(waiting) == "blocked"
    assert fabric.show(by_hand)["blocked"]["reason"] == "no credentials"
    assert dependency in fabric.show(waiting)["blocked"]["reason"]


@requirement("task.status.paused")
@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress"])
def test_a_paused_task_goes_on_with_its_graph_and_attempts(room: Room, fabric: Fabric, status: str) -> None:
    other = room.task("done")
    task_id = room.task(status, depends_on=[other], parent_id=other)
    fabric.create("Below", parent_id=task_id)
    edges, runs = room.edges(task_id), [run["runId"] for run in room.attempts(task_id)]

    fabric.pause(task_id)
    assert room.normalized(task_id) == "paused"
    assert fabric.get(task_id).status == "blocked"

    fabric.resume(task_id)
    assert fabric.get(task_id).status == ("backlog" if status == "backlog" else "ready")
    assert room.edges(task_id) == edges
    assert [run["runId"] for run in room.attempts(task_id)] == runs


@requirement("task.status.retrying")
def test_a_failed_task_is_retrying_until_its_time_has_come(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task(max_attempts=9)
    for wait in (60, 180, 540, 900, 900):
        run = fabric.claim(task_id, agent="ada").run_id
        assert room.normalized(task_id) == "preparing"
        fabric.heartbeat(task_id, run=run)
        assert room.normalized(task_id) == "running"
        fabric.fail(task_id, run=run)
        assert room.normalized(task_id) == "retrying"
        clock.sleep(wait - 0.001)
        assert room.normalized(task_id) == "retrying"
        clock.sleep(0.001)
        assert room.normalized(task_id) == "queued"


@requirement("task.status.retrying")
def test_a_retry_by_hand_ends_the_wait(aof: Aof) -> None:
    task_id = aof("create", "Fails once").data["taskId"]
    aof("claim", task_id, "--agent", "ada")
    assert aof("fail", task_id, "--agent", "ada").data["status"] == "ready"
    assert aof("show", task_id).data["normalizedStatus"] == "retrying"
    assert aof("retry", task_id, "--reason", "the service is back").code == 0
    assert aof("show", task_id).data["normalizedStatus"] == "queued"


@requirement("task.status.cancelled", "tools.cancel.from-each-status")
@pytest.mark.parametrize("status", ["backlog", "ready", "in-progress", "review", "blocked"])
def test_a_task_can_be_cancelled_from_every_unfinished_status(room: Room, fabric: Fabric, status: str) -> None:
    task_id = room.task(status)
    assert fabric.cancel(task_id, reason="not wanted", actor="boss").status == "cancelled"

    shown = fabric.show(task_id)
    assert (shown["status"], shown["normalizedStatus"]) == ("cancelled", "cancelled")
    assert (shown["cancel"]["by"], shown["cancel"]["reason"]) == ("boss", "not wanted")
    room.idle(fabric.cancel, task_id)
    for target in ("backlog", "ready", "in-progress", "review", "blocked", "done", "deadletter"):
        room.refused("invalid_transition", fabric.update, task_id, status=target)
    assert fabric.retry(task_id, reason="wanted after all").status == "ready"


@requirement("tools.cancel.from-each-status")
@pytest.mark.parametrize("status", ["done", "deadletter"])
def test_a_finished_task_cannot_be_cancelled(room: Room, fabric: Fabric, status: str) -> None:
    assert status in room.refused("invalid_transition", fabric.cancel, room.task(status)).message


@requirement("task.status.failed")
def test_a_task_whose_runs_all_failed_is_failed_and_keeps_the_error(
    room: Room, fabric: Fabric, clock: FakeClock
) -> None:
    task_id = room.task()
    for number in (1, 2, 3):
        clock.sleep(1000)
        run = fabric.claim(task_id, agent="ada").run_id
        fabric.fail(task_id, run=run, code="tests_failed", message=f"try {number}")
    shown = fabric.show(task_id)
    assert (shown["status"], shown["normalizedStatus"]) == ("deadletter", "failed")
    error = {"code": "tests_failed", "message": "try 3", "runId": run}
    assert shown["lastError"].items() >= error.items()


@requirement("task.status.lost")
def test_a_task_whose_worker_was_killed_is_lost_and_never_completed(
    room: Room, fabric: Fabric, clock: FakeClock
) -> None:
    task_id = room.task()

    def work(pipe: Connection) -> None:
        with room.opened() as mine:
            pipe.send(mine.claim(task_id, agent="ada", ttl=60).run_id)
            pipe.recv()

    for _ in range(3):
        clock.sleep(1000)
        worker = Worker(work)
        worker.hear()
        worker.kill()
        assert room.normalized(task_id) == "preparing"
        clock.sleep(61)
        assert room.normalized(task_id) == "lost"
        fabric.recover()
    assert (fabric.get(task_id).status, room.normalized(task_id)) == ("deadletter", "lost")
    assert not room.events(task_id, "task.completed")


@requirement("task.status.unknown")
@pytest.mark.parametrize("damage", ["title: [", "status: flying"])
def test_an_unreadable_file_is_unknown_and_breaks_no_other_view(
    room: Room, fabric: Fabric, aof: Aof, damage: str
) -> None:
    first, bad, last = (room.task(title=f"Task {name}") for name in ("a", "b", "c"))
    path = room.file(bad)
    line = next(one for one in path.read_text().splitlines() if one.startswith(damage.split(":", maxsplit=1)[0]))
    path.write_text(path.read_text().replace(line, damage))
    damaged = path.read_bytes()

    rows = {row["id"]: row for row in aof("list").data["tasks"]}
    assert {task_id: row.get("state") for task_id, row in rows.items()} == {first: None, bad: "unknown", last: None}
    assert (rows[first]["title"], rows[last]["title"]) == ("Task a", "Task c")
    assert fabric.show(first)["normalizedStatus"] == "queued"
    said = aof("doctor")
    assert said.code == 5
    assert any(bad in problem["path"] for problem in said.data["problems"])
    assert path.read_bytes() == damaged


# --- creating a task: what it holds at birth, its idempotency key, its place in the tree


def test_a_task_holds_what_it_was_created_with() -> None:
    world = World()
    blocker, parent = world.create(), world.create()
    task = world.tasks[
        world.create(
            "  Add refresh endpoint ",
            actor="cli",
            agent="lead",
            body="Why\n",
            priority="high",
            assignee="ada",
            role="developer",
            team="eng",
            tags=["auth"],
            workflow="review",
            depends_on=[blocker, blocker],
            parent_id=parent,
            owner="lead",
            resource="rig",
            visibility="background",
            acceptance=["it works"],
            constraints={"network": "off"},
            profile={"latency": "low"},
            metadata={"anything": [1, 2]},
            max_attempts=5,
        )
    ]
    assert (task.title, task.body, task.priority, task.created_by) == ("Add refresh endpoint", "Why\n", "high", "lead")
    assert (task.routing.agent, task.routing.role, task.routing.team) == ("ada", "developer", "eng")
    assert (task.routing.tags, task.routing.workflow) == (("auth",), "review")
    assert (task.depends_on, task.parent_id, task.owner, task.resource) == ((blocker,), parent, "lead", "rig")
    assert (task.visibility, task.acceptance) == ("background", ("it works",))
    assert (task.constraints, task.profile, task.metadata) == (
        {"network": "off"},
        {"latency": "low"},
        {"anything": [1, 2]},
    )
    assert (task.retry.max_attempts, task.status) == (5, "ready")


@pytest.mark.parametrize(
    ("fields", "events"),
    [
        ({}, ["task.created", "task.accepted", "task.queued"]),
        ({"status": "backlog"}, ["task.created", "task.accepted"]),
        ({"metadata": {"draft": True}}, ["task.created"]),
    ],
)
def test_creation_says_how_far_the_task_has_come(fields: dict[str, Any], events: list[str]) -> None:
    world = World()
    world.create(**fields)
    assert [event.type for event in world.events] == events


def test_the_policy_says_how_often_a_task_is_tried() -> None:
    world = World(Policy(max_attempts=7))
    assert world.tasks[world.create()].retry.max_attempts == 7


def test_the_same_request_under_the_same_key_answers_with_the_first_task() -> None:
    world = World()
    first = world.create("One", key="k", metadata={"a": 1, "b": 2}, actor="alice")
    again = world.create("One", key="k", metadata={"b": 2, "a": 1}, actor="bob")
    assert (again, len(world.tasks)) == (first, 1)


@pytest.mark.parametrize("other", [{"title": "Two"}, {"priority": "high"}, {"body": "more"}, {"metadata": {"a": 1}}])
def test_another_request_under_the_same_key_is_a_conflict_that_names_the_task(other: dict[str, Any]) -> None:
    world = World()
    first = world.create("One", key="k")
    refusal = world.refuse(commands.Create, world.next_id(), **({"title": "One", "key": "k"} | other))
    assert (refusal.code, refusal.kind, refusal.details["task_id"]) == ("key_conflict", "conflict", first)


def test_the_key_still_answers_when_the_task_has_moved_on_and_its_parent_was_cancelled() -> None:
    world = World()
    parent = world.create()
    first = world.create("One", key="k", parent_id=parent)
    world.act(commands.CancelTask, parent)
    assert world.create("One", key="k", parent_id=parent) == first


def test_a_missing_dependency_or_parent_is_refused_and_nothing_is_created() -> None:
    world = World()
    for fields in ({"depends_on": ("TASK-2026-03-02-077",)}, {"parent_id": "TASK-2026-03-02-077"}):
        assert world.refuse(commands.Create, world.next_id(), title="x", **fields).code == "task_not_found"
    assert world.tasks == {}


def test_no_child_is_added_below_a_cancelled_task_at_any_depth() -> None:
    world = World()
    root = world.create()
    child = world.create(parent_id=root, metadata={"reviewRequired": False})
    world.act(commands.Complete, child, "ada")
    world.act(commands.CancelTask, root)
    assert world.status(child) == "done"
    for parent in (root, child):
        refusal = world.refuse(commands.Create, world.next_id(), title="x", parent_id=parent)
        assert refusal.code == "cancel_requested"
        assert root in refusal.message


def test_no_child_is_added_while_a_cancellation_is_still_settling() -> None:
    world = World()
    root = world.create()
    world.claim(root, worker="process")
    world.act(commands.CancelTask, root)
    assert world.status(root) == "in-progress"
    assert world.refuse(commands.Create, world.next_id(), title="x", parent_id=root).code == "cancel_requested"


def test_an_id_is_not_given_twice() -> None:
    world = World()
    task = world.create()
    assert world.refuse(commands.Create, task, title="x").code == "id_taken"


# --- templates for new tasks: what a call says comes first, and a file that does not parse creates nothing


BUG = """---
about: A defect that somebody reported
priority: high
tags: [bug, triage]
team: eng
due: "+3d"
acceptance:
  - a test fails without the fix
metadata: {severity: 2}
review: false
---

## How to reproduce

1. …
"""


@pytest.fixture
def bug(room: Room) -> Room:
    """A room with one template."""
    folder = room.root / "templates"
    folder.mkdir()
    (folder / "bug.md").write_text(BUG)
    return room


def test_a_task_begins_with_its_template(bug: Room, fabric: Fabric) -> None:
    task = fabric.get(fabric.create("Login fails", template="bug").task_id)
    assert (task.title, task.priority, task.routing.tags, task.routing.team) == (
        "Login fails",
        "high",
        ("bug", "triage"),
        "eng",
    )
    assert task.body == "## How to reproduce\n\n1. …\n"
    assert (task.due, task.acceptance) == ("2026-03-05T09:00:00.000Z", ("a test fails without the fix",))
    assert task.metadata == {"severity": 2, "reviewRequired": False}
    assert "about" not in bug.front(task.id)


def test_what_the_call_says_comes_first(bug: Room, fabric: Fabric) -> None:
    made = fabric.create(
        "Login fails",
        template="bug",
        brief="Since Monday.",
        tags=["auth", "bug"],
        due="2026-03-03",
        priority="low",
        metadata={"severity": 1},
        agent="ada",
    )
    task = fabric.get(made.task_id)
    assert task.body == "Since Monday.\n\n## How to reproduce\n\n1. …\n"
    assert (task.routing.tags, task.routing.agent) == (("auth", "bug", "triage"), "ada")
    assert (task.due, task.priority, task.metadata["severity"]) == ("2026-03-03", "low", 1)


def test_what_the_call_says_comes_first_also_where_it_says_what_is_usual(bug: Room, aof: Aof, fabric: Fabric) -> None:
    (bug.root / "templates/later.md").write_text("---\npriority: low\nvisibility: internal\nbacklog: true\n---\n")
    usual = fabric.create(
        "Usual", template="later", priority="normal", visibility="foreground", backlog=False, review=True
    )
    task = fabric.get(usual.task_id)
    assert (task.priority, task.visibility, task.status) == ("normal", "foreground", "ready")
    typed = aof("--json", "create", "Typed", "--template", "bug", "--priority", "normal").data["taskId"]
    assert fabric.get(str(typed)).priority == "normal"
    reviewed = fabric.create("Reviewed", template="bug", review=True)
    assert "reviewRequired" not in fabric.get(reviewed.task_id).metadata


def test_the_same_key_and_template_give_the_same_task(bug: Room, fabric: Fabric) -> None:
    first = fabric.create("Once", template="bug", key="k", due="2026-03-03")
    assert fabric.create("Once", template="bug", key="k", due="2026-03-03").task_id == first.task_id


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\npriority: urgent\n---\n", "priority"),
        ("---\ncolour: red\n---\n", "colour"),
        ("---\ntags: bug\n---\n", "tags"),
        ("---\npriority: [\n---\n", "cannot be used"),
        ("---\npriority: high\n", "no end"),
        ("---\na: &x 1\nb: *x\n---\n", "cannot be used"),
        (b"---\nabout: \xff\n---\n", "UTF-8"),
        ("x" * 300_000, "cannot be read"),
    ],
    ids=lambda one: str(one)[:20],
)
def test_a_template_that_does_not_parse_is_refused_and_named(
    bug: Room, fabric: Fabric, text: str | bytes, why: str
) -> None:
    (bug.root / "templates/bad.md").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InvalidInput, match=r"templates/bad\.md cannot be used") as refusal:
        fabric.create("New", template="bad")
    assert why in refusal.value.message
    assert fabric.list().total == 0
    good = {one.name: one.problem for one in fabric.templates().templates}
    assert good["bug"] is None
    assert good["bad"] is not None


def test_templates_are_listed_with_what_they_are_for(bug: Room, aof: Aof) -> None:
    (bug.root / "templates/plain.md").write_text("# Write a page\n\nText\n")
    (bug.root / "templates/.hidden.md").write_text("x")
    assert aof("templates").data["templates"] == [
        {"name": "bug", "path": "templates/bug.md", "about": "A defect that somebody reported"},
        {"name": "plain", "path": "templates/plain.md", "about": "Write a page"},
    ]
    assert aof("create", "From the command line", "--template", "plain").code == 0


@pytest.mark.parametrize("name", ["absent", "../bug", "", "bug.md", "a/b", "x" * 500])
def test_a_template_that_is_not_there_is_refused_with_those_that_are(bug: Room, fabric: Fabric, name: str) -> None:
    with pytest.raises(InvalidInput, match="no template") as refusal:
        fabric.create("New", template=name)
    assert "bug" in refusal.value.hint
    assert fabric.list().total == 0


def test_a_link_is_no_template(bug: Room, fabric: Fabric) -> None:
    outside = bug.root.parent / "secret.md"
    outside.write_text("secret")
    (bug.root / "templates/linked.md").symlink_to(outside)
    with pytest.raises(InvalidInput):
        fabric.create("New", template="linked")


def test_without_files_there_are_no_templates() -> None:
    fabric = memory_fabric("pm")
    assert fabric.templates().templates == ()
    with pytest.raises(InvalidInput, match="no template"):
        fabric.create("New", template="bug")


# --- the numbers of new tasks, as a person sees them: no call that makes nothing leaves a gap


@pytest.mark.parametrize(
    "given",
    [{"priority": "urgent"}, {"title": " "}, {"depends_on": ["999"]}, {"workflow": "nowhere"}, {"parent_id": "777"}],
    ids=lambda given: next(iter(given)),
)
def test_a_refused_create_leaves_no_gap(room: Room, given: dict[str, object]) -> None:
    room.fabric.create("One")
    with pytest.raises(AofError):
        room.fabric.create(**({"title": "Refused"} | given))  # type: ignore[arg-type]

    assert room.fabric.create("Two").task_id.endswith("-002")
    assert room.reopen().create("Three").task_id.endswith("-003")


def test_a_process_whose_only_call_was_refused_leaves_no_gap(room: Room) -> None:
    room.fabric.create("One")
    room.reopen()
    with pytest.raises(AofError):
        room.fabric.create("Refused", priority="urgent")  # type: ignore[arg-type] # what a user mistypes

    assert room.reopen().create("Two").task_id.endswith("-002")


def test_a_create_that_is_answered_with_the_task_of_its_key_leaves_no_gap(fabric: Fabric) -> None:
    one = fabric.create("One", key="first")
    assert fabric.create("One", key="first").task_id == one.task_id

    assert fabric.create("Two").task_id.endswith("-002")


def test_a_process_that_goes_on_beside_a_busy_one_is_at_most_three_numbers_ahead(room: Room) -> None:
    for _ in range(20):
        last = room.fabric.create("Busy").task_id
    other = room.opened()

    ahead = int(other.create("Beside").task_id[-3:]) - int(last[-3:])
    other.close()

    assert 1 <= ahead <= 4
