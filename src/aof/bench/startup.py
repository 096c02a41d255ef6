"""What one call of the command line costs, beside `python -c pass`: every import and every look at the disk counts.

Each call is a new process. All calls take their turns in rounds, and a ratio is one within a round, so that a slow
moment of the machine strikes both. A change makes the index fall behind, which the next question makes up for; that is
measured by itself, and nothing else is measured right after a change.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from aof.bench.rounds import Figure

BARE = "python -c pass"
HELP = "aof --help"
CREATE, AFTER = "aof create", "aof ready, right after a change"
QUESTIONS = ("aof ready", "aof list --limit 20", "aof show")
VERBS = (*QUESTIONS, CREATE, AFTER)


class Calls(NamedTuple):
    """Seconds of each call, by round; the number is that of the tasks in the directory."""

    bare: list[float]
    help: list[float]
    verbs: dict[tuple[str, int], list[float]]

    def ratio(self, verb: str, tasks: int) -> Figure:
        """A call beside a bare Python."""
        return Figure.ratio(self.verbs[verb, tasks], self.bare)

    def growth(self, verb: str, tasks: int, few: int) -> Figure:
        """A call in a large directory beside the same in a small one."""
        return Figure.ratio(self.verbs[verb, tasks], self.verbs[verb, few])


def measure(roots: Mapping[int, str], *, rounds: int, say: Callable[[str], object]) -> Calls:
    """Call every verb once a round in each directory."""
    calls = Calls([], [], {(verb, tasks): [] for verb in VERBS for tasks in roots})
    shown = {tasks: _some_task(root) for tasks, root in roots.items()}
    for root in roots.values():  # once uncounted, so that everything is compiled
        seconds([*command(), "--data-dir", root, "create", "Compare the two parsers"])
        seconds([*command(), "--data-dir", root, "ready"])
    for number in range(rounds):
        say(f"calls of the command line, round {number + 1}/{rounds}")
        calls.bare.append(seconds([sys.executable, "-c", "pass"]))
        calls.help.append(seconds([*command(), "--help"]))
        for tasks, root in sorted(roots.items(), reverse=number % 2 == 1):
            here = [*command(), "--data-dir", root]
            calls.verbs[CREATE, tasks].append(seconds([*here, "create", "Compare the two parsers"]))
            calls.verbs[AFTER, tasks].append(seconds([*here, "ready"]))
            for verb in QUESTIONS:
                words = verb.split()[1:]
                calls.verbs[verb, tasks].append(seconds([*here, *words, *([shown[tasks]] if "show" in words else [])]))
    return calls


def command() -> list[str]:
    """The command of the Python that runs this: its script where it was installed, as a user calls it."""
    script = Path(sys.executable).with_name("aof")
    if script.exists():
        return [str(script)]
    return [sys.executable, "-c", "from aof.__main__ import main; main()"]


def seconds(words: Sequence[str], folder: str | None = None) -> float:
    """How long a process takes from its start to its end; raises where it fails."""
    out = os.open(os.devnull, os.O_RDWR)
    back = os.open(".", os.O_RDONLY)
    try:
        if folder is not None:
            os.chdir(folder)
        begin = time.perf_counter()
        streams = [(os.POSIX_SPAWN_DUP2, out, number) for number in range(3)]
        child = os.posix_spawn(words[0], list(words), _environment(), file_actions=streams)
        _, status = os.waitpid(child, 0)
        taken = time.perf_counter() - begin
    finally:
        os.fchdir(back)
        os.close(back)
        os.close(out)
    if status:
        raise RuntimeError(f"exit {os.waitstatus_to_exitcode(status)} of: {' '.join(words)}")
    return taken


def _environment() -> dict[str, str]:
    """A user's: Python keeps what it has compiled, also where this one was told not to."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _some_task(root: str) -> str:
    names = sorted(path.stem for path in Path(root, "tasks", "ready").glob("TASK-*.md"))
    return names[len(names) // 2]
