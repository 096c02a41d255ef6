"""Mail, charter and shared context that several clones wrote to: furthest status, first charter, last value.

An acknowledgement is a line that is added; only the status that it sets may be behind what others have set meanwhile.
Must not know how a document is written.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.documents.mailbox import facts
from aof.core.engine.merge.commits.lanes import CommitPlace, Span
from aof.core.engine.merge.model import Clash
from aof.core.engine.merge.notes import Notes
from aof.core.model.events import Event

SUPERSEDED: Final = "document.superseded"
CHARTER: Final = "document.charter.created"
_FURTHEST: Final = ("unread", "acknowledged", "blocked", "actioned", "closed")
_replace = msgspec.structs.replace


class DocumentStatuses:
    """What the commits so far have said in documents."""

    def __init__(self, span: Span, notes: Notes) -> None:
        self._span = span
        self._notes = notes
        self._statuses: dict[str, str] = {}
        self._charters: list[CommitPlace] = []
        self._variables: dict[tuple[str, str], tuple[CommitPlace, Any]] = {}

    def settled(self, said: Event, place: CommitPlace) -> Event:
        """The event as it stands behind what other clones have said."""
        if said.type == CHARTER:
            return self._charter(said, place)
        if said.type in (facts.CHANGED, facts.CLOSED):
            return self._changed(said)
        return said

    def share(self, said: Event, place: CommitPlace) -> None:
        """A variable of a shared context: the later value stands, and the other one is named."""
        self._set(said.task_id, f"context.{said.payload['name']}", said.payload.get("value"), place)

    def answer(self, said: Event, place: CommitPlace) -> None:
        """An answer to a question: the same holds."""
        self._set(said.task_id, f"question.{said.payload['question']}", said.payload["text"], place)

    def _set(self, task_id: str, field: str, value: Any, place: CommitPlace) -> None:
        last, other = self._variables.get((task_id, field), (None, value))
        if last is not None and not self._span.saw(place, last) and other != value:
            self._notes.clash(task_id, [Clash(field=field, kept=value, other=other)])
        self._variables[task_id, field] = (place, value)

    def _charter(self, said: Event, place: CommitPlace) -> Event:
        unseen = any(not self._span.saw(place, other) for other in self._charters)
        if unseen:
            self._notes.general.append(f"the charter was created twice; that of {said.actor} is in the log only")
            return _replace(said, type=SUPERSEDED, payload={"was": said.type, "told": said.payload})
        self._charters.append(place)
        return said

    def _changed(self, said: Event) -> Event:
        name, wanted = said.payload["messageId"], said.payload["status"]
        here = self._statuses.get(name, said.payload["before"])
        if here != said.payload["before"] and _rank(here) > _rank(wanted):
            if said.type == facts.CHANGED:
                return _replace(said, payload=said.payload | {"status": here})
            return said
        self._statuses[name] = wanted
        return said


def _rank(status: str) -> int:
    return _FURTHEST.index(status) if status in _FURTHEST else -1
