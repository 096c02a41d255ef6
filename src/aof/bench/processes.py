"""What processes cost: one call of the command line, a tick of the scheduler, the service while it idles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from aof.api.fabric import Fabric
from aof.bench import commits
from aof.bench.rounds import Figure
from aof.scheduler.tick import Tick
from aof.service.bootstrap import open_fabric
from aof.service.upkeep import revoke_trust, trust_data_dir

BARE = "python -c pass"
HELP = "aof --help"
CREATE, AFTER = "aof create", "aof ready, right after a change"
QUESTIONS = ("aof ready", "aof list --limit 20", "aof show")
VERBS = (*QUESTIONS, CREATE, AFTER)


class Calls(NamedTuple):
    """Seconds of CPU of each call, by round; the number is that of the tasks in the directory."""

    bare: list[float]
    help: list[float]
    verbs: dict[tuple[str, int], list[float]]


def measure_startup(roots: Mapping[int, str], *, rounds: int, say: Callable[[str], object]) -> Calls:
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
    """The CPU, user and system, of a process from its start to its end; raises where it fails."""
    out = os.open(os.devnull, os.O_RDWR)
    back = os.open(".", os.O_RDONLY)
    try:
        if folder is not None:
            os.chdir(folder)
        streams = [(os.POSIX_SPAWN_DUP2, out, number) for number in range(3)]
        child = os.posix_spawn(words[0], list(words), _environment(), file_actions=streams)
        _, status, used = os.wait4(child, 0)
    finally:
        os.fchdir(back)
        os.close(back)
        os.close(out)
    if status:
        raise RuntimeError(f"exit {os.waitstatus_to_exitcode(status)} of: {' '.join(words)}")
    return used.ru_utime + used.ru_stime


def _environment() -> dict[str, str]:
    """A user's: Python keeps what it has compiled, also where this one was told not to."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _some_task(root: str) -> str:
    names = sorted(path.stem for path in Path(root, "tasks", "ready").glob("TASK-*.md"))
    return names[len(names) // 2]


LARGE, SMALL, QUICK = (9_400, 500, 100), (94, 5, 1), (94, 50, 10)
_TICKS = 25
_STARTS = 9
_BOUND = 60.0
_AGENT = "import time,sys; open(sys.argv[1],'a').write(f'{time.time()}\\n')"


class ServiceFigures(NamedTuple):
    """Seconds, and the share of one core that an idle service takes."""

    tasks: int
    small: Figure
    large: Figure
    grown: Figure
    acting: Figure
    started: Figure
    idle: float
    watched: float


def measure_service(folder: Path, *, quick: bool, say: Callable[[str], object]) -> ServiceFigures:
    """Both directories, then the service on the large one."""
    size = QUICK if quick else LARGE
    say(f"service: writing {sum(size):,} tasks")
    small, large = _generated(folder / "tick-small", *SMALL), _generated(folder / "tick-large", *size)
    say("service: ticks")
    with open_fabric(small, actor="bench") as here, open_fabric(large, actor="bench") as there:
        pairs = [(_tick(here), _tick(there), _act(there)) for _ in range(3 if quick else _TICKS)]
    say("service: starting agents")
    with _serving(large) as up:
        started = [_first_step(up, large, folder) for _ in range(1 if quick else _STARTS)]
        say("service: idling")
        watched = 0.5 if quick else 20.0
        idle = _idle(up, watched)
    lows, highs, acts = zip(*pairs, strict=True)
    return ServiceFigures(
        tasks=sum(size),
        small=Figure.of(list(lows)),
        large=Figure.of(list(highs)),
        grown=Figure.ratio(list(highs), list(lows)),
        acting=Figure.of(list(acts)),
        started=Figure.of(started),
        idle=idle,
        watched=watched,
    )


def _generated(folder: Path, done: int, ready: int, running: int) -> str:
    folder.mkdir(parents=True)
    root = commits.prepare_fabric(folder, "relaxed")
    Path(root, "org").mkdir(exist_ok=True)
    agents = [
        {
            "id": "starter",
            "runner": {"kind": "process", "command": [sys.executable, "-S", "-c", _AGENT, str(folder / "first")]},
        },
        {"id": "puller"},
    ]
    Path(root, "org/org-chart.yaml").write_text(json.dumps({"schemaVersion": 1, "agents": agents}), encoding="utf-8")
    with open_fabric(root, actor="bench") as fabric:
        for number in range(done + ready + running):
            task = fabric.create(f"Task {number}", agent="puller", review=False, tags=["bench"]).task_id
            if number < done:
                fabric.complete(task, agent="puller")
            elif number < done + running:
                fabric.claim(task, agent="puller", ttl=86_400)
        fabric.ready(limit=1)
    return root


def _tick(fabric: Fabric) -> float:
    """A tick that explains everything and changes nothing."""
    begin = time.perf_counter()
    fabric.tick(dry_run=True)
    return time.perf_counter() - begin


def _act(fabric: Fabric) -> float:
    """A tick as the service does it."""
    begin = time.perf_counter()
    Tick(fabric.services.environment, fabric.services.dispatcher).ticked(explain=False)
    return time.perf_counter() - begin


@contextmanager
def _serving(root: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "aof", "--data-dir", root, "up", "--log-json"]
    trust_data_dir(root)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if json.loads(line)["action"] == "up":
                    break
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield process
        finally:
            process.terminate()
            revoke_trust(root)


def _first_step(up: subprocess.Popen[str], root: str, folder: Path) -> float:
    """From the commit that makes a task ready to the first instruction of the agent's own program."""
    mark = folder / "tick-large" / "first"
    mark.unlink(missing_ok=True)
    pause = threading.Event()
    _settled(up, pause)
    with open_fabric(root, actor="bench") as fabric:
        task = fabric.create("Begin", agent="starter", max_attempts=1).task_id
        begin = time.time()
        deadline = time.monotonic() + _BOUND
        while not mark.exists() or not mark.read_text(encoding="utf-8").endswith("\n"):
            if time.monotonic() > deadline:
                raise RuntimeError("the service started nobody")
            pause.wait(0.002)
        while fabric.get(task).status != "deadletter" and time.monotonic() < deadline:
            pause.wait(0.01)
    return float(mark.read_text(encoding="utf-8").split()[0]) - begin


def _settled(up: subprocess.Popen[str], pause: threading.Event) -> None:
    """Until the service has stopped working."""
    deadline = time.monotonic() + _BOUND
    before = -1.0
    while (used := cpu_used(up.pid)) != before and time.monotonic() < deadline:
        before = used
        pause.wait(0.2)


def _idle(up: subprocess.Popen[str], seconds: float) -> float:
    pause = threading.Event()
    _settled(up, pause)
    before, begin = cpu_used(up.pid), time.monotonic()
    pause.wait(seconds)
    return (cpu_used(up.pid) - before) / (time.monotonic() - begin)


def cpu_used(pid: int) -> float:
    """Seconds of CPU, user and system, that a process and its threads have used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
