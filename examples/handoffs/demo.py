"""Five ways in which work goes from one agent to another, live, with `aof up` and real processes.

A chain of three; a review by three, where the majority decides; an escalation to a person; an agent that never
acknowledges; one that dies after it has accepted. Everything happens in a scratch directory, or in the folder that is
given as an argument and kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aof

HERE = Path(__file__).parent
SETTINGS = 'schemaVersion = 1\nmaintainers = ["maintainer"]\n'
PULLING = {"ann": "agrees", "ben": "agrees", "cas": "objects", "writer": "wrote it", "fragile": "dies"}
BOUND = 60.0  # seconds, for a machine that has other things to do


def main(folder: str) -> None:
    """Start the team, hand work around, and tell what the audit says."""
    root, _ = aof.init(f"{folder}/.aof")
    shutil.copytree(HERE / "agents", f"{folder}/agents")
    Path(root, "org").mkdir(exist_ok=True)
    shutil.copy(HERE / "org-chart.yaml", f"{root}/org/org-chart.yaml")
    Path(root, "aof.toml").write_text(SETTINGS, encoding="utf-8")
    command(root, "trust", "--yes")
    try:
        with ExitStack() as team, aof.open(root, actor="maintainer") as fabric:
            team.enter_context(process(root, "-m", "aof", "up"))
            for name, says in PULLING.items():
                team.enter_context(process(root, f"{folder}/agents/pulls.py", name, says))
            hand_around(root, fabric)
        with aof.open(root, actor="maintainer") as fabric:
            told(fabric)
    finally:
        command(root, "trust", "revoke")


def hand_around(root: str, fabric: aof.Fabric) -> None:
    """Begin everything, answer as a person, and wait until all of it has come to its end."""
    chain = fabric.create("Token refresh", agent="architect", review=False).task_id
    review = begin(fabric, "broadcast", "Is the login safe?", "ann", "ben", "cas", aggregation="majority", timeout="1m")
    docs = begin(fabric, "delegation", "Describe the login", "silent", capabilities=["docs"], timeout="1m")
    data = begin(fabric, "delegation", "Move the data", "fragile", timeout="1s", on_timeout="escalate")
    asked = begin(fabric, "escalation", "May we delete the old data?", "human", rationale="it cannot be undone")
    print("\na person answers on the command line:\n")
    command(root, "handoff", "answer", asked, "--text", "yes, after a backup")
    until(lambda: fabric.get(chain).status == "done", "the chain")
    until(lambda: fabric.handoff_group(review).state != "open", "the review")
    until(lambda: is_done(fabric, docs) and is_done(fabric, data), "the delegations")


def begin(fabric: aof.Fabric, kind: str, title: str, *to: str, **given: Any) -> str:
    """Hand a new task over, which nobody else begins; the ID of the handoff, or of the whole broadcast."""
    task = fabric.create(title, review=False, metadata={"draft": True}).task_id
    made = fabric.handoff_new(type=kind, task_id=task, reason=title, to=list(to), **given)
    return str(made.broadcast_group_id or made.handoff_id)


def is_done(fabric: aof.Fabric, handoff_id: str) -> bool:
    """Whether somebody has brought the result, whoever the handoff went on to."""
    here = fabric.handoff_show(handoff_id)
    while here.forwarded_to is not None:
        here = fabric.handoff_show(here.forwarded_to)
    return here.state == "completed"


def told(fabric: aof.Fabric) -> None:
    """What the audit says of each task."""
    for row in fabric.list().tasks:
        print(f"\n{row.id}  {row.title}")
        for one in fabric.audit(task=row.id).records:
            print(f"  {one.timestamp}  {one.event_type:<10} {one.from_agent} → {one.to_agent}: {one.reason}")
    checked = fabric.audit_verify()
    print(f"\n{checked.checked} audit records; {'all as they were written' if checked.ok else checked.problems}")


@contextmanager
def process(root: str, *words: str) -> Iterator[None]:
    """A process of the team, which ends with the demo."""
    env = os.environ | {"AOF_DATA_DIR": root, "PATH": path()}
    started = subprocess.Popen([sys.executable, *words], env=env, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        started.terminate()
        started.wait(BOUND)


def command(root: str, *words: str) -> None:
    """The command line, as a person would use it."""
    sys.stdout.flush()
    line = [sys.executable, "-m", "aof", "--data-dir", root, "--actor", "maintainer", *words]
    subprocess.run(line, check=True, env=os.environ | {"PATH": path()}, timeout=BOUND)


def path() -> str:
    """Where agents find the same Python."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until something has happened."""
    end = time.monotonic() + BOUND
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} has not come to its end")
        time.sleep(0.05)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(scratch)
