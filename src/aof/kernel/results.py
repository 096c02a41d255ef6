"""What operations answer, in the names that every surface uses. Must not know any surface."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from aof.errors import Call
from aof.kernel.kinds import Status, Stream
from aof.support.answer import StructAnswer


def without_secret(self: msgspec.Struct) -> str:
    """How a result shows itself, in a log for example: without its secret."""
    values = ((one.name, getattr(self, one.name), one.default) for one in msgspec.structs.fields(self))
    shown = (f"{name}={value!r}" for name, value, default in values if name != "secret" and value is not default)
    return f"{type(self).__name__}({', '.join(shown)})"


class Result(StructAnswer, frozen=True, kw_only=True, rename="camel", repr_omit_defaults=True):
    """Common form of the answers that are no records."""


class Warned(Result, frozen=True, kw_only=True):
    """Something that was done all the same, and that somebody should look at."""

    code: str
    message: str
    hint: str


class Created(Result, frozen=True, kw_only=True, omit_defaults=True):
    """A task that is durable; `waits` says what it waits for. The warning says that nobody could take it."""

    task_id: str
    status: Status
    file_path: str
    waits: str | None = None
    warning: Warned | None = None


class Claimed(Result, frozen=True, kw_only=True, omit_defaults=True):
    """A run that the caller now holds. The secret proves it, and can be read only here; a repeated claim has none.

    `held` says that it was the caller's already, `kept` that it outlives the session.
    """

    task_id: str
    run_id: str
    epoch: int
    attempt: int
    expires_at: str
    file_path: str
    hop: str | None = None
    held: bool = False
    kept: bool = False
    secret: str | msgspec.UnsetType = msgspec.UNSET

    __repr__ = without_secret


class Primed(Result, frozen=True, kw_only=True):
    """What an agent needs to know when its session begins."""

    text: str


class Printed(Result, frozen=True, kw_only=True):
    """A piece of what a run printed; the next one begins at `nextOffset`, and `ended` says that there is none."""

    task_id: str
    run_id: str
    attempt: int
    stream: Stream
    offset: int
    next_offset: int
    size: int
    ended: bool
    text: str


class Beaten(Result, frozen=True, kw_only=True):
    """A lease that lasts longer now."""

    task_id: str
    run_id: str
    expires_at: str


class Moved(Result, frozen=True, kw_only=True):
    """Where the task is now."""

    task_id: str
    status: Status


class Assigned(Moved, frozen=True, kw_only=True, omit_defaults=True):
    """Where the task is now, and the agent that it is reserved for, if there is one."""

    agent: str | None = None


class Released(Moved, frozen=True, kw_only=True, omit_defaults=True):
    """Where the task is now; if it was to wait for its children, also for which, and none where all have ended."""

    waits_for: tuple[str, ...] | None = None


class Failed(Moved, frozen=True, kw_only=True, omit_defaults=True):
    """Where the task is now; and if it is retried after a pause, when it can be claimed again."""

    not_before: str | None = None


class NextHop(Result, frozen=True, kw_only=True, omit_defaults=True):
    """A hop that the task waits at now: to be taken (`ready`) or approved (`review`), by one of these agents.

    Where no agent is named, whoever says to have the role may.
    """

    hop: str
    status: str
    role: str
    agents: tuple[str, ...] = ()


class Completed(Moved, frozen=True, kw_only=True, omit_defaults=True):
    """Where the task is now; in a workflow also which hops are next, and who may take them.

    `approved` says that the call has accepted the work of somebody else, which was in review, `sentBack` at which hops
    rejected work begins again, and `note` in words what follows.
    """

    next: tuple[NextHop, ...] | None = None
    approved: bool = False
    sent_back: tuple[str, ...] | None = None
    note: str | None = None


class TaskTemplate(Result, frozen=True, kw_only=True, omit_defaults=True):
    """A template for new tasks, what it is for, and why it cannot be used where that is so."""

    name: str
    path: str
    about: str = ""
    problem: str | None = None


class TaskTemplates(Result, frozen=True, kw_only=True):
    """All templates for new tasks."""

    templates: tuple[TaskTemplate, ...]


class Commented(Result, frozen=True, kw_only=True):
    """Where the task is that was commented on, and how many comments it has now."""

    task_id: str
    status: Status
    comments: int


class Updated(Result, frozen=True, kw_only=True):
    """What an update really changed; with the secret of a run that it began."""

    task_id: str
    status: Status
    updated_at: str
    body_updated: bool
    transitioned: bool
    secret: str | msgspec.UnsetType = msgspec.UNSET

    __repr__ = without_secret


class Edited(Result, frozen=True, kw_only=True):
    """Which fields an edit changed."""

    task_id: str
    updated_fields: tuple[str, ...]
    task: dict[str, str]


class Depends(Result, frozen=True, kw_only=True):
    """What the task now waits for."""

    task_id: str
    blocker_id: str
    depends_on: tuple[str, ...]


class Reported(Result, frozen=True, kw_only=True):
    """The progress as it now reads."""

    task_id: str
    progress: dict[str, Any]


class GivenAnswer(Result, frozen=True, kw_only=True):
    """An answer to a question. Its text is by others."""

    text: str
    by: str
    at: str


class AskedQuestion(Result, frozen=True, kw_only=True, omit_defaults=True):
    """A question and, once it is `answered`, its answer; until then `note` says how to get it."""

    task_id: str
    status: Status
    question: str
    answered: bool
    answer: GivenAnswer | None = None
    note: str | None = None


class Answered(Result, frozen=True, kw_only=True, omit_defaults=True):
    """Which question was answered, who had asked it, and where the task is now.

    `noneOf` has the suggested answers where this is none of them; it counts all the same.
    """

    task_id: str
    status: Status
    question: str
    asked_by: str
    none_of: tuple[str, ...] | None = None


class Recovered(Result, frozen=True, kw_only=True):
    """A run whose lease had ended, and where its task went; where it had to be left, it is still in-progress."""

    task_id: str
    status: Status
    reason: str


class Sent(Result, frozen=True, kw_only=True):
    """What became of a message: `accepted`, `noop`, `rejected`, `unknown` (its type) or `ignored` (none of ours).

    `reason` says why it was refused, or why something else was done than asked. `run_id` is the run that it began, and
    `secret` what proves to be that run's holder.
    """

    outcome: Literal["accepted", "noop", "rejected", "unknown", "ignored"]
    type: str | None = None
    task_id: str | None = None
    reason: str | None = None
    detail: str | msgspec.UnsetType = msgspec.UNSET
    hint: str | msgspec.UnsetType = msgspec.UNSET
    call: Call | msgspec.UnsetType = msgspec.UNSET
    run_id: str | msgspec.UnsetType = msgspec.UNSET
    secret: str | msgspec.UnsetType = msgspec.UNSET

    __repr__ = without_secret


class Applied(Result, frozen=True, kw_only=True):
    """A run that has ended, and where its task went; `hop` is the one that it was about, where there are any."""

    task_id: str
    from_status: str = msgspec.field(name="from")
    to_status: str = msgspec.field(name="to")
    outcome: str
    hop: str | msgspec.UnsetType = msgspec.UNSET
