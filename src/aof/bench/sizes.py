"""What size costs: the same questions and the same three commits in directories of 1,000 to 100,000 tasks.

The tasks are written by the real store with relaxed durability and by several processes, which nobody measures. One
in ten is done and one in fifty waits for another; the rest is ready, which is the hardest case for `ready`. Reads are
warm: the files have just been written. Commits are durable and alternate one by one with those in a small directory,
so that a slow second of the disk strikes both.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from aof.api.fabric import Fabric
from aof.bench import commits as bench_commits
from aof.bench.rounds import Figure
from aof.service.bootstrap import open_fabric
from aof.store.files.store import FilesystemStore

SMALL = 100
SIZES = (1_000, 10_000, 100_000)
_CONTEXT = multiprocessing.get_context("fork")
_READS = 15
_SAMPLE = 2_000
_REBUILDS = 3
_STEPS: dict[str, Callable[[Fabric, str], str]] = {
    "create": lambda fabric, _: bench_commits.create(fabric),
    "claim": bench_commits.claim,
    "complete": bench_commits.complete,
}


class Growth(NamedTuple):
    """Seconds of one commit in the small directory and in the large one."""

    small: Figure
    large: Figure

    @property
    def ratio(self) -> float:
        """How much dearer the large one is."""
        return self.large.value / self.small.value


Parser = Callable[[Sequence[bytes]], float]
"""Parses the frontmatter of many files; the CPU seconds that it took."""


class SizeFigures(NamedTuple):
    """Everything about one size, in seconds."""

    tasks: int
    root: str
    generated: float
    opened: Figure
    first_ready: float
    ready: Figure
    listed: Figure
    claimed_next: Figure
    growth: dict[str, Growth]
    rebuilt: Figure
    rebuilt_to_parser: Figure | None


def measure(
    folder: Path, tasks: int, *, commits: int, say: Callable[[str], object], parser: Parser | None = None
) -> SizeFigures:
    """Generate a directory of that size beside one of 100 tasks, and measure both."""
    say(f"{tasks:,} tasks: writing them")
    small = written(folder / f"{tasks}-small", SMALL)
    begin = time.perf_counter()
    large = written(folder / f"{tasks}-large", tasks)
    generated = time.perf_counter() - begin
    say(f"{tasks:,} tasks: questions")
    opened = Figure.of([_timed(lambda: open_fabric(large).close()) for _ in range(_READS)])
    with open_fabric(small, actor="bench") as here, open_fabric(large, actor="bench") as there:
        first_ready = _timed(lambda: there.ready(limit=20))
        ready = Figure.of([_timed(lambda: there.ready(limit=20)) for _ in range(_READS)])
        listed = Figure.of([_timed(lambda: there.list(limit=20)) for _ in range(_READS)])
        claimed_next = Figure.of([_next(there) for _ in range(_READS)])
        say(f"{tasks:,} tasks: commits")
        growth = _growth(here, there, commits)
        say(f"{tasks:,} tasks: rebuilding the index")
        rebuilt, to_parser = _rebuilds(there, Path(large), tasks, parser)
    return SizeFigures(
        tasks=tasks,
        root=large,
        generated=generated,
        opened=opened,
        first_ready=first_ready,
        ready=ready,
        listed=listed,
        claimed_next=claimed_next,
        growth=growth,
        rebuilt=rebuilt,
        rebuilt_to_parser=to_parser,
    )


def written(folder: Path, tasks: int) -> str:
    """A directory with so many tasks, everything flushed, from now on durable."""
    folder.mkdir(parents=True)
    root = bench_commits.prepare_fabric(folder, "relaxed")
    workers = max(1, min(4, os.cpu_count() or 1, tasks // 100))
    shares = [tasks // workers + (number < tasks % workers) for number in range(workers)]
    children = [_CONTEXT.Process(target=_generate, args=(root, share), daemon=True) for share in shares]
    for child in children:
        child.start()
    for child in children:
        child.join()
        if child.exitcode:
            raise RuntimeError("a process that should write tasks has failed")
    bench_commits.set_durability(root, "full")
    with open_fabric(root, actor="bench") as fabric:
        _store(fabric).checkpoint()
    return root


def _generate(root: str, tasks: int) -> None:
    with open_fabric(root, actor="bench") as fabric:
        last = ""
        for number in range(tasks):
            waits = (last,) if number % 50 == 25 else ()
            last = fabric.create(
                f"{bench_commits.TITLE}, part {number}",
                brief=bench_commits.BRIEF,
                review=False,
                depends_on=waits,
                tags=("bench",),
            ).task_id
            if number % 10 == 0:
                bench_commits.claim(fabric, last)
                bench_commits.complete(fabric, last)


def _growth(here: Fabric, there: Fabric, commits: int) -> dict[str, Growth]:
    """Each commit in the small directory, then at once in the large one, or the other way about."""
    times: dict[tuple[str, bool], list[float]] = {}
    both = ((here, False), (there, True))
    for number in range(commits):
        ids: dict[bool, str] = {}
        for name, step in _STEPS.items():
            for fabric, large in both if number % 2 == 0 else both[::-1]:
                begin = time.perf_counter()
                ids[large] = step(fabric, ids.get(large, ""))
                times.setdefault((name, large), []).append(time.perf_counter() - begin)
    for large in (False, True):
        parts = zip(*(times[name, large] for name in _STEPS), strict=True)
        times["lifecycle", large] = [sum(part) for part in parts]
    return {
        name: Growth(Figure.of(times[name, False]), Figure.of(times[name, True])) for name in (*_STEPS, "lifecycle")
    }


def _next(fabric: Fabric) -> float:
    """Claim whatever comes first; the commit before made the index fall behind, as it does among many agents."""
    found = ""

    def claim() -> None:
        nonlocal found
        found = fabric.claim(agent="bench").task_id

    seconds = _timed(claim)
    bench_commits.complete(fabric, found)
    return seconds


def _rebuilds(fabric: Fabric, root: Path, tasks: int, parser: Parser | None) -> tuple[Figure, Figure | None]:
    """Seconds to build the index from all files, and how that compares with a parser on their frontmatter.

    The ratio is one of CPU seconds, for both do nothing but compute and a busy machine would disturb either.
    """
    fronts = _fronts(root) if parser is not None else []
    rebuilt: list[float] = []
    cpu: list[float] = []
    parsed: list[float] = []
    for _ in range(_REBUILDS):
        if parser is not None:
            parsed.append(parser(fronts) * tasks / len(fronts))
        used = time.process_time()
        rebuilt.append(_timed(_store(fabric).index.rebuild))
        cpu.append(time.process_time() - used)
    return Figure.of(rebuilt), Figure.ratio(cpu, parsed) if parsed else None


def _fronts(root: Path) -> list[bytes]:
    """The frontmatter of a sample of the files, read beforehand."""
    files = sorted(root.glob("tasks/*/*.md"))
    step = max(1, len(files) // _SAMPLE)
    return [path.read_bytes().split(b"---\n", 2)[1] for path in files[::step][:_SAMPLE]]


def _store(fabric: Fabric) -> FilesystemStore:
    assert isinstance(fabric.store, FilesystemStore)
    return fabric.store


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
