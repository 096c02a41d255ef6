"""Operations about handoffs. Must not know which store is in use."""

from __future__ import annotations

from aof.core.model import handoff as records
from aof.core.model.errors import Call, HandoffNotFound
from aof.ports import store as ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.environment import Environment
    from aof.core.model.handoff import Handoff


class HandoffService:
    """Finds handoffs."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def handoffs(
        self, *, task: str | None = None, from_agent: str | None = None, to_agent: str | None = None
    ) -> tuple[Handoff, ...]:
        """The handoffs, oldest first: of one task (as child or as parent), from or to one agent."""
        task_id = self._environment.lookup.resolve(task) if task is not None else None
        return tuple(
            handoff
            for handoff in self._environment.store.handoffs()
            if task_id in (None, handoff.task_id, handoff.parent_task_id)
            and from_agent in (None, handoff.from_agent)
            and to_agent in (None, handoff.to_agent)
        )

    def handoff(self, handoff_id: str) -> Handoff:
        """One handoff."""
        task_id = records.task_of_handoff(handoff_id)
        if task_id is not None:
            with self._environment.store.unit(ports.Scope(read=frozenset({task_id}))) as unit:
                found = [handoff for handoff in unit.handoffs(task_id) if handoff.id == handoff_id]
            if found:
                return found[0]
        raise HandoffNotFound(f"there is no handoff {handoff_id[:80]!r}", "list what there is", Call("handoffs", {}))
