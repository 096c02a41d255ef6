"""What a runner is given to start a worker: the command, its surroundings, the brief. Must not know how it is run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from aof.app.documents.mailbox.results import Inbox
from aof.app.operations.results import Claimed
from aof.app.queries.children import Child
from aof.app.runs.brief import EarlierRun, brief
from aof.core.model.handoffs.record import Handoff
from aof.core.model.ids import run_place
from aof.core.model.org_chart import Agent
from aof.core.model.task import Task
from aof.ports.runner import Work
from aof.ports.store import Store

_GRACE = 5.0
_NONCE = 16  # bytes


def work_of(
    task: Task,
    agent: Agent,
    claimed: Claimed,
    hop: str | None,
    earlier: Iterable[EarlierRun],
    *,
    handoffs: Iterable[Handoff] = (),
    mail: Inbox,
    children: Sequence[Child] = (),
) -> Work:
    """The work of a claimed run: `earlier` are the task's runs before it, `handoffs` those of the task."""
    runner = agent.runner
    return Work(
        task_id=task.id,
        hop=hop,
        place=run_place(task.id, hop),
        run_id=claimed.run_id,
        epoch=claimed.epoch,
        attempt=claimed.attempt,
        agent=agent.id,
        command=runner.command,
        env=runner.env,
        inherit_env=runner.inherit_env,
        cwd=runner.cwd,
        brief=brief(
            task,
            claimed.run_id,
            [one for one in earlier if one.run.hop == hop],
            hop,
            handed=_under(handoffs, agent.id),
            mail=mail.messages,
            children=children,
        ),
        secret=claimed.secret if isinstance(claimed.secret, str) else "",
        nonce=os.urandom(_NONCE).hex(),
        messages=runner.messages,
        peer=runner.url if runner.kind == "a2a" else None,
        token_env=runner.token_env,
        grace=(runner.grace_ms or _GRACE * 1000) / 1000,
    )


def earlier_runs(store: Store, task_id: str, attempt: int) -> list[EarlierRun]:
    """The task's runs before this one, each with the last event to go on from."""
    runs = [one for one in store.attempts(task_id) if one.attempt < attempt]
    history = store.events(task_id=task_id) if runs else ()
    reached = {event.run_id: event.seq for event in history if event.type == "task.progress"}
    return [EarlierRun(run, reached.get(run.run_id)) for run in runs]


def _under(handoffs: Iterable[Handoff], agent: str) -> list[Handoff]:
    """The handoffs that the agent works under: those that it accepted, and the last that brought it the task."""
    own = [one for one in handoffs if one.to_agent == agent]
    came = [one for one in own if one.type == "sequential" and one.state == "completed"]
    return [*came[-1:], *(one for one in own if one.state == "accepted")]
