"""Claims that outlive the session that made them: how long they last, and who is recognised as their holder."""

from __future__ import annotations

from aof.kernel import commands
from aof.kernel.model import Policy, millis
from aof.tasks.model import Lease
from tests.support.workflows import hop, template
from tests.support.world import MINUTE, World


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
