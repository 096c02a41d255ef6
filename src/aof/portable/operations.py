"""The portable view as an operation, and its log for many followers, translated once for all of them.

Must not change anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from threading import Lock
from typing import Any, Final

from aof.errors import InvalidInput
from aof.kernel import model as kernel_model
from aof.kernel.events import Event
from aof.portable import log
from aof.portable.log import Translation, lines
from aof.portable.model import Scene, active
from aof.portable.snapshot import KeptView
from aof.queries import history as queries_history
from aof.runs import evolve as runs_evolve
from aof.store import port
from aof.support import typed
from aof.support.printable import Say, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import Environment
    from aof.runs.model import Heartbeat
    from aof.tasks.model import Task


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
            seq = queries_history.number_of(self._store, at)
            with typed.uncollected():
                return self._past(seq, archived, say)
        with self._turn, typed.uncollected():
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
        with typed.uncollected():
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
        read = self._store.heartbeats([kernel_model.run_place(run.task_id, run.hop) for run in running])
        beats = (runs_evolve.present_heartbeat(beat, now, boot) for beat in read.values())
        return {beat.run_id: beat for beat in beats if beat is not None}

    def _odd(self, tasks: Iterable[Task]) -> dict[str, str]:
        """What people did to files. A file that somebody is writing right now is looked at again when that is over."""
        found: dict[str, str] = {}
        files = self._store.working_copy
        if files is None:
            return found
        for task in files.odd_files(tasks):
            with self._store.unit(port.Scope(read=frozenset({task.id}))):
                odd = files.file_status(task)
            if odd is not None:
                found[task.id] = odd
        return found


Line = dict[str, Any]
Page = tuple[int, list[Line]]  # the last event that was looked at, and what is portable up to it
_KEPT: Final = 2_000  # lines
_PAGE: Final = 500  # lines


class PortableFeed:
    """The lines after any event. Several threads may ask at once."""

    def __init__(self, events: Callable[[int], Iterator[Event]]) -> None:
        self._events = events
        self._lock = Lock()
        self._begin_again()

    def _begin_again(self) -> None:
        self._translation = Translation()
        self._last: Event | None = None
        self._kept: deque[Line] = deque(maxlen=_KEPT)
        self._from = 0  # every line after this event is kept

    def after(self, seq: int) -> Page | None:
        """A page of lines after the event; None where they are not kept any more."""
        with self._lock:
            self._catch_up()
            if seq < self._from:
                return None
            page = list(islice((line for line in self._kept if line["sequence"] > seq), _PAGE))
            head = self._last.seq if self._last is not None else 0
        return page[-1]["sequence"] if len(page) == _PAGE else max(head, seq), page

    def past(self, seq: int) -> Iterator[Page]:
        """Pages of lines after the event, up to where the last lines are kept from."""
        until = self._from
        found = (line for line in lines(self._until(until)) if line["sequence"] > seq)
        while page := list(islice(found, _PAGE)):
            yield page[-1]["sequence"], page
        yield until, []

    def _until(self, seq: int) -> Iterator[Event]:
        for event in self._events(0):
            if event.seq > seq:
                return
            yield event

    def _catch_up(self) -> None:
        """Translate what has come. A log that another one has taken the place of is read from its beginning."""
        last = self._last
        news = self._events(last.seq - 1 if last is not None else 0)
        if last is not None and next(news, None) != last:
            self._begin_again()
            news = self._events(0)
        with typed.uncollected():
            for event in news:
                self._add(event)

    def _add(self, event: Event) -> None:
        line = self._translation.line(event)
        self._last = event
        if line is None:
            return
        if len(self._kept) == _KEPT:
            self._from = self._kept[0]["sequence"]
        self._kept.append(line)
