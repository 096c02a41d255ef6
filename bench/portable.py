"""What the portable view costs: a snapshot of many tasks beside one of few, and a follower of the event stream.

A snapshot is taken in the two ways that people take one: by a process that goes on, such as a server, after somebody
has worked on a task; and by the command, in a process of its own.

The follower reads server-sent events from `aof up --http` while somebody writes 100 events per second. What it costs is
the CPU that the service uses with it, less what it uses for the same writes without it.
"""

from __future__ import annotations

import http.client
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import aof
from aof.bench import processes as bench_processes
from aof.bench.commits import claim, complete, create
from aof.bench.report import Need, Part, TableRow, seconds_text
from aof.bench.rounds import Figure
from aof.bench.sizes import written
from bench.tools import Server, serving

_FEW, _MANY = 500, 10_000
_PER_SECOND = 100
_REPORTS = 20  # per task
_SHARE = 0.05  # of a core
_FORMATS = ("native", "agentruntime")
_BOUND = 60.0


class Amount(NamedTuple):
    """How much is measured: tasks in both directories, and how long and how often the stream is followed."""

    few: int = _FEW
    many: int = _MANY
    rounds: int = 3
    seconds: float = 10.0

    @staticmethod
    def quick() -> Amount:
        """A few seconds, to see that it works."""
        return Amount(few=20, many=40, rounds=1, seconds=0.5)


def measured(folder: Path, *, amount: Amount, say: Callable[[str], object]) -> Part:
    """Both, as a part of the table."""
    say(f"portable: writing {amount.many:,} tasks")
    roots = [written(folder / f"snapshot-{count}", count) for count in (amount.few, amount.many)]
    rows = [
        _grown(f"a snapshot of {amount.many:,} tasks, asked again", amount, _asked_again(roots, amount, say)),
        _grown(f"'aof admin snapshot' of {amount.many:,} tasks", amount, _commands(roots, amount, say)),
    ]
    with serving(folder / "followed", 1) as server:
        shares = _followed(server, folder / "followed" / ".aof", amount, say)
    for form in _FORMATS:
        share = Figure.of([value * 100 for value in shares[form]])
        ratio = Figure(*(value / 100 / _SHARE for value in share))
        limit = f"{_SHARE:.0%} of a core"
        rows.append(TableRow(f"one follower, {form} events", share, "%", ratio, limit, Need(1.0, at_most=True)))
    return Part(f"Portable: snapshots, and followers of {_PER_SECOND} events per second", tuple(rows))


def _grown(name: str, amount: Amount, times: list[list[float]]) -> TableRow:
    few, many = times
    shown, unit = seconds_text(Figure.of(many))
    against = f"the same of {amount.few:,}"
    return TableRow(name, shown, unit, Figure.ratio(many, few), against, Need(20, at_most=True))


def _asked_again(roots: list[str], amount: Amount, say: Callable[[str], object]) -> list[list[float]]:
    """Seconds of CPU for few and for many tasks, in turns; before each, a task is created, claimed and completed."""
    times: list[list[float]] = [[], []]
    with aof.open(roots[0], actor="bench") as few, aof.open(roots[1], actor="bench") as many:
        for fabric in (few, many):
            fabric.snapshot()
        for number in range(amount.rounds):
            say(f"portable: snapshots, round {number + 1} of {amount.rounds}")
            for place, fabric in enumerate((few, many)):
                task = create(fabric)
                claim(fabric, task)
                complete(fabric, task)
                begin = time.process_time()
                fabric.snapshot()
                times[place].append(time.process_time() - begin)
    return times


def _commands(roots: list[str], amount: Amount, say: Callable[[str], object]) -> list[list[float]]:
    """The same for a command each."""
    times: list[list[float]] = [[], []]
    for number in range(amount.rounds):
        say(f"portable: commands, round {number + 1} of {amount.rounds}")
        for place, root in enumerate(roots):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [sys.executable, "-m", "aof", "snapshot", "--json", "--data-dir", root]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=_BOUND)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times[place].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return times


def _followed(server: Server, root: Path, amount: Amount, say: Callable[[str], object]) -> dict[str, list[float]]:
    """The share of a core that a follower takes, round by round and format by format."""
    shares: dict[str, list[float]] = {form: [] for form in _FORMATS}
    with aof.open(root, actor="bench") as fabric:
        writer = _Writer(fabric)
        writer.write(min(amount.seconds, 1.0))
        for number in range(amount.rounds):
            for form in _FORMATS:
                say(f"portable: following, round {number + 1} of {amount.rounds}, {form}")
                alone = _cpu_of(server.pid, lambda: writer.write(amount.seconds))
                with _following(server, form, fabric.store.head()) as seen:
                    beside = _cpu_of(server.pid, lambda: writer.write(amount.seconds))
                    last = fabric.store.head()
                    if not seen(last):
                        raise RuntimeError(f"the follower has not seen event {last}")
                shares[form].append(max(beside - alone, 0.0) / amount.seconds)
    return shares


def _cpu_of(pid: int, work: Callable[[], object]) -> float:
    before = bench_processes.cpu_used(pid)
    work()
    return bench_processes.cpu_used(pid) - before


class _Writer:
    """Writes so many events per second: tasks that are created, taken, reported on and completed."""

    def __init__(self, fabric: aof.Fabric) -> None:
        self._fabric = fabric
        self._steps = self._work()

    def write(self, seconds: float) -> None:
        """At a steady pace, for so long."""
        begin, first, pause = time.monotonic(), self._fabric.store.head(), threading.Event()
        while (written := self._fabric.store.head() - first) < seconds * _PER_SECOND:
            pause.wait(max(begin + written / _PER_SECOND - time.monotonic(), 0))
            next(self._steps)

    def _work(self) -> Iterator[None]:
        while True:
            task = create(self._fabric)
            yield
            claim(self._fabric, task)
            yield
            for number in range(_REPORTS):
                self._fabric.progress(task, agent="bench", text=f"step {number}", percent=100 * number // _REPORTS)
                yield
            complete(self._fabric, task)
            yield


@contextmanager
def _following(server: Server, form: str, after: int) -> Iterator[Callable[[int], bool]]:
    """A client that reads the stream; what is given tells whether it has seen an event."""
    headers = {"Authorization": f"Bearer {server.tokens[0]}"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_BOUND)
    with closing(connection):
        connection.request("GET", f"/api/v1/events?format={form}&after={after}", headers=headers)
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise RuntimeError(f"the stream was refused: {response.status}")
        head = 0
        news = threading.Condition()

        def read() -> None:
            nonlocal head
            try:
                while line := response.readline():
                    if line.startswith(b"id: "):
                        with news:
                            head = int(line[4:])
                            news.notify_all()
            except (OSError, ValueError, AttributeError, http.client.HTTPException):
                return  # the connection was closed

        threading.Thread(target=read, daemon=True).start()

        def seen(seq: int) -> bool:
            with news:
                return news.wait_for(lambda: head >= seq, _BOUND)

        yield seen
