"""The operations that agents call most: dispatch, complete, update and edit."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.kinds import Outcome, Status
from aof.kernel.model import STATUSES, TRANSITIONS
from aof.testing import FakeClock, memory_fabric
from tests.support.command_line import Aof
from tests.support.disks import DyingDisk, Killed
from tests.support.processes import outcome, together
from tests.support.requirements import requirement
from tests.support.room import Room, SameMoment

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
