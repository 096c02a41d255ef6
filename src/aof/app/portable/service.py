"""The portable view as an operation: reads the log once, and what stands beside it. Must not change anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from aof._support import gc_pause
from aof.app.portable import log, snapshot, task_histories, view_source
from aof.app.queries import history
from aof.core.errors.base import InvalidInput
from aof.core.model import ids
from aof.core.runs import lease_clock
from aof.ports import store as ports
from aof.ports.progress import Say, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.context import Environment
    from aof.app.portable.task_histories import Lives
    from aof.core.model.run import Heartbeat

_OFTEN = 1_000  # events


class PortableService:
    """Shows everything in a form that others can read."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._store = environment.store

    def snapshot(self, *, at: int | None = None, archived: bool = False, say: Say = silent) -> dict[str, Any]:
        """The portable view of all tasks as they are, or `at` an event: as they were then, by the log alone."""
        if at is not None:
            history.known(self._store, at)
        with gc_pause.uncollected():
            return snapshot.snapshot(self._scene(at, say), archived=archived)

    def portable_log(
        self,
        task_id: str | None = None,
        *,
        after: int = 0,
        type: str | None = None,  # noqa: A002 - what it is called on every surface
        limit: int | None = None,
    ) -> dict[str, Any]:
        """What happened, in the words of the agent task contract; what has no such word is left out."""
        fits = self._wanted(task_id, after, type, limit)
        with gc_pause.uncollected():
            found = deque(filter(fits, log.lines(self._store.events())), maxlen=limit)
        return {"events": list(found)}

    def portable_follow(
        self,
        task_id: str | None = None,
        *,
        after: int = 0,
        type: str | None = None,  # noqa: A002 - what it is called on every surface
        limit: int | None = None,
        timeout: float = 60.0,
    ) -> Iterator[dict[str, Any]]:
        """The same, of the past no more than `limit`, and then as it comes; ends when nothing came for so long."""
        fits, translation, seen = self._wanted(task_id, after, type, limit), log.Translation(), 0
        past: deque[dict[str, Any]] = deque(maxlen=limit)
        for event in self._store.events():
            line, seen = translation.line(event), event.seq
            if line is not None and fits(line):
                past.append(line)
            if limit is None and past:
                yield past.pop()
        yield from past
        while self._store.wait(seen, timeout):
            for event in self._store.events(seen):
                line, seen = translation.line(event), event.seq
                if line is not None and fits(line):
                    yield line

    def _wanted(
        self, task_id: str | None, after: int, kind: str | None, limit: int | None
    ) -> Callable[[dict[str, Any]], bool]:
        """Which lines are asked for; refuses a limit that is none, and a task that is not there."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"limit {limit} is not a whole number from zero up", "give a number such as 20")
        wanted = self._environment.lookup.get(task_id).id if task_id is not None else None
        return lambda line: (
            line["sequence"] > after and wanted in (None, line["taskId"]) and kind in (None, line["type"])
        )

    def _scene(self, at: int | None, say: Say) -> view_source.Scene:
        chart, lives = self._environment.chart.readable(), self._lives(at, say)
        if at is not None:
            return view_source.Scene(lives, self._environment.policy, chart=chart)
        odd, now = self._odd(lives), self._environment.clock.now()
        return view_source.Scene(
            lives, self._environment.policy, now=now, chart=chart, beats=self._beats(lives, now), odd=odd
        )

    def _lives(self, until: int | None, say: Say) -> Lives:
        lives = task_histories.Lives()
        for event in self._store.events():
            if until is not None and event.seq > until:
                break
            if event.seq % _OFTEN == 0:
                say(f"{event.seq:,} events")
            lives.add(event)
        return lives

    def _beats(self, lives: Lives, now: int) -> dict[str, Heartbeat]:
        """The last sign of life of each run that goes on."""
        boot = self._environment.clock.boot()
        running = [one.run for life in lives.by_id.values() for one in view_source.active(life)]
        read = self._store.heartbeats([ids.run_place(run.task_id, run.hop) for run in running])
        beats = (lease_clock.present(beat, now, boot) for beat in read.values())
        return {beat.run_id: beat for beat in beats if beat is not None}

    def _odd(self, lives: Lives) -> dict[str, str]:
        """What people did to files. A file that somebody is writing right now is looked at again when that is over."""
        found: dict[str, str] = {}
        files = self._store.working_copy
        if files is None:
            return found
        for life in lives.by_id.values():
            if files.file_status(life.task) is None:
                continue
            with self._store.unit(ports.Scope(read=frozenset({life.task.id}))):
                odd = files.file_status(life.task)
            if odd is not None:
                found[life.task.id] = odd
        return found
