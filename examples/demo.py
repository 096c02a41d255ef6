"""The main job, live: `aof up` and a small team of real agents, of which one crashes, one is stuck and one never ends.

Run by `make demo`. It says first how each task should end, and afterwards whether it did; if one did not, it exits
with 1. Everything happens in a scratch directory that is removed at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import aof

HERE = Path(__file__).parent
SETTINGS = 'schemaVersion = 1\nmaintainers = ["maintainer"]\n[retry]\nbase = 0.3\n'
BOUND = 120  # seconds that the agents may take on a machine that has other things to do
PASSED = ("PATH", "HOME", "LANG", "TERM", "TMPDIR")  # what the agents get of our environment; they need no more


class Planned(NamedTuple):
    """A task of the plan: whose it is, how it should end, and why."""

    title: str
    agent: str
    end: str
    why: str


PLAN = (
    Planned("Token refresh", "lead", "done", "lead hands the tests to qa, waits for them, and completes"),
    Planned("Test the refresh endpoint", "qa", "done", "lead makes this task, once, and qa does it"),
    Planned("Build part 1", "backend", "done", "backend works and reports"),
    Planned("Build part 2", "backend", "done", "the same, at the same time"),
    Planned("Migrate the table", "crasher", "done", "crasher is killed in its first try; the second succeeds"),
    Planned("Connect the payment provider", "stuck", "blocked", "stuck says that a key is missing"),
    Planned("Convert the archive", "sleeper", "deadletter", "sleeper never ends and is stopped, twice"),
    Planned("Release it", "backend", "review", "begins after the others are built; a person has to approve it"),
)


def main() -> int:
    """Make a plan, serve until nothing is left to do, and compare what happened with what was announced."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        root = prepared(scratch)
        with aof.open(root, actor="maintainer") as fabric:
            create(fabric)
        print("\nA team of agents gets some tasks. This is how each should end:\n")
        for task in PLAN:
            print(f"  {task.end:<10}  {task.title:<28}  {task.why}")
        print("\n'aof trust' allows the commands of the org chart to run, 'aof up' starts the agents:\n")
        wrong = served(root)
        print("\nThis is how each has ended:\n")
        with aof.open(root, actor="maintainer") as fabric:
            tell(fabric)
            wrong += differences(fabric)
            events = sum(1 for _ in fabric.events())
    took = f"It took {time.monotonic() - began:.1f} s."
    if wrong:
        print(f"\nNot all is as announced. {took}", *wrong, sep="\n  ", flush=True)
    else:
        told = f"The log has {events} events, and doctor found no problem."
        print(f"\nAll {len(PLAN)} tasks ended as announced. {told} {took}")
    return 1 if wrong else 0


def prepared(folder: str) -> str:
    """A data directory with the org chart, and the agents beside it."""
    root, _ = aof.init(f"{folder}/.aof")
    shutil.copytree(HERE / "agents", f"{folder}/agents")
    Path(root, "org").mkdir(exist_ok=True)
    shutil.copy(HERE / "org-chart.yaml", f"{root}/org/org-chart.yaml")
    Path(root, "aof.toml").write_text(SETTINGS, encoding="utf-8")
    return root


def create(fabric: aof.Fabric) -> None:
    """Everything of the plan but what the lead makes; only the release needs a review, and waits for others."""
    feature = fabric.create("Token refresh", agent="lead", brief="Let clients renew their token.", review=False)
    parts = [fabric.create(f"Build part {number}", agent="backend", review=False) for number in (1, 2)]
    fabric.create("Migrate the table", agent="crasher", review=False)
    fabric.create("Connect the payment provider", agent="stuck")
    fabric.create("Convert the archive", agent="sleeper", max_attempts=2)
    fabric.create("Release it", agent="backend", depends_on=[one.task_id for one in (feature, *parts)])


def served(root: str) -> list[str]:
    """Let the agents work until nothing is left to do; what went wrong with that."""
    aof_command(root, "trust", "--yes", quiet=True)
    try:
        aof_command(root, "up", "--once")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        return [f"'aof up' did not end as it should: {error}"]
    finally:
        aof_command(root, "trust", "revoke", quiet=True)
    return []


def aof_command(root: str, *words: str, quiet: bool = False) -> None:
    """The command line, as a person would use it; agents find the same Python."""
    env = {name: os.environ[name] for name in PASSED if name in os.environ}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"
    command = [sys.executable, "-m", "aof", "--data-dir", root, *words]
    sys.stdout.flush()
    subprocess.run(command, check=True, env=env, timeout=BOUND, stdout=subprocess.DEVNULL if quiet else None)


def tell(fabric: aof.Fabric) -> None:
    """Each task with its runs, and what came of it, in the order of the plan."""
    order = {task.title: place for place, task in enumerate(PLAN)}
    for row in sorted(fabric.list().tasks, key=lambda row: order.get(row.title, len(order))):
        shown = fabric.show(row.id)
        runs = ", ".join(f"{run['agentId']} {run['status']}" for run in shown["attempts"]) or "never run"
        print(f"  {row.status:<10}  {row.title:<28}  {runs}: {outcome(shown)}")


def outcome(shown: dict[str, Any]) -> str:
    """What was said last of a task: the reason why it stopped, else the worker's own words."""
    if "blocked" in shown:
        return str(shown["blocked"]["reason"])
    if shown["status"] == "deadletter":
        return f"{shown['lastError']['code']}, {shown['lastError']['message']}"
    return str(shown.get("result", {}).get("notes") or shown.get("waits") or "no result")


def differences(fabric: aof.Fabric) -> list[str]:
    """What is not as it was announced, in words; nothing where all is."""
    found = [(row.title, row.status, outcome(fabric.show(row.id))) for row in fabric.list().tasks]
    wrong: list[str] = []
    for task in PLAN:
        ends = [(status, why) for title, status, why in found if title == task.title]
        if len(ends) != 1:
            wrong.append(f"'{task.title}' should be there once, and is there {len(ends)} times.")
        wrong += [
            f"'{task.title}' should be {task.end}, and is {status}: {why}" for status, why in ends if status != task.end
        ]
    known = {task.title for task in PLAN}
    wrong += [f"'{title}' was not announced, and is {status}." for title, status, _ in found if title not in known]
    return wrong + [f"The doctor found: {problem}" for problem in fabric.doctor().problems]


if __name__ == "__main__":
    sys.exit(main())
