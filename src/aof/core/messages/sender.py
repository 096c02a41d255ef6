"""Who may send a message about a task that somebody runs: the holder of its lease, or of one of its hops.

The run that sends a message names the hop; without a run it is the only hop of the sender. Must not know the wire.
"""

from __future__ import annotations

from aof.core.errors.base import AofError, Call
from aof.core.errors.runs import NotLeaseHolder
from aof.core.model.commands import OnTask
from aof.core.model.task import Task
from aof.core.model.workflow import HopState, workflow_of
from aof.core.runs.lease import authorize, not_holder
from aof.core.workflows import hop_lease


def is_held(task: Task) -> bool:
    """Whether somebody runs the task, or a hop of it."""
    return task.lease is not None or (task.gated and any("lease" in hop for hop in task.workflow["hops"]))


def sender(task: Task, message: OnTask) -> str | AofError:
    """The holder of the task's lease, if the message is from it; naming its run does not make one the holder."""
    if task.gated:
        hop = held_hop(task, message)
        return hop if isinstance(hop, AofError) else str(hop.agent)
    holder = authorize(task, message)
    if isinstance(holder, str) and task.lease is not None and message.actor != holder:
        return not_holder(task, task.lease, message.actor)
    return holder


def held_hop(task: Task, message: OnTask) -> HopState | AofError:
    """The hop that the sender holds; naming a run does not make one its holder."""
    hop = hop_lease.held(task, workflow_of(task), message)
    if isinstance(hop, HopState) and hop.agent != message.actor:
        return NotLeaseHolder(
            f"hop '{hop.id}' of {task.id} is held by {hop.agent}, not by {message.actor}",
            f"only {hop.agent} may report on it",
            Call("workflow_show", {"name": task.id}),
            holder=hop.agent,
        )
    return hop
