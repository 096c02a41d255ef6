"""Operations by which somebody steers a task from outside: hold, stop, retry, put away. Must not know any surface."""

from __future__ import annotations

from aof.app.commands.authenticated import Asking
from aof.core.model import commands as c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.operations.results import Moved


class Controlling(Asking):
    """The part of a fabric for who does not do the work of a task."""

    def cancel(self, task_id: str, *, reason: str | None = None, actor: str | None = None) -> Moved:
        """Cancel the task and everything unfinished below it."""
        return self._moved(c.CancelTask, task_id, actor=actor, reason=reason)

    def settle(self, task_id: str, *, actor: str | None = None) -> Moved:
        """Say that the worker of a task that is being cancelled has stopped."""
        return self._moved(c.Settle, task_id, actor=actor)

    def block(self, task_id: str, *, reason: str, kind: str = "blocked", actor: str | None = None) -> Moved:
        """Hold the task for a reason that is no other task."""
        return self._moved(c.Block, task_id, actor=actor, reason=reason, kind=kind)

    def unblock(self, task_id: str, *, actor: str | None = None) -> Moved:
        """Make a blocked task ready again."""
        return self._moved(c.Unblock, task_id, actor=actor)

    def pause(self, task_id: str, *, reason: str | None = None, actor: str | None = None) -> Moved:
        """Hold the task on purpose."""
        return self._moved(c.Pause, task_id, actor=actor, reason=reason)

    def resume(self, task_id: str, *, actor: str | None = None) -> Moved:
        """Let a paused task go on."""
        return self._moved(c.Resume, task_id, actor=actor)

    def retry(self, task_id: str, *, reason: str, actor: str | None = None) -> Moved:
        """Run a finished task again, or end the wait of a retry."""
        return self._moved(c.RetryTask, task_id, actor=actor, reason=reason)

    def archive(self, task_id: str, *, actor: str | None = None) -> Moved:
        """Put a finished task away."""
        return self._moved(c.ArchiveTask, task_id, actor=actor)
