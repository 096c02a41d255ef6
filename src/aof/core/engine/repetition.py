"""Requests with an idempotency key: the same request again has no second effect and gives the same answer.

A task remembers its last requests, so a key is looked up where the command is decided anyway, under the task's own
lock. Creating and claiming have rules of their own, because their keys are not about a task that is known beforehand.
Must not know what a command does.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof._support.hashing import hexdigest
from aof.core.errors.base import AofError, Call
from aof.core.errors.tasks import KeyConflict
from aof.core.model.commands import Claim, Create, OnTask
from aof.core.model.events import Draft
from aof.core.model.records import Decision, Verdict
from aof.core.model.task import Task
from aof.core.validation import limits

_CALLER: Final = ("actor", "run", "proven", "proof", "outside", "session", "vouched", "limited", "secret_digest", "key")
_CIRCUMSTANCES: Final = ("expect_rev", "undoes")


def repeated(task: Task | None, command: OnTask) -> Verdict | None:
    """The answer to a request that was carried out before; None for one that is new or has no key."""
    if command.key is None or isinstance(command, (Create, Claim)):
        return None
    if problem := limits.key(command.key):
        return problem
    known = next((one for one in task.requests if one.value == command.key), None) if task is not None else None
    if known is None:
        return None
    if known.digest == digest(command):
        return Decision(repeats=command.key)
    return KeyConflict(
        f"the key '{command.key}' already stands for another request on {command.task_id}",
        "use a new key for a new request",
        Call("log", {"task_id": command.task_id}),
        task_id=command.task_id,
    )


def remembered(verdict: Verdict, command: OnTask) -> Verdict:
    """The decision with its request on record, also where the request changes nothing; a refusal is none."""
    if command.key is None or isinstance(verdict, AofError) or isinstance(command, (Create, Claim)):
        return verdict
    if verdict.refusal is not None:
        return verdict
    request = {"idempotency": {"value": command.key, "digest": digest(command)}}
    if (keyed := verdict.annotated(command.task_id, request)) is not None:
        return keyed
    noted = Draft(type="task.request.answered", task_id=command.task_id, payload=request)
    return msgspec.structs.replace(verdict, drafts=(noted, *verdict.drafts))


def digest(command: OnTask) -> str:
    """What makes two requests with one key the same request: what is asked, not who asks."""
    said: dict[str, Any] = msgspec.to_builtins(command, order="deterministic")
    for name in (*_CALLER, *_CIRCUMSTANCES):
        said.pop(name, None)
    return hexdigest(msgspec.json.encode([type(command).__name__, said]))[:32]
