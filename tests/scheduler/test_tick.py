"""One tick of the scheduler: what is due is done, and the health of agents is told."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import Policy, SchedulingPolicy
from aof.org.model import Agent
from aof.org.routing import Watch, checked_health
from aof.runs.brief import prime
from aof.scheduler.model import Snapshot
from aof.scheduler.steps import Health
from aof.scheduler.tick import Tick
from aof.store.files.index import schema
from aof.store.files.store import FilesystemStore
from aof.store.files.task_files import TaskFiles
from aof.supervision.notifications import is_news, news_of
from aof.testing import FakeClock, memory_fabric
from tests.support.command_line import Aof
from tests.support.handoff_team import HandoffTeam, started
from tests.support.processes import SharedClock, together
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.same_place import adopt

# --- A tick plans without locks and acts by ordinary commands, so that nothing is done twice and nothing by mistake


MINUTE = 60.0


def actions(fabric: Fabric, *, dry_run: bool = False) -> list[tuple[str, str]]:
    """What one tick does."""
    return [(one.action, one.task_id) for one in fabric.tick(dry_run=dry_run).actions]


@requirement("aof1.resume.stale-when-expired")
def test_a_run_is_stale_at_the_later_of_lease_and_heartbeat_and_not_before(
    room: Room, fabric: Fabric, clock: FakeClock
) -> None:
    by_lease, by_beat = room.task("in-progress"), room.task("in-progress")
    clock.sleep(MINUTE)
    fabric.heartbeat(by_lease, agent="ada", ttl=1)
    fabric.heartbeat(by_beat, agent="ada")
    for status in ("ready", "review"):
        other = room.task(status)
        shutil.copytree(room.root / "runs" / by_lease, room.root / "runs" / other, dirs_exist_ok=True)
    clock.sleep(4 * MINUTE - 0.001)
    assert room.idle(actions, fabric) == []
    clock.sleep(0.001)
    assert actions(fabric) == [("stale_heartbeat", by_lease)]
    clock.sleep(MINUTE - 0.001)
    assert room.idle(actions, fabric) == []
    clock.sleep(0.001)
    assert actions(fabric) == [("stale_heartbeat", by_beat)]
    assert room.idle(actions, fabric) == [], "what waits in ready and review is nobody's lost run"


@requirement("aof1.resume.action-planned")
def test_recovery_is_shown_with_a_reason_before_it_is_done(room: Room, aof: Aof) -> None:
    task_id = room.task("in-progress")
    before = room.contents()
    shown = aof("tick", "--dry-run").data
    assert shown["dryRun"] is True
    (action,) = shown["actions"]
    assert (action["action"], action["taskId"]) == ("stale_heartbeat", task_id)
    assert action["reason"].startswith("no sign of life from ada since 2026-03-02T09:00:00")
    assert room.contents() == before
    done = aof("tick").data
    assert (done["dryRun"], done["actions"]) == (False, [action])
    assert room.fabric.get(task_id).status == "ready"
    assert aof("tick", "--dry-run").data["actions"] == []


@requirement("aof1.resume.reclaim", "aof1.example.9-resume-without-result", "task.events.lost")
def test_a_run_that_vanished_without_a_result_is_reclaimed(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task("in-progress")
    clock.sleep(5 * MINUTE)
    assert actions(fabric) == [("stale_heartbeat", task_id)]
    assert actions(fabric) == []
    task = fabric.get(task_id)
    assert (task.status, task.lease, room.file(task_id).parent.name) == ("ready", None, "ready")
    moves = [event for event in room.events(task_id, "task.transitioned") if event.payload["to"] == "ready"]
    assert [event.payload["reason"] for event in moves] == ["stale_heartbeat_reclaim"]
    (lost,) = room.events(task_id, "task.lost")
    assert lost.seq < moves[0].seq
    run = room.run_file(task_id)
    assert (run["status"], run["error"]["code"]) == ("expired", "stale_heartbeat")
    assert not (room.root / "runs" / task_id / "run_result.json").exists()


@requirement("aof1.resume.reclaim-retry-policy")
def test_a_reclaimed_task_waits_longer_each_time_and_is_given_up_in_the_end(
    room: Room, fabric: Fabric, clock: FakeClock
) -> None:
    task_id = room.task()
    for wait in (60, 180):
        fabric.claim(agent="ada")
        clock.sleep(5 * MINUTE)
        assert actions(fabric) == [("stale_heartbeat", task_id)]
        clock.sleep(wait - 0.001)
        assert fabric.ready().total == 0
        clock.sleep(0.001)
        assert fabric.ready().total == 1
    fabric.claim(agent="ada")
    clock.sleep(5 * MINUTE)
    actions(fabric)
    dead = fabric.get(task_id)
    assert (dead.status, room.file(task_id).parent.name) == ("deadletter", "deadletter")
    assert dead.last_error is not None
    assert dead.last_error.cause == "lost"


@requirement("aof1.resume.heartbeat-missing")
def test_a_task_put_into_progress_by_hand_is_no_lost_run(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task()
    room.file(task_id).rename(room.root / "tasks/in-progress" / f"{task_id}.md")
    new = room.root / "tasks/in-progress/TASK-2026-03-02-900.md"
    new.write_text("---\ntitle: By hand\n---\nNo run.\n")
    clock.sleep(60 * MINUTE)
    assert actions(fabric) == []
    assert not room.events(kind="protocol.message.rejected")


@requirement("aof1.resume.artifacts-missing")
def test_missing_run_files_are_no_failure(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    without_run, without_all = room.task("in-progress"), room.task("in-progress")
    (room.root / "runs" / without_run / "run.json").unlink()
    shutil.rmtree(room.root / "runs" / without_all)
    assert actions(fabric) == []
    assert fabric.show(without_run)["status"] == fabric.show(without_all)["status"] == "in-progress"
    clock.sleep(5 * MINUTE)
    assert {task for _, task in actions(fabric)} == {without_run, without_all}
    assert fabric.get(without_run).status == "ready"


@requirement("aof1.resume.deterministic")
def test_two_copies_of_a_directory_recover_in_the_same_way(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    for number in range(6):
        room.task("in-progress", title=f"Number {number}", priority=("low", "high")[number % 2])
    clock.sleep(5 * MINUTE)
    fabric.close()
    told = []
    for name in ("one", "two"):
        shutil.copytree(room.root, room.root.parent / name / ".aof")
        adopt(room.root.parent / name / ".aof")
        copy = Room(room.root.parent / name / ".aof", clock)
        ticked = copy.fabric.tick()
        events = [(e.type, e.task_id, e.payload.get("reason")) for e in copy.events()]
        files = {path.name: path.read_text() for path in copy.root.glob("tasks/*/*.md")}
        told.append((ticked, events, files))
        copy.fabric.close()
    assert told[0] == told[1]
    assert len(told[0][0].actions) == 6


def reported(room: Room, outcome: str, *blockers: str, task_id: str | None = None, **given: Any) -> str:
    """A running task whose run has reported and then fallen silent."""
    task_id = task_id or room.task(**given)
    run = room.fabric.claim(task_id, agent="ada").run_id
    message = {
        "protocol": "aof",
        "version": 1,
        "type": "completion.report",
        "taskId": task_id,
        "fromAgent": "ada",
        "toAgent": "dispatcher",
        "sentAt": "2026-03-02T09:00:00.000Z",
        "payload": {"outcome": outcome, "summaryRef": "outputs/s.md", "deliverables": [], "blockers": list(blockers)},
    }
    assert room.fabric.send(message, run=run)[0].outcome == "accepted"
    assert room.fabric.get(task_id).status == "in-progress"
    return task_id


def reasons(room: Room, task_id: str) -> list[tuple[str, str]]:
    """Where a task went after its claim, and why."""
    moves = [event.payload for event in room.events(task_id, "task.transitioned")]
    return [(payload["to"], payload["reason"]) for payload in moves if payload["reason"] != "claimed"]


@requirement("aof1.resume.result-done", "aof1.resume.result-blocked", "aof1.example.8-resume-with-result")
def test_a_lost_run_is_recovered_by_what_it_has_reported(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    done, released = reported(room, "done"), reported(room, "done", review=False)
    partial, blocked = reported(room, "partial"), reported(room, "blocked", "no key")
    (work := room.root / "tasks/in-progress" / partial / "work").mkdir(parents=True)
    (work / "half.txt").write_text("half")
    clock.sleep(5 * MINUTE)
    assert {kind for kind, _ in actions(fabric)} == {"stale_heartbeat"}
    assert reasons(room, done) == [("review", "stale_heartbeat_done")]
    assert reasons(room, released) == [("review", "stale_heartbeat_done"), ("done", "stale_heartbeat_done")]
    assert reasons(room, partial) == [("review", "stale_heartbeat_partial")]
    assert (room.root / "tasks/review" / partial / "work/half.txt").read_text() == "half"
    assert reasons(room, blocked) == [("blocked", "stale_heartbeat_blocked")]
    held = fabric.get(blocked).blocked
    assert held is not None
    assert held.reason == "no key"
    assert room.run_file(blocked, "run_result")["blockers"] == ["no key"]
    assert room.file(blocked).parent.name == "blocked"


@requirement("aof1.resume.result-review-outcomes")
@pytest.mark.parametrize("outcome", ["partial", "needs_review"])
def test_unfinished_work_goes_to_review_with_its_files(
    room: Room, fabric: Fabric, clock: FakeClock, outcome: str
) -> None:
    task_id = reported(room, outcome)
    (outputs := room.root / "tasks/in-progress" / task_id / "outputs").mkdir(parents=True)
    (outputs / "draft.md").write_text("so far")
    clock.sleep(5 * MINUTE)
    actions(fabric)
    assert reasons(room, task_id) == [("review", f"stale_heartbeat_{outcome}")]
    assert (room.root / "tasks/review" / task_id / "outputs/draft.md").read_text() == "so far"


@requirement("aof1.resume.invalid-run-result")
@pytest.mark.parametrize("text", ["{", '{"outcome": "maybe"}'])
def test_a_result_that_cannot_be_read_moves_nothing(room: Room, fabric: Fabric, clock: FakeClock, text: str) -> None:
    odd, other = reported(room, "done"), reported(room, "done")
    (room.root / "runs" / odd / "run_result.json").write_text(text)
    clock.sleep(5 * MINUTE)
    ticked = fabric.tick()
    assert [(one.action, one.task_id) for one in ticked.actions] == [("stale_heartbeat", other)]
    assert [one.task_id for one in ticked.left if "cannot be read" in one.reason] == [odd]
    assert fabric.get(odd).status == "in-progress"
    assert reasons(room, odd) == []
    assert [event.task_id for event in room.events(kind="protocol.message.rejected")] == [odd]
    assert fabric.get(other).status == "review"


@requirement("aof1.resume.result-belongs-to-run")
def test_a_result_counts_for_its_own_run_only(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = reported(room, "partial")
    clock.sleep(5 * MINUTE)
    actions(fabric)
    fabric.reject(task_id, blockers=["finish it"])
    fabric.claim(task_id, agent="bert")
    clock.sleep(5 * MINUTE)
    actions(fabric)
    assert reasons(room, task_id)[-1] == ("ready", "stale_heartbeat_reclaim")
    kept = room.root / "runs" / task_id / "attempts/1/run_result.json"
    assert '"partial"' in kept.read_text()


@requirement("aof1.resume.already-transitioned")
def test_what_was_recovered_or_ended_already_is_left_alone(tmp_path: Path) -> None:
    clock = FakeClock("2026-03-02T09:00:00Z")
    room = Room(tmp_path / "mine", clock)
    ended = reported(room, "done")
    room.fabric.session_end()
    clock.sleep(10 * MINUTE)
    assert room.idle(actions, room.fabric) == []
    assert len(reasons(room, ended)) == 1
    room.fabric.close()
    shared = SharedClock()
    FilesystemStore.create(str(tmp_path / "ours"))

    def opened() -> Fabric:
        return Fabric(FilesystemStore(str(tmp_path / "ours"), shared, durable=False), shared, Policy(), "pm")

    with opened() as fabric:
        ids = [fabric.claim(fabric.create(f"Number {n}").task_id, agent="ada", ttl=60).task_id for n in range(10)]
    shared.put_forward(61)
    together(2, lambda _number: _ticked(opened()))
    with opened() as fabric:
        for task_id in ids:
            moves = [event for event in fabric.events(task_id=task_id) if event.type == "task.transitioned"]
            assert [event.payload["to"] for event in moves] == ["in-progress", "ready"]


def _ticked(fabric: Fabric) -> int:
    with fabric:
        return len(fabric.tick().actions)


@requirement("task.anti-pattern.todo-is-no-authority")
def test_a_ticked_list_is_no_report(room: Room, fabric: Fabric, aof: Aof) -> None:
    task_id = room.task("in-progress")
    run = room.run_file(task_id)["runId"]
    fabric.progress(
        task_id, run=run, percent=100, text="everything is ticked", facts={"items": {"done": 5, "total": 5}}
    )
    applied = aof("session-end", "--run", run).data["applied"]
    assert [(one["taskId"], one["outcome"], one["to"]) for one in applied] == [
        (task_id, "no_completion_report", "ready")
    ]
    (failed,) = room.events(task_id, "task.attempt.failed")
    assert failed.payload["error"]["code"] == "no_completion_report"


def test_two_schedulers_at_once_recover_each_run_once(tmp_path: Path) -> None:
    clock = SharedClock()
    FilesystemStore.create(str(tmp_path))

    def opened() -> Fabric:
        return Fabric(FilesystemStore(str(tmp_path), clock, durable=False), clock, Policy(), "pm")

    with opened() as fabric:
        for number in range(20):
            fabric.claim(fabric.create(f"Number {number}").task_id, agent="ada", ttl=60)
        clock.put_forward(61)

    def tick(_number: int) -> list[tuple[str, str]]:
        with opened() as mine:
            return actions(mine)

    done = [action for some in together(3, tick) for action in some]
    assert len(done) == len(set(done)) == 20
    with opened() as fabric:
        lost = [event for event in fabric.events() if event.type == "task.lost"]
        assert len(lost) == 20


@requirement("task.status.draft")
def test_a_draft_is_left_alone_until_it_is_none(room: Room, fabric: Fabric) -> None:
    draft = room.task("backlog", metadata={"draft": True})
    ticked = fabric.tick()
    assert ticked.actions == ()
    assert [(one.task_id, one.reason) for one in ticked.left] == [(draft, "it is a draft")]
    assert room.normalized(draft) == "draft"
    fabric.edit(draft, metadata={"draft": None})
    assert actions(fabric) == [], "a person makes it ready"
    fabric.update(draft, status="ready")
    assert fabric.get(draft).status == "ready"


def test_a_task_in_the_backlog_stays_there_unless_the_settings_promote_everything(clock: FakeClock) -> None:
    for promote in (False, True):
        policy = Policy(scheduling=SchedulingPolicy(promote=promote))
        fabric = memory_fabric(clock=clock, policy=policy)
        kept = fabric.create("Someday", backlog=True).task_id
        dragged = fabric.create("Not now").task_id
        fabric.update(dragged, status="backlog")
        fabric.tick()
        statuses = {fabric.get(kept).status, fabric.get(dragged).status}
        assert statuses == ({"ready"} if promote else {"backlog"})


def test_backlog_is_promoted_when_what_it_waits_for_is_done(room: Room, fabric: Fabric) -> None:
    first = room.task("in-progress", review=False)
    second = fabric.create("Second", depends_on=[first], backlog=True).task_id
    ticked = fabric.tick()
    assert ticked.actions == ()
    assert (second, f"waits for {first}") in [(one.task_id, one.reason) for one in ticked.left]
    fabric.complete(first, agent="ada")
    assert actions(fabric) == [("promote", second)]
    (moved,) = room.events(second, "task.transitioned")
    assert (moved.payload["reason"], moved.actor) == ("its dependencies are done", "aof")


def test_a_promotion_that_has_become_wrong_is_not_carried_out(room: Room, fabric: Fabric) -> None:
    blocker = fabric.create("First", review=False).task_id
    task_id = fabric.create("Second", depends_on=[blocker], backlog=True).task_id
    fabric.complete(blocker, agent="ada")
    tick = Tick(fabric.services.environment, fabric.services.dispatcher)
    snapshot = tick.snapshot(explain=True)
    fabric.edit(task_id, metadata={"draft": True})
    (action,) = tick.planned(snapshot).actions
    assert tick._carried_out(action, snapshot.backlog[0]) == "it has changed in the meantime"
    assert fabric.get(task_id).status == "backlog"


def test_an_alert_is_recorded_once_for_each_stay_in_a_status(clock: FakeClock) -> None:
    policy = Policy(scheduling=SchedulingPolicy(patience_ms={"review": 60_000}))
    fabric = memory_fabric(clock=clock, policy=policy)
    task_id = fabric.create("Work").task_id
    fabric.complete(task_id, agent="ada")
    assert actions(fabric) == []
    clock.sleep(MINUTE)
    assert actions(fabric) == [("sla_alert", task_id)]
    assert actions(fabric) == []
    fabric.reject(task_id, blockers=["again"])
    fabric.complete(task_id, agent="bert")
    clock.sleep(MINUTE)
    assert actions(fabric) == [("sla_alert", task_id)]
    alerts = [event for event in fabric.events() if event.type == "task.sla_alert"]
    assert [event.payload["status"] for event in alerts] == ["review", "review"]


@pytest.mark.parametrize("jump", [-7200, 7200])
def test_a_turned_clock_neither_ends_living_runs_nor_keeps_dead_ones(
    room: Room, fabric: Fabric, clock: FakeClock, jump: int
) -> None:
    alive, dead = room.task("in-progress"), room.task("in-progress")
    turned = {-7200: "2026-03-02T07:00:00Z", 7200: "2026-03-02T11:00:00Z"}[jump]
    clock.set(turned)
    assert actions(fabric) == []
    assert room.normalized(alive) in ("preparing", "running")
    clock.sleep(4 * MINUTE)
    fabric.heartbeat(alive, agent="ada")
    assert actions(fabric) == []
    clock.sleep(MINUTE)
    assert actions(fabric) == [("stale_heartbeat", dead)]
    clock.sleep(4 * MINUTE - 0.001)
    assert actions(fabric) == []
    clock.sleep(0.001)
    assert [task for _, task in actions(fabric)] == [alive]


def test_a_tick_reads_no_finished_task(room: Room, fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    for status in ("done", "cancelled", "deadletter"):
        room.task(status)
    waiting = room.task("ready")
    fabric.tick()
    read: list[str] = []
    decode = schema.record

    def noted(text: str) -> object:
        task = decode(text)
        read.append(task.id)
        return task

    monkeypatch.setattr(schema, "record", noted)
    monkeypatch.setattr(TaskFiles, "read_run", lambda *_given, **_named: pytest.fail("no run is read"))
    monkeypatch.setattr(FilesystemStore, "load", lambda *_given, **_named: pytest.fail("no file is read"))
    ticked = fabric.tick()
    assert [one.task_id for one in ticked.left] == [waiting]
    assert read == [waiting]


def test_the_command_shows_what_is_done_and_what_is_left_and_why(room: Room, aof: Aof) -> None:
    ready = room.task("ready", agent="ada")
    blocked = room.task("blocked")
    data = aof("tick", "--dry-run").data
    assert {one["taskId"]: one["reason"] for one in data["left"]} == {
        ready: "waits for ada to claim it",
        blocked: "waits for the key",
    }


# --- overdue tasks: the scheduler says so once for each due date, and people are told


DAY = 86_400


def alerts(fabric: Fabric) -> list[tuple[str, str]]:
    """The task and due date of each alert in the log."""
    return [(event.task_id[-3:], event.payload["due"]) for event in fabric.events() if event.type == "task.overdue"]


def test_each_unfinished_task_is_told_of_once_for_each_due_date(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    for status in ("ready", "backlog", "blocked", "review", "done"):
        room.task(status, due="2026-03-02")
    fabric.tick()
    assert alerts(fabric) == []
    clock.sleep(DAY)
    foreseen = [(one.action, one.task_id[-3:]) for one in fabric.tick(dry_run=True).actions if "overdue" in one.action]
    assert len(foreseen) == 4
    for _ in range(3):
        fabric.tick()
    assert sorted(number for number, _ in alerts(fabric)) == ["001", "002", "003", "004"]
    fabric.edit("001", due="2026-03-04")
    fabric.tick()
    assert len(alerts(fabric)) == 4
    clock.sleep(2 * DAY)
    fabric.tick()
    fabric.tick()
    assert alerts(fabric)[4:] == [("001", "2026-03-04")]


def test_the_alert_is_news_that_names_the_due_date(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task(due="2026-03-01", agent="ada")
    fabric.tick()
    (event,) = [event for event in fabric.events() if event.type == "task.overdue"]
    assert is_news(event)
    news = news_of(event, fabric.get(task_id))
    assert (news.kind, news.reason, news.agent) == ("sla", "it was due 2026-03-01", "ada")


def test_an_agent_is_told_what_is_due_and_what_is_overdue(room: Room, fabric: Fabric) -> None:
    room.task(due="2026-03-01", agent="ada", title="Late")
    room.task(due="2026-03-09", agent="ada", title="In time")
    text = prime(fabric, "ada")
    assert "overdue since 2026-03-01) Late" in text
    assert "due 2026-03-09) In time" in text


# --- agents are checked every minute; three failures in a row make one unavailable, and one success available again


PEER = {"id": "peer", "runner": {"kind": "a2a", "url": "http://127.0.0.1:1/"}}


class Card:
    """A peer's card: how long it takes to come, or None; and when it was asked for."""

    def __init__(self, team: HandoffTeam) -> None:
        self.takes: int | None = 0
        self.asked: list[int] = []
        self._team = team

    def __call__(self, agent: Agent) -> int | None:
        """The milliseconds until it came."""
        self.asked.append(self._team.clock.now())
        return self.takes


def watching(team: HandoffTeam) -> Card:
    """The card of the peers of a team, which the team's scheduler looks at."""
    card = Card(team)
    team.scheduler._handoffs.health._probes = {"a2a": card}
    return card


@pytest.fixture
def team() -> HandoffTeam:
    """A peer that has accepted a handoff."""
    made = HandoffTeam(PEER, {"id": "bob"}, started("zoe"))
    handoff = made.hand("peer", timeout="1d")
    made.fabric.handoff_accept(handoff.id, agent="peer")
    return made


@requirement("handoff.unavailable.health-interval")
def test_a_peer_is_checked_once_a_minute(team: HandoffTeam) -> None:
    card = watching(team)
    team.tick()
    for _ in range(600):
        team.clock.sleep(1)
        team.tick()
    assert len(card.asked) == 10
    assert {later - one for one, later in zip(card.asked, card.asked[1:], strict=False)} == {60_000}


@requirement("handoff.unavailable.health-interval")
def test_an_answer_after_ten_seconds_is_none() -> None:
    first = Watch(checked_at=0)
    assert checked_health(first, 9_000, 60_000) == Watch(checked_at=60_000, failures=0)
    assert checked_health(first, 10_000, 60_000).failures == 0
    assert checked_health(first, 11_000, 60_000).failures == 1
    assert checked_health(first, None, 60_000).failures == 1


@requirement("handoff.unavailable.health-interval")
def test_a_process_whose_host_died_fails_and_a_pulling_agent_that_just_called_passes() -> None:
    team = HandoffTeam({"id": "bob"}, started("zoe"))
    health = Health(team.fabric.services.environment)
    for agent in ("bob", "zoe"):
        team.fabric.claim(team.task(agent=agent), agent=agent)
    running = tuple(team.fabric.get(one.id) for one in team.fabric.list(status="in-progress").tasks)
    beats = team.fabric.store.heartbeats([task.id for task in running])
    (lost,) = [task.lease.run_id for task in running if task.lease is not None and task.lease.agent == "zoe"]
    alive = Snapshot(running=running, heartbeats=beats)
    health.watched(running, ())
    chart = team.chart.by_id
    assert health._answered(chart["zoe"], alive) == 0
    assert health._answered(chart["zoe"], msgspec.structs.replace(alive, orphaned=frozenset({lost}))) is None
    assert health._answered(chart["bob"], alive) == 0
    team.clock.sleep(61)
    assert health._answered(chart["bob"], alive) is None


@requirement("handoff.unavailable.health-threshold")
def test_three_failures_in_a_row_make_an_agent_unavailable_and_a_success_available(team: HandoffTeam) -> None:
    card = watching(team)
    team.tick()
    for answer in (None, None, 0, None, None):
        card.takes = answer
        team.clock.sleep(MINUTE)
        assert "health_check" in team.actions()
        assert team.available("peer")
    team.clock.sleep(MINUTE)
    team.tick()
    assert not team.available("peer")
    (shown,) = [one for one in team.fabric.org_show()["agents"] if one["id"] == "peer"]
    assert shown["unavailableReason"] == "3 checks in a row have failed"
    assert shown["active"]
    card.takes = 9_000
    team.clock.sleep(MINUTE)
    team.tick()
    assert team.available("peer")
    told = [event.type for event in team.fabric.events() if event.type.startswith("agent.")]
    assert told == ["agent.unavailable", "agent.available"]


def test_an_agent_that_holds_nothing_is_not_checked() -> None:
    team = HandoffTeam({"id": "bob"}, started("zoe"))
    team.tick()
    team.clock.sleep(10 * MINUTE)
    assert team.actions() == []


def test_an_agent_that_was_lost_is_checked_until_it_can_be_started_again() -> None:
    team = HandoffTeam(started("zoe"), started("dan"))
    team.hand("zoe")
    team.clock.sleep(30)
    team.actions()
    assert not team.available("zoe")
    team.tick()
    team.clock.sleep(MINUTE)
    team.actions()
    assert team.available("zoe")
