"""Whose work a `complete` ends: a session claims first, the command line at once, and an approval says so."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from aof.kernel.model import millis
from tests.support.service import workflow
from tests.support.waiting import eventually
from tests.support.workflows import hop, template
from tests.surfaces.conftest import Doors
from tests.surfaces.doors import Refusal

SURFACES = ("python", "cli", "mcp", "http")


def _answer(answer: Any) -> dict[str, Any]:
    assert isinstance(answer, dict), answer
    return answer


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
    run = _answer(door.ask("claim", task_id=given["taskId"], agent=given["agent"]))["runId"]
    done = _answer(door.ask("complete", task_id=task_id, summary="done", run=run))
    assert done["status"] == ("ready" if gated else "done")


@pytest.mark.parametrize("surface", ["python", "cli"])
def test_at_the_command_line_and_in_python_a_ready_task_is_claimed_and_completed_at_once(
    doors: Doors, surface: str
) -> None:
    door = doors[surface]
    task_id = door.elsewhere.create("Ready", review=False).task_id
    assert _answer(door.ask("complete", task_id=task_id, summary="done"))["status"] == "done"


@pytest.mark.parametrize("surface", SURFACES)
def test_what_somebody_else_holds_is_not_completed(doors: Doors, surface: str) -> None:
    door = doors[surface]
    task_id = door.elsewhere.create("Held").task_id
    door.elsewhere.claim(task_id, agent="bob")
    refused = door.ask("complete", task_id=task_id, summary="done")
    assert isinstance(refused, Refusal)
    assert (refused.code, door.elsewhere.get(task_id).status) == ("not_lease_holder", "in-progress")


@pytest.mark.parametrize("surface", SURFACES)
def test_a_complete_that_approves_says_so(doors: Doors, surface: str) -> None:
    door = doors[surface]
    task_id = door.elsewhere.create("To review").task_id
    door.elsewhere.complete(task_id, agent="bob", summary="done")
    approved = _answer(door.ask("complete", task_id=task_id))
    assert (approved["status"], approved["approved"]) == ("done", True)
    own = door.elsewhere.create("Own").task_id
    run = _answer(door.ask("claim", task_id=own, agent="tester"))["runId"]
    assert "approved" not in _answer(door.ask("complete", task_id=own, run=run))


@pytest.mark.parametrize("surface", SURFACES)
def test_after_a_crash_the_refused_claim_names_the_way_to_free_the_task(doors: Doors, surface: str) -> None:
    door = doors[surface]
    task_id = door.elsewhere.create("Held").task_id
    run = door.elsewhere.claim(task_id, agent="tester").run_id
    refused = door.ask("claim", task_id=task_id, agent="tester")
    assert isinstance(refused, Refusal)
    assert refused.code == "already_claimed"
    if surface == "python":
        return
    way = refused.hint.split("; or ")[1]
    assert "only if the worker of tester is dead, end its run" in way
    assert run in way
    over = door.elsewhere.create("Over").task_id
    end = millis(door.elsewhere.claim(over, agent="bob", ttl=0.001).expires_at)
    eventually(lambda: door.elsewhere.now() > end)
    late = door.ask("claim", task_id=over, agent="tester")
    assert isinstance(late, Refusal)
    assert late.code == "not_ready"
    assert "end the wait" in late.hint
    assert door.elsewhere.recover() == ()
