"""Leases: who holds a task, until when, and who gets it next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.errors import Call, InvalidInput
from aof.kernel import commands
from aof.kernel.model import Policy, iso, millis
from aof.org.model import Agent, OrgChart
from aof.runs.model import Boot, Heartbeat, lease_end, present_heartbeat, running_for, stamped_heartbeat
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.tasks.model import Lease
from tests.support.clock import ManualClock
from tests.support.workflows import hop, template
from tests.support.world import MINUTE, MONDAY, World

# --- claim, lease and fencing: one winner, a rising epoch, and nobody else writes


WRITES: list[tuple[type[commands.OnTask], dict[str, Any]]] = [
    (commands.RecordHeartbeat, {}),
    (commands.ReportProgress, {"text": "x"}),
    (commands.Update, {"body": "x"}),
    (commands.Complete, {}),
    (commands.Fail, {}),
    (commands.Release, {}),
]


def test_a_claim_is_one_commit_of_status_lease_and_run() -> None:
    world = World()
    task = world.create()
    decision = world.act(commands.Claim, task, "ada")
    assert [draft.type for draft in decision.drafts] == ["task.transitioned", "task.attempt.started"]
    lease = world.tasks[task].lease
    assert lease is not None
    run = world.runs[task][lease.run_id]
    assert (lease.agent, lease.epoch, lease.expires_at) == ("ada", 1, "2026-03-02T09:05:00.000Z")
    assert (run.agent_id, run.status, run.attempt, run.epoch, run.cause) == ("ada", "running", 1, 1, "first")
    beat = world.heartbeats[task]
    assert (beat.run_id, beat.beat_count, beat.expires_at) == (lease.run_id, 0, lease.expires_at)


def test_the_losers_of_a_claim_learn_who_won() -> None:
    world = World()
    task = world.create()
    run = world.claim(task, "ada")
    for loser in ("bob", "ada"):
        refusal = world.refuse(commands.Claim, task, loser)
        assert (refusal.code, refusal.kind) == ("already_claimed", "conflict")
        assert (refusal.details["holder"], refusal.details["run_id"]) == ("ada", run)
        assert "ada" in refusal.message


def test_who_may_end_a_run_is_told_how_and_anybody_that_an_ended_lease_is_recovered_first() -> None:
    world = World(Policy(maintainers=("pm",)))
    task = world.create()
    release = Call("release", {"task_id": task, "run": world.claim(task, "ada")})
    for loser, way in (("bob", None), ("ada", release), ("pm", release)):
        otherwise = world.refuse(commands.Claim, task, loser).otherwise
        assert (otherwise and otherwise[1]) == way
    world.later(5 * MINUTE - 1)
    assert "ended_at" not in world.refuse(commands.Claim, task, "bob").details
    world.later(1)
    refusal = world.refuse(commands.Claim, task, "ada")
    assert refusal.details["ended_at"] == iso(world.now)
    assert refusal.otherwise is not None
    assert refusal.otherwise[1] == Call("recover", {})


def test_every_new_lease_raises_the_epoch_whatever_ended_the_last_one() -> None:
    world = World()
    task = world.create(max_attempts=10)
    epochs = []
    for end in (commands.Release, commands.Fail, commands.Block, commands.Expire, commands.Complete):
        run = world.claim(task)
        lease = world.tasks[task].lease
        assert lease is not None
        epochs.append(lease.epoch)
        if end is commands.Block:
            world.act(commands.Block, task, reason="x")
            world.act(commands.Unblock, task)
        elif end is commands.Expire:
            world.expire(task)
        else:
            world.act(end, task, "ada", run=run)
        world.later(20 * MINUTE)
    assert epochs == [1, 2, 3, 4, 5]
    assert len(world.runs[task]) == 5


@pytest.mark.parametrize(("kind", "given"), WRITES)
def test_only_the_holder_writes_to_a_running_task(kind: type[commands.OnTask], given: dict[str, Any]) -> None:
    world = World()
    task = world.create()
    world.claim(task, "ada")
    refusal = world.refuse(kind, task, "bob", **given)
    assert (refusal.code, refusal.details["holder"]) == ("not_lease_holder", "ada")
    world.act(kind, task, "ada", **given)


@pytest.mark.parametrize(("kind", "given"), WRITES)
def test_a_run_speaks_for_its_agent_whoever_calls(kind: type[commands.OnTask], given: dict[str, Any]) -> None:
    world = World()
    task = world.create()
    run = world.claim(task, "ada")
    assert world.act(kind, task, "runner", run=run, **given).agent == "ada"


@pytest.mark.parametrize(("kind", "given"), WRITES)
@pytest.mark.parametrize("successor", ["ada", "bob"])
def test_a_replaced_run_changes_nothing(kind: type[commands.OnTask], given: dict[str, Any], successor: str) -> None:
    world = World()
    task = world.create()
    old = world.claim(task, "ada")
    world.act(commands.Release, task, "ada")
    world.claim(task, successor)
    before = world.tasks[task]
    refusal = world.refuse(kind, task, "ada", run=old, **given)
    assert (refusal.code, refusal.kind) == ("stale_lease", "conflict")
    if kind is not commands.Complete:  # which says that the report is kept
        assert refusal.message.endswith(f"it is now held by {successor} under epoch 2")
    after = world.tasks[task]
    late = after.late_results if kind is commands.Complete else ()
    assert after == msgspec.structs.replace(before, rev=after.rev, updated_at=after.updated_at, late_results=late)


@pytest.mark.parametrize(("kind", "given"), WRITES)
@pytest.mark.parametrize("waited", [0, 60 * MINUTE])
def test_an_expired_run_changes_nothing_also_before_anybody_else_has_claimed(
    kind: type[commands.OnTask], given: dict[str, Any], waited: int
) -> None:
    world = World()
    task = world.create()
    old = world.claim(task, "ada")
    world.expire(task)
    world.later(waited)
    assert world.refuse(kind, task, "ada", run=old, **given).code == "stale_lease"


@pytest.mark.parametrize(("kind", "given"), WRITES)
def test_a_holder_that_had_an_earlier_run_must_name_the_one_it_means(
    kind: type[commands.OnTask], given: dict[str, Any]
) -> None:
    world = World()
    task = world.create()
    world.claim(task, "ada")
    world.act(commands.Release, task, "ada")
    run = world.claim(task, "ada")
    refusal = world.refuse(kind, task, "ada", **given)
    assert (refusal.code, refusal.kind) == ("run_required", "conflict")
    world.act(kind, task, "ada", run=run, **given)


def test_the_hint_to_name_the_run_repeats_what_was_said() -> None:
    world = World()
    task = world.create()
    world.claim(task, "ada")
    world.act(commands.Release, task, "ada")
    run = world.claim(task, "ada")
    refusal = world.refuse(commands.Update, task, "ada", note="tried the cache first", reason="x" * 300)
    assert refusal.call == Call("update", {"task_id": task, "note": "tried the cache first", "reason": "…", "run": run})


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (commands.RecordHeartbeat, {}),
        (commands.ReportProgress, {"text": "x"}),
        (commands.Fail, {}),
        (commands.Release, {}),
    ],
)
def test_nobody_writes_as_a_worker_to_a_task_that_nobody_runs(
    kind: type[commands.OnTask], given: dict[str, Any]
) -> None:
    world = World()
    refusal = world.refuse(kind, world.create(), "ada", **given)
    assert refusal.code == "stale_lease"
    assert refusal.call is not None
    assert refusal.call.operation == "claim"


def test_a_heartbeat_is_no_event_and_moves_the_end_of_the_lease() -> None:
    world = World()
    task = world.create()
    world.claim(task)
    events = len(world.events)
    for number in range(1, 4):
        world.later(4 * MINUTE)
        world.act(commands.RecordHeartbeat, task, "ada")
        assert world.heartbeats[task].beat_count == number
        assert world.act(commands.Expire, task).drafts == ()
    assert len(world.events) == events


def test_an_expired_lease_that_nobody_reclaimed_may_be_renewed() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.later(60 * MINUTE)
    world.act(commands.RecordHeartbeat, task, "ada", run=run)
    assert world.act(commands.Expire, task).drafts == ()


def test_the_length_of_a_lease_comes_from_the_call_then_the_task_then_the_policy() -> None:
    world = World(Policy(lease_ttl_ms=7_000))
    plain, own = world.create(), world.create(metadata={"leaseTtlMs": 5_000})
    asked = world.create(metadata={"leaseTtlMs": 5_000})
    world.claim(plain)
    world.claim(own)
    world.claim(asked, ttl_ms=3_000)
    leases = [world.tasks[task].lease for task in (plain, own, asked)]
    assert [lease.ttl_ms for lease in leases if lease] == [7_000, 5_000, 3_000]
    world.act(commands.RecordHeartbeat, own, "ada")
    assert world.heartbeats[own].expires_at == "2026-03-02T09:00:05.000Z"


@pytest.mark.parametrize("ttl", [0, -1, 7 * 24 * 3_600_000 + 1])
def test_an_impossible_lease_is_refused(ttl: int) -> None:
    world = World()
    task = world.create()
    assert world.refuse(commands.Claim, task, "ada", ttl_ms=ttl).code == "invalid"
    world.claim(task)
    assert world.refuse(commands.RecordHeartbeat, task, "ada", ttl_ms=ttl).code == "invalid"


@pytest.mark.parametrize("given", [{"actor": "a b"}, {"worker": "a b"}])
def test_a_claim_under_a_name_that_is_none_is_refused(given: dict[str, Any]) -> None:
    world = World()
    command = commands.Claim(**({"actor": "ada", "task_id": world.create()} | given))
    assert world.refused(command).code == "invalid"


def test_a_release_is_no_failure_and_the_task_can_be_claimed_at_once() -> None:
    world = World()
    task = world.create()
    run = world.claim(task)
    world.act(commands.Release, task, "ada", reason="not mine")
    assert (world.runs[task][run].status, world.tasks[task].retry.failures) == ("released", 0)
    assert world.why_not(task) is None
    assert world.log(task, "task.transitioned")[-1].payload["reason"] == "not mine"


DAY = 24 * 60 * MINUTE


@pytest.mark.parametrize("operation", [commands.Claim, commands.RecordHeartbeat])
def test_a_lease_lasts_a_day_at_most(operation: type[commands.OnTask]) -> None:
    world = World()
    task = world.create()
    if operation is commands.RecordHeartbeat:
        world.claim(task, "ada")
    refusal = world.refuse(operation, task, "ada", ttl_ms=DAY + 1)
    assert refusal.code == "invalid"
    assert "maxLeaseTime" in refusal.hint
    world.act(operation, task, "ada", ttl_ms=DAY)


@pytest.mark.parametrize("operation", [commands.Claim, commands.RecordHeartbeat])
def test_the_chart_lets_an_agent_have_a_longer_lease(operation: type[commands.OnTask]) -> None:
    chart = OrgChart(agents=(Agent(id="ada", max_lease_time="3d"), Agent(id="bob")))
    world = World(policy=Policy(org=chart))
    task = world.create()
    if operation is commands.RecordHeartbeat:
        world.claim(task, "ada")
    assert world.refuse(operation, task, "ada", ttl_ms=3 * DAY + 1).code == "invalid"
    world.act(operation, task, "ada", ttl_ms=3 * DAY)
    if operation is commands.Claim:
        assert world.refuse(commands.Claim, world.create(), "bob", ttl_ms=2 * DAY).code == "invalid"


def test_what_a_task_asks_for_is_cut_to_what_its_agent_may_have() -> None:
    world = World()
    task = world.create(metadata={"leaseTtlMs": 6 * DAY})
    world.claim(task, "ada")
    lease = world.tasks[task].lease
    assert lease is not None
    assert lease.ttl_ms == DAY


@pytest.mark.parametrize("odd", [-1, 0, "long", None])
def test_a_length_that_a_person_wrote_and_that_is_none_counts_as_none(odd: object) -> None:
    world = World(Policy(lease_ttl_ms=7_000))
    task = world.create()
    world.tasks[task] = msgspec.structs.replace(world.tasks[task], metadata={"leaseTtlMs": odd})
    world.claim(task)
    lease = world.tasks[task].lease
    assert lease is not None
    assert lease.ttl_ms == 7_000


def test_the_settings_may_give_everybody_a_longer_lease() -> None:
    world = World(policy=Policy(lease_ttl_ms=2 * DAY))
    task = world.create()
    assert world.act(commands.Claim, task, "ada", ttl_ms=2 * DAY).refusal is None


# --- A turned wall clock neither ends a lease nor keeps a dead one alive


HOURS = 120 * MINUTE
TTL = 5 * MINUTE
HERE, ELSEWHERE = Boot("here", 1_000_000), Boot("elsewhere", 7)
LEASE = Lease(
    agent="ada",
    run_id="RUN-1",
    epoch=1,
    acquired_at=iso(MONDAY),
    expires_at=iso(MONDAY + TTL),
    ttl_ms=TTL,
    worker="pull",
)


def beat(at: int = MONDAY, count: int = 0, lasts: int = TTL) -> Heartbeat:
    """A sign of life by the wall clock alone."""
    return Heartbeat(
        task_id="T",
        agent_id="ada",
        run_id="RUN-1",
        last_heartbeat=iso(at),
        beat_count=count,
        expires_at=iso(at + lasts),
    )


def left(heartbeat: Heartbeat, now: int, boot: Boot | None) -> int:
    """How long the lease still lasts."""
    return lease_end(LEASE, present_heartbeat(heartbeat, now, boot)) - now


def later(boot: Boot, millis: int) -> Boot:
    """The same start, some time on."""
    return Boot(boot.id, boot.at + millis)


@pytest.mark.parametrize("turned", [-2 * HOURS, -HOURS, 0, HOURS, 2 * HOURS])
def test_under_the_same_start_only_the_time_that_passed_counts(turned: int) -> None:
    written = stamped_heartbeat(beat(), None, HERE)
    for passed in (0, MINUTE, TTL - 1, TTL, TTL + MINUTE):
        assert left(written, MONDAY + passed + turned, later(HERE, passed)) == TTL - passed


@pytest.mark.parametrize("turned", [-HOURS, HOURS])
def test_a_beat_after_the_clock_was_turned_lasts_as_long_as_any_other(turned: int) -> None:
    first = stamped_heartbeat(beat(), None, HERE)
    second = stamped_heartbeat(beat(MONDAY + MINUTE + turned, 1), first, later(HERE, MINUTE))
    assert left(second, MONDAY + turned + 2 * MINUTE, later(HERE, 2 * MINUTE)) == TTL - MINUTE
    assert left(second, MONDAY + turned + 6 * MINUTE, later(HERE, 6 * MINUTE)) == 0


def test_the_later_of_the_lease_and_a_shorter_beat_counts() -> None:
    short = stamped_heartbeat(
        beat(MONDAY + MINUTE, 1, lasts=1000), stamped_heartbeat(beat(), None, HERE), later(HERE, MINUTE)
    )
    assert left(short, MONDAY + MINUTE, later(HERE, MINUTE)) == TTL - MINUTE


@pytest.mark.parametrize("boot", [ELSEWHERE, None])
def test_after_another_start_the_wall_clock_counts_within_bounds(boot: Boot | None) -> None:
    written = stamped_heartbeat(beat(), None, HERE)
    assert left(written, MONDAY + MINUTE, boot) == TTL - MINUTE
    assert left(written, MONDAY + TTL, boot) == 0
    assert left(written, MONDAY - TTL, boot) == 2 * TTL, "clocks of two machines may differ by as much as a lease"
    assert left(written, MONDAY - TTL - 1, boot) == 0, "a sign of life from that far ahead is not believed"


def test_without_a_count_there_is_only_the_wall_clock() -> None:
    assert stamped_heartbeat(beat(), None, None) == beat()
    assert left(beat(), MONDAY + MINUTE, HERE) == TTL - MINUTE
    assert present_heartbeat(None, MONDAY, HERE) is None


def test_how_long_a_run_lasts_does_not_depend_on_the_wall_clock_either() -> None:
    written = stamped_heartbeat(beat(), None, HERE)
    again = stamped_heartbeat(beat(MONDAY + MINUTE - HOURS, 1), written, later(HERE, MINUTE))
    assert running_for(LEASE, again, MONDAY + HOURS, later(HERE, 3 * MINUTE)) == 3 * MINUTE
    assert running_for(LEASE, again, MONDAY + MINUTE, ELSEWHERE) == MINUTE
    assert running_for(LEASE, None, MONDAY - HOURS, HERE) == 0
    foreign = msgspec.structs.replace(again, run_id="RUN-2")
    assert running_for(LEASE, foreign, MONDAY + 2 * MINUTE, later(HERE, 9 * MINUTE)) == 2 * MINUTE


# --- how long a lease may last without a sign of life: a day, or as long as the chart says


DAY_IN_SECONDS = 86_400


@pytest.fixture
def fabric(tmp_path: Path) -> Fabric:
    root, _ = init_data_dir(tmp_path / ".aof", actor="pm")
    agents = [{"id": "ada"}, {"id": "bert", "maxLeaseTime": "3d"}]
    Path(root, "org").mkdir(exist_ok=True)
    Path(root, "org/org-chart.yaml").write_text(json.dumps({"schemaVersion": 1, "agents": agents}))
    return open_fabric(root, actor="pm", clock=ManualClock())


def test_nobody_asks_for_more_than_a_day_unless_the_chart_says_so(fabric: Fabric) -> None:
    for agent, most in (("ada", DAY_IN_SECONDS), ("bert", 3 * DAY_IN_SECONDS)):
        task = fabric.create("Long", agent=agent).task_id
        with pytest.raises(InvalidInput, match="longer than"):
            fabric.claim(task, agent=agent, ttl=most + 1)
        run = fabric.claim(task, agent=agent, ttl=most).run_id
        with pytest.raises(InvalidInput, match="longer than"):
            fabric.heartbeat(task, run=run, ttl=most + 1)
        fabric.heartbeat(task, run=run, ttl=most)


# --- A lease that a merge of histories made contested: only the run that stands writes, and it must show its secret


_SECRET = "1" * 64


def _contested(world: World, **given: object) -> tuple[str, str]:
    """A task whose lease was claimed in two clones, of which this world's stands."""
    task = world.create()
    run = world.claim(task, "ada", secret_digest=_SECRET, **given)
    now = world.tasks[task]
    assert now.lease is not None
    world.tasks[task] = msgspec.structs.replace(now, lease=msgspec.structs.replace(now.lease, contested=True))
    return task, run


@pytest.mark.parametrize(("kind", "given"), WRITES)
def test_neither_a_superseded_run_nor_the_same_name_nor_a_known_run_id_writes(
    kind: type[commands.OnTask], given: dict[str, Any]
) -> None:
    world = World()
    task, run = _contested(world)
    superseded = f"{run[:-8]}deadbeef"
    assert world.refuse(kind, task, "ada", **given).code == "stale_lease", "the name alone"
    assert world.refuse(kind, task, "ada", run=superseded, **given).code == "stale_lease", "the run that ended"
    assert world.refuse(kind, task, "ada", run=superseded, proof="2" * 64, **given).code == "stale_lease", "its secret"
    assert world.refuse(kind, task, "ada", run=run, **given).code == "stale_lease", "the ID of the run that stands"
    assert "AOF_RUN_SECRET" in world.refuse(kind, task, "ada", **given).hint


@pytest.mark.parametrize(("kind", "given"), WRITES)
def test_the_secret_of_the_run_that_stands_writes(kind: type[commands.OnTask], given: dict[str, Any]) -> None:
    world = World()
    task, run = _contested(world)
    assert world.act(kind, task, "ada", run=run, proof=_SECRET, **given).refusal is None


@pytest.mark.parametrize("shown", [{"proof": _SECRET}, {"vouched": "token"}])
def test_who_shows_the_secret_or_a_token_need_not_name_the_run(shown: dict[str, str]) -> None:
    world = World()
    task, _ = _contested(world)
    assert world.act(commands.ReportProgress, task, "ada", text="half", **shown).refusal is None


def test_the_host_of_a_worker_goes_on_with_the_run_that_it_started() -> None:
    world = World()
    task, run = _contested(world, worker="process")
    world.act(commands.RecordHeartbeat, task, "ada", run=run)
    assert world.refuse(commands.RecordHeartbeat, task, "ada").code == "stale_lease"


def test_a_new_claim_is_not_contested_any_more() -> None:
    world = World()
    task, run = _contested(world)
    world.act(commands.Release, task, "ada", run=run, proof=_SECRET)
    world.claim(task, "bob")
    assert world.act(commands.ReportProgress, task, "bob", text="x").refusal is None


# --- claims that outlive the session that made them: how long they last, and who is recognised as their holder


def _lease(world: World, task: str) -> Lease:
    lease = world.tasks[task].lease
    assert lease is not None
    return lease


def test_a_kept_claim_lasts_an_hour_unless_the_claim_or_the_task_says_otherwise() -> None:
    world = World(Policy(kept_ttl_ms=60 * MINUTE))
    for given, metadata, minutes in (
        ({"keep": True}, {}, 60),
        ({}, {}, 5),
        ({"keep": True, "ttl_ms": 2 * MINUTE}, {}, 2),
        ({"keep": True}, {"leaseTtlMs": 7 * MINUTE}, 7),
    ):
        task = world.create(metadata=metadata)
        world.claim(task, "ada", **given)
        lease = _lease(world, task)
        assert millis(lease.expires_at) - world.now == minutes * MINUTE
        assert lease.kept_by == ("ada" if "keep" in given else None)


def test_the_caller_of_a_kept_claim_needs_no_run_even_after_an_earlier_one() -> None:
    world = World()
    task = world.create()
    world.act(commands.Release, task, "ada", run=world.claim(task, "ada"))
    world.claim(task, "ada")
    assert world.refuse(commands.ReportProgress, task, "ada", text="x").code == "run_required"
    world.act(commands.Release, task, "ada", run=world.lease_run(task))
    run = world.claim(task, "ada", keep=True)
    world.act(commands.ReportProgress, task, "ada", text="half")
    assert world.refuse(commands.ReportProgress, task, "bob", text="x").code == "not_lease_holder"
    world.act(commands.Complete, task, "ada")
    assert world.tasks[task].last_run == run


def test_whoever_claimed_for_another_and_kept_it_writes_for_that_one() -> None:
    world = World()
    task = world.create()
    world.act(commands.Claim, task, "pm", agent="ada", keep=True)
    assert (_lease(world, task).agent, _lease(world, task).kept_by) == ("ada", "pm")
    assert world.refuse(commands.Complete, task, "pm", agent="bob").code == "not_lease_holder"
    assert world.act(commands.Complete, task, "pm").agent == "ada"


def test_a_claim_of_what_one_holds_beyond_doubt_answers_with_that_run() -> None:
    world = World()
    task = world.create()
    run = world.claim(task, "ada", keep=True)
    assert world.act(commands.Claim, task, "ada", keep=True).replayed == task
    assert world.lease_run(task) == run
    assert world.refuse(commands.Claim, task, "bob", keep=True).code == "already_claimed"
    other = world.create()
    named = world.claim(other, "ada")
    assert world.act(commands.Claim, other, "ada", run=named).replayed == other
    refused = world.refuse(commands.Claim, other, "ada")
    assert f"you hold it as {named}" in refused.message
    assert refused.call is not None
    assert refused.call.arguments["run"] == named


def test_where_secrets_are_required_only_a_token_keeps_a_claim() -> None:
    world = World(Policy(require_secret=True))
    task = world.create()
    asked = commands.Claim(
        actor="ada", task_id=task, keep=True, proof="", outside=True, session="ada", secret_digest="0" * 64
    )
    assert world.refused(asked).code == "unauthenticated"
    world.act(
        commands.Claim,
        task,
        "ada",
        keep=True,
        proof="",
        outside=True,
        session="ada",
        vouched="token",
        secret_digest="0" * 64,
    )
    told = {"text": "x", "proof": "", "outside": True, "session": "ada"}
    assert world.refuse(commands.ReportProgress, task, "ada", **told).code == "unauthenticated"
    assert world.refuse(commands.ReportProgress, task, "ada", **told | {"proof": "1" * 64}, vouched="token").code == (
        "unauthenticated"
    )
    world.act(commands.ReportProgress, task, "ada", **told, vouched="token")


def test_a_hop_is_kept_like_a_task() -> None:
    world = World()
    task = world.next_id()
    flow = template(hop("build"), hop("check", dependsOn=["build"]))
    world.do(commands.CreateGated(actor="pm", task_id=task, title="Gated", template=flow))
    world.act(commands.Claim, task, "pm", agent="ada", keep=True)
    again = world.act(commands.Claim, task, "pm", agent="ada", keep=True)
    assert again.run is not None
    assert world.act(commands.Claim, task, "pm", agent="ada", keep=True, hop="build").run == again.run
    assert world.refuse(commands.Claim, task, "pm", agent="bob", hop="build").code == "already_claimed"
    world.act(commands.ReportProgress, task, "pm", text="half")
    world.act(commands.Complete, task, "pm", outcome="complete")
    assert world.refuse(commands.ReportProgress, task, "pm", text="x").code == "stale_lease"
