"""Drafts become events: what every store does with the outcome of a decision. Must not know where the events go."""

from __future__ import annotations

from aof.core.model.events import Draft, Event


def numbered(
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
