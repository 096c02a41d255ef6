"""The portable view as an operation: reads the log once, and what stands beside it. Must not change anything.

A process that is asked again goes on from where it was: only the news of the log are read, and only what can have
changed is made again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from threading import Lock

from aof._support import gc_pause
from aof.app.portable import log
from aof.app.portable.relations import active
from aof.app.portable.snapshot import KeptView
from aof.app.portable.view_source import Scene
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
    from aof.core.model.events import Event
    from aof.core.model.run import Heartbeat
    from aof.core.model.task import Task

_OFTEN = 1_000  # events
_MOST_KEPT = 20_000  # tasks; each takes about 5 KB


class PortableService:
    """Shows everything in a form that others can read."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._store = environment.store
        self._turn = Lock()
        self._kept: KeptView | None = None

    def snapshot(self, *, at: int | str | None = None, archived: bool = False, say: Say = silent) -> dict[str, Any]:
        """The portable view of all tasks as they are, or `at` an event: as they were then, by the log alone."""
        if at is not None:
            seq = history.number_of(self._store, at)
            with gc_pause.uncollected():
                return self._past(seq, archived, say)
        with self._turn, gc_pause.uncollected():
            return self._present(archived, say)

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

    def _past(self, at: int, archived: bool, say: Say) -> dict[str, Any]:  # noqa: FBT001 - passed on
        view = KeptView(self._environment.policy)
        self._tell(view, takewhile(lambda event: event.seq <= at, self._store.events()), say)
        scene = Scene(view.lives, view.relations, self._environment.policy, chart=self._environment.chart.readable())
        return view.snapshot(scene, view.shown(archived=archived))

    def _present(self, archived: bool, say: Say) -> dict[str, Any]:  # noqa: FBT001 - passed on
        """The tasks as they are; what was kept is given back only whole, so that a fault on the way costs only time."""
        kept, self._kept = self._kept, None
        view = self._caught_up(kept, say)
        now, shown = self._environment.clock.now(), view.shown(archived=archived)
        scene = Scene(
            view.lives,
            view.relations,
            self._environment.policy,
            now=now,
            chart=self._environment.chart.readable(),
            beats=self._beats(view, now),
            odd=self._odd(life.task for life in shown),
        )
        answer = view.snapshot(scene, shown)
        if len(view.lives.by_id) <= _MOST_KEPT:
            self._kept = view
        return answer

    def _caught_up(self, kept: KeptView | None, say: Say) -> KeptView:
        """What was kept, with the news; a log that another one took the place of is read from its beginning."""
        if kept is not None and kept.lives.seq:
            news = self._store.events(kept.lives.seq - 1)
            last = next(news, None)
            if last is not None and (last.seq, last.hash) == (kept.lives.seq, kept.lives.last_hash):
                return self._tell(kept, news, say)
        return self._tell(KeptView(self._environment.policy), self._store.events(), say)

    @staticmethod
    def _tell(view: KeptView, events: Iterable[Event], say: Say) -> KeptView:
        add = view.lives.add
        for event in events:
            if event.seq % _OFTEN == 0:
                say(f"{event.seq:,} events")
            add(event)
        view.follow()
        return view

    def _beats(self, view: KeptView, now: int) -> dict[str, Heartbeat]:
        """The last sign of life of each run that goes on."""
        boot, lives = self._environment.clock.boot(), view.lives.by_id
        running = [one.run for task_id in view.relations.restless for one in active(lives[task_id])]
        read = self._store.heartbeats([ids.run_place(run.task_id, run.hop) for run in running])
        beats = (lease_clock.present(beat, now, boot) for beat in read.values())
        return {beat.run_id: beat for beat in beats if beat is not None}

    def _odd(self, tasks: Iterable[Task]) -> dict[str, str]:
        """What people did to files. A file that somebody is writing right now is looked at again when that is over."""
        found: dict[str, str] = {}
        files = self._store.working_copy
        if files is None:
            return found
        for task in files.odd_files(tasks):
            with self._store.unit(ports.Scope(read=frozenset({task.id}))):
                odd = files.file_status(task)
            if odd is not None:
                found[task.id] = odd
        return found
