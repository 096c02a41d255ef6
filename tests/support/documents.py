"""A document as simple as can be, for tests of what keeps documents: one line per event."""

from __future__ import annotations

from collections.abc import Sequence

from aof.documents.projection import Extension, Facts, Files, PastEvents, Projection, Rewritten, lock_of
from aof.kernel.events import Draft, Event
from aof.kernel.model import Policy
from aof.store.port import Scope, Store

NAME, PATH = "NOTES", "NOTES.md"
SCOPE = Scope(names=frozenset({lock_of(NAME)}))


class Notes(Projection):
    """Each event `document.noted` is a line at the end; `document.titled` changes the first line."""

    name, path, types = NAME, PATH, ("document.",)

    def __init__(self, *, whole: bool = False) -> None:
        super().__init__(Policy())
        self.whole = whole
        self.read = 0

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:
        if self.whole or not note or any(event.type == "document.titled" for event in fresh):
            return None
        return Extension("".join(_line(event) for event in fresh), note)

    def updated(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:
        self.read += 1
        text = files.text(PATH) or "# Notes\n"
        missing: list[Event] = []
        for event in past.events if past is not None else ():
            if _line(event) in text:
                break
            missing.insert(0, event)
        for event in (*missing, *fresh):
            if event.type == "document.titled":
                text = f"# {event.payload['text']}\n" + text.partition("\n")[2]
            else:
                text += _line(event)
        return Rewritten({PATH: text} if missing or fresh or files.text(PATH) else {}, "known")


def _line(event: Event) -> str:
    return f"- {event.payload['text']}\n"


def say(store: Store, text: str, projection: Notes, *, kind: str = "document.noted", now: int = 1_000) -> None:
    """Commit an event, and let the document follow."""
    with store.unit(SCOPE) as unit:
        unit.commit((Draft(type=kind, task_id="", payload={"text": text}),), actor="ada", agent=None, now=now)
        unit.follow(projection)


def text(store: Store, projection: Notes) -> str:
    """The document, after it has caught up."""
    with store.unit(SCOPE) as unit:
        unit.follow(projection)
        return unit.document(PATH)
