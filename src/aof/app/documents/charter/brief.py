"""What an agent is told of the charter when its turn begins: its role, its files, and what is missing of it.

Must not change anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from aof.app.documents.charter.service import CharterShown
from aof.app.fabric import Fabric
from aof.core.errors.charter import NoCharter
from aof.core.validation.visible import visible_line

_SHOWN = 5
_LINE = 200


def charter_brief(fabric: Fabric, agent: str) -> Iterator[str]:
    """The lines for one agent; none where there is no charter."""
    try:
        shown = fabric.charter_show()
    except NoCharter:
        return
    yield "Session charter (SESSION_CHARTER.md; aof_charter_show, CLI: aof charter show):"
    yield f"- session {_line(shown.session_id)}, towards: {_line(shown.milestone) or 'nothing said'}"
    yield _seat(shown, agent)
    held = [item for gate in shown.gates if gate.band == "approval" for item in gate.scope]
    if held:
        yield f"- needs a person's approval: {_line(', '.join(held[:_SHOWN]))}"
    if agent in shown.unsigned:
        yield f"- your handshake is missing: read the charter, then aof_charter_sign (aof charter sign --agent {agent})"


def _seat(shown: CharterShown, agent: str) -> str:
    seat = next((one for one in shown.roster if one.agent == agent), None)
    if seat is None:
        return "- you are not in its roster: change no file of a lane before the maintainer adds you"
    if not seat.lane:
        return f"- you are {_line(seat.role)}, without a lane"
    files = next((lane.patterns for lane in shown.lanes if lane.name == seat.lane), ())
    owned = _line(", ".join(files)) or "nothing"
    return f"- you are {_line(seat.role)} in lane {_line(seat.lane)}: change only {owned}"


def _line(text: str) -> str:
    return visible_line(text)[:_LINE]
