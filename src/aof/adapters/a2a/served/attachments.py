"""Files in a peer's message: bounded, kept among the task's inputs, and listed with their digests in its description.

Must not know what the message becomes.
"""

from __future__ import annotations

from typing import Final

import msgspec
from a2a.types import Message
from a2a.utils.errors import InvalidParamsError

from aof._support.hashing import hexdigest
from aof.adapters.a2a import task_files
from aof.app.fabric import Fabric
from aof.core.model.task import Task

FOLDER: Final = "inputs/peer"
_PER_MESSAGE, _PER_TASK = 20, 100  # files
_BYTES, _TASK_BYTES = 8_000_000, 64_000_000  # a request of the HTTP server holds no more, encoded


class Attachment(msgspec.Struct, frozen=True):
    """One file: where it will lie below the task's folder, its bytes and their digest."""

    path: str
    data: bytes
    sha256: str


def attachments(message: Message) -> tuple[Attachment, ...]:
    """The files of a message; raises InvalidParamsError where they are too many or too large."""
    files = [part for part in message.parts if part.WhichOneof("content") == "raw"]
    if len(files) > _PER_MESSAGE or sum(len(part.raw) for part in files) > _BYTES:
        raise InvalidParamsError(f"a message has up to {_PER_MESSAGE} files with {_BYTES:,} bytes together")
    found = dict[str, Attachment]()
    for part in files:
        digest = hexdigest(part.raw)
        path = f"{FOLDER}/{task_files.safe_name(part.filename or 'file', digest)}"
        found[path] = Attachment(path, bytes(part.raw), digest)
    return tuple(found.values())


def listed(text: str, files: tuple[Attachment, ...]) -> str:
    """What the message says, with its files."""
    if not files:
        return text
    lines = [f"- `{one.path}` ({len(one.data):,} bytes, sha256 {one.sha256})" for one in files]
    return "\n\n".join((text or "See the attached files.", "Attached files:", "\n".join(lines)))


def check_room(fabric: Fabric, task: Task, files: tuple[Attachment, ...]) -> None:
    """Refuse files that would make too many of one task; raises InvalidParamsError."""
    count, size = task_files.size_of(f"{task_files.folder_of(fabric, task)}/{FOLDER}")
    if files and (count + len(files) > _PER_TASK or size + sum(len(one.data) for one in files) > _TASK_BYTES):
        raise InvalidParamsError(f"a task takes up to {_PER_TASK} files with {_TASK_BYTES:,} bytes together")


def save(fabric: Fabric, task_id: str, files: tuple[Attachment, ...]) -> None:
    """Keep them among the task's files; the same again changes nothing."""
    task_files.save(fabric, task_id, {one.path: one.data for one in files})
