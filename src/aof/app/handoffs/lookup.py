"""Finds handoffs by their IDs, or by the beginning of one. Must not know which store is in use."""

from __future__ import annotations

from aof.core.errors.base import Call
from aof.core.errors.messages import HandoffNotFound
from aof.core.errors.tasks import AmbiguousId
from aof.core.model.handoffs import ids
from aof.ports import store as ports
from aof.ports.lists import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.model.handoffs.record import Handoff
    from aof.ports.store import Store

_SHOWN = 10


class HandoffLookup:
    """Looks handoffs up in one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, part: str) -> Handoff:
        """The handoff that an ID or its beginning stands for, as the log has it now."""
        known = self._known(part.strip().upper() if part.strip()[:3].upper() == "HO-" else part.strip().lower())
        with self._store.unit(ports.Scope(read=frozenset({known.task_id}))) as unit:
            found = next((one for one in unit.handoffs(known.task_id) if one.id == known.id), None)
        if found is None:
            raise missing(part)
        return found

    def _known(self, given: str) -> Handoff:
        if not (ids.is_handoff_id(given) or ids.is_part(given)):
            raise missing(given)
        found = self._store.find_handoffs(given) or self._unwritten(given)
        if not found:
            raise missing(given)
        if len(found) > 1:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            shown = ", ".join(one.id for one in found[:_SHOWN]) + more
            raise AmbiguousId(f"{given!r} stands for {len(found)} handoffs: {shown}", "use more of the ID")
        return found[0]

    def _unwritten(self, given: str) -> tuple[Handoff, ...]:
        """Open handoffs whose files are not there, for a writer died before it wrote them: the log knows them."""
        handed = self._store.find(Query(open_handoffs=True)).tasks
        meant = [task for task in handed if any(one.id.startswith(given) for one in task.handoffs)]
        return tuple(one for one in self._store.handoffs(meant) if one.id.startswith(given))


def missing(part: str) -> HandoffNotFound:
    """The error for what no handoff has as its ID."""
    return HandoffNotFound(f"there is no handoff {part[:80]!r}", "list what there is", Call("handoff_list", {}))
