"""The changes of a charter that can be asked for, as data that an event holds. Must not know how they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.documents.charter.model import CharterLane, Gate, Participant, Signature


class _Change(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="change"):
    """One change."""


class SetField(_Change, frozen=True, kw_only=True, tag="field"):
    """A field of the sections 1, 4, 5 and 7 gets a value."""

    section: int
    key: str
    value: str


class SetParticipant(_Change, frozen=True, kw_only=True, tag="participant"):
    """Somebody joins, or gets another role or lane."""

    participant: Participant


class DropParticipant(_Change, frozen=True, kw_only=True, tag="leave"):
    """Somebody leaves."""

    agent: str


class SetLane(_Change, frozen=True, kw_only=True, tag="lane"):
    """A lane is added, or gets another owner or other files."""

    lane: CharterLane


class DropLane(_Change, frozen=True, kw_only=True, tag="close-lane"):
    """A lane ends."""

    name: str


class SetGate(_Change, frozen=True, kw_only=True, tag="gate"):
    """A band covers something else."""

    gate: Gate


class SetWindow(_Change, frozen=True, kw_only=True, tag="rebuttal-window"):
    """How many WORKLOG cycles a rebuttal may take."""

    cycles: int


class SetAcceptance(_Change, frozen=True, kw_only=True, tag="acceptance"):
    """The acceptance criteria, all of them."""

    criteria: tuple[str, ...]


class TickItem(_Change, frozen=True, kw_only=True, tag="kickoff"):
    """An item of the kickoff checklist is done, or is not."""

    number: int
    done: bool


class Sign(_Change, frozen=True, kw_only=True, tag="signature"):
    """An agent signs its handshake."""

    signature: Signature


Change = (
    SetField
    | SetParticipant
    | DropParticipant
    | SetLane
    | DropLane
    | SetGate
    | SetWindow
    | SetAcceptance
    | TickItem
    | Sign
)
_CHANGES: Final = tuple[Change, ...]


def packed(changes: tuple[Change, ...]) -> list[dict[str, Any]]:
    """The changes as an event holds them."""
    return [msgspec.to_builtins(change) for change in changes]


def described(changes: tuple[Change, ...]) -> str:
    """The changes in a few words, for people."""
    said = [_WORDS[type(change)](change) for change in changes if not isinstance(change, TickItem)]
    for done, word in ((True, "done"), (False, "open again")):
        numbers = [str(one.number) for one in changes if isinstance(one, TickItem) and one.done is done]
        if numbers:
            said.append(f"kickoff items {', '.join(numbers)} are {word}")
    return "; ".join(said)


_WORDS: Final[dict[type[Change], Callable[[Any], str]]] = {
    SetField: lambda one: f"{one.key} is {one.value}",
    SetParticipant: lambda one: (
        f"{one.participant.agent} is {one.participant.role} in {one.participant.lane or 'no lane'}"
    ),
    DropParticipant: lambda one: f"{one.agent} leaves",
    SetLane: lambda one: f"lane {one.lane.name} belongs to {one.lane.owner} ({', '.join(one.lane.patterns)})",
    DropLane: lambda one: f"lane {one.name} ends",
    SetGate: lambda one: f"gate {one.gate.band} covers {', '.join(one.gate.scope) or 'nothing'}",
    SetWindow: lambda one: f"rebuttals within {one.cycles} cycles",
    SetAcceptance: lambda one: f"{len(one.criteria)} acceptance criteria",
    Sign: lambda one: f"{one.signature.agent} signs",
}


def unpacked(payload: object) -> tuple[Change, ...]:
    """The changes that an event holds; raises ValidationError."""
    return msgspec.convert(payload, prepare_type(_CHANGES))
