"""How tasks are named, and the operations that agents and people call most."""

from __future__ import annotations

import getpass
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.kinds import BlockedKind, Outcome, Status
from aof.kernel.model import STATUSES, TRANSITIONS
from aof.testing import FakeClock, memory_fabric
from tests.support.command_line import Aof
from tests.support.disks import DyingDisk, Killed
from tests.support.processes import outcome, together
from tests.support.requirements import requirement
from tests.support.room import Room, SameMoment

# --- how tasks are named, who is named as having acted, and the operations that hold, free and count tasks


NOBODY = "TASK-1999-01-01-001"


@requirement("tools.edit.result", "tools.edit.updated-fields")
def test_an_edit_names_exactly_what_changed(room: Room, fabric: Fabric) -> None:
    task_id = room.task(title="Old", brief="Text.\n", agent="ada")
    edited = fabric.edit("001", title="Old", priority="high")
    assert (edited.task_id, edited.updated_fields) == (task_id, ("priority",))
    front = room.front(task_id)
    assert edited.task == {"title": "Old", "status": "ready", "priority": "high"}
    assert edited.task == {name: front[name] for name in ("title", "status", "priority")}
    assert room.idle(fabric.edit, task_id, title="Old", priority="high").updated_fields == ()

    edited = fabric.edit(task_id, title="New", description="Text.", routing={"agent": "bob"})
    assert sorted(edited.updated_fields) == ["routing", "title"]
    assert room.idle(fabric.edit, task_id, description="Text.\n", routing={"agent": "bob"}).updated_fields == ()


@requirement("tools.edit.nothing-given")
def test_an_edit_of_nothing_or_with_a_bad_part_is_refused_whole(room: Room, fabric: Fabric) -> None:
    task_id = room.task()
    hint = room.refused("invalid", fabric.edit, task_id).hint
    assert all(field in hint for field in ("title", "description", "priority", "routing"))
    room.refused("invalid", fabric.edit, task_id, title="  ")
    room.refused("invalid", fabric.edit, task_id, title="", priority="high")
    room.refused("invalid", fabric.edit, task_id, title="Good", priority="urgent")


@requirement("tools.edit.description")
def test_a_new_description_leaves_the_work_log_byte_for_byte(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", brief="Old.\n\n## Details\n\nMany.\n")
    for text in ("began", "went on\nwith ## Work Log inside"):
        fabric.progress(task_id, agent="ada", text=text)
    log = room.body(task_id)[room.body(task_id).index("## Work Log") :]
    fabric.edit(task_id, description="# New\n\nOnly this.\n")
    assert room.body(task_id) == f"# New\n\nOnly this.\n\n{log}"


@requirement("tools.edit.routing")
def test_routing_changes_only_the_keys_that_are_given(room: Room, fabric: Fabric) -> None:
    task_id = room.task(agent="ada", role="writer", tags=["old"])
    claimed = fabric.claim(task_id, agent="ada")
    fabric.edit(task_id, routing={"tags": ["new", "newer"]})
    front = room.front(task_id)
    assert front["routing"] == {"agent": "ada", "role": "writer", "tags": ["new", "newer"]}
    assert front["status"] == "in-progress"
    assert (front["lease"]["runId"], front["lease"]["epoch"]) == (claimed.run_id, claimed.epoch)


@requirement("tools.cancel.reason")
def test_why_a_task_was_cancelled_stands_in_log_and_task(aof: Aof) -> None:
    task_id = aof("create", "Unwanted").data["taskId"]
    aof("cancel", task_id, "--reason", "superseded by 010", "--actor", "lead")
    asked = aof("log", task_id, "--type", "task.cancel_requested").data["events"]
    assert [(event["actor"], event["payload"]["reason"]) for event in asked] == [("lead", "superseded by 010")]
    cancel = aof("show", task_id).data["cancel"]
    assert (cancel["by"], cancel["reason"]) == ("lead", "superseded by 010")


@requirement("tools.block.effect")
@pytest.mark.parametrize("status", ["ready", "in-progress"])
def test_a_blocked_task_says_why_and_by_whom_and_its_run_ends(room: Room, fabric: Fabric, status: str) -> None:
    task_id = room.task(status)
    assert fabric.block("001", reason="no key", actor="lead").status == "blocked"
    front = room.front(task_id)
    assert front["blocked"] == {
        "kind": "blocked",
        "reason": "no key",
        "by": "lead",
        "since": "2026-03-02T09:00:00.000Z",
    }
    assert "lease" not in front
    room.refused("not_ready", fabric.claim, task_id, agent="bob")
    if status == "in-progress":
        run = room.attempts(task_id)[0]["runId"]
        room.refused("stale_lease", fabric.progress, task_id, run=run, text="late")
        room.late(fabric.complete, task_id, run=run)


@requirement("tools.block.reason-required")
def test_blocking_needs_a_reason(room: Room, fabric: Fabric, aof: Aof) -> None:
    task_id = room.task()
    for blank in ("", "  "):
        error = room.refused("invalid", fabric.block, task_id, reason=blank)
        assert error.kind == "invalid"
        assert error.call is not None
        assert error.call.arguments.keys() >= {"task_id", "reason"}
    before = room.contents()
    for words in (["block", task_id], ["block", task_id, "--reason", "  "]):
        said = aof(*words)
        assert said.code == 2
        assert f"aof block {task_id} --reason" in said.error["hint"]
    assert room.contents() == before


@requirement("tools.block.from-each-status")
@pytest.mark.parametrize("status", STATUSES)
def test_only_unfinished_tasks_are_blocked_and_only_once(
    room: Room, fabric: Fabric, clock: FakeClock, status: str
) -> None:
    task_id = room.task(status)
    clock.sleep(60)
    if status in ("done", "cancelled", "deadletter"):
        room.refused("invalid_transition", fabric.block, task_id, reason="no key")
    elif status == "blocked":
        assert room.idle(fabric.block, task_id, reason="another").status == "blocked"
        assert room.front(task_id)["blocked"]["since"] == "2026-03-02T09:00:00.000Z"
    else:
        assert fabric.block(task_id, reason="no key").status == "blocked"
        assert room.file(task_id).parent.name == "blocked"


@requirement("tools.unblock.effect")
@pytest.mark.parametrize("kind", ["blocked", "waiting_input", "waiting_permission", "waiting_resource", "paused"])
def test_an_unblocked_task_is_ready_and_claimable_if_nothing_else_holds_it(
    room: Room, fabric: Fabric, kind: BlockedKind
) -> None:
    free, held = room.task(), room.task(depends_on=[room.task()])
    for task_id in (free, held):
        fabric.block(task_id, reason="no key", kind=kind)
        assert fabric.unblock(task_id).status == "ready"
        assert "blocked" not in room.front(task_id)
        assert [to for _, to in room.moves(task_id)] == ["blocked", "ready"]
    assert fabric.claim(free, agent="bob").task_id == free
    room.refused("not_ready", fabric.claim, held, agent="bob")


@requirement("tools.unblock.not-blocked")
@pytest.mark.parametrize("status", STATUSES)
def test_only_a_blocked_task_is_unblocked(room: Room, fabric: Fabric, status: str) -> None:
    task_id = room.task(status)
    if status == "ready":
        assert room.idle(fabric.unblock, task_id).status == "ready"
    elif status == "blocked":
        assert fabric.unblock(task_id).status == "ready"
    else:
        assert status in room.refused("invalid_transition", fabric.unblock, task_id).message


@requirement("tools.status.result", "tools.status.filters")
def test_status_counts_what_matches(room: Room, fabric: Fabric, aof: Aof) -> None:
    made = {status: [room.task(status) for _ in range(number)] for number, status in enumerate(STATUSES, 1)}
    routed = room.task(agent="bob")
    made["ready"].append(routed)
    counts = {status: len(list((room.root / "tasks" / status).glob("*.md"))) for status in STATUSES}

    answer = aof("status").data
    assert answer["byStatus"] == counts == {status: len(ids) for status, ids in made.items()}
    assert answer["total"] == sum(counts.values()) == len(answer["tasks"])
    rows = {row["id"]: row for row in answer["tasks"]}
    assert rows[routed].items() >= {"title": "One that is ready", "status": "ready", "agent": "bob"}.items()
    assert "agent" not in rows[made["ready"][0]]

    ada = fabric.status(agent="ada")
    assert {row.id for row in ada.tasks} == set(made["in-progress"])
    assert (ada.total, sum(ada.by_status.values())) == (3, 3)
    fabric.claim(routed, agent="cem", steal=True)
    fabric.assign(routed, "bob")
    assert fabric.status(agent="bob").total == 0, "who holds it counts, not who should"
    assert [row.id for row in fabric.status(agent="cem", status="in-progress").tasks] == [routed]
    blocked = fabric.status(status="blocked")
    assert (blocked.total, {row.id for row in blocked.tasks}) == (5, set(made["blocked"]))
    nothing = fabric.status(agent="cem", status="done")
    assert (nothing.total, nothing.tasks) == (0, ())


@requirement("tools.status.limit", "tools.status.compact")
def test_a_limit_or_a_compact_answer_still_counts_everything(room: Room, fabric: Fabric) -> None:
    for _ in range(100):
        room.task()
    few = fabric.status(limit=3)
    assert (len(few.tasks), few.total) == (3, 100)
    assert fabric.status(limit=3) == few
    assert room.reopen().status(limit=3) == few

    whole, compact = room.fabric.status(), room.fabric.status(compact=True)
    assert (compact.total, compact.by_status) == (whole.total, whole.by_status)
    assert len(msgspec.json.encode(compact)) < len(msgspec.json.encode(whole))
    assert isinstance(msgspec.to_builtins(compact)["tasks"], list | tuple)


@requirement("tools.status.read-only")
def test_status_writes_nothing_whatever_people_did_to_the_files(room: Room, aof: Aof) -> None:
    edited, good = room.task(), room.task()
    for _ in range(3):
        room.idle(room.fabric.status)
        said = room.idle(aof, "status", "--actor", "somebody")
        assert said.code == 0
        path = room.file(edited)
        path.write_text(path.read_text().replace("One that", "Another that"))
        (room.root / "tasks/ready/TASK-2026-03-02-900.md").write_text("---\ntitle: [\n---\n")
    rows = {row["id"]: row for row in said.data["tasks"]}
    assert rows[edited]["state"] == "stale"
    assert "state" not in rows[good]


@requirement("tools.prefix.full")
def test_a_full_id_is_exactly_that_task(room: Room, fabric: Fabric) -> None:
    made = [fabric.create("One of many").task_id for _ in range(1001)]
    assert made[99].endswith("-100")
    assert made[999] == f"{made[99]}0"
    assert fabric.get(made[99]).id == made[99]
    fabric.edit(made[99], title="The hundredth")
    assert fabric.get(made[999]).title == "One of many"
    for status in STATUSES:
        task_id = room.task(status)
        assert fabric.get(task_id).id == task_id


@requirement("tools.prefix.leading", "tools.prefix.ambiguous")
def test_the_beginning_of_an_id_stands_for_the_only_task_that_has_it(
    room: Room, fabric: Fabric, clock: FakeClock
) -> None:
    other = room.task()
    clock.set("2026-04-01T00:00:00Z")
    first = room.task()
    assert fabric.edit("TASK-2026-04-01", title="Only one").task_id == first
    second = room.task()
    error = room.refused("ambiguous_id", fabric.edit, "TASK-2026-04-01", title="Which?")
    assert first in error.message
    assert second in error.message
    assert other not in error.message


@requirement("tools.prefix.inner", "tools.prefix.boundary")
def test_a_part_of_an_id_starts_after_a_dash(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    clock.set("2026-02-21T09:00:00Z")
    task_id = room.task()
    for part in ("SK-2026", "026-02-21-001", "1-001", "", "  "):
        assert room.refused("task_not_found", fabric.get, part).kind == "not_found"
    for day in ("2026-02-22T09:00:00Z", "2026-03-21T09:00:00Z", "2027-02-21T09:00:00Z"):
        clock.set(day)
        fabric.store.reserve_id(clock.now())
        assert [room.task()[-3:] for _ in range(2)] == ["002", "003"]
    for part in ("2026-02-21-001", "02-21-001", "21-001", "001", "TASK-2026-02-21"):
        assert fabric.edit(part, title=f"Found by {part}").task_id == task_id


@requirement("tools.prefix.none")
@pytest.mark.parametrize(
    "words",
    [
        ["show", NOBODY],
        ["claim", NOBODY, "--agent", "ada"],
        ["complete", NOBODY],
        ["update", NOBODY, "--body", "x"],
        ["edit", NOBODY, "--title", "x"],
        ["cancel", NOBODY],
        ["block", NOBODY, "--reason", "x"],
        ["unblock", NOBODY],
        ["dep", "add", NOBODY, "{}"],
        ["dep", "add", "{}", NOBODY],
        ["dep", "rm", NOBODY, "{}"],
        ["dep", "rm", "{}", NOBODY],
        ["heartbeat", NOBODY],
        ["release", NOBODY],
        ["progress", NOBODY, "--text", "x"],
        ["approve", NOBODY],
        ["reject", NOBODY, "--blocker", "x"],
        ["fail", NOBODY],
        ["pause", NOBODY],
        ["resume", NOBODY],
        ["retry", NOBODY, "--reason", "x"],
        ["archive", NOBODY],
        ["link", "{}", "source_task", NOBODY],
        ["create", "Child", "--parent", NOBODY],
        ["create", "Waits", "--dep", NOBODY],
    ],
)
def test_what_does_not_exist_is_not_found_on_every_verb(room: Room, aof: Aof, words: list[str]) -> None:
    task_id = room.task()
    said = aof(*(word.format(task_id) for word in words))
    assert (said.code, said.error["code"]) == (3, "task_not_found")
    assert NOBODY in said.error["message"]
    assert room.fabric.list().total == 1


@requirement("tools.prefix.full-in-answers")
def test_answers_events_and_files_carry_full_ids_only(room: Room, fabric: Fabric) -> None:
    first, second = room.task(), room.task()
    child = fabric.create("Below", parent_id="001", depends_on=["002"])
    answers = [
        child,
        fabric.dep_add("003", "001"),
        fabric.dep_remove("003", "001"),
        fabric.edit("001", title="New"),
        fabric.update("001", body="New.\n"),
        fabric.block("001", reason="no key"),
        fabric.unblock("001"),
        fabric.claim("001", agent="ada"),
        fabric.complete("001", agent="ada", allow_open_children=True),
        fabric.cancel("002"),
        fabric.link("003", "source_task", "001"),
    ]
    named = [getattr(answer, name) for answer in answers for name in ("task_id", "blocker_id") if hasattr(answer, name)]
    assert set(named) == {first, second, child.task_id}
    events = b"".join(msgspec.json.encode(event) for event in room.events())
    files = b"".join(path.read_bytes() for path in room.root.glob("tasks/*/*.md"))
    for part in ("001", "002", "003"):
        assert f'"{part}"'.encode() not in events + files
    assert room.front(child.task_id)["parentId"] == first
    assert room.front(child.task_id)["dependsOn"] == [second]


@requirement("tools.actor.attribution")
def test_every_call_is_recorded_with_who_made_it(room: Room, aof: Aof) -> None:
    task_id = aof("create", "Named", "--no-review", "--actor", "creator").data["taskId"]
    other = aof("create", "Other", "--actor", "creator").data["taskId"]
    calls = {
        "editor": ["edit", task_id, "--title", "New"],
        "binder": ["dep", "add", task_id, other],
        "looser": ["dep", "rm", task_id, other],
        "blocker": ["block", task_id, "--reason", "no key"],
        "freer": ["unblock", task_id],
        "updater": ["update", task_id, "--body", "New."],
        "starter": ["claim", task_id, "--agent", "ada"],
        "finisher": ["complete", task_id, "--agent", "ada", "--summary", "all done"],
    }
    for actor, words in calls.items():
        said = aof(*words, "--actor", actor)
        assert said.code == 0, said.out
        event = aof("log", task_id).data["events"][-1]
        assert event["actor"] == actor
        assert event.get("agent") == ("ada" if "--agent" in words else None)
    aof("cancel", other, "--actor", "canceller")
    assert aof("log", other).data["events"][-1]["actor"] == "canceller"
    assert room.front(task_id)["createdBy"] == "creator"
    assert "ada: all done" in room.body(task_id)


@requirement("tools.actor.absent")
def test_a_call_without_an_actor_is_the_sessions_and_never_the_holders(
    room: Room, aof: Aof, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = getpass.getuser()
    for name, actor in (("AOF_ACTOR", "tester"), (None, user)):
        if name is None:
            monkeypatch.delenv("AOF_ACTOR")
            monkeypatch.setenv("USER", user)
        task_id, other = (aof("create", title).data["taskId"] for title in ("One", "Two"))
        for words in (
            ["edit", task_id, "--title", "New"],
            ["dep", "add", task_id, other],
            ["dep", "rm", task_id, other],
            ["block", task_id, "--reason", "no key"],
            ["unblock", task_id],
            ["update", task_id, "--body", "New."],
            ["cancel", other],
        ):
            assert aof(*words).code == 0
        assert {event["actor"] for event in aof("log").data["events"] if event["taskId"] in (task_id, other)} == {actor}
        run = aof("claim", task_id, "--agent", "ada").data["runId"]
        said = aof("complete", task_id)
        assert (said.code, said.error["code"]) == (4, "not_lease_holder")
        assert aof("complete", task_id, "--run", run).code == 0
        (event,) = aof("log", task_id, "--type", "task.completed").data["events"]
        assert (event["actor"], event["agent"], event["payload"]["result"]["agentId"]) == (actor, "ada", "ada")


# --- the operations that agents call most: dispatch, complete, update and edit


WORK = "# Plan\n\n- [ ] one\n\n```sh\n## Work Log\n```\n\nGröße ✓\n"


@requirement("tools.dispatch.id-and-path")
def test_ids_are_given_once_also_to_processes_that_ask_together(room: Room, fabric: Fabric) -> None:
    def dispatch(_: int) -> list[tuple[str, str]]:
        with room.opened(clock=SameMoment(room.clock)) as mine:
            made = [mine.create("One of many") for _ in range(275)]
            return [(one.task_id, one.file_path) for one in made]

    made = [one for part in together(4, dispatch) for one in part]
    assert len({task_id for task_id, _ in made}) == 1100
    assert all(re.fullmatch(r"TASK-2026-03-02-\d{3,}", task_id) for task_id, _ in made)
    assert max(int(task_id.rsplit("-", 1)[1]) for task_id, _ in made) >= 1100
    for task_id, path in made:
        assert path == f"tasks/ready/{task_id}.md"
        assert (room.root / path).is_file()


@requirement("tools.dispatch.initial-status")
def test_a_new_task_is_ready_and_a_draft_is_in_the_backlog(room: Room, aof: Aof) -> None:
    free = aof("create", "Free").data
    assert (free["status"], room.file(free["taskId"]).parent.name) == ("ready", "ready")
    held = aof("create", "Held", "--dep", free["taskId"]).data
    assert held["status"] == "ready"
    assert [row["id"] for row in aof("ready").data["tasks"]] == [free["taskId"]]
    assert aof("claim", held["taskId"], "--agent", "ada").error["code"] == "not_ready"
    draft = aof("create", "Draft", "--meta", "draft=true").data
    assert draft["status"] == "backlog"
    assert aof("claim", draft["taskId"], "--agent", "ada").error["code"] == "not_ready"


@requirement("tools.dispatch.depends-on")
def test_dependencies_are_stored_in_full_and_refused_as_a_whole(room: Room, fabric: Fabric) -> None:
    first, second = room.task(review=False), room.task(review=False)
    task_id = fabric.create("Waits", depends_on=["001", second]).task_id
    assert room.front(task_id)["dependsOn"] == [first, second]

    for bad, code in (("999", "task_not_found"), ("2026-03-02", "ambiguous_id")):
        before = fabric.list().total
        assert outcome(fabric.create, "Never", depends_on=["001", bad]) == code
        assert fabric.list().total == before
    for blocker in (first, second):
        room.refused("not_ready", fabric.claim, task_id, agent="bob")
        fabric.complete(blocker, actor="ada")
    assert fabric.claim(task_id, agent="bob").task_id == task_id


@requirement("tools.complete.result", "tools.complete.ungated-done")
def test_a_completed_run_ends_in_done_over_review_in_one_commit(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", review=False)
    before = len(room.events())
    done = fabric.complete("001", agent="ada")
    assert (done.task_id, done.status) == (task_id, "done")
    assert (room.file(task_id).stem, room.file(task_id).parent.name) == (task_id, "done")

    commit = room.events()[before:]
    assert [event.commit for event in commit] == [(place + 1, len(commit)) for place in range(len(commit))]
    assert room.moves(task_id)[-2:] == [("in-progress", "review"), ("review", "done")]
    assert "lease" not in room.front(task_id)
    assert room.run_file(task_id)["status"] == "completed"
    assert room.run_file(task_id, "run_result")["outcome"] == "done"


@requirement("tools.complete.ungated-review")
def test_a_task_under_review_is_done_only_by_an_approval(room: Room, fabric: Fabric, aof: Aof) -> None:
    approved, completed = room.task("in-progress"), room.task("in-progress", metadata={"reviewRequired": True})
    for task_id in (approved, completed):
        assert fabric.complete(task_id, agent="ada").status == "review"
        assert room.normalized(task_id) == "waiting_permission"
    assert aof("approve", approved).data["status"] == "done"
    assert fabric.complete(completed, actor="lead").status == "done"


@requirement("tools.complete.summary")
@pytest.mark.parametrize("log", ["", "\n## Work Log\n\n- 2026-03-01T00:00:00.000Z bob: began\n\n## Links\n\nNone.\n"])
def test_a_summary_is_added_to_the_one_work_log(room: Room, fabric: Fabric, log: str) -> None:
    task_id = room.task("in-progress", brief=WORK + log)
    before = room.body(task_id)
    fabric.complete(task_id, agent="ada", summary="12 tests pass")

    after = room.body(task_id)
    entry = "- 2026-03-02T09:00:00.000Z ada: 12 tests pass\n"
    added = entry if log else f"\n## Work Log\n\n{entry}"
    assert after.count(added) == 1
    assert after.replace(added, "") == before
    if log:
        assert after.index("bob: began") < after.index(entry) < after.index("## Links")
    assert "12 tests pass" in room.events(task_id, "task.completed")[0].payload["workLog"]


@requirement("tools.complete.ungated-outcome")
@pytest.mark.parametrize(
    ("said", "status"), [(None, "done"), ("complete", "done"), ("needs_review", "review"), ("blocked", "blocked")]
)
def test_an_outcome_is_never_dropped(room: Room, fabric: Fabric, said: Outcome | None, status: str) -> None:
    task_id = room.task("in-progress", review=False)
    blockers = ["no key"] if said in ("needs_review", "blocked") else []
    assert fabric.complete(task_id, agent="ada", outcome=said, blockers=blockers).status == status
    assert fabric.get(task_id).status == status


@requirement("tools.complete.legal-path")
@pytest.mark.parametrize("status", STATUSES)
def test_completing_takes_only_edges_of_the_table(room: Room, fabric: Fabric, status: str) -> None:
    task_id = room.task(status, review=status == "review")
    before = len(room.events())
    hints = {"backlog": "promote", "blocked": "unblock", "cancelled": "retry", "deadletter": "retry"}
    if status in hints:
        error = room.refused("invalid_transition", fabric.complete, task_id, actor="zed")
        assert hints[status] in error.hint
    else:
        agent = "zed" if status == "review" else "ada"  # who ran it repeats its report, anybody else approves
        assert fabric.complete(task_id, actor=agent).status == "done"
    assert all(to in TRANSITIONS[start] for start, to in room.moves(task_id))
    if status == "ready":
        commit = room.events()[before:]
        assert {event.commit[1] for event in commit} == {len(commit)}
        assert {event.type for event in commit} >= {"task.attempt.started", "task.completed", "task.attempt.completed"}


@requirement("tools.complete.legal-path")
def test_a_task_that_waits_for_another_is_not_completed(room: Room, fabric: Fabric) -> None:
    task_id = room.task(depends_on=[room.task()], review=False)
    assert "finish" in room.refused("not_ready", fabric.complete, task_id, actor="ada").hint


@requirement("tools.complete.repeat")
def test_completing_a_done_task_changes_nothing(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", review=False)
    fabric.complete(task_id, agent="ada", summary="done")
    assert room.idle(fabric.complete, task_id, agent="ada", summary="done").status == "done"
    assert room.idle(fabric.complete, task_id, actor="bob", summary="done again").status == "done"


@requirement("tools.complete.lease-holder")
def test_only_the_holder_completes_a_run(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task()
    first = fabric.claim(task_id, agent="ada", ttl=60).run_id
    assert room.refused("not_lease_holder", fabric.complete, task_id, actor="bob").details["holder"] == "ada"
    for agent in ("bob", "ada"):
        clock.sleep(61)
        fabric.recover()
        clock.sleep(1000)
        run = fabric.claim(task_id, agent=agent, ttl=60).run_id
        room.late(fabric.complete, task_id, run=first, agent="ada")
    room.refused("run_required", fabric.complete, task_id, actor="ada")

    fabric.complete(task_id, run=run, actor="operator")
    event = room.events(task_id, "task.completed")[0]
    assert (event.actor, event.agent) == ("operator", "ada")


@requirement("tools.complete.lease-holder")
def test_the_command_tells_a_conflict_by_its_exit_code(room: Room, aof: Aof) -> None:
    task_id = aof("create", "Wanted").data["taskId"]
    first = aof("claim", task_id, "--agent", "ada").data["runId"]
    before = room.contents()
    said = aof("complete", task_id, "--agent", "bob")
    assert (said.code, said.error["code"]) == (4, "not_lease_holder")
    assert room.contents() == before
    aof("release", task_id, "--run", first)
    aof("claim", task_id, "--agent", "ada")
    said = aof("complete", task_id, "--run", first)
    assert (said.code, said.error["code"]) == (4, "stale_lease")


@requirement("tools.update.result")
@pytest.mark.parametrize("body", [None, "New.\n"])
@pytest.mark.parametrize("status", [None, "backlog"])
def test_an_update_says_what_it_changed(
    room: Room, fabric: Fabric, clock: FakeClock, body: str | None, status: Status | None
) -> None:
    task_id = room.task(brief="Old.\n")
    clock.sleep(5)
    done = fabric.update("001", body=body, status=status)
    assert (done.task_id, done.status) == (task_id, status or "ready")
    assert (done.body_updated, done.transitioned) == (body is not None, status is not None)
    assert done.updated_at == room.front(task_id)["updatedAt"]
    assert done.updated_at == f"2026-03-02T09:00:{'05' if body or status else '00'}.000Z"


@requirement("tools.update.body-replaces")
def test_a_new_body_leaves_the_frontmatter_and_the_old_one_in_the_log(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", brief="Old.\n")
    path = room.file(task_id)
    path.write_text(path.read_text().replace("priority:", "# mine\ncolour: blue\npriority:"))
    fabric.progress(task_id, agent="ada", text="began")
    seq = room.events()[-1].seq
    old, front = room.body(task_id), path.read_text().split("\n---\n")[0]
    fabric.update(task_id, agent="ada", body="New.\n")

    assert room.body(task_id) == "New.\n"
    changed = re.compile(r"^(rev|updatedAt):.*$", re.MULTILINE)
    assert changed.sub("", path.read_text().split("\n---\n")[0]) == changed.sub("", front)
    assert "# mine\ncolour: blue" in front
    assert fabric.show(task_id, at=seq)["body"] == old
    for text in ("one", "two"):
        fabric.progress(task_id, agent="ada", text=text)
    assert room.body(task_id).count("## Work Log") == 1


@requirement("tools.update.status-valid", "tools.update.same-status")
@pytest.mark.parametrize("start", STATUSES)
def test_a_status_moves_only_along_the_table(room: Room, fabric: Fabric, start: str) -> None:
    for target in STATUSES:
        task_id = room.task(start)
        own = (start, target) != ("review", "done")  # who ran it does not approve it
        given: dict[str, Any] = {"status": target, "agent": "ada" if own else "zed"}
        if target == start:
            events = len(room.events())
            assert fabric.update(task_id, **given).transitioned is False
            assert len(room.events()) == events
        elif target in TRANSITIONS[start]:
            done = fabric.update(task_id, **given)
            assert (done.status, done.transitioned) == (target, True)
            assert (fabric.get(task_id).lease is not None) == (target == "in-progress")
        else:
            error = room.refused("invalid_transition", fabric.update, task_id, **given)
            assert start in error.message
            assert target in error.message
            assert all(allowed in error.message for allowed in TRANSITIONS[start])
            assert error.details["allowed"] == list(TRANSITIONS[start])


@requirement("tools.update.one-commit")
def test_body_and_status_change_together_or_not_at_all(tmp_path: Path, clock: FakeClock) -> None:
    room = Room(tmp_path / "origin", clock)
    task_id = room.task(brief="Old.\n")
    room.refused("invalid_transition", room.fabric.update, task_id, body="New.\n", status="done")
    room.fabric.close()
    seen = set()
    died = True
    for step in range(1000):
        shutil.copytree(room.root, tmp_path / f"copy-{step}")
        there = Room(tmp_path / f"copy-{step}", clock)
        there.fabric.close()
        mine = there.opened(DyingDisk(step))
        try:
            mine.update(task_id, body="New.\n", status="backlog")
            died = False
        except Killed:
            pass
        finally:
            mine.close()
        there.fabric = there.opened()
        task = there.fabric.get(task_id)
        seen.add((task.status, task.body))
        assert there.body(task_id) == task.body
        there.fabric.close()
        if not died:
            break
    assert not died
    assert seen == {("ready", "Old.\n"), ("backlog", "New.\n")}


@requirement("tools.update.reason")
def test_a_reason_is_kept_with_the_transition(room: Room, aof: Aof) -> None:
    for given in (["--reason", "not yet"], []):
        task_id = aof("create", "Later").data["taskId"]
        aof("update", task_id, "--status", "backlog", *given, "--actor", "lead")
        (event,) = aof("log", task_id, "--type", "task.transitioned").data["events"]
        assert event["actor"] == "lead"
        assert event["payload"] == {"from": "ready", "to": "backlog"} | ({"reason": "not yet"} if given else {})


@requirement("tools.update.in-progress-has-lease")
def test_of_many_that_move_a_task_to_in_progress_one_holds_it(room: Room, fabric: Fabric) -> None:
    task_id = room.task()

    def move(number: int) -> bool:
        with room.opened(actor=f"agent-{number}", clock=SameMoment(room.clock)) as mine:
            return mine.update(task_id, status="in-progress").transitioned

    answers = together(20, move)
    assert answers.count(True) == 1
    winner = f"agent-{answers.index(True)}"
    assert room.front(task_id)["lease"]["agent"] == winner
    run = room.run_file(task_id)
    assert (run["agentId"], run["runId"]) == (winner, room.front(task_id)["lease"]["runId"])
    assert len(room.events(task_id, "task.attempt.started")) == 1


@requirement("tools.update.sign-of-life")
def test_an_update_by_the_holder_keeps_the_lease(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task()
    fabric.claim(task_id, agent="ada", ttl=60)
    events = len(room.events())
    for body in (None, "More.\n", None):
        clock.sleep(59)
        done = fabric.update(task_id, agent="ada", body=body)
        assert (done.body_updated, done.transitioned) == (body is not None, False)
        assert fabric.recover() == ()
    assert len(room.events()) == events + 1
    assert fabric.get(task_id).status == "in-progress"
    clock.sleep(61)
    assert [one.task_id for one in fabric.recover()] == [task_id]


def test_a_note_is_added_to_the_work_log_and_leaves_the_rest_of_the_body_alone() -> None:
    fabric = memory_fabric()
    task = fabric.create("Noted", brief="# Mine\n\nAs I wrote it.\n").task_id
    run = fabric.claim(task, agent="ada").run_id
    for said in ("tried the cache", "it was the index"):
        assert fabric.update(task, run=run, note=said).body_updated
    body = fabric.get(task).body
    assert body.startswith("# Mine\n\nAs I wrote it.\n\n## Work Log\n")
    assert [line.partition("Z ")[2] for line in body.splitlines() if line.startswith("- ")] == [
        "ada: tried the cache",
        "ada: it was the index",
    ]
    with pytest.raises(AofError) as refused:
        fabric.update(task, run=run, note=" ")
    assert refused.value.code == "invalid"
    with pytest.raises(AofError) as refused:
        fabric.update(task, agent="bob", note="mine")
    assert refused.value.code == "not_lease_holder"
    both = fabric.update(task, run=run, body="# New\n", note="rewritten")
    assert both.body_updated
    assert fabric.get(task).body.startswith("# New\n\n## Work Log\n")


@pytest.mark.parametrize(
    ("said", "target"), [("needs_review", "review"), ("partial", "review"), ("blocked", "blocked")]
)
def test_an_outcome_that_a_finished_task_cannot_have_is_refused(
    room: Room, fabric: Fabric, said: str, target: str
) -> None:
    task_id = room.task("done")
    before = len(room.events())
    error = room.refused("invalid_transition", fabric.complete, task_id, agent="zed", outcome=said, blockers=["no key"])
    assert f"cannot go to {target}" in error.message
    assert error.call is not None
    assert error.call.operation == "retry"
    assert fabric.complete(task_id, agent="ada", outcome="complete").status == "done"
    assert len(room.events()) == before


def test_the_run_that_ended_a_task_cannot_say_afterwards_that_it_is_blocked(room: Room, fabric: Fabric) -> None:
    task_id = room.task(review=False)
    run = fabric.claim(task_id, agent="ada").run_id
    for _ in range(2):
        assert fabric.complete(task_id, run=run, outcome="complete").status == "done"
    room.late(fabric.complete, task_id, run=run, outcome="blocked", blockers=["no key"])
