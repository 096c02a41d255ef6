"""How far a reader follows three commands: how many files each enters, and how often it changes between them.

    .venv/bin/python -m bench.walks            # all three
    .venv/bin/python -m bench.walks claim      # one of them

Each walk is a process of its own that counts the calls of its functions: a file is entered where one of its functions
is called, and a switch is a call or a return that leads from one file to another in the same thread. What loads modules
is not counted. The figures say nothing about speed. `recover` waits for what happens, so its switches vary a little.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import aof

SOURCE = f"{Path(aof.__file__).parent}/"
LOADING = f"{SOURCE}support/lazy_imports.py"
PATIENCE = 60.0  # seconds until something that a walk waits for has surely failed
_NEW_LOCALS = 2  # a function, and no module or class body

Walked = dict[str, Any]


class Tracer:
    """Counts what this process runs."""

    def __init__(self) -> None:
        self._known: dict[CodeType, str] = {}
        self.begin()

    def begin(self, *_signal: object) -> None:
        """Count from now on."""
        self.calls: Counter[str] = Counter()
        self.switches: Counter[tuple[str, str]] = Counter()
        self._here: dict[int, str] = {}

    def count(self, frame: FrameType | None, event: str, _given: object) -> None:
        """Keeps the contract of `sys.setprofile`."""
        if event == "return" and frame is not None:
            frame = frame.f_back
        elif event != "call":
            return
        file = "" if frame is None else self._file(frame.f_code)
        if not file:
            return
        thread = threading.get_ident()
        before = self._here.get(thread, file)
        if event == "call":
            self.calls[file] += 1
        if before != file:
            self.switches[before, file] += 1
        self._here[thread] = file

    def _file(self, code: CodeType) -> str:
        """The file of the source that a function is in; empty for everything else."""
        if code not in self._known:
            file = code.co_filename
            ours = file.startswith(SOURCE) and file != LOADING and code.co_flags & _NEW_LOCALS
            self._known[code] = file[len(SOURCE) :] if ours else ""
        return self._known[code]


def traced(out: str, words: Sequence[str]) -> None:
    """Run a command line in this process; at its end the counts are in a file. SIGUSR1 begins them anew."""
    tracer = Tracer()

    def begin(*_signal: object) -> None:
        tracer.begin()
        Path(f"{out}.begun").touch()

    def end(code: int) -> None:
        sys.setprofile(None)
        pairs = [[*pair, count] for pair, count in tracer.switches.most_common()]
        Path(out).write_text(json.dumps({"calls": tracer.calls, "switches": pairs}), encoding="utf-8")
        really_end(code)

    really_end, os._exit = os._exit, end  # type: ignore[assignment]  # how the command ends
    signal.signal(signal.SIGUSR1, begin)
    sys.argv = ["aof", *words]
    from aof.__main__ import main  # noqa: PLC0415 - under the tracer

    threading.setprofile(tracer.count)
    sys.setprofile(tracer.count)
    main()


class Desk:
    """A data directory for one walk."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / ".aof"
        self.out = folder / "counts.json"
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("AOF_")}
        self._environment |= {"HOME": str(folder), "XDG_STATE_HOME": f"{folder}/state"}
        self.aof("init")

    def aof(self, *words: str, **options: Any) -> str:
        """A command that is not counted."""
        done = self.start([sys.executable, "-m", "aof"], *words, **options)
        said, complaint = done.communicate(timeout=PATIENCE)
        if done.returncode:
            raise SystemExit(f"aof {' '.join(words)}: {complaint}")
        return said

    def start(self, program: list[str], *words: str, actor: str = "pm") -> subprocess.Popen[str]:
        """Start a command."""
        command = [*program, "--data-dir", str(self.root), "--actor", actor, *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self._environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def walk(self, *words: str, actor: str = "pm") -> subprocess.Popen[str]:
        """Start the command that is counted."""
        return self.start([sys.executable, "-m", "bench.walks", "--trace", str(self.out)], *words, actor=actor)

    def counts(self, process: subprocess.Popen[str]) -> Walked:
        """What the command has entered, after its end."""
        _, complaint = process.communicate(timeout=PATIENCE)
        if process.returncode:
            raise SystemExit(f"the walk failed: {complaint}")
        found: Walked = json.loads(self.out.read_text(encoding="utf-8"))
        return found

    def put(self, name: str, content: dict[str, Any]) -> None:
        """Write an org chart or a workflow; JSON is YAML."""
        (self.root / name).parent.mkdir(exist_ok=True)
        (self.root / name).write_text(json.dumps(content), encoding="utf-8")


def claim(folder: Path) -> Walked:
    """`aof claim 001` by an agent."""
    desk = Desk(folder)
    desk.aof("create", "First")
    desk.aof("list")
    return desk.counts(desk.walk("claim", "001", "--agent", "ada", actor="ada"))


def complete(folder: Path) -> Walked:
    """The MCP tool `aof_task_complete` on the first hop of a gated task."""
    desk = Desk(folder)
    agents = [{"id": "ada", "roles": ["developer"]}, {"id": "bob", "roles": ["reviewer"]}]
    desk.put("org/org-chart.yaml", {"schemaVersion": 1, "agents": agents})
    review = {"id": "review", "role": "reviewer", "dependsOn": ["implement"], "canReject": True}
    desk.put("workflows/review.yaml", {"name": "review", "hops": [{"id": "implement", "role": "developer"}, review]})
    desk.aof("create", "Gated", "--workflow", "review")
    server = desk.walk("mcp", actor="ada")
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "walk", "version": "1"}}
    _ask(server, "initialize", about)
    _send(server, {"method": "notifications/initialized"})
    _ask(server, "tools/call", {"name": "aof_task_claim", "arguments": {"taskId": "001"}})
    server.send_signal(signal.SIGUSR1)
    _wait(Path(f"{desk.out}.begun").exists)
    done = {"taskId": "001", "summary": "done", "outcome": "complete"}
    _ask(server, "tools/call", {"name": "aof_task_complete", "arguments": done})
    return desk.counts(server)


def recover(folder: Path) -> Walked:
    """`aof up --once` after the service that hosted a worker was killed."""
    desk = Desk(folder)
    runner = {"kind": "process", "command": ["/bin/sleep", "600"]}
    desk.put("org/org-chart.yaml", {"schemaVersion": 1, "agents": [{"id": "ada", "runner": runner}]})
    desk.aof("trust", "--yes")
    desk.aof("create", "Dead", "--agent", "ada")
    service = desk.start([sys.executable, "-m", "aof"], "up")
    _wait(lambda: any(desk.root.glob("runs/*/attempts/*/process.json")))
    service.kill()
    service.communicate(timeout=PATIENCE)
    desk.put("org/org-chart.yaml", {"schemaVersion": 1, "agents": [{"id": "ada"}]})  # nobody starts it again
    return desk.counts(desk.walk("up", "--once"))


def _send(server: subprocess.Popen[str], message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    server.stdin.flush()


def _ask(server: subprocess.Popen[str], method: str, params: dict[str, Any]) -> None:
    """Call a method, and wait for its answer, which must not be a refusal."""
    assert server.stdout is not None
    _send(server, {"id": method, "method": method, "params": params})
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == method:
            if "error" in answer or answer["result"].get("isError"):
                raise SystemExit(f"{method} was refused: {line}")
            return
    raise SystemExit(f"the server ended before it answered {method}")


def _wait(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > deadline:
            raise SystemExit("what the walk waits for does not happen")
        time.sleep(0.02)


WALKS: dict[str, Callable[[Path], Walked]] = {"claim": claim, "complete": complete, "recover": recover}


def main(words: Sequence[str]) -> int:
    """Print the figures of some walks, or of all."""
    for name in words or WALKS:
        with tempfile.TemporaryDirectory(prefix="aof-walk-") as folder:
            found = WALKS[name](Path(folder))
        switches = sum(count for _, _, count in found["switches"])
        print(f"{name:10} {len(found['calls']):4} files {switches:6} switches")
        for here, there, count in found["switches"][:5]:
            print(f"{count:26} {here} → {there}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--trace"]:
        traced(sys.argv[2], sys.argv[3:])
    sys.exit(main(sys.argv[1:]))
