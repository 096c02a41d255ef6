"""What the end of a worker means for its run: by why it was stopped, and by what it has reported.

Must not know how workers are run, nor which of them are kept alive.
"""

from __future__ import annotations

from collections.abc import Callable

from aof.app.fabric import Fabric
from aof.app.faults import Tell
from aof.core.errors.base import AofError
from aof.core.model import commands as c
from aof.core.model.ids import OURSELVES
from aof.core.model.kinds import Cause
from aof.ports.runner import Ended, Work
from aof.ports.store import Scope


class RunEnds:
    """Ends runs in the name of the service."""

    def __init__(self, fabric: Fabric, tell: Tell) -> None:
        self._fabric = fabric
        self._tell = tell

    def record(self, ended: Ended) -> None:
        """How the worker ended."""
        self._do(
            c.Exited(
                actor=OURSELVES,
                agent=ended.work.agent,
                task_id=ended.work.task_id,
                run=ended.work.run_id,
                exit_code=ended.exit_code,
                signal=ended.signal,
                stopped=ended.stopped,
                output=ended.output,
            )
        )

    def end_session(self, ended: Ended) -> None:
        """End the session of a worker by what its end means."""
        _MEANINGS.get(ended.stopped or "", RunEnds._over)(self, ended)

    def end_lost(self, task_id: str, place: str, run_id: str, *, cancelled: bool) -> None:
        """A dead host's run of which nothing is left: it ends by what it reported, else as lost."""
        if cancelled:
            self._do(c.Settle(actor=OURSELVES, run=run_id, task_id=task_id))
        elif self._has_reported(task_id, place, run_id):
            self._fabric.session_end(run=run_id)
        else:
            self.fail(task_id, run_id, "host_died", "the host of the run was killed", "lost")

    def _over(self, ended: Ended) -> None:
        """It ended by itself."""
        self._applied(ended.work)

    def _applied(self, work: Work) -> None:
        for applied in self._fabric.session_end(run=work.run_id):
            where = f"hop {applied.hop}: " if applied.hop else ""
            how = f"{where}{applied.outcome}: {applied.from_status} → {applied.to_status}"
            self._tell("session_end", work.task_id, how)

    def _timed_out(self, ended: Ended) -> None:
        work = ended.work
        if self._has_reported(work.task_id, work.place, work.run_id):
            self._applied(work)
        else:
            self.fail(work.task_id, work.run_id, "max_execution_time", ended.how, "timed_out")

    def _cancelled(self, ended: Ended) -> None:
        self._do(c.Settle(actor=OURSELVES, run=ended.work.run_id, task_id=ended.work.task_id))

    def _shut_down(self, ended: Ended) -> None:
        """Not the agent's fault: what it reported counts, else the task goes back as it was."""
        work = ended.work
        if self._has_reported(work.task_id, work.place, work.run_id):
            self._applied(work)
        else:
            self._fabric.release(work.task_id, run=work.run_id, reason="the service was stopped")

    def _has_reported(self, task_id: str, at: str, run_id: str) -> bool:
        with self._fabric.store.unit(Scope(read=frozenset({task_id}))) as unit:
            result = unit.result(at)
        return isinstance(result, AofError) or (result is not None and result.run_id == run_id)

    def _fenced(self, ended: Ended) -> None:
        """The run had been ended already."""

    def fail(self, task_id: str, run_id: str, code: str, message: str, cause: Cause = "failed") -> None:
        """The run has failed."""
        self._do(c.Fail(actor=OURSELVES, task_id=task_id, run=run_id, code=code, message=message, cause=cause))

    def _do(self, command: c.OnTask) -> None:
        self._fabric.services.dispatcher.dispatch_trusted(command)


_MEANINGS: dict[str, Callable[[RunEnds, Ended], None]] = {
    "timeout": RunEnds._timed_out,  # noqa: SLF001 - the table of this class
    "cancelled": RunEnds._cancelled,  # noqa: SLF001
    "shutdown": RunEnds._shut_down,  # noqa: SLF001
    "fenced": RunEnds._fenced,  # noqa: SLF001
    "finished": RunEnds._fenced,  # noqa: SLF001
}
