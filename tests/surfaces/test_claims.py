"""Whose work a `complete` ends: a session claims first, the command line at once, and an approval says so."""

from __future__ import annotations

import json
import re

import pytest

from aof.kernel.model import millis
from tests.support.service import workflow
from tests.support.waiting import eventually
from tests.support.workflows import hop, template
from tests.surfaces.conftest import Doors
from tests.surfaces.doors import Door, Refusal, answer_of, refusal_of


@pytest.mark.parametrize("surface", ["mcp", "http"])
@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
def test_a_session_completes_only_what_it_has_claimed(doors: Doors, surface: str, *, gated: bool) -> None:
    door = doors[surface]
    workflow(door.root, template(hop("a"), hop("b", "a")))
    task_id = door.elsewhere.create("Ready", workflow="flow" if gated else None, review=gated).task_id
    refused = door.ask("complete", task_id=task_id, summary="done")
    assert isinstance(refused, Refusal)
    assert (refused.code, door.elsewhere.get(task_id).status) == ("not_claimed", "ready")
    shown = re.search(r"(\{.*\})\)?$", refused.hint)
    assert shown, refused.hint
    given = json.loads(shown.group(1))
    assert given["taskId"] == task_id
    run = answer_of(door.ask("claim", task_id=given["taskId"], agent=given["agent"]))["runId"]
    done = answer_of(door.ask("complete", task_id=task_id, summary="done", run=run))
    assert done["status"] == ("ready" if gated else "done")


@pytest.mark.parametrize("surface", ["python", "cli"])
def test_at_the_command_line_and_in_python_a_ready_task_is_claimed_and_completed_at_once(
    doors: Doors, surface: str
) -> None:
    door = doors[surface]
    task_id = door.elsewhere.create("Ready", review=False).task_id
    assert answer_of(door.ask("complete", task_id=task_id, summary="done"))["status"] == "done"


def test_what_somebody_else_holds_is_not_completed(door: Door) -> None:
    task_id = door.elsewhere.create("Held").task_id
    door.elsewhere.claim(task_id, agent="bob")
    refused = door.ask("complete", task_id=task_id, summary="done")
    assert isinstance(refused, Refusal)
    assert (refused.code, door.elsewhere.get(task_id).status) == ("not_lease_holder", "in-progress")


def test_a_complete_that_approves_says_so(door: Door) -> None:
    task_id = door.elsewhere.create("To review").task_id
    door.elsewhere.complete(task_id, agent="bob", summary="done")
    approved = answer_of(door.ask("complete", task_id=task_id))
    assert (approved["status"], approved["approved"]) == ("done", True)
    own = door.elsewhere.create("Own").task_id
    run = answer_of(door.ask("claim", task_id=own, agent="tester"))["runId"]
    assert "approved" not in answer_of(door.ask("complete", task_id=own, run=run))


def test_after_a_crash_the_refused_claim_names_the_way_to_free_the_task(door: Door) -> None:
    task_id = door.elsewhere.create("Held").task_id
    run = door.elsewhere.claim(task_id, agent="tester").run_id
    refused = refusal_of(door.ask("claim", task_id=task_id, agent="tester"), "already_claimed")
    if door.name == "python":
        return
    way = refused.hint.split("; or ")[1]
    assert "only if the worker of tester is dead, end its run" in way
    assert run in way
    over = door.elsewhere.create("Over").task_id
    end = millis(door.elsewhere.claim(over, agent="bob", ttl=0.001).expires_at)
    eventually(lambda: door.elsewhere.now() > end)
    late = refusal_of(door.ask("claim", task_id=over, agent="tester"), "not_ready")
    assert "end the wait" in late.hint
    assert door.elsewhere.recover() == ()


def test_nobody_gets_a_lease_of_more_than_a_day(door: Door) -> None:
    task_id, too_long = door.elsewhere.create("Do it").task_id, 25 * 3600.0
    refusal_of(door.ask("claim", task_id=task_id, agent="ada", ttl=too_long), "invalid")
    door.elsewhere.claim(task_id, agent="ada")
    if door.name != "cli":  # `aof heartbeat` renews by the lease's own length
        refusal_of(door.ask("heartbeat", task_id=task_id, agent="ada", ttl=too_long), "invalid")
