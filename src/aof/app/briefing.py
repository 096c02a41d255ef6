"""The brief: what an agent is told about its task, as one Markdown text. Must not know how it gets there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from aof.core.runs.run import Run
from aof.core.tasks.task import Task


def brief(task: Task, run_id: str, earlier: Sequence[Run], hop: str | None = None) -> str:
    """The task with everything that it asks for, what earlier runs came to, and how to report; for a hop, also that."""
    parts = [f"# {task.title}", f"Task {task.id}, run {run_id}, priority {task.priority}."]
    how = _HOW.format(task=task.id, run=run_id)
    if hop is not None:
        from aof.app.hop_brief import hop_brief, outcomes

        parts += hop_brief(task, hop)
        how = outcomes(task, hop, run_id)
    if task.body.strip():
        parts.append(task.body.strip())
    parts += _section("Acceptance", [_said(one) for one in task.acceptance])
    parts += _section("Constraints", [f"{name}: {_said(value)}" for name, value in task.constraints.items()])
    parts += _section("Depends on", list(task.depends_on))
    parts += _section("Earlier runs", [_came_to(run) for run in earlier])
    parts.append(how)
    return "\n\n".join(parts) + "\n"


_HOW = """## How to report

Say what came of it before you exit, in one of these ways:

- print one line: `AOF/1 {{"protocol":"aof","version":1,"type":"completion.report","taskId":"{task}",…}}`
- run: `aof complete {task} --run {run} --summary "what was done"`
- cannot go on: `aof complete {task} --run {run} --outcome blocked --blocker "what is in the way"`

An exit without a report counts as a failure."""


def _section(title: str, items: list[str]) -> list[str]:
    return [f"## {title}\n\n" + "\n".join(f"- {item}" for item in items)] if items else []


def _said(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _came_to(run: Run) -> str:
    why = f": {run.error.code}, {run.error.message}" if run.error is not None else ""
    return f"run {run.attempt} by {run.agent_id} {run.status}{why}"
