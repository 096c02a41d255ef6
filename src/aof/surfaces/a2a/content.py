"""Messages, states and files of the protocol beside ours, for both directions: tasks from peers and tasks to peers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Final, Literal

from a2a.types import Message, Part, Role, TaskState
from google.protobuf import json_format

from aof.api.fabric import Fabric
from aof.support.confined_folder import ConfinedFolder
from aof.support.hashing import hexdigest
from aof.tasks.model import Task

Revision = Literal["1.0", "0.3"]  # of the protocol
INPUT_MODES: Final = ("text/plain", "application/json", "application/octet-stream")
FINAL: Final = frozenset({
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
})  # fmt: skip
WAITING: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
UNKNOWN: Final = "unknown"
_ENDED: Final = {
    "done": TaskState.TASK_STATE_COMPLETED,
    "cancelled": TaskState.TASK_STATE_CANCELED,
    "deadletter": TaskState.TASK_STATE_FAILED,
}
_PREFIX: Final = "TASK_STATE_"
_EXACT: Final = 2**53  # below it a fraction holds every whole number
_NAME: Final = 80  # characters of a file's name
_TRIES: Final = 5  # to write files of a task that is moved meanwhile


def text_of(parts: Iterable[Part]) -> str:
    """All that the parts say: data as JSON, of what lies elsewhere only the address, and nothing of files."""
    texts: list[str] = []
    for part in parts:
        match part.WhichOneof("content"):
            case "text":
                texts.append(part.text.strip())
            case "data" if (data := json_of(part)) is not None:
                texts.append(f"```json\n{data}\n```")
            case "url":
                texts.append(f"See {part.url}")
    return "\n\n".join(text for text in texts if text)


def json_of(part: Part) -> str | None:
    """The data of a part; None where it has numbers that JSON has not."""

    def number(text: str) -> float:
        """Make 3.0 a 3 again: the protocol's library knows only fractions."""
        value = float(text)
        return int(value) if value.is_integer() and abs(value) < _EXACT else value

    try:
        data = json.loads(json_format.MessageToJson(part.data), parse_float=number)
    except (json_format.Error, ValueError):
        return None
    return json.dumps(data, indent=2, ensure_ascii=False)


def is_readable(part: Part) -> bool:
    """Whether it is of a kind that a task can hold, in its description or among its files."""
    kind = part.WhichOneof("content")
    return kind in ("text", "url", "raw") or (kind == "data" and json_of(part) is not None)


def text_message(message_id: str, text: str, *, task_id: str, context_id: str, ours: bool) -> Message:
    """A message of one text, from us or from the peer."""
    role = Role.ROLE_AGENT if ours else Role.ROLE_USER
    return Message(message_id=message_id, role=role, parts=[Part(text=text)], task_id=task_id, context_id=context_id)


def state_of(task: Task) -> TaskState:
    """The state of a task for a peer. One that waits for one of us counts as being worked on."""
    if task.status in _ENDED:
        return _ENDED[task.status]
    if task.open_questions or (task.blocked is not None and task.blocked.kind == "waiting_input"):
        return TaskState.TASK_STATE_INPUT_REQUIRED
    begun = task.retry.attempts > 0 or task.status in ("in-progress", "review")
    return TaskState.TASK_STATE_WORKING if begun else TaskState.TASK_STATE_SUBMITTED


def word_of(state: int) -> str:
    """The peer's own word for a state, as its JSON has it; `unknown` for one that the protocol does not have."""
    if state == TaskState.TASK_STATE_UNSPECIFIED or state not in TaskState.values():
        return UNKNOWN
    name: str = TaskState.Name(state)
    return name.removeprefix(_PREFIX).lower().replace("_", "-")


def folder_of(fabric: Fabric, task: Task) -> str:
    """The folder of the task's own files; it moves with the task."""
    files = fabric.store.working_copy
    assert files is not None, "whoever talks to peers has a data directory"
    return f"{files.root}/{fabric.store.path_of(task).removesuffix('.md')}"


def safe_name(given: str, seed: str) -> str:
    """A digest of the seed, with what is harmless of a name that a peer gave."""
    harmless = re.sub(r"[^A-Za-z0-9._-]+", "-", given).strip(".-")[-_NAME:] or "artifact"
    return f"{hexdigest(seed.encode())[:8]}-{harmless}"


def save_files(fabric: Fabric, task_id: str, files: dict[str, bytes]) -> None:
    """Write files below the folder of a task that others may move meanwhile."""
    for _ in range(_TRIES):
        folder = folder_of(fabric, fabric.get(task_id))
        for path, data in files.items():
            write_file(folder, path, data)
        if folder_of(fabric, fabric.get(task_id)) == folder:
            return


def size_of(folder: str) -> tuple[int, int]:
    """How many files lie directly in a folder, and their bytes together."""
    try:
        with os.scandir(folder) as entries:
            sizes = [entry.stat(follow_symlinks=False).st_size for entry in entries]
    except OSError:
        return 0, 0
    return len(sizes), sum(sizes)


def write_file(folder: str, path: str, data: bytes) -> None:
    """Write one file below a task's folder: whole or not at all, and never through a link."""
    files = ConfinedFolder(os.path.dirname(folder))
    target = f"{folder}/{path}"
    files.make_folders(os.path.dirname(target))
    place, name = files.at(target)
    part = f".{name}.{os.getpid()}.part"
    opened = files.open(f"{os.path.dirname(target)}/{part}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    with open(opened, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
