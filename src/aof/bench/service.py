"""What the scheduler and the service cost: a tick beside a small one, the way to an agent's first step, and idling.

The large directory has 10,000 tasks, of which 500 are ready and 100 in progress; the small one 100, 5 and 1. All others
are done. The service is `aof up` as a process of its own; its agent writes down the moment at which it begins.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from aof.app.fabric import Fabric
from aof.app.scheduler.tick import Tick
from aof.bench import cpu
from aof.bench import fabric as lifecycle
from aof.bench.rounds import Figure
from aof.entrypoints.bootstrap import open_fabric
from aof.entrypoints.trust import revoke_trust, trust_data_dir

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


def measure(folder: Path, *, quick: bool, say: Callable[[str], object]) -> ServiceFigures:
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
    root = lifecycle.prepare(folder, "relaxed")
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
    while (used := cpu.used(up.pid)) != before and time.monotonic() < deadline:
        before = used
        pause.wait(0.2)


def _idle(up: subprocess.Popen[str], seconds: float) -> float:
    pause = threading.Event()
    _settled(up, pause)
    before, begin = cpu.used(up.pid), time.monotonic()
    pause.wait(seconds)
    return (cpu.used(up.pid) - before) / (time.monotonic() - begin)
