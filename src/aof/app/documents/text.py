"""The text of a document, once it has caught up with the log. Must not know any single document."""

from __future__ import annotations

from aof.app.commands.unit_of_work import follow
from aof.documents.projection import lock_of
from aof.ports.store import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.environment import Environment


def document_text(environment: Environment, name: str, path: str) -> str:
    """What stands in the file now; empty where there is none."""
    names = frozenset({lock_of(name)})
    with environment.store.unit(Scope(names=names)) as unit:
        follow(unit, names, environment.policy)
        return unit.document(path)
