"""SESSION_CHARTER.md follows the log: created once, then changed line by line. Must not know who may change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.documents.charter.changes import Change, SetGate, SetLane, unpacked
from aof.core.documents.charter.model import Charter
from aof.core.model.events import Event
from aof.core.model.policy import Policy
from aof.documents import edits
from aof.documents.charter.edit import apply
from aof.documents.charter.parse import parse
from aof.documents.charter.render import render
from aof.documents.markdown import heading, scan, tables
from aof.documents.projection import Extension, Facts, Files, PastEvents, Rewritten

NAME: Final = "CHARTER"
PATH: Final = "SESSION_CHARTER.md"
EDITS: Final = "SESSION_CHARTER_EDITS.md"
WORKLOG: Final = "WORKLOG.md"
_INDEX: Final = "Decision Index"
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
        """What a person has changed since stays, but for gates and owners; what may not be written is looked for."""
        text = files.text(PATH)
        missing: list[Event] = []
        known = list(past.events)[::-1] if past is not None and text else []
        if past is not None and not past.applied:
            for event in reversed(known) if text else past.events:
                if text and changed(text, event) == text:
                    break
                missing.insert(0, event)
                if event.type == CREATED:
                    break
        new = text
        for event in missing:
            new = changed(new, event)
        new, by_hand = _frozen(new, known, files) if known else (new, [])
        for event in fresh:
            new = changed(new, event)
        kept = {EDITS: edits.with_kept(files.text(EDITS), PATH, by_hand)} if by_hand else {}
        return Rewritten(kept | ({PATH: new} if new != text else {}))


def _frozen(text: str, events: Sequence[Event], files: Files) -> tuple[str, list[edits.HandEdit]]:
    """The text with the gates and the owners of lanes that the log has, unless the maintainer decided on an owner."""
    logged, there = parse(replayed(events)), parse(text)
    lines, owners = text.splitlines(), {lane.name: lane.owner for lane in logged.lanes}
    made, by_hand = list[Change](), list[edits.HandEdit]()
    if scopes(logged) != scopes(there) and there.gates:
        made += [SetGate(gate=gate) for gate in logged.gates]
        said = "\n".join(lines[gate.line - 1] for gate in there.gates if gate.line)
        by_hand.append(edits.HandEdit("a person changed the approval gates", said))
    decided = decisions(files.text(WORKLOG))
    for lane in there.lanes:
        owner = owners.get(lane.name, lane.owner)
        if owner == lane.owner or any(lane.name in one and lane.owner in one for one in decided):
            continue
        made.append(SetLane(lane=msgspec.structs.replace(lane, owner=owner)))
        what = f"a person changed the owner of the lane {lane.name!r} from {owner} to {lane.owner} without a decision"
        by_hand.append(edits.HandEdit(what, lines[lane.line - 1]))
    return (apply(text, made), by_hand) if made else (text, [])


def scopes(charter: Charter) -> dict[str, tuple[str, ...]]:
    """What each gate that holds something up covers, and for how long."""
    return {
        gate.band: (*gate.scope, str(gate.delay_seconds))
        for gate in charter.gates
        if gate.scope and gate.band != "auto"
    }


def decisions(worklog: str) -> list[str]:
    """The texts of the decisions in the index of a WORKLOG."""
    lines = scan(worklog)
    begin = next((place for place, line in enumerate(lines) if _is_index(line.text)), None)
    if begin is None:
        return []
    end = next(
        (place for place in range(begin + 1, len(lines)) if (found := heading(lines[place].text)) and found[0] <= 2),  # noqa: PLR2004 - the level of sections
        len(lines),
    )
    return [row.cells[0] for table in tables(lines[begin:end]) for row in table.rows if row.cells]


def _is_index(line: str) -> bool:
    found = heading(line)
    return found is not None and found[1].casefold() == _INDEX.casefold()


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
