"""Something to see in every view, and the address of each view."""

from __future__ import annotations

from typing import Any

from tests.e2e.browser import scenes
from tests.e2e.browser.served import Served
from tests.support.service import workflow

HOPS: dict[str, Any] = {
    "name": "release",
    "hops": [
        {"id": "implement", "role": "developer"},
        {"id": "check", "role": "reviewer", "dependsOn": ["implement"], "canReject": True},
        {"id": "ship", "role": "lead", "dependsOn": ["check"]},
    ],
}


def staged(served: Served) -> None:
    """Tasks in every status, related to each other, with an agent at work and one that asks."""
    workflow(served.root, HOPS)
    first = scenes.gate(served, "Repair the lamp", priority="high", tags=["lamp"], brief="Replace the *wick*.")
    with served.fabric() as fabric:
        fabric.comment(first, text="Mind the *glass*: it is the last one that we have.")
    scenes.waiting(served, "Paint the tower", depends_on=(first,), tags=["tower"], owner="pm", due="2027-03-01")
    scenes.waiting(served, "Order oil", backlog=True, priority="low", tags=["supply"])
    running, run = scenes.running(served, "Measure the tide", tags=["survey"])
    with served.fabric("ada") as fabric:
        fabric.handoff_new(
            type="delegation", timeout=3600, task_id=running, from_agent="ada", to=["bob"], reason="two eyes more"
        )
        fabric.progress(running, text="half of the buoys read", percent=50, run=run, agent="ada")
    scenes.question(served, "Choose the flags", "Which flags do we hoist?")
    scenes.dead(served, "Reach the reef", tags=["survey"])
    overdue = scenes.waiting(served, "Wind the clockwork", due="2026-01-05", owner="pm")
    with served.fabric() as fabric:
        fabric.block(scenes.waiting(served, "Ask the harbour master"), reason="he is at sea")
        done = scenes.gate(served, "Clean the lens")
        fabric.approve(done, reason="it shines")
        fabric.cancel(scenes.waiting(served, "Buy a parrot"), reason="no room")
        fabric.comment(overdue, text="Twice a day, **please**.")
        fabric.mail_send(to="ada", type="request", priority="P1", subject="Oil", body="How *much* is left?")
        fabric.worklog_decide("We paint the tower red", owner="pm")
        fabric.worklog_now("the lamp", agent="ada")
        gated = fabric.create("Release the almanac", workflow="release", brief="Print and bind it.").task_id
        fabric.claim(gated, agent="ada")


def addresses(served: Served, title: str = "Release the almanac") -> dict[str, str]:
    """Every view of the catalogue by its name, about this task where one is needed."""
    from aof.surfaces.board.app import VIEWS  # noqa: PLC0415 - as it is when asked

    with served.fabric() as fabric:
        tasks = {task.title: task for task in fabric.tasks()}
    task = tasks.get(title) or next(iter(tasks.values()))
    return {view.name: view.path.replace("{task_id}", task.id).replace("{seq}", str(task.rev)) for view in VIEWS}
