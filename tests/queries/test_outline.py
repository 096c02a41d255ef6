"""One task in short, as agents read it: small, and nothing that they need is missing."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME
from aof.runs.brief import prime
from aof.testing import FakeClock, memory_fabric
from aof.workflows.model import leases
from tests.support.workflows import REVIEW

SMALL = 1_500  # characters


def test_a_small_gated_task_is_short_as_a_tool_and_whole_when_asked_or_anywhere_else() -> None:
    fabric = memory_fabric(workflows=(REVIEW,))
    brief = "Add a refresh endpoint.\n\n- keep the old one\n- document both\n"
    task = fabric.create("Add refresh endpoint", brief=brief, workflow="review", acceptance=["tests pass"]).task_id
    fabric.complete(task, hop="implement", outcome="complete", agent="ada", summary="Built it, 12 tests.")
    run = fabric.claim(task, agent="rita").run_id

    show = BY_NAME["show"]
    short = perform(fabric, show, parameters(show, {"taskId": task}, tool=True), Caller("rita"))
    assert len(json.dumps(short)) < SMALL
    assert brief.strip() in short["body"]
    assert "Built it, 12 tests." in short["body"]
    assert (short["acceptance"], short["status"]) == (("tests pass",), "in-progress")
    assert [(hop["id"], hop["status"]) for hop in short["workflow"]["hops"]] == [
        ("implement", "done"),
        ("code-review", "running"),
        ("ship", "waiting"),
    ]
    assert short["workflow"]["hops"][1]["runId"] == run

    whole = fabric.show(task)
    assert perform(fabric, show, parameters(show, {"taskId": task, "full": True}, tool=True), Caller("rita")) == whole
    assert perform(fabric, show, parameters(show, {"taskId": task}), Caller("rita")) == whole
    assert "template" in whole["workflow"]


def test_a_rejection_is_in_the_short_view_until_whoever_rejected_has_accepted() -> None:
    fabric = memory_fabric(workflows=(REVIEW,))
    task = fabric.create("Gated", workflow="review").task_id

    def done(
        agent: str, outcome: Literal["complete", "needs_review"] = "complete", blockers: tuple[str, ...] = ()
    ) -> dict[str, object]:
        run = fabric.claim(task, agent=agent).run_id
        fabric.complete(task, outcome=outcome, blockers=blockers, run=run)
        return dict(fabric.show(task, full=False)["workflow"])

    assert "feedback" not in done("ada")
    assert "feedback" in done("rita", "needs_review", ("no test",))
    assert "feedback" in done("ada")
    assert "feedback" not in done("rita")
    assert "feedback" in fabric.show(task)["workflow"], "the whole record keeps it"


def test_what_is_cut_is_named() -> None:
    fabric = memory_fabric()
    task = fabric.create("Long", brief="x" * 10_000).task_id
    for _ in range(5):
        fabric.release(task, run=fabric.claim(task, agent="ada").run_id)
    short = fabric.show(task, full=False)
    assert short["cut"] == ["attempts", "body"]
    assert [run["attempt"] for run in short["attempts"]] == [3, 4, 5]
    assert len(short["body"]) < 5_000
    assert "cut" not in fabric.show(fabric.create("Short").task_id, full=False)


@pytest.mark.parametrize("gated", [False, True])
def test_the_end_of_a_lease_is_shown_as_its_last_sign_of_life_set_it(*, gated: bool) -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock, workflows=(REVIEW,))
    task = fabric.create("Renewed", workflow="review" if gated else None).task_id
    run = fabric.claim(task, agent="ada").run_id
    clock.sleep(60)
    renewed = fabric.heartbeat(task, run=run).expires_at
    shown = fabric.show(task)
    lease = shown["workflow"]["hops"][0]["lease"] if gated else shown["lease"]
    assert lease["expiresAt"] == renewed
    assert renewed > leases(fabric.get(task))[0].expires_at


def test_the_primer_lists_the_hops_that_an_agent_holds() -> None:
    fabric = memory_fabric(workflows=(REVIEW,))
    task = fabric.create("Gated work", workflow="review").task_id
    fabric.claim(task, agent="ada")
    held = prime(fabric, "ada").partition("You hold")[2].partition("Ready for you")[0]
    assert task in held
    assert task not in prime(fabric, "rita").partition("You hold")[2].partition("Ready for you")[0]
