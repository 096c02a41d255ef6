"""The messages of peers as operations on tasks: new tasks, answers to questions, cancellations; and their files."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from a2a.types import Message
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
from aof.kernel.model import FINISHED, is_task_id
from aof.support.hashing import hexdigest
from aof.support.printable import clean
from aof.surfaces.a2a import content
from aof.surfaces.a2a.content import is_readable, text_of
from aof.surfaces.a2a.task_view import ORIGIN, context_of, origin_of
from aof.tasks.body import description
from aof.tasks.model import Task
from aof.workflows.control import ANSWER

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
