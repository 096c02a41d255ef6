"""`aof up` as a process of its own, and eyes for what it says. Waits for what it expects, never for time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aof.service.bootstrap import init_data_dir
from aof.service.upkeep import trust_data_dir
from tests.support.waiting import BOUND
from tests.support.warm import Forked

SCRIPT = Path(__file__).with_name("scripted.py")
SETTINGS = """schemaVersion = 1
[storage]
durability = "relaxed"
[retry]
base = 0.05
[lease]
ttl = 60
"""


def scripted(*words: str) -> list[str]:
    """The command of an agent that does these things."""
    return [sys.executable, "-S", "-E", str(SCRIPT), *words]


def directory(folder: Path, agents: dict[str, Any], settings: str = SETTINGS) -> Path:
    """A data directory of `pm` with a chart: each agent a command, or all that the chart says of it. All is trusted."""
    root = Path(init_data_dir(folder / ".aof")[0])
    (root / "aof.toml").write_text(f'maintainers = ["pm"]\n{settings}', encoding="utf-8")
    chart(root, agents)
    return root


def definition(root: Path, name: str, document: dict[str, Any]) -> None:
    """Write an org chart or a template; JSON is YAML."""
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text(json.dumps(document), encoding="utf-8")


def chart(root: Path, agents: dict[str, Any]) -> None:
    """Write the org chart, and trust its commands."""
    listed = [
        {"id": name} | (given if isinstance(given, dict) else {"runner": {"kind": "process", "command": given}})
        for name, given in agents.items()
    ]
    definition(root, "org/org-chart.yaml", {"schemaVersion": 1, "agents": listed})
    if agents:
        trust_data_dir(root)


def workflow(root: Path, document: dict[str, Any]) -> None:
    """Write a template."""
    definition(root, f"workflows/{document['name']}.yaml", document)


def having(role: str, *words: str, **more: Any) -> dict[str, Any]:
    """An agent with a role that does these things."""
    return {"roles": [role], "runner": {"kind": "process", "command": scripted(*words)}, **more}


class Up:
    """A running service; `lines` is what it has said so far. One that never `forks` loads everything itself."""

    def __init__(self, root: Path, *more: str, forks: bool = True) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AOF_")}
        words = ["aof", "--data-dir", str(root), "up", "--log-json", *more]
        self.process: Forked | subprocess.Popen[str]
        if forks:
            self.process = Forked(*words, environment=environment)
        else:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
            )
        self.lines: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.lines.append(json.loads(line) if line.startswith("{") else {"action": "raw", "reason": line})
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def wait(self, action: str, task_id: str | None = None, *, times: int = 1) -> dict[str, Any]:
        """The nth line about this action (and task), as soon as it is there."""

        def found() -> list[dict[str, Any]]:
            return [one for one in self.lines if one["action"] == action and task_id in (None, one["taskId"])]

        self.until(lambda: len(found()) >= times, f"{action} {task_id}")
        return found()[times - 1]

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until something has been said, within bounds."""
        with self._news:
            if not self._news.wait_for(condition, BOUND):
                raise AssertionError(f"no {what} in {self.lines}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        self.process.send_signal(number)
        return self.finish()

    def finish(self) -> int:
        """Wait for the end."""
        code = self.process.wait(BOUND)
        self._reader.join(BOUND)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.finish()


def lives(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
