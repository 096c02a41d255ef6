"""The task by which an agent that AOF starts answers a broadcast or an escalation, whose own task it does not run.

Its result is the return of the handoff. Must not know when somebody is asked.
"""

from __future__ import annotations

from typing import Final

from aof.core.model.commands import Create
from aof.core.model.handoffs.record import Handoff
from aof.core.model.ids import OURSELVES
from aof.core.model.task import Task

TAG: Final = "handoff-answer"
_KEY: Final = "answersHandoff"  # of the metadata
_TITLE: Final = 120  # characters


def handoff_of(answer: Task) -> str | None:
    """The handoff that the task answers."""
    found = answer.metadata.get(_KEY)
    return found if isinstance(found, str) else None


def question(task: Task, handoff: Handoff, task_id: str) -> Create:
    """The task for the receiver; asking again makes no second one."""
    title = f"Answer {handoff.from_agent}: {handoff.reason}"
    why = handoff.audit.decision_rationale
    told = [
        f"{handoff.from_agent} asks you about {task.id} ({task.title}): {handoff.reason}",
        *([why] if why and why != handoff.reason else []),
        f"Look at it with `aof show {task.id}` and `aof handoff show {handoff.id}`. Do not work on {task.id} itself.",
        f"Complete this task with your answer as its summary: it is returned to {handoff.from_agent}.",
    ]
    return Create(
        actor=OURSELVES,
        task_id=task_id,
        title=title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…",
        body="\n\n".join(told),
        assignee=handoff.to_agent,
        priority=task.priority,
        tags=(TAG,),
        metadata={_KEY: handoff.id, "answersTask": task.id, "reviewRequired": False},
        key=f"answer:{handoff.id}",
    )
