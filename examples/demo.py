"""The main job, live: `aof up` and a small team of real agents, of which one crashes, one is stuck and one never ends.

Run by `make demo`. Everything happens in a scratch directory that is removed at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aof

HERE = Path(__file__).parent
SETTINGS = 'schemaVersion = 1\nmaintainers = ["maintainer"]\n[retry]\nbase = 0.3\n'


def main() -> None:
    """Make a plan, serve until nothing is left to do, and tell what happened."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        root, _ = aof.init(f"{scratch}/.aof")
        shutil.copytree(HERE / "agents", f"{scratch}/agents")
        Path(root, "org").mkdir(exist_ok=True)
        shutil.copy(HERE / "org-chart.yaml", f"{root}/org/org-chart.yaml")
        Path(root, "aof.toml").write_text(SETTINGS, encoding="utf-8")
        with aof.open(root, actor="maintainer") as fabric:
            plan(fabric)
            print(f"\n{fabric.status().total} tasks; 'aof tick --dry-run' says what would happen first:\n")
        aof_command(root, "tick", "--dry-run")
        print("\n'aof trust' shows which commands would be started, and allows them:\n")
        aof_command(root, "trust", "--yes")
        print("\n'aof up' starts the agents:\n")
        aof_command(root, "up", "--once")
        aof_command(root, "trust", "revoke")
        print("\nwhat happened to each task, and why:\n")
        with aof.open(root, actor="maintainer") as fabric:
            told(fabric)
            report = fabric.doctor()
            lines = sum(1 for _ in fabric.events())
            print(f"\nthe history has {lines} events, each chained to the one before;")
            print(f"doctor says: {'everything is in order' if report.ok else report.problems}")
    print(f"all of it took {time.monotonic() - began:.1f} s")


def plan(fabric: aof.Fabric) -> None:
    """A feature in parts: some wait for others."""
    feature = fabric.create("Token refresh", agent="lead", brief="Let clients renew their token.", priority="high")
    parts = [
        fabric.create(f"Build part {number}", agent="backend", depends_on=[], review=False, tags=["api"]).task_id
        for number in (1, 2, 3)
    ]
    fabric.create("Migrate the table", agent="crasher", review=False)
    fabric.create("Connect the payment provider", agent="stuck")
    fabric.create("Convert the archive", agent="sleeper", max_attempts=2)
    fabric.create("Release it", agent="backend", depends_on=parts, backlog=True, parent_id=feature.task_id)


def aof_command(root: str, *words: str) -> None:
    """The command line, as a person would use it; agents find the same Python."""
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    command = [sys.executable, "-m", "aof", "--data-dir", root, *words]
    sys.stdout.flush()
    subprocess.run(command, check=True, env=os.environ | {"PATH": here}, timeout=60)


def told(fabric: aof.Fabric) -> None:
    """Each task with its runs and its last reason."""
    for row in fabric.list().tasks:
        shown = fabric.show(row.id)
        runs = [f"{run['agentId']} {run['status']}" for run in shown["attempts"]]
        moves = [event for event in fabric.events(task_id=row.id) if event.type == "task.transitioned"]
        reason = moves[-1].payload.get("reason", "") if moves else ""
        why = reason if row.status in ("blocked", "deadletter") else shown.get("result", {}).get("notes") or reason
        print(f"  {row.id}  {row.status:<11} {row.title:<29} {', '.join(runs)}")
        print(f"  {'':<20} {'':<11} → {why}")


if __name__ == "__main__":
    main()
