"""Operations about what connects tasks: dependencies and links. Must not know any surface or store."""

from __future__ import annotations

from aof.app.commands.authenticated import Asking
from aof.app.commands.dispatcher import there
from aof.app.operations import results
from aof.core.model import commands as c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.operations.results import Depends, Moved


class Relating(Asking):
    """The part of a fabric that connects tasks with each other and with what they are about."""

    def dep_add(self, task_id: str, blocker_id: str, *, actor: str | None = None) -> Depends:
        """Let the task wait for another one."""
        return self._depends(c.AddDependency, task_id, blocker_id, actor)

    def dep_remove(self, task_id: str, blocker_id: str, *, actor: str | None = None) -> Depends:
        """Let the task no longer wait for another one."""
        return self._depends(c.RemoveDependency, task_id, blocker_id, actor)

    def link(
        self, task_id: str, kind: str, target: str, *, reason: str | None = None, actor: str | None = None
    ) -> Moved:
        """Connect a task with another one, a run, an artifact or evidence."""
        return self._linked(c.AddLink, task_id, kind, target, actor, reason=reason)

    def unlink(self, task_id: str, kind: str, target: str, *, actor: str | None = None) -> Moved:
        """Remove such a connection."""
        return self._linked(c.RemoveLink, task_id, kind, target, actor)

    def _linked(
        self, command: type[c.OnTask], task_id: str, kind: str, target: str, actor: str | None, **given: Any
    ) -> Moved:
        """Each edge is written at one end: a dependency at what waits, a parent at the child."""
        if kind in ("child", "blocks"):
            task_id, kind, target = target, {"child": "parent", "blocks": "blocked_by"}[kind], task_id
        if kind == "blocked_by":
            change = self.dep_add if command is c.AddLink else self.dep_remove
            change(task_id, target, actor=actor)
            task = self.get(task_id)
            return results.Moved(task_id=task.id, status=task.status)
        to_task = kind in ("parent", "source_task")
        target_id = self.resolve(target) if to_task else target
        return self._moved(command, task_id, actor=actor, kind=kind, target_id=target_id, **given)

    def _depends(self, kind: type[c.OnTask], task_id: str, blocker_id: str, actor: str | None) -> Depends:
        blocker = self.resolve(blocker_id)
        task = there(self._on(kind, task_id, actor=actor, blocker_id=blocker))
        return results.Depends(task_id=task.id, blocker_id=blocker, depends_on=task.depends_on)
