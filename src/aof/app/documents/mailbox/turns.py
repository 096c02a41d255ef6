"""The turns of agents, as the log has them: response times are counted in these.

A turn begins when an agent is told its work and ends with its session, or when its next turn begins. Turns are recorded
only where there is a mailbox or a charter, which count in turns. Must not know which surface an agent uses.
"""

from __future__ import annotations

from collections.abc import Iterable

from aof.core.documents.mailbox import facts
from aof.core.errors.base import AofError
from aof.documents.charter.projection import PATH as CHARTER
from aof.ports import store as ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.environment import Environment
    from aof.core.model.events import Event


def began(here: Environment, agent: str, channel: str) -> None:
    """A turn of the agent begins; its last one is over."""
    _record(here, facts.TURN_BEGAN, agent, channel)


def ended(here: Environment, agent: str, channel: str) -> None:
    """The turn of the agent is over."""
    _record(here, facts.TURN_ENDED, agent, channel)


def _record(here: Environment, kind: str, agent: str, channel: str) -> None:
    """Record it where somebody counts. An agent that cannot be counted can still work."""
    try:
        with here.store.unit(ports.Scope()) as unit:
            if any(unit.document(path) for path in (facts.PATH, CHARTER)):
                draft = facts.turn(kind, agent, channel)
                unit.commit((draft,), actor=agent, agent=None, now=here.clock.now())
    except AofError:
        return


class Turns:
    """The ended turns of every agent: where each began, by its number in the log and by its time."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._open: dict[str, tuple[int, str]] = {}
        self._ended: dict[str, list[tuple[int, str]]] = {}
        for event in events:
            agent = str(event.payload.get("agent", ""))
            begun = self._open.pop(agent, None)
            if begun is not None:
                self._ended.setdefault(agent, []).append(begun)
            if event.type == facts.TURN_BEGAN:
                self._open[agent] = (event.seq, event.timestamp)

    def after(self, agent: str, seq: int | None, date: str) -> list[int]:
        """The turns of the agent that began after a place in the log; where that is unknown, after a time."""
        ended = self._ended.get(agent, [])
        return [begun for begun, when in ended if (begun > seq if seq is not None else when > date)]
