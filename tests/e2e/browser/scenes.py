"""Tasks in the states that people meet, made the way agents make them; each helper gives the ID of a new task."""

from __future__ import annotations

from typing import Any

from tests.e2e.browser.served import Served

AGENT = "ada"


def waiting(served: Served, title: str = "Write the chart of the harbour", **given: Any) -> str:
    """Ready, for an agent."""
    with served.fabric() as fabric:
        return fabric.create(title, **({"agent": AGENT} | given)).task_id


def running(served: Served, title: str = "Measure the tide", **given: Any) -> tuple[str, str]:
    """In progress; with the run."""
    task = waiting(served, title, **given)
    with served.fabric(AGENT) as fabric:
        return task, fabric.claim(task, agent=AGENT).run_id


def gate(served: Served, title: str = "Repair the lamp", **given: Any) -> str:
    """In review."""
    task, run = running(served, title, **given)
    with served.fabric(AGENT) as fabric:
        fabric.complete(task, run=run, agent=AGENT, summary="The lamp burns again.")
    return task


def question(served: Served, title: str = "Paint the tower", text: str = "Which colour?", **given: Any) -> str:
    """In progress, and the agent waits for an answer."""
    task, run = running(served, title, **given)
    with served.fabric(AGENT) as fabric:
        fabric.ask(task, text=text, choices=("red", "white"), run=run, agent=AGENT)
    return task


def dead(served: Served, title: str = "Reach the reef", **given: Any) -> str:
    """In deadletter."""
    task, run = running(served, title, max_attempts=1, **given)
    with served.fabric(AGENT) as fabric:
        fabric.fail(task, message="the boat leaks", run=run, agent=AGENT)
    return task


def blocked(served: Served, title: str = "Ask the harbour master", **given: Any) -> str:
    """Blocked by a person; whatever lies in the backlog, the service itself makes ready."""
    task = waiting(served, title, **given)
    with served.fabric() as fabric:
        fabric.block(task, reason="he is at sea")
    return task


def status(served: Served, task_id: str) -> str:
    """Where a task is, from the file that the service wrote."""
    with served.fabric() as fabric:
        return str(fabric.get(task_id).status)
