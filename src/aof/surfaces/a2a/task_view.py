"""A task of ours as a peer sees it: state, history and artifacts, and what a follower has not been told yet."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Callable, Iterable
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
from google.protobuf.timestamp_pb2 import Timestamp

from aof.api.fabric import Fabric
from aof.kernel.model import Event
from aof.support.confined_folder import ConfinedFolder
from aof.support.hashing import hexdigest
from aof.surfaces.a2a import content
from aof.surfaces.a2a.content import folder_of, text_message
from aof.tasks.body import description
from aof.tasks.model import Task

ORIGIN: Final = "a2a"  # the key of a task's metadata, and the tag of every task that came from a peer
MOST_MESSAGES: Final = 200
_MOVES: Final = frozenset({"task.created", "task.restored", "task.transitioned"})
MOST_BYTES: Final = 4 * 1024 * 1024  # of all artifacts together


class TaskView(msgspec.Struct, frozen=True):
    """A task at one moment, as a peer sees it.

    `said` are all of our messages, each with the number of its event; `moved` is the number of the event that brought
    the task to its status.
    """

    task: PeerTask
    seq: int
    said: tuple[tuple[int, Message], ...] = ()
    moved: int = 0

    @property
    def state(self) -> TaskState:
        """Its state."""
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


def seen(fabric: Fabric, task_id: str, *, history: int | None = None, artifacts: bool = True) -> TaskView:
    """The task as it is now. `history` limits how many of the last messages are told."""
    task = fabric.get(task_id)
    events = list(fabric.events(task_id=task.id))
    numbered = _messages(task, events)
    told = [one for _, one in numbered]
    status = TaskStatus(state=content.state_of(task), timestamp=_moment(task.updated_at))
    if told and told[-1].role == Role.ROLE_AGENT:
        status.message.CopyFrom(told[-1])
    shown = PeerTask(id=task.id, context_id=context_of(task), status=status)
    wanted = MOST_MESSAGES if history is None else min(history, MOST_MESSAGES)
    shown.history.extend(told[-wanted:] if wanted else ())
    if artifacts and task.status == "done":
        shown.artifacts.extend(_artifacts(fabric, task, events))
    moved = max((event.seq for event in events if event.type in _MOVES), default=task.rev)
    said = tuple((seq, one) for seq, one in numbered if one.role == Role.ROLE_AGENT)
    return TaskView(shown, task.rev, said, moved)


def _moment(text: str) -> Timestamp:
    moment = Timestamp()
    moment.FromJsonString(text)
    return moment


def _messages(task: Task, events: Iterable[Event]) -> list[tuple[int, Message]]:
    """All that was said, by the peer and by us, in order, each with the number of its event; ours are named by it."""
    found: dict[str, tuple[int, Message]] = {}
    for event in events:
        for ours, message_id, text in _said(event):
            name = message_id or f"{task.id}-{event.seq}"
            if name not in found:  # a later edit of the metadata tells what the peer has said once more
                said = text_message(name, text, task_id=task.id, context_id=context_of(task), ours=ours)
                found[name] = (event.seq, said)
    return list(found.values())


def _said(event: Event) -> list[tuple[bool, str | None, str]]:
    teller = _TELLERS.get(event.type)
    return [one for one in teller(event.payload) if one[2]] if teller is not None else []


def _created(payload: dict[str, Any]) -> list[tuple[bool, str | None, str]]:
    given = payload["task"]
    origin = given.get("metadata", {}).get(ORIGIN, {})
    return [(False, origin.get("messageId"), description(given.get("body", "")).strip() or given["title"])]


def _updated(payload: dict[str, Any]) -> list[tuple[bool, str | None, str]]:
    said = (payload["changes"].get("metadata") or {}).get(ORIGIN, {}).get("input")
    return [(False, said["messageId"], said["text"])] if isinstance(said, dict) else []


def _moved(payload: dict[str, Any]) -> list[tuple[bool, str | None, str]]:
    if payload["to"] == "blocked":
        return [(True, None, payload["blocked"]["reason"])]
    if payload["to"] == "deadletter":
        return [(True, None, payload.get("error", {}).get("message") or payload.get("reason", ""))]
    return []


_TELLERS: dict[str, Callable[[dict[str, Any]], list[tuple[bool, str | None, str]]]] = {
    "task.created": _created,
    "task.updated": _updated,
    "task.progress": lambda payload: [(True, None, payload.get("text", ""))],
    "task.question.asked": lambda payload: [(True, None, payload["question"]["text"])],
    "task.transitioned": _moved,
    "task.completed": lambda payload: [(True, None, payload["result"].get("notes", ""))],
}


def _artifacts(fabric: Fabric, task: Task, events: Iterable[Event]) -> list[Artifact]:
    """What the last result names: its notes, and each file as far as all together are not too large."""
    results = [event.payload["result"] for event in events if event.type == "task.completed"]
    if not results:
        return []
    notes = results[-1].get("notes") or ""
    found = [Artifact(artifact_id="summary", name="summary", parts=[Part(text=notes)])] if notes else []
    left = MOST_BYTES
    for path in results[-1].get("deliverables") or ():
        part, size = _file(fabric, task, path, left)
        left -= size
        found.append(Artifact(artifact_id=path, name=os.path.basename(path), parts=[part]))
    return found


def _file(fabric: Fabric, task: Task, path: str, most: int) -> tuple[Part, int]:
    """One file, or a note in its place that says why it is not here; a peer must not take that for the file."""
    try:
        data = _content(fabric, task, path, most)
    except OSError as error:
        return _missing(path, f"{path} cannot be read: {error.strerror}"), 0
    if data is None:
        return _missing(path, f"{path} is too large to be sent"), 0
    kind = mimetypes.guess_type(path)[0]
    try:
        part = Part(text=data.decode("utf-8"), media_type=kind or "text/plain")
    except UnicodeDecodeError:
        part = Part(raw=data, media_type=kind or "application/octet-stream")
    part.filename = os.path.basename(path)
    return part, len(data)


def _missing(path: str, why: str) -> Part:
    part = Part(text="", filename=os.path.basename(path))
    part.metadata.update({"missing": why})
    return part


def _content(fabric: Fabric, task: Task, path: str, most: int) -> bytes | None:
    """The bytes of a file among the task's own, never through a link; None for more than may be sent."""
    folder = folder_of(fabric, task)
    opened = ConfinedFolder(folder).open(os.path.normpath(f"{folder}/{path}"), os.O_RDONLY | os.O_NONBLOCK)
    with open(opened, "rb") as file:
        data = file.read(most + 1)
    return data if len(data) <= most else None


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
