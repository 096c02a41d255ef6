"""One task in the snapshot: what it is, who it belongs to, how it stands and why."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import STATUSES, Policy
from aof.org.model import Agent, OrgChart, RunnerSettings, Team
from aof.store.memory import FixedChart
from aof.testing import FakeClock, memory_fabric
from tests.support.command_line import Aof
from tests.support.portable import STATUSES as NORMALIZED
from tests.support.portable import Camera, valid
from tests.support.requirements import requirement
from tests.support.room import Room

CHART = OrgChart(
    agents=(
        Agent(id="ada", concurrency=1),
        Agent(id="lea", team="eng", runner=RunnerSettings(kind="human")),
        Agent(id="bob"),
        Agent(id="pia", runner=RunnerSettings(kind="a2a", url="http://127.0.0.1:1")),
    ),
    teams=(Team(id="eng", lead="lea"),),
)

PARALLEL = {
    "name": "parallel",
    "hops": [{"id": "build", "role": "developer"}, {"id": "test", "role": "tester"}],
}


@pytest.fixture
def camera(room: Room) -> Camera:
    """Takes snapshots of the room."""
    return Camera(room)


@pytest.fixture
def staffed(room: Room) -> Fabric:
    """A fabric on the same room that has an org chart."""
    policy = Policy(maintainers=("pm",), project="apollo")
    room.fabric = Fabric(room.fabric.store, room.clock, policy, "pm", org=FixedChart(CHART))
    return room.fabric


@requirement("task.model.task")
def test_a_task_stays_itself_over_retry_reassignment_pause_and_crash(
    room: Room, camera: Camera, clock: FakeClock
) -> None:
    parent, blocker = room.task(), room.task("done")
    task_id = room.task(parent_id=parent, depends_on=[blocker], acceptance=["it works", {"criterion": "it is fast"}])

    def itself() -> tuple[Any, ...]:
        task = camera.task(task_id)
        edges = {(edge["kind"], edge["targetId"]) for edge in task["relationships"]}
        return (
            task["taskId"],
            task["parentTaskId"],
            edges & {("parent", parent), ("blocked_by", blocker)},
            task["acceptance"],
        )

    first = itself()
    assert len(first[2]) == 2
    room.fabric.fail(task_id, run=room.fabric.claim(task_id, agent="ada").run_id)
    room.fabric.retry(task_id, reason="again")
    assert itself() == first
    room.fabric.edit(task_id, routing={"agent": "bob"})
    room.fabric.claim(task_id, agent="bob", ttl=60)
    assert itself() == first
    room.reopen()
    clock.sleep(61)
    room.fabric.recover()
    assert itself() == first
    room.fabric.pause(task_id)
    assert itself() == first
    room.fabric.resume(task_id)
    assert itself() == first
    assert len(camera.task(task_id)["attempts"]) == 2


@requirement("task.model.kept-apart")
def test_task_attempts_steps_counters_and_checklist_have_each_their_place(
    room: Room, camera: Camera, fabric: Fabric
) -> None:
    task_id = room.task(brief="- [x] read\n- [ ] write\n- [ ] test\n")
    first = fabric.claim(task_id, agent="ada").run_id
    fabric.fail(task_id, run=first)
    fabric.retry(task_id, reason="again")
    run = fabric.claim(task_id, agent="bob").run_id
    for step in ("reading", "writing"):
        fabric.progress(task_id, run=run, phase="working", facts={"step": step, "counters": {"files": {"done": 1}}})
    task = camera.task(task_id)
    assert task["taskId"] == task_id
    assert [one["runId"] for one in task["attempts"]] == [first, run]
    progress = task["progress"]
    assert (progress["step"], progress["runId"]) == ("writing", run)
    assert progress["counters"] == {"files": {"done": 1}}
    assert progress["checklist"] == {"done": 1, "total": 3}
    assert len(camera.tasks()) == 1
    steps = [event.payload["step"] for event in room.events(task_id, "task.progress")]
    assert steps == ["reading", "writing"]


@requirement("task.record.parent-and-root")
def test_three_generations_know_their_parent_and_their_root(room: Room, camera: Camera) -> None:
    top = room.task()
    middle = room.task(parent_id=top)
    low = room.task(parent_id=middle)
    tasks = camera.tasks()
    found = {one: (tasks[one]["parentTaskId"], tasks[one]["rootTaskId"]) for one in (top, middle, low)}
    assert found == {top: ("not_applicable", top), middle: (top, top), low: (middle, top)}


@requirement("task.record.title-and-objective")
def test_title_and_objective_are_what_a_person_reads_in_the_file(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task(title="Add refresh", brief="POST /refresh renews a token.\n")
    long = room.task(title="Rewrite", brief="A very long story.\n" * 500)
    fabric.claim(task_id, agent="ada")
    fabric.progress(task_id, text="half", agent="ada")
    task = camera.task(task_id)
    assert (task["title"], task["objective"]) == ("Add refresh", "POST /refresh renews a token.")
    assert room.front(task_id)["title"] == task["title"]
    assert task["objective"] in room.body(task_id)
    assert camera.resolve(camera.task(long)["objective"])["body"] == room.body(long)


@requirement("task.record.kind-and-family")
def test_a_task_keeps_the_class_that_it_was_given(room: Room, camera: Camera, fabric: Fabric) -> None:
    given = room.task("done", metadata={"taskKind": "bugfix", "taskFamily": "coding"})
    plain = room.task("done")

    def classes(task_id: str) -> tuple[str, str]:
        task = camera.task(task_id)
        return task["taskKind"], task["taskFamily"]

    for change in (
        lambda one: fabric.edit(one, title="Another", metadata={"more": 1}),
        lambda one: fabric.retry(one, reason="again"),
    ):
        assert (classes(given), classes(plain)) == (("bugfix", "coding"), ("unknown", "unknown"))
        for task_id in (given, plain):
            change(task_id)
    assert (classes(given), classes(plain)) == (("bugfix", "coding"), ("unknown", "unknown"))


@requirement("task.record.status", "task.status.native")
def test_every_state_reads_as_one_of_the_twenty_beside_its_folder(
    room: Room, camera: Camera, fabric: Fabric, clock: FakeClock
) -> None:
    expected = dict(
        zip(
            STATUSES,
            ("accepted", "queued", "preparing", "waiting_permission", "blocked", "completed", "cancelled", "failed"),
            strict=True,
        )
    )
    ids = {status: room.task(status) for status in STATUSES}
    put_away = room.task("done")
    fabric.archive(put_away)
    tasks = camera.tasks()
    for status, task_id in ids.items():
        assert (tasks[task_id]["nativeStatus"], tasks[task_id]["status"]) == (status, expected[status])
        assert room.file(task_id).parent.name == tasks[task_id]["nativeStatus"]
        assert "normalizedStatus" not in room.front(task_id)
    assert (tasks[put_away]["nativeStatus"], tasks[put_away]["status"]) == ("archive", "archived")
    assert room.file(put_away).parent.parent.name == "archive"

    moved = room.file(ids["ready"])
    moved.rename(room.root / "tasks/backlog" / moved.name)
    assert camera.status(ids["ready"]) == "stale"
    fabric.sync()
    assert (camera.status(ids["ready"]), camera.task(ids["ready"])["nativeStatus"]) == ("accepted", "backlog")
    clock.sleep(100_000)
    assert camera.status(ids["in-progress"]) == "lost"
    assert {task["status"] for task in camera.tasks().values()} <= set(NORMALIZED)


@requirement("task.record.attribution")
def test_who_asked_who_answers_and_who_works_are_three_things(room: Room, camera: Camera, staffed: Fabric) -> None:
    task_id = staffed.create("Shared", owner="lea", actor="ada").task_id
    staffed.claim(task_id, agent="bob")

    def people() -> tuple[Any, Any, Any]:
        task = camera.task(task_id)
        return task["requestedBy"], task["owner"], task["assignee"]

    asked, owner, holder = people()
    assert (asked, owner) == ({"id": "ada", "kind": "agent"}, {"id": "lea", "kind": "person"})
    assert holder == {"id": "bob", "kind": "agent"}
    staffed.release(task_id, agent="bob")
    assert people() == (asked, owner, {"state": "not_applicable"})
    others = {owner: staffed.create("Owned", owner=owner).task_id for owner in ("eng", "pia", "pm")}
    tasks = camera.tasks()
    kinds = {owner: tasks[one]["owner"]["kind"] for owner, one in others.items()}
    assert kinds == {"eng": "team", "pia": "peer", "pm": "person"}


@requirement("task.record.scope")
@pytest.mark.usefixtures("staffed")
def test_the_scope_names_the_project_and_the_refs_that_were_given(room: Room, camera: Camera) -> None:
    plain = room.task()
    given = room.task(metadata={"scope": {"workspace": "file:src/api", "environment": "staging"}})
    assert camera.task(plain)["scope"] == {"project": "apollo"}
    scope = {"project": "apollo", "workspace": "file:src/api", "environment": "staging"}
    assert camera.task(given)["scope"] == scope


def test_a_project_without_a_name_goes_by_the_folder_of_its_data_directory(room: Room, aof: Aof) -> None:
    room.task()
    (task,) = aof("snapshot").data["tasks"]
    assert task["scope"] == {"project": room.root.parent.name}


@requirement("task.record.acceptance", "task.progress.validation")
@pytest.mark.parametrize("way", ["progress", "result"])
def test_a_criterion_that_nobody_reported_is_unknown_and_not_met(
    room: Room, camera: Camera, fabric: Fabric, way: str
) -> None:
    task_id = room.task("in-progress", acceptance=["it works", "it is fast", {"id": "docs", "text": "it is told"}])
    assert [one["status"] for one in camera.task(task_id)["acceptance"]] == ["unknown"] * 3
    met, tests = [{"criterion": "it is fast", "met": True}], {"total": 5, "passed": 4, "failed": 1}
    if way == "progress":
        fabric.progress(task_id, facts={"acceptance": met, "tests": tests}, agent="ada")
    else:
        fabric.complete(task_id, outcome="needs_review", acceptance=met, tests=tests, agent="ada")
    task = camera.task(task_id)
    assert [one["status"] for one in task["acceptance"]] == ["unknown", "met", "unknown"]
    assert task["progress"]["validation"] == {"tests": tests, "acceptance": {"met": 1, "total": 3}}
    assert room.front(task_id)["acceptance"][0] == "it works"

    other = room.task("in-progress", acceptance=["it works"])
    fabric.complete(other, acceptance=["it works"], agent="ada")
    assert camera.task(other)["progress"]["validation"]["tests"] == {"state": "unknown"}


@requirement("task.record.current-run")
def test_the_current_run_is_the_one_that_holds_the_lease(
    room: Room, camera: Camera, fabric: Fabric, clock: FakeClock
) -> None:
    task_id = room.task()
    runs = []
    for agent, end in (("ada", "release"), ("bob", "expire"), ("eve", None)):
        runs.append(fabric.claim(task_id, agent=agent, ttl=60).run_id)
        three = (camera.task(task_id)["currentRunId"], room.front(task_id)["lease"]["runId"])
        assert {*three, room.run_file(task_id)["runId"]} == {runs[-1]}
        if end == "release":
            fabric.release(task_id, run=runs[-1])
            assert camera.task(task_id)["currentRunId"] == "not_applicable"
        elif end == "expire":
            clock.sleep(61)
            fabric.recover()
            assert camera.task(task_id)["currentRunId"] == "not_applicable"
            clock.sleep(61)
    assert len(set(runs)) == 3


@requirement("task.record.current-run")
def test_in_a_workflow_the_current_run_is_that_of_the_hop_taken_last() -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock, workflows=[PARALLEL])
    task_id = fabric.create("Gated", workflow="parallel").task_id

    def task() -> dict[str, Any]:
        return dict(valid(fabric.snapshot())["tasks"][0])

    first = fabric.claim(task_id, agent="ada", hop="build", ttl=60)
    second = fabric.claim(task_id, agent="bob", hop="test", ttl=600)
    hops = {hop["id"]: hop["lease"]["runId"] for hop in fabric.get(task_id).workflow["hops"]}
    assert hops == {"build": first.run_id, "test": second.run_id}
    assert task()["currentRunId"] == second.run_id
    fabric.heartbeat(task_id, run=second.run_id, ttl=600)
    clock.sleep(61)
    assert [one["status"] for one in task()["attempts"]] == ["unavailable", "running"], "each by its own lease"
    fabric.complete(task_id, run=second.run_id, outcome="complete")
    assert [(one["hop"], one["status"]) for one in task()["attempts"]][1] == ("test", "completed")
    assert task()["currentRunId"] == first.run_id


@requirement("task.record.error-and-reason")
def test_every_status_that_calls_for_a_reason_has_one(
    room: Room, camera: Camera, fabric: Fabric, clock: FakeClock
) -> None:
    held, asked, review, dropped = room.task("blocked"), room.task(), room.task("review"), room.task()
    fabric.block(asked, reason="which colour?", kind="waiting_input")
    fabric.cancel(dropped, reason="superseded")
    failed, late, gone = room.task("in-progress"), room.task("in-progress"), room.task()
    fabric.fail(failed, code="tests_failed", message="3 of 20", retryable=False, agent="ada")
    fabric.fail(late, code="too_late", message="after 30 min", cause="timed_out", retryable=False, agent="ada")
    for _ in range(3):
        clock.sleep(1000)
        fabric.claim(gone, agent="ada", ttl=60)
        clock.sleep(61)
        assert camera.task(gone)["status"] == "lost"
        assert camera.task(gone)["statusReason"] == "the lease of ada ran out"
        assert camera.task(gone)["lastError"]["code"] in ("lease_expired", "stale_heartbeat")
        fabric.recover()
    tasks = camera.tasks()
    expected = {
        held: ("blocked", "waits for the key"),
        asked: ("waiting_input", "which colour?"),
        review: ("waiting_permission", "it waits for an approval"),
        dropped: ("cancelled", "superseded"),
        failed: ("failed", "tests_failed: 3 of 20"),
        late: ("timed_out", "too_late: after 30 min"),
    }
    assert {one: (tasks[one]["status"], tasks[one]["statusReason"]) for one in expected} == expected
    assert tasks[gone]["status"] == "lost"
    assert tasks[gone]["statusReason"]
    for one, code in ((failed, "tests_failed"), (late, "too_late"), (gone, "stale_heartbeat")):
        error = tasks[one]["lastError"]
        assert error["code"] == code
        assert error["runId"] == tasks[one]["attempts"][-1]["runId"]
        assert error["message"]
        assert error["at"] <= tasks[one]["updatedAt"]
    assert not any("lastError" in tasks[one] for one in (held, asked, review, dropped))


@requirement("task.status.queued")
def test_a_queued_task_says_what_it_waits_for(room: Room, camera: Camera, staffed: Fabric) -> None:
    first = room.task(agent="bob")
    waiting = room.task(depends_on=[first])
    staffed.claim(room.task(agent="ada"), agent="ada")
    behind = room.task(agent="ada")
    tasks = camera.tasks()
    assert {tasks[one]["status"] for one in (first, waiting, behind)} == {"queued"}
    assert tasks[first]["statusReason"] == "it waits for its turn"
    assert first in tasks[waiting]["statusReason"]
    assert "ada cannot take another task now: it holds 1 of the 1" in tasks[behind]["statusReason"]


@requirement("task.status.waiting-input")
def test_a_task_that_waits_for_input_says_what_is_asked_of_whom(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task()
    fabric.block(task_id, reason="lea: which colour?", kind="waiting_input")
    task = camera.task(task_id)
    assert (task["status"], task["statusReason"]) == ("waiting_input", "lea: which colour?")
    fabric.unblock(task_id)
    assert camera.status(task_id) == "queued"


@requirement("task.status.completed")
def test_a_completed_task_has_result_refs_and_acceptance_at_that_same_event(
    room: Room, camera: Camera, fabric: Fabric
) -> None:
    task_id = room.task("in-progress", review=False, acceptance=["it works"])
    before = fabric.store.head()
    room.file(task_id).with_suffix("").joinpath("outputs").mkdir(parents=True)
    room.file(task_id).with_suffix("").joinpath("outputs/a.md").write_text("the work")
    fabric.complete(
        task_id, agent="ada", deliverables=["outputs/a.md"], acceptance=["it works"], tests={"total": 1, "passed": 1}
    )
    done = fabric.store.head()
    assert camera.task(task_id, before)["status"] != "completed"
    assert all(camera.task(task_id, at)["status"] != "completed" for at in range(before, done))
    task = camera.task(task_id, done)
    assert (task["status"], task["nativeStatus"]) == ("completed", "done")
    assert task["acceptance"] == [{"criterion": "it works", "status": "met"}]
    assert [one["kind"] for one in task["attempts"][0]["outputRefs"]] == ["result", "artifact"]
    result, artifact = (camera.resolve(one["ref"]) for one in task["attempts"][0]["outputRefs"])
    assert (result[0].payload["result"]["outcome"], artifact) == ("done", "the work")
    assert all(camera.resolve(ref) for ref in task["evidenceRefs"])


@requirement("task.status.archived")
def test_an_archived_task_is_in_the_snapshot_when_it_is_asked_for(
    room: Room, camera: Camera, fabric: Fabric, aof: Aof
) -> None:
    task_id = room.task("done")
    fabric.archive(task_id)
    lies = room.root / "archive"
    assert (lies / f"tasks/{task_id}.md").is_file()
    assert (lies / f"runs/{task_id}/run_result.json").is_file()
    assert not (room.root / "runs" / task_id).exists()
    assert aof("list").data["tasks"] == []
    assert aof("tick", "--dry-run").data["actions"] == []
    assert aof("snapshot").data["tasks"] == []
    (task,) = aof("snapshot", "--archived").data["tasks"]
    assert (task["taskId"], task["status"]) == (task_id, "archived")
    assert len(task["attempts"]) == 1
    assert aof("show", task_id).data["id"] == task_id
    assert aof("log", task_id).data["events"]


@requirement("task.status.stale")
def test_a_file_that_was_edited_is_stale_until_somebody_takes_it_in(
    room: Room, camera: Camera, fabric: Fabric, aof: Aof
) -> None:
    ids = room.task(title="First"), room.task(title="Second")
    for task_id, title in zip(ids, ("First", "Second"), strict=True):
        path = room.file(task_id)
        path.write_text(path.read_text().replace(f'title: "{title}"', f'title: "{title} and more"'))
    before = len(room.events())
    for view in (aof("snapshot").data, camera.view()):
        assert [(task["status"], task["title"]) for task in view["tasks"]] == [("stale", "First"), ("stale", "Second")]
    assert len(room.events()) == before
    assert aof("show", ids[1]).data["title"] == "Second and more"
    assert [camera.status(one) for one in ids] == ["stale", "queued"]
    fabric.sync()
    tasks = camera.tasks()
    assert [(tasks[one]["status"], tasks[one]["title"]) for one in ids] == [
        ("queued", "First and more"),
        ("queued", "Second and more"),
    ]


@requirement("task.progress.facts")
def test_progress_is_shown_as_it_was_reported_and_text_is_never_read_for_facts(
    room: Room, camera: Camera, fabric: Fabric
) -> None:
    told, said = room.task("in-progress"), room.task("in-progress")
    fabric.progress(told, percent=40, phase="verifying", facts={"step": "tests"}, agent="ada")
    fabric.progress(said, text="100 percent done, phase delivering, all 3 tests passed", agent="ada")
    tasks = camera.tasks()
    first, second = tasks[told]["progress"], tasks[said]["progress"]
    assert (first["percent"], first["phase"], first["step"]) == (40, "verifying", "tests")
    assert first["runId"] == tasks[told]["currentRunId"]
    assert set(second) == {"text", "at", "runId"}
    assert second["runId"] == tasks[said]["currentRunId"]


@requirement("task.progress.counters")
def test_reported_counters_stand_beside_those_of_the_graph(room: Room, camera: Camera, fabric: Fabric) -> None:
    parent = room.task("in-progress")
    reported = {name: {"done": 1, "total": 4} for name in ("items", "jobItems", "toolCalls", "tests", "files")}
    room.task("done", parent_id=parent)
    room.task(parent_id=parent)
    assert camera.task(parent)["progress"] == {
        "state": "unknown",
        "counters": {"childTasks": {"done": 1, "total": 2}},
    }
    fabric.progress(parent, facts={"counters": reported | {"childTasks": {"done": 9, "total": 9}}}, agent="ada")
    counters = camera.task(parent)["progress"]["counters"]
    assert counters == reported | {"childTasks": {"done": 1, "total": 2}}
    children = camera.edges(parent, "child").values()
    assert [edge["status"] for edge in children] == ["satisfied", "active"]
