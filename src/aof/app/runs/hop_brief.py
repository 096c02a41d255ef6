"""What an agent is told about the hop that it was started for. Must not know how it gets there."""

from __future__ import annotations

from aof.app.runs.fenced_text import quoted
from aof.core.model.task import Task
from aof.core.model.workflow import HopState, Workflow, workflow_of


def hop_brief(task: Task, hop_id: str) -> list[str]:
    """Which part of the work it is, what came of the parts before, and what was rejected."""
    workflow = workflow_of(task)
    hop = workflow.hop(hop_id)
    parts = [f"Hop {hop.id} of the workflow {workflow.name}, as {hop.role}."]
    parts += _before(workflow, hop)
    feedback = workflow.feedback
    if feedback is not None and feedback.hop != hop.id:
        said = "\n".join(f"- {blocker}" for blocker in feedback.blockers)
        summary = f"\n\n{feedback.summary}" if feedback.summary else ""
        block = quoted(f"{said}{summary}", f"rejection by {feedback.by}")
        parts.append(f"## Rejected by {feedback.by} at hop {feedback.hop}\n\n{block}")
    return parts


def outcomes(task: Task, hop_id: str, run_id: str) -> str:
    """How a hop is reported on: like a task, and who may reject can send the work back."""
    rule = workflow_of(task).template.by_id[hop_id]
    lines = [_HOW.format(task=task.id, run=run_id)]
    if rule.can_reject and rule.depends_on:
        lines.append(_REJECT.format(task=task.id, run=run_id))
    return "\n".join((*lines, "\nAn exit without a report counts as a failure."))


_HOW = """## How to report

Say what came of this hop before you exit, in one of these ways:

- run: `aof complete {task} --run {run} --outcome complete --text "what was done"`
- cannot go on: `aof complete {task} --run {run} --outcome blocked --blocker "what is in the way"`
- print one line: `AOF/1 {{"protocol":"aof","version":1,"type":"completion.report","taskId":"{task}",…,"nonce":"…"}}`,
  with the value of the environment variable `AOF_MESSAGE_NONCE` as the nonce"""
_REJECT = '- must be done again: `aof complete {task} --run {run} --outcome needs_review --blocker "what to change"`'


def _before(workflow: Workflow, hop: HopState) -> list[str]:
    names = workflow.template.by_id[hop.id].depends_on
    said = "\n".join(f"- {_came_to(workflow.hop(name))}" for name in names)
    return [f"## Hops before\n\n{said}"] if names else []


def _came_to(hop: HopState) -> str:
    who = f" by {hop.agent}" if hop.agent and hop.status != "skipped" else ""
    run = f" ({hop.run_id})" if hop.run_id and hop.status != "skipped" else ""
    return f"{hop.id} is {hop.status}{who}{run}"
