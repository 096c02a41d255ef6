"""What a follower of a task has not been told yet: our messages, artifacts, then the state. Pure.

A follower is known by two facts, the number of the last event that it was told and the state that it knows, so one that
was told before a restart is told the rest. Every update has an ID that is the same when it is told again.
"""

from __future__ import annotations

from typing import cast

import msgspec
from a2a.types import StreamResponse, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent

from aof._support.hashing import hexdigest
from aof.adapters.a2a.served.view import TaskView

EVENT_ID = "eventId"  # the key of an update's metadata


class PeerUpdate(msgspec.Struct, frozen=True):
    """One update, its ID, and the number of the event up to which everything has been told with it."""

    event: TaskStatusUpdateEvent | TaskArtifactUpdateEvent
    event_id: str
    seq: int

    @property
    def response(self) -> StreamResponse:
        """As it is sent, to a stream or an address."""
        if isinstance(self.event, TaskStatusUpdateEvent):
            return StreamResponse(status_update=self.event)
        return StreamResponse(artifact_update=self.event)


def updates(shown: TaskView, seq: int, state: int) -> list[PeerUpdate]:
    """What has happened since; `state` is the last one that was told."""
    task, found = shown.task, list[PeerUpdate]()
    said = [(number, one) for number, one in shown.said if number > seq]
    told = seq
    for number, message in said[:-1] if task.status.HasField("message") else said:
        status = TaskStatus(state=cast("TaskState", state), timestamp=task.status.timestamp, message=message)
        told = number
        found.append(_status(shown, status, message.message_id, told))
    if state != TaskState.TASK_STATE_COMPLETED:
        for artifact in task.artifacts:
            update = TaskArtifactUpdateEvent(task_id=task.id, context_id=task.context_id, artifact=artifact)
            update.last_chunk = True
            found.append(
                _named(update, f"{task.id}-{shown.moved}-{hexdigest(artifact.artifact_id.encode())[:12]}", told)
            )
    if said or state != shown.state:
        last = max([shown.moved, *(number for number, _ in said)])
        found.append(_status(shown, task.status, f"{task.id}-{last}-state", shown.seq))
    return found


def _status(shown: TaskView, status: TaskStatus, event_id: str, seq: int) -> PeerUpdate:
    update = TaskStatusUpdateEvent(task_id=shown.task.id, context_id=shown.task.context_id, status=status)
    return _named(update, event_id, seq)


def _named(update: TaskStatusUpdateEvent | TaskArtifactUpdateEvent, event_id: str, seq: int) -> PeerUpdate:
    update.metadata.update({EVENT_ID: event_id})
    return PeerUpdate(update, event_id, seq)
