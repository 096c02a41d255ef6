"""Events: what has happened, as facts that never change, and drafts of them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.support.answer import StructAnswer

SCHEMA_VERSION: Final = 1
DELEGATED: Final = "task.delegated"  # part of a task has gone to a child, or a worker was started for it
SUPERSEDED: Final = (
    "task.superseded"  # what another clone did and does not stand: its type as `was`, the rest as `told`
)
DOCUMENT: Final = "document."  # what the types of events begin with that are about WORKLOG, MAILBOX or charter
_REMARKS: Final = frozenset(
    {
        "protocol.message.received",
        "protocol.message.rejected",
        "protocol.message.unknown",
        "task.warning",
        "context.conflict",
        "context.refused",
        "file.refused",
        "http.authentication.failed",
        "a2a.push.set",
        "a2a.push.dropped",
        "agent.turn.began",
        "agent.turn.ended",
        "agent.unavailable",
        "agent.available",
        "handoff.refused",
    }
)


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision wants recorded: an event that has no place in the log yet."""

    type: str
    task_id: str
    run_id: str | None = None
    payload: dict[str, Any] = {}


class Event(StructAnswer, msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One line of the log.

    `actor` gave the command, `agent` is for whom where that is another, and `called_by` is whose session, token or run
    it came by where that is another than the actor. `commit` is the place within the commit, such as (1, 3). `files`
    holds the SHA-256 of each file that the event writes. `layout` is the frontmatter as a person laid it out, where one
    did.
    """

    seq: int
    type: str
    timestamp: str
    actor: str
    agent: str | None = None
    called_by: str | None = None
    task_id: str
    run_id: str | None = None
    payload: dict[str, Any] = {}
    commit: tuple[int, int]
    files: dict[str, str] = {}
    layout: str | None = None
    hash: str = ""

    @property
    def begins(self) -> int:
        """The number of the first event of its commit."""
        return self.seq - self.commit[0] + 1


def as_written(event: Event) -> Event:
    """The event as its author wrote it, also where a merge of histories has superseded it."""
    if event.type != SUPERSEDED:
        return event
    payload = event.payload
    beside = {name: value for name, value in payload.items() if name not in ("was", "told")}
    return msgspec.structs.replace(event, type=payload["was"], payload=payload["told"] | beside)


def about_handoff(event: Event) -> bool:
    """Whether the event may change the record of a handoff, which it then names."""
    return event.type.startswith(("delegation.", "handoff.")) and "handoffId" in event.payload


def is_remark(fact: Draft | Event) -> bool:
    """Whether it only says something: about a task, which may not even exist, or about none. It changes no record.

    A delegation that concerns no handoff, such as the refusal of one, is such a remark too, and so is what is said in
    a document.
    """
    if fact.type.startswith("delegation."):
        return "handoffId" not in fact.payload
    return fact.type in _REMARKS or fact.type.startswith(DOCUMENT)


def number_events(
    drafts: tuple[Draft, ...],
    *,
    actor: str,
    agent: str | None,
    timestamp: str,
    last: int,
    caller: str | None = None,
) -> list[Event]:
    """The events of one commit, counted on from the last number."""
    size = len(drafts)
    acting = agent if agent != actor else None
    return [
        Event(
            seq=last + place,
            type=draft.type,
            timestamp=timestamp,
            actor=actor,
            agent=acting,
            called_by=caller if caller != actor else None,
            task_id=draft.task_id,
            run_id=draft.run_id,
            payload=draft.payload,
            commit=(place, size),
        )
        for place, draft in enumerate(drafts, 1)
    ]
