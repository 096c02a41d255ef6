"""What honest agents notice of an attack: the p95 of their calls, beside that of a quiet service.

Agents work over HTTP, each with a token of its own: claim, progress, complete. The attack is half-open connections,
wrong tokens and one `aof send` with far more lines than it takes. Every call must succeed, in peace and under attack.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aof
from aof.bench.report import Need, Part, TableRow
from aof.bench.rounds import Figure
from aof.service import serve

_WORST = 3.0
_PACE = 0.4  # seconds from one call of an agent to its next
_BOUND = 120.0


class Attack(NamedTuple):
    """How much of everything."""

    agents: int = 20
    half_open: int = 1_000
    wrong_per_second: int = 300
    lines: int = 30_000
    per_send: int = 1_000
    seconds: float = 15.0

    @staticmethod
    def quick() -> Attack:
        """A few seconds, to see that it works."""
        return Attack(agents=4, half_open=100, wrong_per_second=60, lines=1_000, per_send=30, seconds=1.5)


class Siege(NamedTuple):
    """Seconds per call, in peace and under attack; what the service logged; what `send` answered."""

    quiet: list[float]
    besieged: list[float]
    log: list[dict[str, Any]]
    sent: list[dict[str, Any]]
    root: str


def measured(folder: Path, *, rounds: int, attack: Attack, say: Callable[[str], object]) -> Part:
    """The siege as a part of the table."""
    quiet, besieged = [], []
    for number in range(rounds):
        say(f"siege: round {number + 1} of {rounds}")
        found = besiege(folder / f"siege-{number}", attack)
        quiet.append(p95(found.quiet))
        besieged.append(p95(found.besieged))
    rows = (
        TableRow("a call in peace, p95", Figure.of([one * 1000 for one in quiet]), "ms"),
        TableRow(
            "a call under attack, p95",
            Figure.of([one * 1000 for one in besieged]),
            "ms",
            Figure.ratio(besieged, quiet),
            "the same in peace",
            Need(_WORST, aim=1.5, at_most=True),
        ),
    )
    title = f"{attack.agents} agents beside {attack.half_open:,} half-open connections"
    return Part(
        f"Siege: {title}, {attack.wrong_per_second} wrong tokens per second, a send of {attack.lines:,} lines", rows
    )


def besiege(folder: Path, attack: Attack) -> Siege:
    """One service, first in peace and then under attack for as long."""
    root, _ = aof.init(folder / ".aof")
    if attack.per_send != Attack().per_send:
        with Path(root, "aof.toml").open("a", encoding="utf-8") as settings:
            settings.write(f"\n[messages]\nperSend = {attack.per_send}\n")
    names = [f"agent-{place}" for place in range(attack.agents)]
    tokens = [serve.create_token(root, name, None, scope="work").token for name in names]
    lines = folder / "messages.txt"
    lines.write_text(_flood(attack.lines), encoding="utf-8")
    with _serving(root) as (port, log), ThreadPoolExecutor(attack.agents) as pool, ExitStack() as stack:

        def work(seconds: float) -> list[float]:
            agents = [pool.submit(_agent, port, token, seconds, place) for place, token in enumerate(tokens)]
            return [took for agent in agents for took in agent.result(_BOUND)]

        work(min(attack.seconds, 1.0))
        quiet = work(attack.seconds)
        words = map(str, (port, attack.seconds + 30, attack.half_open, attack.wrong_per_second))
        attacker = stack.enter_context(_ended([sys.executable, "-m", "bench.attack", *words]))
        assert attacker.stdout is not None
        attacker.stdout.readline()
        sender = stack.enter_context(
            _ended([sys.executable, "-m", "aof", "--data-dir", root, "send", str(lines), "--json"])
        )
        besieged = work(attack.seconds)
        said, _ = sender.communicate(timeout=_BOUND)
        return Siege(quiet, besieged, log, json.loads(said)["data"]["results"], root)


def p95(seconds: list[float]) -> float:
    """The value that all but one in twenty stay below."""
    return statistics.quantiles(seconds, n=20)[-1]


def _agent(port: int, token: str, seconds: float, place: int) -> list[float]:
    """One agent at work; each call's time. Raises when a call is refused."""
    pause, took = threading.Event(), []
    pause.wait(place * 0.017)
    end = time.monotonic() + seconds
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=_BOUND)

    def call(name: str, **given: Any) -> dict[str, Any]:
        begin = time.perf_counter()
        client.request("POST", f"/api/v1/{name}", json.dumps(given), {"Authorization": f"Bearer {token}"})
        response = client.getresponse()
        said: dict[str, Any] = json.loads(response.read())
        took.append(time.perf_counter() - begin)
        if response.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{name} was refused: {said}")
        pause.wait(max(_PACE - took[-1], 0.01))
        return said

    while time.monotonic() < end:
        task = call("create", title="Work", metadata={"reviewRequired": False})["taskId"]
        run = call("claim", taskId=task)["runId"]
        call("progress", taskId=task, run=run, text="on it")
        call("complete", taskId=task, run=run, summary="done")
    client.close()
    return took


def _flood(lines: int) -> str:
    """Messages that are well-formed and about no task that there is: each costs a look and a remark."""
    message = {
        "protocol": "aof", "version": 1, "projectId": "x", "type": "status.update", "taskId": "TASK-2026-01-01-001",
        "fromAgent": "flood", "toAgent": "pm", "sentAt": "2026-01-01T00:00:00Z",
        "payload": {"taskId": "TASK-2026-01-01-001", "agentId": "flood", "notes": "x"},
    }  # fmt: skip
    return (json.dumps(message) + "\n") * lines


@contextmanager
def _serving(root: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    command = [sys.executable, "-m", "aof", "--data-dir", root, "up", "--http", "0", "--log-json"]
    log: list[dict[str, Any]] = []
    with _ended(command) as process:
        assert process.stdout is not None
        for line in process.stdout:
            log.append(json.loads(line))
            if log[-1]["action"] == "http":
                break

        def read() -> None:
            assert process.stdout is not None
            log.extend(
                json.loads(line) if line.startswith("{") else {"action": "raw", "reason": line}
                for line in process.stdout
            )

        reader = threading.Thread(target=read)
        reader.start()
        yield int(str(log[-1]["reason"]).split()[0].rpartition(":")[2]), log
        process.terminate()
        reader.join(_BOUND)


@contextmanager
def _ended(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive its use."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
