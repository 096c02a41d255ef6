"""Response times, counted in turns."""

from __future__ import annotations

from typing import Any

import pytest

from aof.documents.mail_rules import overdue
from aof.kernel.model import millis
from tests.support.mail import message
from tests.support.requirements import requirement

_NOW = millis("2026-02-21T09:00:00Z")
_MONTH = 30 * 86_400_000


def _tier(turns: list[int], *, now: int = _NOW, **given: Any) -> str | None:
    found = overdue(message(**given), "bob", 10, turns, now)
    return None if found is None else found.tier


@requirement("comms.sla.p0")
def test_a_p0_message_expires_with_the_end_of_the_next_turn() -> None:
    assert _tier([], priority="P0") is None
    assert _tier([9], priority="P0") is None  # that turn had begun before the message came
    assert _tier([11], priority="P0") == "P0"
    assert _tier([11], priority="P0", status="acknowledged") is None


@requirement("comms.sla.p1")
def test_a_p1_message_expires_with_the_end_of_the_turn_after_the_next() -> None:
    assert _tier([11], priority="P1") is None
    assert _tier([11, 12], priority="P1") == "P1"


@requirement("comms.sla.no-duty")
@pytest.mark.parametrize(
    "given",
    [
        {"priority": "P2", "response_needed_by": "none"},
        {"priority": "P0", "type": "notify"},
        {"priority": "P0", "status": "blocked"},
    ],
)
def test_what_asks_for_no_answer_never_expires(given: dict[str, str]) -> None:
    assert _tier(list(range(11, 21)), now=_NOW + _MONTH, **given) is None


@requirement("comms.sla.turns")
def test_windows_are_counted_in_turns_and_end_with_the_acknowledgement() -> None:
    assert _tier([], priority="P0", now=_NOW + _MONTH) is None
    assert _tier([11, 12, 13], priority="P0", status="acknowledged", now=_NOW + _MONTH) is None


@requirement("comms.sla.due-date")
def test_the_stricter_of_date_and_priority_holds() -> None:
    hour = 3_600_000
    due: dict[str, Any] = {"priority": "P1", "response_needed_by": "2026-02-21T10:00:00Z"}
    assert _tier([], now=_NOW + hour, **due) is None
    assert _tier([], now=_NOW + hour + 1, **due) == "due date"
    assert _tier([11], priority="P0", response_needed_by="none") == "P0"
    decision: dict[str, Any] = {
        "priority": "P2",
        "type": "decision-required",
        "response_needed_by": "2026-02-21T10:00:00Z",
    }
    found = overdue(message(**decision), "bob", 10, [], _NOW + 2 * hour)
    assert found is not None
    assert found.escalates
    plain = overdue(message(**(decision | {"type": "request"})), "bob", 10, [], _NOW + 2 * hour)
    assert plain is not None
    assert not plain.escalates
    assert _tier([11, 12], priority="P2", response_needed_by="next session") == "P1"
