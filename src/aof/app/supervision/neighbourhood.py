"""The tasks around one, nearest first, up to a bound: what it waits for, what waits for it, parents, children, links.

Each step asks only for the relatives of what was found, so the cost follows what is shown. Must not know any surface.
"""

from __future__ import annotations

from msgspec import UNSET

from aof.app.supervision import results
from aof.core.model.ids import is_task_id
from aof.core.validation import limits
from aof.ports import store as ports
from aof.ports.lists import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.app.supervision.results import Neighbourhood
    from aof.core.model.task import Task

_Edge = tuple[str, str, str]


class NeighbourhoodService:
    """Finds the tasks connected with one."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._store = environment.store

    def neighbourhood(self, task_id: str, *, limit: int = 200) -> Neighbourhood:
        """The tasks connected with one, nearest first, and the edges between them."""
        if problem := limits.whole("limit", limit, 1, results.MOST_NEIGHBOURS):
            raise problem
        root = self._environment.lookup.get(task_id)
        found: dict[str, tuple[Task, int]] = {root.id: (root, 0)}
        edges: set[_Edge] = set()
        known = {root.id}
        border, depth = [root], 0
        while border and len(found) < limit:
            depth += 1
            near = self._edges(border)
            edges |= near
            fresh = sorted({end for source, target, _ in near for end in (source, target)} - known)
            known.update(fresh)
            border = list(self._store.records(fresh[: limit - len(found)]))
            found |= {task.id: (task, depth) for task in border}
        if border:
            near = self._edges(border)
            edges |= near
            known |= {end for source, target, _ in near for end in (source, target)}
        shown = [edge for edge in sorted(edges) if edge[0] in found and edge[1] in found]
        missing = known - found.keys()
        return results.Neighbourhood(
            root=root.id,
            nodes=tuple(_node(task, at) for task, at in found.values()),
            edges=tuple(results.GraphEdge(source=one[0], target=one[1], kind=one[2]) for one in shown),
            left_out=len(missing),
        )

    def _edges(self, tasks: list[Task]) -> set[_Edge]:
        """All edges of these tasks, in both directions."""
        names = [task.id for task in tasks]
        edges: set[_Edge] = set()
        with self._store.unit(ports.Scope()) as unit:
            for waited, dependents in unit.dependents_of(names).items():
                edges |= {(waited, one, "blocks") for one in dependents}
            for name in names:
                edges |= {(name, child, "child") for child in unit.children(name)}
        for task in tasks:
            edges |= {(blocker, task.id, "blocks") for blocker in task.depends_on}
            if task.parent_id is not None:
                edges.add((task.parent_id, task.id, "child"))
            edges |= {(task.id, link.target_id, link.kind) for link in task.links if is_task_id(link.target_id)}
        return edges


def _node(task: Task, depth: int) -> results.GraphNode:
    row = Row.of(task, None)
    return results.GraphNode(
        id=task.id,
        title=task.title,
        status=task.status,
        priority=task.priority,
        depth=depth,
        agent=row.agent or UNSET,
    )
