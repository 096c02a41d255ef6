"""How a document follows from the log: the contract with the store that keeps its files.

Also who may speak in a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from aof.errors import AofError, Call, NotAllowed
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import OnDocument
from aof.kernel.model import Event, Policy
from aof.org import rights

LOCK = "document:"


class Files(Protocol):
    """The files of a document, read when they are asked for. `note` is the one that was kept; empty if it is lost."""

    note: str

    def text(self, path: str) -> str:
        """The text of a file; empty where there is none."""
        ...


class Facts(Protocol):
    """What a projection may look up, as it is at the moment."""

    def title(self, task_id: str) -> str | None:
        """The title of a task, if it can be told."""
        ...

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The tasks that an agent holds."""
        ...


class PastEvents(msgspec.Struct, frozen=True):
    """The events before the fresh ones, newest first. `applied`: each of them was written to the file once.

    It is given where the file is not as AOF has left it: a person has written it, or nobody knows who has.
    """

    events: Iterator[Event]
    applied: bool


class Extension(msgspec.Struct, frozen=True):
    """Text to add at the end of the document, and the note to keep."""

    text: str
    note: str


class Rewritten(msgspec.Struct, frozen=True):
    """The files that change, in the order in which they have to be written, and the note to keep.

    They are flushed, unless the log has everything that they say: then a power cut may take them.
    """

    texts: dict[str, str]
    note: str = ""
    flushed: bool = True


class Projection(Protocol):
    """One document. `path` is its file in the data directory; `types` are the beginnings of the events it follows.

    The note is whatever the projection wants to know about the file without reading it, in at most 256 characters.
    """

    @property
    def name(self) -> str:
        """What its lock and its events call it."""
        ...

    @property
    def path(self) -> str:
        """Its file, relative to the data directory."""
        ...

    @property
    def types(self) -> tuple[str, ...]:
        """The beginnings of the types of the events that it may follow."""
        ...

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:
        """What the events add at the end of the file, as AOF left it; None where the whole text is needed."""
        ...

    def rewrite(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:
        """The files with what the events say, and with what was written before and is missing at their end.

        Where the past is given, fresh events may stand in the file already: a writer may have died after writing it.
        """
        ...


def lock_of(name: str) -> str:
    """The named lock of a document."""
    return f"{LOCK}{name}"


_NAME = 128


def speaker_refusal(policy: Policy, command: OnDocument) -> AofError | None:
    """Why the caller may not speak as the one that it names, or why that one may not speak at all."""
    named = kernel_limits.line("actor", command.actor, _NAME, required=True) or kernel_limits.names(agent=command.agent)
    if named is not None:
        return named
    agent = command.acting
    bound = policy.binds and command.outside
    if agent != command.actor and bound and not rights.may_act_for(policy, command.actor, agent, None):
        return rights.mismatch(command.actor, agent)
    return stranger(policy, agent)


def stranger(policy: Policy, name: str) -> AofError | None:
    """The refusal of a name that is not in the roster, where there is one."""
    chart = policy.org
    if chart is None or name in chart.by_id or is_maintainer(policy, name):
        return None
    return NotAllowed(
        f"{name[:80]} is neither in the org chart nor a maintainer",
        "use the name of an agent of the chart; see who there is",
        Call("org_show", {}),
        agent=name[:80],
    )


def is_maintainer(policy: Policy, name: str) -> bool:
    """Whether the settings name somebody as a maintainer."""
    return name in policy.maintainers


def not_maintainer(policy: Policy, command: OnDocument, what: str) -> NotAllowed | None:
    """The refusal of what only a maintainer may do; where the settings name none, everybody may."""
    if not policy.has_maintainers or is_maintainer(policy, command.acting):
        return None
    return NotAllowed(
        f"{command.acting[:80]} is no maintainer and may not {what}",
        f"let a maintainer do it: {', '.join(policy.maintainers[:5]) or 'one whose name is proven'}",
        agent=command.acting[:80],
    )
