"""The main job, live: several agents share one data directory, one is killed, its work is recovered.

Run by `make demo`. Everything happens in a scratch directory that is removed at the end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aof

AGENTS = ("ada", "bert", "cleo", "dora")
AGENT = Path(__file__).with_name("agent.py")


def main() -> None:
    """Create a small plan, let the agents work on it, kill one, recover, and tell what happened."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        root, _ = aof.init(f"{scratch}/.aof")
        Path(root, "aof.toml").write_text("[retry]\nbase = 0.2\n", encoding="utf-8")
        with aof.open(root, actor="maintainer") as fabric:
            plan(fabric)
            print(f"\n{fabric.status().total} tasks in {root}; {fabric.ready().total} of them can be run at once\n")
            print("four agents start; dora will be killed in the middle of 'Write the tests'")
            run(root, dies={"dora": "Write the tests"})
            stuck = fabric.list(status="in-progress")
            for task in stuck.tasks:
                print(f"  {task.id} is left in progress by {task.agent}, who is dead")
            recover(fabric, root)
            summary(fabric)
    print(f"\nall of it took {time.monotonic() - began:.1f} s; nothing was lost, nothing was done twice")


def plan(fabric: aof.Fabric) -> None:
    """A feature in parts: some wait for others."""
    feature = fabric.create(
        "Token refresh", brief="Let clients renew their token.", metadata={"waitForChildren": True}, review=False
    )
    design = part(fabric, feature.task_id, "Sketch the design", priority="critical")
    build = [part(fabric, feature.task_id, f"Build part {number}", depends_on=[design]) for number in range(1, 9)]
    tests = part(fabric, feature.task_id, "Write the tests", agent="dora", depends_on=[design])
    part(fabric, feature.task_id, "Release it", depends_on=[*build, tests])


def part(fabric: aof.Fabric, parent: str, title: str, **more: object) -> str:
    """One task below the feature."""
    return fabric.create(title, parent_id=parent, review=False, **more).task_id  # type: ignore[arg-type]


def run(root: str, dies: dict[str, str]) -> None:
    """Start every agent as a process of its own, again and again until none finds work."""
    for _ in range(3):
        agents = [
            subprocess.Popen([sys.executable, str(AGENT), name, root, *([dies[name]] if name in dies else [])])
            for name in AGENTS
        ]
        for name, agent in zip(AGENTS, agents, strict=True):
            if agent.wait(timeout=20) < 0:
                print(f"  {name} was killed (signal {-agent.returncode})")
                dies.pop(name)


def recover(fabric: aof.Fabric, root: str) -> None:
    """Wait for the dead agent's lease to end, put its work back, and let the agents go on."""
    deadline = time.monotonic() + 10
    while not (recovered := fabric.recover()) and time.monotonic() < deadline:
        time.sleep(0.1)
    for one in recovered:
        print(f"  its lease ended: {one.task_id} goes back to {one.status} ({one.reason})")
    while fabric.list(status="ready").total and time.monotonic() < deadline:
        run(root, dies={})


def summary(fabric: aof.Fabric) -> None:
    """What happened to each task, and that the history proves it."""
    print("\nwhat happened:")
    for row in fabric.list().tasks:
        runs = [f"{run['agentId']} {run['status']}" for run in fabric.show(row.id)["attempts"]]
        print(f"  {row.id}  {row.status:<5}  {row.title:<18}  {', '.join(runs)}")
    starts = [event for event in fabric.events() if event.type == "task.attempt.started"]
    lines = sum(1 for _ in fabric.events())
    print(f"\nthe history has {lines} events, {len(starts)} of them runs; each chained to the one before:")
    report = fabric.doctor()
    print(f"  doctor says: {'everything is in order' if report.ok else report.problems}")


if __name__ == "__main__":
    main()
