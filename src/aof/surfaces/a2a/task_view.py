"""A task of ours as a peer sees it: state, messages and artifacts; and the updates for a peer that follows it."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec
from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.types import Task as PeerTask

from aof.api.fabric import Fabric
from aof.kernel.events import Event
from aof.support.confined_folder import ConfinedFolder
from aof.support.hashing import hexdigest
from aof.surfaces.a2a import content
from aof.surfaces.a2a.content import folder_of, text_message
from aof.tasks.body import description
from aof.tasks.model import Task

ORIGIN: Final = "a2a"  # the key of a task's metadata, and the tag of every task that came from a peer
EVENT_ID: Final = "eventId"  # the key of an update's metadata
_MOST_MESSAGES: Final = 200
_MOST_BYTES: Final = 4 * 1024 * 1024  # of all artifacts together
_MOVES: Final = frozenset({"task.created", "task.restored", "task.transitioned"})


class TaskView(msgspec.Struct, frozen=True):
    """A task at one moment, as a peer sees it.

    `ours` are our messages, each with the number of its event; `moved` is the number of the event that brought the
    task to its status.
    """

    task: PeerTask
    seq: int
    ours: tuple[tuple[int, Message], ...] = ()
    moved: int = 0

    @property
    def state(self) -> TaskState:
        """The state of the task in the protocol."""
        return self.task.status.state

    @property
    def rests(self) -> bool:
        """Whether nothing more comes before somebody acts: it has ended, or waits for the peer."""
        return self.state in content.FINAL or self.state in content.WAITING


def context_of(task: Task) -> str:
    """The context that the peer named; a task without one is its own."""
    given = origin_of(task).get("contextId")
    return given if isinstance(given, str) and given else task.id


def origin_of(task: Task) -> dict[str, Any]:
    """What the task keeps of the message that it came with."""
    found = task.metadata.get(ORIGIN)
    return found if isinstance(found, dict) else {}


def view_task(fabric: Fabric, task_id: str, *, history: int | None = None, artifacts: bool = True) -> TaskView:
    """The task as it is now, with the last messages: as many as `history` says."""
    task = fabric.get(task_id)
    events = list(fabric.events(task_id=task.id))
    numbered = _messages(task, events)
    messages = [message for _, message in numbered]
    status = TaskStatus(state=content.state_of(task))
    status.timestamp.FromJsonString(task.updated_at)
    if messages and messages[-1].role == Role.ROLE_AGENT:
        status.message.CopyFrom(messages[-1])
    view = PeerTask(id=task.id, context_id=context_of(task), status=status)
    wanted = _MOST_MESSAGES if history is None else min(history, _MOST_MESSAGES)
    view.history.extend(messages[-wanted:] if wanted else ())
    if artifacts and task.status == "done":
        view.artifacts.extend(_artifacts(fabric, task, events))
    moved = max((event.seq for event in events if event.type in _MOVES), default=task.rev)
    ours = tuple((seq, message) for seq, message in numbered if message.role == Role.ROLE_AGENT)
    return TaskView(view, task.rev, ours, moved)


def _messages(task: Task, events: Iterable[Event]) -> list[tuple[int, Message]]:
    """The messages of the peer and of us, in order, each with the number of its event; ours are named by it."""
    found: dict[str, tuple[int, Message]] = {}
    for event in events:
        from_peer = _message_from_peer(event)
        message_id, text = from_peer or (None, _message_from_us(event))
        name = message_id or f"{task.id}-{event.seq}"
        if text and name not in found:  # a later edit of the metadata repeats what the peer has sent
            message = text_message(name, text, task_id=task.id, context_id=context_of(task), ours=from_peer is None)
            found[name] = (event.seq, message)
    return list(found.values())


def _message_from_peer(event: Event) -> tuple[str | None, str] | None:
    """The ID and the text of what the peer sent, if an event tells of that."""
    if event.type == "task.created":
        task = event.payload["task"]
        origin = task.get("metadata", {}).get(ORIGIN, {})
        return origin.get("messageId"), description(task.get("body", "")).strip() or task["title"]
    if event.type == "task.updated":
        given = (event.payload["changes"].get("metadata") or {}).get(ORIGIN, {}).get("input")
        return (given["messageId"], given["text"]) if isinstance(given, dict) else None
    return None


def _message_from_us(event: Event) -> str:
    """What an event tells the peer; empty for most."""
    payload, text = event.payload, ""
    match event.type:
        case "task.progress":
            text = payload.get("text", "")
        case "task.question.asked":
            text = payload["question"]["text"]
        case "task.completed":
            text = payload["result"].get("notes", "")
        case "task.transitioned" if payload["to"] == "blocked":
            text = payload["blocked"]["reason"]
        case "task.transitioned" if payload["to"] == "deadletter":
            text = payload.get("error", {}).get("message") or payload.get("reason", "")
    return text


def _artifacts(fabric: Fabric, task: Task, events: Iterable[Event]) -> list[Artifact]:
    """What the last result names: its notes, and each file as far as all together are not too large."""
    results = [event.payload["result"] for event in events if event.type == "task.completed"]
    if not results:
        return []
    notes = results[-1].get("notes") or ""
    found = [Artifact(artifact_id="summary", name="summary", parts=[Part(text=notes)])] if notes else []
    left = _MOST_BYTES
    for path in results[-1].get("deliverables") or ():
        part, size = _file(fabric, task, path, left)
        left -= size
        found.append(Artifact(artifact_id=path, name=os.path.basename(path), parts=[part]))
    return found


def _file(fabric: Fabric, task: Task, path: str, most: int) -> tuple[Part, int]:
    """One file among the task's own, never through a link, and its size.

    Where it cannot be sent, a note says why in its place; a peer must not take that for the file.
    """
    missing, data = "", b""
    try:
        folder = folder_of(fabric, task)
        opened = ConfinedFolder(folder).open(os.path.normpath(f"{folder}/{path}"), os.O_RDONLY | os.O_NONBLOCK)
        with open(opened, "rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        missing = f"{path} cannot be read: {error.strerror}"
    if len(data) > most:
        missing = f"{path} is too large to be sent"
    if missing:
        part = Part(text="", filename=os.path.basename(path))
        part.metadata.update({"missing": missing})
        return part, 0
    kind = mimetypes.guess_type(path)[0]
    try:
        part = Part(text=data.decode("utf-8"), media_type=kind or "text/plain")
    except UnicodeDecodeError:
        part = Part(raw=data, media_type=kind or "application/octet-stream")
    part.filename = os.path.basename(path)
    return part, len(data)


class PeerUpdate(msgspec.Struct, frozen=True):
    """One update of a task, its ID, and the number of the event up to which the peer then knows everything."""

    event: TaskStatusUpdateEvent | TaskArtifactUpdateEvent
    event_id: str
    seq: int

    @property
    def response(self) -> StreamResponse:
        """As it is sent, to a stream or an address."""
        if isinstance(self.event, TaskStatusUpdateEvent):
            return StreamResponse(status_update=self.event)
        return StreamResponse(artifact_update=self.event)


def updates(view: TaskView, seq: int, state: int) -> list[PeerUpdate]:
    """What a peer has not heard of that knows everything up to the event `seq`, and the state of the task then."""
    task, found = view.task, list[PeerUpdate]()

    def add(update: TaskStatusUpdateEvent | TaskArtifactUpdateEvent, event_id: str, known: int) -> None:
        update.metadata.update({EVENT_ID: event_id})
        found.append(PeerUpdate(update, event_id, known))

    new = [(number, message) for number, message in view.ours if number > seq]
    known = seq
    for number, message in new[:-1] if task.status.HasField("message") else new:
        status = TaskStatus(state=cast("TaskState", state), timestamp=task.status.timestamp, message=message)
        known = number
        update = TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=status)
        add(update, message.message_id, known)
    if state != TaskState.TASK_STATE_COMPLETED:
        for artifact in task.artifacts:
            whole = TaskArtifactUpdateEvent(
                task_id=task.id, context_id=task.context_id, artifact=artifact, last_chunk=True
            )
            add(whole, f"{task.id}-{view.moved}-{hexdigest(artifact.artifact_id.encode())[:12]}", known)
    if new or state != view.state:
        last = max([view.moved, *(number for number, _ in new)])
        update = TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=task.status)
        add(update, f"{task.id}-{last}-state", view.seq)
    return found
