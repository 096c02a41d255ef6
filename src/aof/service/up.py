"""`aof up`: the service that looks after one data directory until it is told to stop.

Woken by changes in its folders.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TextIO

import msgspec

from aof.api.fabric import Fabric
from aof.documents import reading
from aof.errors import AofError
from aof.kernel.faults import Faults
from aof.kernel.model import is_task_id, iso, millis
from aof.scheduler.host import Hosting
from aof.scheduler.tick import Tick
from aof.service.runners.process_runner import ProcessRunner
from aof.support.printable import clean, escaped

_LOOK_ANYWAY = 60.0  # seconds: clocks are turned, and a file system may forget to tell
_WITHOUT_INOTIFY = 0.25
_WRITE_DOWN = 0.5  # seconds after an event in which documents follow
_LONGEST_BEHIND = 5.0  # seconds that documents may stay behind while writing them takes long
_SETTLE = 0.05  # seconds that an editor gets to finish
_SHARE = 200  # a scan or a tick may take one part in so many of the time
_CALM = 9  # a tick, as documents that follow, has a calm so many times as long behind it: others share the processor
_CALMEST = 0.05  # seconds; a longer calm would hold up work
_HELD_UP = 0.05  # seconds of rest when only handlers have something to do that failed a moment ago
_OTHERS_WORKER = 0.25  # seconds after which a worker that was in the way may have ended
_AT_LAST = 10.0  # seconds that the ends of killed workers may take
_CHECKPOINT_AFTER = 1_000  # events


class Service:
    """One running service."""

    def __init__(
        self,
        fabric: Fabric,
        *,
        once: bool = False,
        watches: bool = False,
        log_json: bool = False,
        addresses: tuple[str, ...] = (),
        notices: Notices | None = None,
        out: TextIO | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        files = fabric.store.working_copy
        assert files is not None, "the service looks after a data directory"
        self._fabric = fabric
        self._store = fabric.store
        self._files = files
        self._clock = fabric.services.environment.clock
        self._once = once
        self._watches = watches
        self._json = log_json
        self._addresses = addresses
        self._notices = notices
        self._out = out or sys.stdout
        self._selector = selectors.DefaultSelector()
        self._faults = Faults(self._clock, self._tell)
        self._hosting = Hosting(fabric, self._tell, self._faults)
        self._runner = ProcessRunner(
            files.root,
            self._selector,
            self._clock,
            self._hosting,
            environment=environment or os.environ,
            peer_command=_PEER_COMMAND,
        )
        self._hosting.runner = self._runner
        self._tick = Tick(fabric.services.environment, fabric.services.dispatcher, self._hosting, self._faults)
        self._signals = 0
        self._idle = False
        self._due: float = 0.0
        self._pace = 0.0
        self._scan_at: float = 0.0
        self._touched: set[str] = set()
        self._touched_at: float = 0.0
        self._documents_at: float | None = 0.0
        self._documents_pace = 0.0
        self._watch: Inotify | None = None
        self._planned: object = None  # where the log ended before the last plan
        self._written: object = None  # and before the documents followed
        self._synced: int | None = None

    def run(self) -> int:
        """Serve until a signal comes, or with `once` until nothing is left to do."""
        awake, asleep = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(awake, selectors.EVENT_READ, lambda: _drain(awake))
        before = {number: signal.signal(number, self._signalled) for number in (signal.SIGTERM, signal.SIGINT)}
        waking = signal.set_wakeup_fd(asleep, warn_on_full_buffer=False)
        try:
            if not self._watches:
                self._observe()
                self._do("scan")
            self._tell("up", "", f"serving {self._files.root} as pid {os.getpid()}{_ONLY if self._watches else ''}")
            for address in self._addresses:
                self._tell("http", "", f"{address} (needs a token), board at {address}/board, MCP at {address}/mcp")
            if (notices := self._notices) is not None:
                self._selector.register(notices.fd, selectors.EVENT_READ, lambda: notices.drain(self._tell))
            self._serve()
            if not self._watches and self._files.log_end() != self._written:
                self._do("documents")
            self._tell("down", "", "stopped" if self._signals else "nothing is left to do")
            return 0 if self._signals < _HARD else 1
        finally:
            self._hosting.stop_all("shutdown", hard=True)
            self._runner.close()
            signal.set_wakeup_fd(waking)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(awake)
            os.close(asleep)
            self._selector.close()
            if self._watch is not None:
                self._watch.close()

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    def _observe(self) -> None:
        """Have the kernel tell of changes; where it cannot, the log's size is looked at."""
        with suppress(OSError):
            watch = Inotify()
            self._watch = watch
            log, folders = self._files.watched()
            watch.watch(GROWS, log)
            watch.watch(CHANGES, *folders)
            with suppress(OSError):
                watch.watch(CHANGES, f"{self._files.root}/org")
            if (trust := self._fabric.services.environment.trust) is not None:
                with suppress(OSError):
                    folder = trust.folder
                    os.makedirs(folder, mode=0o700, exist_ok=True)
                    watch.watch(CHANGES, folder)
            self._selector.register(watch.fd, selectors.EVENT_READ, self._changed)

    def _serve(self) -> None:
        while True:
            if self._signals:
                return self._shut_down()
            if self._watches:
                self._handle(_LOOK_ANYWAY)
                continue
            for name, moment in _MOMENTS.items():
                at = moment(self)
                if at is not None and at <= self._clock.monotonic():
                    self._do(name)
            if self._once and self._finished():
                return None
            self._sleep()

    def _do(self, name: str) -> None:
        self._attempt(name, partial(_JOBS[name], self))

    def _attempt(self, name: str, job: Callable[[], object]) -> bool:
        """Do a job; whatever it raises is recorded, and the job is tried again later. Tells whether it was done."""
        return self._faults.attempt(("job", name), name, "", job)

    def _follow(self) -> None:
        """Let the documents say what the log has; what comes next makes it due again."""
        end, began = self._files.log_end(), self._clock.monotonic()
        reading.follow_all(self._fabric.services.environment)
        now = self._clock.monotonic()
        self._written, self._documents_at = end, None
        self._documents_pace = now + min((now - began) * _CALM, _LONGEST_BEHIND)

    def _act(self) -> None:
        """Plan and do what is due now."""
        self._planned = self._files.log_end()
        self._hosting.waiting, self._hosting.freed = set(), False
        began = self._clock.monotonic()
        ticked = self._tick.ticked(explain=False)
        for action in ticked.actions:
            agent, reason = action.agent, action.reason
            said = f"{agent}: {reason}" if agent is not None and agent not in reason else reason
            self._tell(action.action, action.task_id, said)
        took = self._clock.monotonic() - began
        self._pace = self._clock.monotonic() + max(took, min(took * _CALM, _CALMEST))
        later = (millis(ticked.next_at) - self._clock.now()) / 1000 if ticked.next_at is not None else _LOOK_ANYWAY
        self._due = self._clock.monotonic() + (took if ticked.actions else min(max(later, took), _LOOK_ANYWAY))
        self._idle = not ticked.actions
        if self._hosting.waiting:
            self._due = min(self._due, self._clock.monotonic() + _OTHERS_WORKER)

    def _sleep(self) -> None:
        """Until something happens or is due."""
        now = self._clock.monotonic()
        rests = self._faults.waiting("job")
        moments = ((name, moment(self)) for name, moment in _MOMENTS.items())
        waits = [max(at - now, rests.get(("job", name), 0.0)) for name, at in moments if at is not None]
        waits += self._poll()
        if self._watch is None:
            waits.append(_WITHOUT_INOTIFY)
        self._handle(max(min(waits), 0.0))
        if self._watch is None:
            self._attempt("look", self._look)

    def _look(self) -> None:
        """Where the log has more: plan soon, and write down what happened a little later, for more may come.

        What this service has written itself wakes it up, too.
        """
        end = self._files.log_end()
        if end != self._planned:
            self._plan_soon()
        if end != self._written and self._documents_at is None:
            self._documents_at = max(self._clock.monotonic() + _WRITE_DOWN, self._documents_pace)

    def _plan_soon(self) -> None:
        self._due = min(self._due, max(self._pace, self._clock.monotonic()))

    def _poll(self) -> list[float]:
        """Let host and runner do what is due; the seconds until each of them wants to again."""
        waits: list[float] = []
        for name, poll in (("host", self._hosting.poll), ("runner", self._hosting.runner.poll)):
            if not self._attempt(name, partial(_add, waits, poll)):
                waits.append(self._faults.wait(("job", name)))
        return waits

    def _handle(self, seconds: float) -> None:
        """Wait that long for something to happen, and let its handler act; one that raised has a rest."""
        ready = self._selector.select(seconds)
        acted = [self._attempt(f"handler {key.fd}", key.data) for key, _ in ready]
        if ready and not any(acted):
            self._clock.sleep(_HELD_UP)

    def _changed(self) -> None:
        """Something in the data directory has changed: the log, the chart, or a task's file."""
        assert self._watch is not None
        for folder, name in self._watch.read():
            task_id = name.removesuffix(".md")
            if not folder:
                self._scan_at = 0.0
            elif folder.endswith("/org"):
                self._look_at_chart()
            elif folder.endswith("/events"):
                self._look()
            elif "/tasks/" not in f"{folder}/":
                self._plan_soon()  # what is trusted has changed
            elif is_task_id(task_id) or (name.endswith(".md") and not name.startswith(".")):
                self._touched.add(task_id)
                self._touched_at = self._clock.monotonic() + _SETTLE

    def _look_at_chart(self) -> None:
        """Say what a new version of the chart is worth; the last good one stays in force."""
        report = self._fabric.org_report()
        if report.state in ("absent", "current"):
            self._tell("chart", "", f"{len(report.chart.agents)} agents are in the org chart now")
        else:
            what = "; ".join(finding.detail for finding in report.findings[:3])
            self._tell("trouble", "", f"the org chart cannot be used ({report.state}): {what}")
        self._due = self._clock.monotonic()

    def _take_in(self) -> None:
        """Look at the tasks whose files were written; mostly AOF itself did."""
        touched, self._touched = self._touched, set()
        for task_id in sorted(touched):
            if not is_task_id(task_id):
                self._scan_at = 0.0
                continue
            try:
                if self._files.is_modified(task_id):
                    self._fabric.get(task_id)
            except AofError:
                continue  # commands on the task get the error
            except Exception as error:  # noqa: BLE001 - the edge of one file
                self._faults.note("take_in", task_id, error)

    def _scan(self) -> None:
        """Take in everything that people did to the files, and find orphans; seldom, for it reads every file."""
        began = self._clock.monotonic()
        synced = self._fabric.sync()
        for task_id in (*synced.new, *synced.taken_in):
            self._tell("taken_in", task_id, "a person changed its file")
        for refused in synced.refused:
            self._tell("refused", refused.path, refused.reason)
        self._hosting.look_for_orphans()
        self._checkpoint()
        now = self._clock.monotonic()
        self._scan_at = now + max(_LOOK_ANYWAY * 5, (now - began) * _SHARE)
        self._due = now

    def _checkpoint(self) -> None:
        """Bound what a power cut would cost, where something was written since the last time."""
        head = self._store.head()
        if self._synced is None:
            self._synced = head
        elif head - self._synced >= _CHECKPOINT_AFTER:
            self._files.checkpoint()
            self._synced = head

    def _finished(self) -> bool:
        """Nothing runs here, nothing was to be done, and no retry of ours waits for its time."""
        for key in self._faults.waiting("job"):
            if key[1] in _JOBS:
                if error := self._faults.persistent(key):
                    raise error
                return False
        if (
            self._tick.retries()
            or not self._idle
            or self._hosting.hosted
            or self._touched
            or self._clock.monotonic() >= self._due
        ):
            return False
        return not self._tick.is_awaited()

    def _shut_down(self) -> None:
        """Ask every worker to end and wait for them; a second signal only waits for what must be done at once."""
        count = len(self._hosting.hosted)
        ending = "no worker is running" if not count else f"asking {count} worker{'' if count == 1 else 's'} to end"
        self._tell("stopping", "", ending)
        self._hosting.stop_all("shutdown")
        ends: float | None = None
        while self._hosting.hosted:
            if self._signals >= _HARD:
                self._hosting.stop_all("shutdown", hard=True)
                ends = ends or self._clock.monotonic() + _AT_LAST
                if self._clock.monotonic() >= ends:
                    return  # their supervisors end what is left when this process has gone
            self._handle(max(min([*self._poll(), 1.0]), 0.0))

    def _tell(self, action: str, task_id: str, reason: str) -> None:
        """One line per decision. A log that cannot be written ends nothing."""
        moment = iso(self._clock.now())
        if self._json:
            fields = {"at": moment, "action": action, "taskId": task_id or None, "reason": reason}
            line = escaped(msgspec.json.encode(fields).decode())
        else:
            line = clean(f"{moment[11:19]}  {action:<15}  {task_id:<20}  {reason}")
        with suppress(OSError, ValueError):
            self._out.write(f"{line}\n")
            self._out.flush()


_HARD = 2
_ONLY = "; this serves the board only: to start agents and recover lost work, too, run 'aof up --http 8420'"
_PEER_COMMAND = (sys.executable, "-P", "-m", "aof.service.peer")  # -P: no module of the project's is taken for one
_JOBS: dict[str, Callable[[Service], None]] = {
    "scan": Service._scan,  # noqa: SLF001 - the table of this class
    "take_in": Service._take_in,  # noqa: SLF001
    "tick": Service._act,  # noqa: SLF001
    "documents": Service._follow,  # noqa: SLF001
}
_MOMENTS: dict[str, Callable[[Service], float | None]] = {  # when each of them is due
    "scan": lambda service: service._scan_at,  # noqa: SLF001
    "take_in": lambda service: service._touched_at if service._touched else None,  # noqa: SLF001
    "tick": lambda service: 0.0 if service._hosting.freed else service._due,  # noqa: SLF001
    "documents": lambda service: service._documents_at,  # noqa: SLF001
}


def _add(waits: list[float], poll: Callable[[], float | None]) -> None:
    wait = poll()
    if wait is not None:
        waits.append(wait)


def _drain(fd: int) -> None:
    with suppress(BlockingIOError):
        while os.read(fd, 512):
            pass


_CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _MODIFY = 0x8, 0x40, 0x80, 0x100, 0x200, 0x2
_OVERFLOW, _IS_DIR = 0x4000, 0x40000000
GROWS = _MODIFY | _CREATE | _MOVED_TO
CHANGES = _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _DELETE
_HEAD = struct.Struct("iIII")
_BUFFER = 65_536


class Inotify:
    """A set of watched folders. `fd` can be waited for; raises OSError where the system has no such thing."""

    def __init__(self) -> None:
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self.fd: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError) as error:
            raise OSError("there is no inotify here") from error
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify cannot be used")
        self._folders: dict[int, str] = {}

    def watch(self, what: int, *folders: str) -> None:
        """Also tell of these folders."""
        for folder in folders:
            number = self._libc.inotify_add_watch(self.fd, os.fsencode(folder), what)
            if number < 0:
                raise OSError(ctypes.get_errno(), f"{folder} cannot be watched")
            self._folders[number] = folder

    def read(self) -> set[tuple[str, str]]:
        """Folder and name of what has changed since; an empty folder says that some of it was lost."""
        found: set[tuple[str, str]] = set()
        with suppress(BlockingIOError):
            while data := os.read(self.fd, _BUFFER):
                at = 0
                while at < len(data):
                    number, mask, _cookie, length = _HEAD.unpack_from(data, at)
                    at += _HEAD.size + length
                    name = os.fsdecode(data[at - length : at].rstrip(b"\0"))
                    if mask & _OVERFLOW:
                        found.add(("", ""))
                    elif number in self._folders and not mask & _IS_DIR:
                        found.add((self._folders[number], name))
        return found

    def close(self) -> None:
        """Stop watching."""
        os.close(self.fd)


class Notices:
    """A queue with a descriptor that becomes readable when something is in it."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[tuple[str, str]] = SimpleQueue()
        self.fd, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def put(self, action: str, text: str) -> None:
        """Hand over a line, from any thread."""
        self._lines.put((action, text))
        with suppress(BlockingIOError):  # so many wait already that the service will look
            os.write(self._wake, b"\0")

    def drain(self, tell: Callable[[str, str, str], None]) -> None:
        """Tell everything that waits."""
        with suppress(BlockingIOError):
            while os.read(self.fd, 512):
                pass
        with suppress(Empty):
            while True:
                action, text = self._lines.get_nowait()
                tell(action, "", text)

    def close(self) -> None:
        """Give the descriptors back, once nobody puts anything any more."""
        os.close(self.fd)
        os.close(self._wake)
