"""The portable view as an operation: reads the log once, and what stands beside it. Must not change anything."""

from __future__ import annotations

from collections.abc import Callable

from aof._support import gc_pause
from aof.app.portable import log, scene
from aof.app.queries import history
from aof.core.errors.base import InvalidInput
from aof.core.model import ids
from aof.core.runs import lease_clock
from aof.ports.progress import Say, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.portable.lives import Lives
    from aof.core.model.org_chart import OrgChart
    from aof.core.model.policy import Policy
    from aof.core.model.run import Heartbeat
    from aof.core.model.task import Task
    from aof.ports.clock import Clock
    from aof.ports.store import Store

_OFTEN = 1_000  # events


class Snapshots:
    """The part of a fabric that shows everything in a form that others can read."""

    store: Store
    _clock: Clock
    _policy: Policy
    get: Callable[[str], Task]
    _chart_to_read: Callable[[], OrgChart | None]

    def snapshot(self, *, at: int | None = None, archived: bool = False, say: Say = silent) -> dict[str, Any]:
        """The portable view of all tasks as they are, or `at` an event: as they were then, by the log alone."""
        from aof.app.portable.snapshot import snapshot

        if at is not None:
            history.known(self.store, at)
        with gc_pause.uncollected():
            return snapshot(self._scene(at, say), archived=archived)

    def portable_log(
        self,
        task_id: str | None = None,
        *,
        after: int = 0,
        type: str | None = None,  # noqa: A002 - what it is called on every surface
        limit: int | None = None,
    ) -> dict[str, Any]:
        """What happened, in the words of the agent task contract; what has no such word is left out."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"limit {limit} is not a whole number from zero up", "give a number such as 20")
        wanted = self.get(task_id).id if task_id is not None else None
        with gc_pause.uncollected():
            found = [
                line
                for line in log.lines(self.store.events())
                if line["sequence"] > after and wanted in (None, line["taskId"]) and type in (None, line["type"])
            ]
        if limit is not None:
            found = found[max(len(found) - limit, 0) :] if limit else []
        return {"events": found}

    def _scene(self, at: int | None, say: Say) -> scene.Scene:

        chart, lives = self._chart_to_read(), self._lives(at, say)
        if at is not None:
            return scene.Scene(lives, self._policy, chart=chart)
        odd, now = self._odd(lives), self._clock.now()
        return scene.Scene(lives, self._policy, now=now, chart=chart, beats=self._beats(lives, now), odd=odd)

    def _lives(self, until: int | None, say: Say) -> Lives:
        from aof.app.portable.lives import Lives

        lives = Lives()
        for event in self.store.events():
            if until is not None and event.seq > until:
                break
            if event.seq % _OFTEN == 0:
                say(f"{event.seq:,} events")
            lives.add(event)
        return lives

    def _beats(self, lives: Lives, now: int) -> dict[str, Heartbeat]:
        """The last sign of life of each run that goes on."""
        boot = self._clock.boot()
        running = [one.run for life in lives.by_id.values() for one in scene.active(life)]
        read = self.store.heartbeats([ids.run_place(run.task_id, run.hop) for run in running])
        beats = (lease_clock.present(beat, now, boot) for beat in read.values())
        return {beat.run_id: beat for beat in beats if beat is not None}

    def _odd(self, lives: Lives) -> dict[str, str]:
        """What people did to files. A file that somebody is writing right now is looked at again when that is over."""
        from aof.ports.store import Scope

        found: dict[str, str] = {}
        for life in lives.by_id.values():
            if self.store.odd(life.task) is None:
                continue
            with self.store.unit(Scope(read=frozenset({life.task.id}))):
                odd = self.store.odd(life.task)
            if odd is not None:
                found[life.task.id] = odd
        return found
