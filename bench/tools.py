"""How many MCP tool calls a second `aof up --http` answers for eight clients at once, each call a durable commit.

Held against the same calls through Python, from as many threads. All clients are threads of this one process, so that
they leave the server its processor; see `mcp_client` for what they send.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import aof
from aof.bench import processes as bench_processes
from aof.bench.commits import BRIEF, COMMITS, SUMMARY, TITLE
from aof.bench.report import Need, Part, TableRow
from aof.bench.rounds import Figure
from aof.service import serve
from bench.mcp_client import NEWEST, SESSIONS, Client

CLIENTS = 8
_CALLS_A_SECOND = 200
_KINDS = {SESSIONS: "in sessions", NEWEST: "newest revision"}
_CREATE, _ECHO = "create", "echo"
_RATE = Need(3, aim=5)
_BESIDE_PYTHON = Need(0.7, aim=0.9)
_SERVER = Need(2.5, aim=1.7, at_most=True)
_BESIDE_ECHO = Need(0.7, aim=1.5)

Lifecycle = Callable[[], object]


class Turn(NamedTuple):
    """One short run: calls a second, and milliseconds of CPU a call in this process and in the server."""

    rate: float
    here: float
    server: float


class Server(NamedTuple):
    """A running service, and a token for each client."""

    pid: int
    port: int
    tokens: tuple[str, ...]


def measured(folder: Path, *, rounds: int, seconds: float, say: Callable[[str], object]) -> Part:
    """MCP over HTTP, as a part of the table."""
    turns = measure(folder, rounds=rounds, seconds=seconds, say=say)
    python = turns["Python"]
    rows = []
    cpu = [turn.here for turn in python]
    for revision, name in _KINDS.items():
        mcp = turns[revision]
        rate = Figure.of([turn.rate for turn in mcp])
        wanted = Figure(*(value / _CALLS_A_SECOND for value in rate))
        ratio = Figure.ratio([turn.rate for turn in mcp], [turn.rate for turn in python])
        rows += [
            TableRow(f"tool calls, {name}", rate, "/s", wanted, f"{_CALLS_A_SECOND} a second", _RATE),
            TableRow(f"{name}, beside Python", None, "", ratio, "the same through Python", _BESIDE_PYTHON),
            TableRow(
                f"{name}, CPU of the server",
                Figure.of([turn.server for turn in mcp]),
                "ms/call",
                Figure.ratio([turn.server for turn in mcp], cpu),
                "the same through Python",
                _SERVER,
            ),
            TableRow("  CPU of the clients", Figure.of([turn.here for turn in mcp]), "ms/call"),
        ]
    rows += [
        TableRow("the same through Python", Figure.of([turn.rate for turn in python]), "/s"),
        TableRow("  CPU", Figure.of(cpu), "ms/call"),
        TableRow("an echo served by the official SDK", Figure.of([turn.rate for turn in turns[_ECHO]]), "/s"),
        TableRow(
            "durable creates, in sessions",
            Figure.of([turn.rate for turn in turns[_CREATE]]),
            "/s",
            Figure.ratio([turn.rate for turn in turns[_CREATE]], [turn.rate for turn in turns[_ECHO]]),
            "that echo",
            _BESIDE_ECHO,
        ),
    ]
    return Part(f"MCP: dispatch, claim, complete from {CLIENTS} clients, each call a durable commit", tuple(rows))


def measure(folder: Path, *, rounds: int, seconds: float, say: Callable[[str], object]) -> dict[str, list[Turn]]:
    """All in turns, on a data directory each."""
    kinds: tuple[str, ...] = (*_KINDS, "Python", _CREATE, _ECHO)
    turns: dict[str, list[Turn]] = {kind: [] for kind in kinds}
    plain, _ = aof.init(folder / "tools-python" / ".aof")
    with ExitStack() as stack:
        fabric = stack.enter_context(aof.open(plain))
        served = (*_KINDS, _CREATE)
        servers = {kind: stack.enter_context(serving(folder / f"tools-{kind}", CLIENTS)) for kind in served}
        servers[_ECHO] = stack.enter_context(_serving_echo(CLIENTS))
        for number in range(rounds):
            for kind in kinds if number % 2 == 0 else reversed(kinds):
                say(f"tools: round {number + 1} of {rounds}, {kind}")
                turns[kind].append(
                    _turn([_in_python(fabric, f"client-{place}") for place in range(CLIENTS)], seconds)
                    if kind == "Python"
                    else _over_mcp(servers[kind], kind, seconds)
                )
    return turns


@contextmanager
def _serving_echo(clients: int) -> Iterator[Server]:
    with subprocess.Popen([sys.executable, "-m", "bench.echo"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process.pid, int(process.stdout.readline()), ("",) * clients)
        finally:
            process.terminate()


@contextmanager
def serving(folder: Path, clients: int) -> Iterator[Server]:
    """`aof up --http` as users have it, with tokens for so many clients."""
    with serving_on(aof.init(folder / ".aof")[0], clients) as server:
        yield server


@contextmanager
def serving_on(root: str, clients: int) -> Iterator[Server]:
    """The same on a data directory that there is."""
    tokens = tuple(serve.create_token(root, f"client-{place}", "agent").token for place in range(clients))
    command = [sys.executable, "-m", "aof", "--data-dir", root, "up", "--http", "0", "--log-json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            told = next(line for line in process.stdout if json.loads(line)["action"] == "http")
            found = re.search(r"http://127\.0\.0\.1:(\d+)", told)
            assert found is not None, told
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield Server(process.pid, int(found.group(1)), tokens)
        finally:
            process.terminate()


def _over_mcp(server: Server, kind: str, seconds: float) -> Turn:
    revision = kind if kind in _KINDS else SESSIONS
    calls = _CALLS.get(kind, _by_tools)
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(Client(server.port, token, revision))) for token in server.tokens]
        return _turn([calls(client) for client in clients], seconds, server.pid)


def _by_tools(client: Client) -> Lifecycle:
    def lifecycle() -> None:
        task = client.call("aof_dispatch", title=TITLE, brief=BRIEF, metadata={"reviewRequired": False})["taskId"]
        run = client.call("aof_task_claim", taskId=task)["runId"]
        done = client.call("aof_task_complete", taskId=task, summary=SUMMARY, run=run)
        if done["status"] != "done":
            raise RuntimeError(f"{task} is {done['status']}")

    return lifecycle


def _by_creates(client: Client) -> Lifecycle:
    def lifecycle() -> None:
        for _ in range(COMMITS):
            client.call("aof_dispatch", title=TITLE, brief=BRIEF)

    return lifecycle


def _by_echoes(client: Client) -> Lifecycle:
    def lifecycle() -> None:
        for _ in range(COMMITS):
            client.call("echo", text=BRIEF)

    return lifecycle


_CALLS: dict[str, Callable[[Client], Lifecycle]] = {_CREATE: _by_creates, _ECHO: _by_echoes}


def _in_python(fabric: aof.Fabric, actor: str) -> Lifecycle:
    mine = fabric.as_actor(actor)

    def lifecycle() -> None:
        task = mine.create(TITLE, brief=BRIEF, metadata={"reviewRequired": False}).task_id
        run = mine.claim(task, agent=actor).run_id
        mine.complete(task, summary=SUMMARY, run=run)

    return lifecycle


def _turn(lifecycles: list[Lifecycle], seconds: float, pid: int | None = None) -> Turn:
    """Every lifecycle over and over in a thread of its own, once before anybody counts."""
    together = threading.Barrier(len(lifecycles) + 1)

    def work(lifecycle: Lifecycle) -> tuple[int, float]:
        lifecycle()
        together.wait()
        begin = time.perf_counter()
        count = 0
        while (now := time.perf_counter()) < begin + seconds or not count:
            lifecycle()
            count += COMMITS  # each is one call
        return count, now - begin

    with ThreadPoolExecutor(len(lifecycles)) as pool:
        working = [pool.submit(_or_abort, work, lifecycle, together) for lifecycle in lifecycles]
        here, there = 0.0, 0.0
        try:
            together.wait()
            here, there = _own(), bench_processes.cpu_used(pid) if pid else 0.0
        except threading.BrokenBarrierError:
            pass  # whoever failed says why
        counted = [one.result() for one in working]
    calls = sum(count for count, _ in counted) / 1000
    there = bench_processes.cpu_used(pid) - there if pid else 0.0
    return Turn(sum(count / took for count, took in counted), (_own() - here) / calls, there / calls)


def _or_abort(
    work: Callable[[Lifecycle], tuple[int, float]], lifecycle: Lifecycle, together: threading.Barrier
) -> tuple[int, float]:
    try:
        return work(lifecycle)
    except threading.BrokenBarrierError:
        raise
    except Exception:
        together.abort()
        raise


def _own() -> float:
    """Seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
