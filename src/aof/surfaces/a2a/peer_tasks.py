"""Tasks that peers have given us: how a peer sees them, the updates for one that follows, and what its messages do.

A message becomes a new task, an answer to a question, or more of a description; its files are kept with the task.
"""

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
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import Error, MessageToDict

from aof.api.call import Caller, parameters, perform
from aof.api.catalogue import BY_NAME
from aof.api.fabric import Fabric
from aof.errors import NotFound
from aof.kernel.events import Event
from aof.kernel.model import FINISHED, is_task_id
from aof.support.confined_folder import ConfinedFolder
from aof.support.hashing import hexdigest
from aof.support.printable import clean
from aof.surfaces.a2a import content
from aof.surfaces.a2a.content import folder_of, is_readable, text_message, text_of
from aof.tasks.body import description
from aof.tasks.model import Task
from aof.workflows.control import ANSWER

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


_TITLE: Final = 120  # characters of the first line
_ANSWER: Final = 10_000  # characters of an answer to a question, which the task's frontmatter holds
_NAME: Final = 256  # characters of an ID that a peer chose
_WISHES: Final = ("agent", "role", "team", "priority", "tags")  # what a peer may ask for, as far as its rights go
_FOLDER: Final = "inputs/peer"
_PER_MESSAGE, _PER_TASK = 20, 100  # files
_BYTES, _TASK_BYTES = 8_000_000, 64_000_000  # a request of the HTTP server holds no more, encoded


class PeerInbox:
    """Takes what peers send."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric

    def receive(self, message: Message, caller: Caller) -> str:
        """Make a task of the message, or pass it to the task that it names; returns its ID. Twice is once."""
        files = _attachments(message)
        text = _text(message, files)
        key = f"a2a-{hexdigest(f'{caller.actor} {message.message_id}'.encode())[:40]}"
        if not message.task_id:
            task_id = self._create(message, text, caller, key, draft=bool(files))
            self._attach(task_id, files, caller)
            if files:
                self._release(task_id, caller, key)
            return task_id
        task = self.own(message.task_id, caller)
        count, size = content.size_of(f"{content.folder_of(self._fabric, task)}/{_FOLDER}")
        if files and (count + len(files) > _PER_TASK or size + sum(len(one.data) for one in files) > _TASK_BYTES):
            raise InvalidParamsError(f"a task takes up to {_PER_TASK} files with {_TASK_BYTES:,} bytes together")
        known = self._check_answer(task, message, text, key)
        self._attach(task.id, files, caller)
        self._answer(task, message, text, caller, key, known=known)
        return task.id

    def own(self, task_id: str, caller: Caller) -> Task:
        """The task, if this caller has given it to us; raises TaskNotFoundError for any other."""
        try:
            task = self._fabric.get(task_id) if is_task_id(task_id) else None
        except NotFound:
            task = None
        if task is None or not is_own(task, caller):
            raise TaskNotFoundError(f"there is no task {task_id[:80]!r} of {caller.actor}")
        return task

    def cancel(self, task_id: str, caller: Caller) -> None:
        """Cancel a task of the caller; one that is cancelled already stays so."""
        task = self.own(task_id, caller)
        if task.status in FINISHED and task.status != "cancelled":
            raise TaskNotCancelableError(f"{task.id} has ended already: {task.status}")
        if task.cancel is None:
            self._do("cancel", _for_own(caller), taskId=task.id, reason=f"cancelled by {caller.actor} over A2A")

    def _create(self, message: Message, text: str, caller: Caller, key: str, *, draft: bool) -> str:
        """A task whose files are still to be written is a draft: nobody begins it before they are there."""
        wishes = _wishes(message)
        title = clean(next(line for line in text.splitlines() if line.strip()).strip(" #\t"))
        origin = {"messageId": message.message_id}
        if message.context_id:
            origin["contextId"] = message.context_id
        made = self._do(
            "create",
            msgspec.structs.replace(caller, conversation=message.context_id or None),
            **wishes | {"tags": [ORIGIN, *wishes.get("tags", ())]},
            title=title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…",
            brief=text,
            metadata={ORIGIN: origin} | ({"draft": True} if draft else {}),
            key=key,
        )
        return str(made.task_id)

    def _release(self, task_id: str, caller: Caller, key: str) -> None:
        """Make the task claimable, once; if somebody makes it a draft again later, it stays one."""
        if self._fabric.get(task_id).metadata.get("draft"):
            self._do("edit", caller, taskId=task_id, metadata={"draft": None}, key=f"{key}-files")
        if self._fabric.get(task_id).status == "backlog":
            self._do("update", _for_own(caller), taskId=task_id, status="ready", key=f"{key}-ready")

    def _attach(self, task_id: str, files: tuple[Attachment, ...], caller: Caller) -> None:
        """Keep the files, and refer to them with their digests. A message that comes again finds all of it done."""
        if files and self._fabric.get(task_id).status not in FINISHED:
            content.save_files(self._fabric, task_id, {one.path: one.data for one in files})
            for one in files:
                reason = f"sent by {caller.actor} over A2A"
                self._do("link", caller, taskId=task_id, kind="consumed_artifact", target=one.path, reason=reason)

    def _check_answer(self, task: Task, message: Message, text: str, key: str) -> bool:
        """Whether the answer is known already; raises where the task cannot take it."""
        if message.context_id and message.context_id != context_of(task):
            raise InvalidParamsError(f"{task.id} belongs to the context {context_of(task)!r}")
        known = any(one.value == key for one in task.requests)
        if task.status in FINISHED and not known:
            raise UnsupportedOperationError(f"{task.id} has ended: {task.status}; send a message without a task ID")
        if len(text) > _ANSWER:
            raise InvalidParamsError(f"the message has {len(text):,} characters, the limit is {_ANSWER:,}")
        return known

    def _answer(self, task: Task, message: Message, text: str, caller: Caller, key: str, *, known: bool) -> None:
        """Add what the peer says to the description of the task, where the next run reads it."""
        if not known:
            whole = f"{description(task.body).rstrip()}\n\n**{caller.actor}:** {text}\n"
            origin = origin_of(task) | {"input": {"messageId": message.message_id, "text": text}}
            self._do("edit", caller, taskId=task.id, description=whole, metadata={ORIGIN: origin}, key=key)
        if task.open_questions:
            question, short = task.open_questions[0].id, text[:ANSWER]
            self._do("answer", caller, taskId=task.id, question=question, text=short, key=f"{key}-on")
        elif task.blocked is not None and task.blocked.kind == "waiting_input":
            self._do("unblock", caller, taskId=task.id, key=f"{key}-on")

    def _do(self, name: str, caller: Caller, **given: Any) -> Any:
        operation = BY_NAME[name]
        return perform(self._fabric, operation, parameters(operation, given), caller)


def is_own(task: Task, caller: Caller) -> bool:
    """Whether the caller has given us this task over A2A."""
    return task.created_by == caller.actor and bool(origin_of(task))


def _for_own(caller: Caller) -> Caller:
    """A token for work may cancel no task; the one task that its peer has made is an exception, as A2A has it."""
    return msgspec.structs.replace(caller, scope="lead") if caller.scope == "work" else caller


def _text(message: Message, files: tuple[Attachment, ...]) -> str:
    """What the message says, with a list of its files; raises an error of the protocol where nothing can be read."""
    if not message.message_id or max(len(message.message_id), len(message.context_id)) > _NAME:
        raise InvalidParamsError(f"a message needs an ID, and no ID may have more than {_NAME} characters")
    if any(not is_readable(part) for part in message.parts):
        raise ContentTypeNotSupportedError("a part is empty or no JSON; send text, data, a file or a link")
    text = text_of(message.parts)
    if files:
        lines = [f"- `{one.path}` ({len(one.data):,} bytes, sha256 {one.sha256})" for one in files]
        text = "\n\n".join((text or "See the attached files.", "Attached files:", "\n".join(lines)))
    if not text:
        raise InvalidParamsError("the message says nothing; send a part with text")
    return text


def _wishes(message: Message) -> dict[str, Any]:
    """What the message's metadata asks for under the key `aof`; the rights of the caller decide."""
    try:
        given = MessageToDict(message.metadata).get("aof", {})
    except (ValueError, Error):
        raise InvalidParamsError("the metadata has numbers that JSON has not") from None
    if not isinstance(given, dict) or set(given) - set(_WISHES):
        raise InvalidParamsError(f"the metadata 'aof' may have the keys {', '.join(_WISHES)}")
    if not isinstance(given.get("tags", []), list):
        raise InvalidParamsError("the tags of the metadata 'aof' must be a list")
    return given


class Attachment(msgspec.Struct, frozen=True):
    """One file: where it will lie below the task's folder, its bytes and their digest."""

    path: str
    data: bytes
    sha256: str


def _attachments(message: Message) -> tuple[Attachment, ...]:
    """The files of a message; raises InvalidParamsError where they are too many or too large."""
    files = [part for part in message.parts if part.WhichOneof("content") == "raw"]
    if len(files) > _PER_MESSAGE or sum(len(part.raw) for part in files) > _BYTES:
        raise InvalidParamsError(f"a message has up to {_PER_MESSAGE} files with {_BYTES:,} bytes together")
    found = dict[str, Attachment]()
    for part in files:
        digest = hexdigest(part.raw)
        path = f"{_FOLDER}/{content.safe_name(part.filename or 'file', digest)}"
        found[path] = Attachment(path, bytes(part.raw), digest)
    return tuple(found.values())
