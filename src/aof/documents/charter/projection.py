"""SESSION_CHARTER.md follows the log: created once, then changed line by line. Must not know who may change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.documents.charter.changes import unpacked
from aof.core.documents.charter.model import Charter
from aof.core.model.events import Event
from aof.core.model.policy import Policy
from aof.documents.charter.edit import apply
from aof.documents.charter.render import render
from aof.documents.projection import Extension, Facts, Files, PastEvents, Rewritten

NAME: Final = "CHARTER"
PATH: Final = "SESSION_CHARTER.md"
TYPES: Final = ("document.charter.",)
CREATED: Final = "document.charter.created"
AMENDED: Final = "document.charter.amended"
SIGNED: Final = "document.charter.signed"


class CharterDocument:
    """Keeps the contract of `documents.projection.Projection`."""

    name, path, types = NAME, PATH, TYPES

    def __init__(self, _policy: Policy) -> None:
        """No setting changes how the charter is written."""

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:  # noqa: ARG002 - the contract
        """Nothing is ever added at the end only."""
        return None

    def rewrite(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:  # noqa: ARG002 - the contract
        """What a person has changed since stays; what nobody knows to be written is looked for, newest first."""
        text = files.text(PATH)
        missing: list[Event] = []
        if past is not None and not past.applied:
            for event in past.events:
                if text and changed(text, event) == text:
                    break
                missing.insert(0, event)
                if event.type == CREATED:
                    break
        new = text
        for event in (*missing, *fresh):
            new = changed(new, event)
        return Rewritten({PATH: new} if new != text else {})


def changed(text: str, event: Event) -> str:
    """The text after an event; one that cannot be read changes nothing."""
    try:
        if event.type == CREATED:
            return text or render(msgspec.convert(event.payload["charter"], prepare_type(Charter)))
        return apply(text, unpacked(event.payload["changes"])) if text else text
    except (KeyError, msgspec.ValidationError):
        return text


def replayed(events: Sequence[Event]) -> str:
    """The last charter as the log alone has it: from its creation on, without what people did by hand."""
    begins = [place for place, event in enumerate(events) if event.type == CREATED]
    text = ""
    for event in events[begins[-1] :] if begins else ():
        text = changed(text, event)
    return text
